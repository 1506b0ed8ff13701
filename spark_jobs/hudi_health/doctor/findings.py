"""The findings of the doctor's checks, and the one look at the table's files that they share. Ages are seconds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, field
from functools import cache, cached_property
from typing import Any, Final, Generic, Literal, TypeVar

from hudi_core.errors import FormatError, StorageNotFoundError
from hudi_core.filegroup.read.torn_tails import CompletedWrites
from hudi_core.frozen import dataclass
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.services.archive.listing import appended_log_bytes
from hudi_core.services.context import TableContext
from hudi_core.storage.base import FileInfo
from hudi_core.storage.one_look import look_again
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_system_view import FileSystemView
from hudi_core.view.listing import CommittedSizes, StorageListing, walk_partitions

Severity = Literal["error", "warning", "info"]
"""The severity: error means that rows are wrong or will be lost, warning that something is blocked or may fail, info
that no action is needed now.
"""

KEPT: Final = 100
"""The most differences of one sort that are kept. All are counted."""
_SHOWN: Final = 5

T = TypeVar("T")


def duration(seconds: float) -> str:
    """Returns an age for people, in seconds, minutes, hours or days: the largest unit with at least two."""
    for unit, name in ((86_400, "days"), (3_600, "hours"), (60, "minutes")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds:.0f} s"


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding: its rule, the problem, and the fix. `age_seconds` is the age of the instant or lock."""

    rule: str
    severity: Severity
    what: str
    fix: str
    instant: str | None = None
    path: str | None = None
    age_seconds: float | None = None
    owner: str | None = None
    blocks: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        age = None if self.age_seconds is None else round(self.age_seconds, 3)
        return asdict(self) | {"blocks": list(self.blocks), "age_seconds": age}


@dataclass(slots=True)
class Counted(Generic[T]):
    """The first KEPT items, and the number of all items."""

    first: list[T] = field(default_factory=list)
    count: int = 0

    def add(self, *items: T) -> None:
        self.count += len(items)
        self.first += items[: KEPT - len(self.first)]

    def named(self, kind: str = "file") -> str:
        """Returns the count of the items of a `kind` as text for people, with the first items."""
        more = "" if self.count <= _SHOWN else f" and {self.count - _SHOWN} more"
        shown = ", ".join(map(str, self.first[:_SHOWN]))
        return f"{self.count} {kind}{'' if self.count == 1 else 's'} ({shown}{more})"


def each_of(counted: Counted[Finding], rest: str, fix: str) -> Iterator[Finding]:
    """Yields the kept findings, and one more finding with the number of the others, which `rest` describes."""
    yield from counted.first
    if counted.count > KEPT:
        more = f"{counted.count - KEPT} {rest}"
        yield Finding(counted.first[0].rule, counted.first[0].severity, more, fix)


class DataFiles:
    """A table's files at `timeline`. Each part is read once, when a check needs it. It is a view.listing.FileListing.
    Memory: about 300 bytes for each data file.
    """

    def __init__(self, context: TableContext, timeline: Timeline) -> None:
        self.context = context
        self.storage = context.storage
        self.timeline = timeline
        self.history = cache(context.history)
        self.writes = CompletedWrites(context.active, timeline, self.history)
        self.metadata = MetadataTable(context.storage, context.config, timeline)

    @cached_property
    def by_partition(self) -> dict[str, list[FileInfo]]:
        """The files of the storage by partition, in the order of walk_partitions. Raises FormatError for folders that
        are not a table's.
        """
        return dict(walk_partitions(self.storage, StorageListing(self.storage).files))

    def partitions(self) -> list[str]:
        return sorted(self.by_partition)

    def files(self, partition: str) -> list[FileInfo]:
        return self.by_partition.get(partition, [])

    @cached_property
    def view(self) -> FileSystemView | None:
        """The file slices in the storage; None if a pending plan cannot be read, which another rule reports."""
        try:
            return self.context.view(self.timeline, listing=self)
        except (FormatError, StorageNotFoundError):
            return None

    @cached_property
    def sizes(self) -> CommittedSizes:
        """The sizes of files by the commits, also for `writes`. Raises FormatError for an unreadable commit."""
        return CommittedSizes(self.timeline, self.writes.read_commit, self.history)

    @cached_property
    def written(self) -> Mapping[str, int] | None:
        """The result of appended_log_bytes. Raises FormatError for a commit or rollback that cannot be read."""
        return appended_log_bytes(self.context, self.timeline)

    def is_current(self) -> bool:
        look_again(self.storage)
        return self.context.active.load() == self.timeline
