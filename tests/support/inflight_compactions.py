"""An inflight compaction on a timeline of either layout, and those who complete it."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from hudi_core.errors import StorageError, StorageExistsError
from hudi_core.storage.base import Storage
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, Instant
from hudi_core.transaction.claim import Claim, claim
from hudi_core.transaction.commit import Completer
from hudi_core.transaction.instant_generator import InstantClock
from hudi_core.transaction.locks.filesystem import FileSystemLock
from hudi_core.transaction.owner import Owner
from tests.support.memory_storage import MemoryStorage

T = "20260102000000000"
OWNER = Owner.current("tester")


@dataclass(frozen=True)
class Layout:
    """What a timeline asks of the configuration."""

    layout_version: int

    @property
    def timeline_folder(self) -> str:
        return ".hoodie" if self.layout_version == 1 else ".hoodie/timeline"


def quiet_clock() -> InstantClock:
    """Draws times without waiting for other machines' clocks."""
    return InstantClock("UTC", 0)


@dataclass
class Table:
    """A table with a compaction at `T` that is inflight. `actors` may see it through storages of their own."""

    layout: int
    storage: Storage = field(default_factory=MemoryStorage)
    owner: Owner = OWNER

    def __post_init__(self) -> None:
        self.active = self.timeline(self.storage)

    def begin(self) -> Table:
        self.active.create_requested(T, Action.COMPACTION, b"plan")
        self.active.to_inflight(T, Action.COMPACTION)
        return self

    def timeline(self, storage: Storage) -> ActiveTimeline:
        return ActiveTimeline(storage, Layout(self.layout), zone="UTC")

    def claim(self, storage: Storage | None = None, *, expired: bool = False) -> Claim:
        """`expired`: its owner is taken for dead."""
        return claim(storage or self.storage, T, self.owner, now=(lambda: 2.0**40) if expired else None)

    def completer(
        self, held: Claim, storage: Storage | None = None, *, expire_minutes: float = 0, wait_ms: int = 0
    ) -> Completer:
        mine = storage or self.storage

        def lock() -> FileSystemLock:
            return FileSystemLock(mine, self.owner, wait_ms=wait_ms, expire_minutes=expire_minutes)

        return Completer(self.timeline(mine), held, lock, quiet_clock())

    def completed(self) -> list[Instant]:
        """Every completed file of the instant: one, or what a race did."""
        names = [path.rpartition("/")[2] for path in self.active.completed_paths(T, Action.COMPACTION)]
        return [found for name in names for found in self.active._naming.instants([name])]

    def contents(self) -> list[bytes]:
        """The contents of the completed files."""
        return [self.storage.read(path) for path in self.active.completed_paths(T, Action.COMPACTION)]


class MeanwhileStorage(MemoryStorage):
    """Lets something happen right before one request is carried out: the sender was stopped, or the request was on its
    way.
    """

    def __init__(self) -> None:
        super().__init__()
        self.before: list[tuple[Callable[[str], bool], Callable[[], None]]] = []

    def when(self, matches: Callable[[str], bool], happens: Callable[[], None]) -> None:
        self.before.append((matches, happens))

    def create_exclusive(self, path: str, data: bytes) -> None:
        for matches, happens in [item for item in self.before if item[0](path)]:
            self.before.remove((matches, happens))
            happens()
        super().create_exclusive(path, data)


class LatePuts(MemoryStorage):
    """A request times out for its sender and is carried out later."""

    def __init__(self, late: Callable[[str], bool], clock: Callable[[], float] = time.time) -> None:
        super().__init__(clock=clock)
        self._late = late
        self.waiting: list[tuple[str, bytes]] = []

    def create_exclusive(self, path: str, data: bytes) -> None:
        if self._late(path) and not self.waiting:
            self.waiting.append((path, data))
            raise StorageError("timed out", path=path)
        super().create_exclusive(path, data)

    def arrive(self) -> None:
        """The late requests are carried out; no process waits for an answer."""
        for path, data in self.waiting:
            with suppress(StorageExistsError):
                super().create_exclusive(path, data)


class OpenLock:
    """A table lock that excludes no process: the worst that expired leases and broken locks can do."""

    name = "open"

    def __enter__(self) -> OpenLock:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def acquire(self) -> None:
        return None

    def release(self) -> bool:
        return True

    def check(self) -> None:
        return None

    def holder(self) -> None:
        return None
