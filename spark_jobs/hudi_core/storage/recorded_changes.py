"""Records which files of a table one command of this process has changed: the answer to "was anything written?".

Bad input ends in exit code 2, which promises that nothing was written (docs/use/hudictl.md). Only this module knows
whether that is true, whatever found the bad input, and when. It does not see what executors write, and need not: no
unit runs before its instant is claimed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import BinaryIO, Final

from hudi_core.errors import EXIT_BAD_INPUT, HudiError
from hudi_core.frozen import dataclass
from hudi_core.storage.base import ByteRange, FileInfo, Storage

_PASSING: Final = (".hoodie/.airflow_hudi/", ".hoodie/.heartbeat/", ".hoodie/lock")
"""Claims, clocks, heartbeats and the lock. They come and go, which is not reported."""
_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class Changes:
    """Net changes, with paths in order. A file that was written and deleted again is in `rolled_back` alone."""

    written: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    rolled_back: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    """Written files that others have removed since. Only the changes that `exit_code_of_changes` reports have any."""

    def __bool__(self) -> bool:
        return bool(self.written or self.deleted)

    def describe(self) -> str:
        gone = (path for path in self.rolled_back if not path.startswith(_PASSING))
        parts = (
            ("rolled back", gone),
            ("deleted", self.deleted),
            ("gone since", self.lost),
            ("still there", self.written),
        )
        named = ((label, [*paths]) for label, paths in parts)
        return "; ".join(f"{label}: {_some(paths)}" for label, paths in named if paths)


class RecordingStorage:
    """A storage that records what is changed through it during `recording`. Threads may share it."""

    def __init__(self, inner: Storage) -> None:
        self.uri = inner.uri
        self.limits = inner.limits
        self.supports_exclusive_create = inner.supports_exclusive_create
        self.supports_conditional_write = inner.supports_conditional_write
        self._inner = inner
        self.stat, self.exists, self.list_tree = inner.stat, inner.exists, inner.list_tree
        self.read_versioned, self.open_input = inner.read_versioned, inner.open_input
        self._events: list[tuple[str, bool]] = []
        """Paths in the order of their changes, and whether the file was there afterwards."""
        self._recordings = 0
        self._guard = threading.Lock()

    @contextmanager
    def recording(self) -> Iterator[Callable[[], Changes]]:
        """Yields a function that returns the changes since here. It may be nested; the outermost end forgets all."""
        with self._guard:
            self._recordings += 1
            start = len(self._events)
        try:
            yield lambda: self._changes(start)
        finally:
            with self._guard:
                self._recordings -= 1
                if not self._recordings:
                    self._events.clear()

    def list_files(self, folder: str) -> list[FileInfo]:
        return self._inner.list_files(folder)

    def list_names(self, folder: str) -> list[str]:
        return self._inner.list_names(folder)

    def list_folders(self, folder: str) -> list[str]:
        return self._inner.list_folders(folder)

    def read(self, path: str) -> bytes:
        return self._inner.read(path)

    def read_range(self, path: str, span: ByteRange) -> bytes:
        return self._inner.read_range(path, span)

    def write(self, path: str, data: bytes) -> None:
        with self._changing(path):
            self._inner.write(path, data)

    def create_exclusive(self, path: str, data: bytes) -> None:
        with self._changing(path):
            self._inner.create_exclusive(path, data)

    def write_if(self, path: str, data: bytes, *, version: str | None) -> str:
        with self._changing(path):
            return self._inner.write_if(path, data, version=version)

    def open_output(self, path: str) -> BinaryIO:
        self._note(path, is_there=True)
        with self._changing(path):
            return self._inner.open_output(path)

    def delete(self, path: str) -> bool:
        with self._changing(path, is_there=False):
            was_there = self._inner.delete(path)
        if was_there:
            self._note(path, is_there=False)
        return was_there

    def remove(self, path: str) -> None:
        with self._changing(path, is_there=False):
            self._inner.remove(path)
        self._note(path, is_there=False)

    def delete_folder(self, folder: str) -> list[str]:
        removed = self._inner.delete_folder(folder)
        for path in removed:
            self._note(path, is_there=False)
        return removed

    @contextmanager
    def _changing(self, path: str, *, is_there: bool = True) -> Iterator[None]:
        """Surrounds a change of a file, after which the file exists or is absent (`is_there`)."""
        yield
        if is_there:
            self._note(path, is_there=True)

    def _note(self, path: str, *, is_there: bool) -> None:
        with self._guard:
            if self._recordings:
                self._events.append((path, is_there))

    def _changes(self, start: int) -> Changes:
        with self._guard:
            events = self._events[start:]
        first, last = dict(reversed(events)), dict(events)
        return Changes(
            tuple(sorted(path for path, is_there in last.items() if is_there)),
            tuple(sorted(path for path, is_there in last.items() if not is_there and not first[path])),
            tuple(sorted(path for path, is_there in last.items() if not is_there and first[path])),
        )


@contextmanager
def exit_code_of_changes(storage: Storage) -> Iterator[None]:
    """Turns bad input that is found after a change of `storage` into a failure that says what became of the changes."""
    if not isinstance(storage, RecordingStorage):
        yield
        return
    with storage.recording() as changes:
        try:
            yield
        except HudiError as error:
            if error.exit_code != EXIT_BAD_INPUT or not (changed := changes()):
                raise
            raise error.found_late(_as_it_is(storage, changed).describe()) from error


def _as_it_is(storage: Storage, changes: Changes) -> Changes:
    """Returns the changes without files that others, as a `DROP TABLE`, removed. Requests each written file once."""
    lost = {path for path in changes.written if not _may_exist(storage, path)}
    return replace(
        changes, written=tuple(path for path in changes.written if path not in lost), lost=tuple(sorted(lost))
    )


def _may_exist(storage: Storage, path: str) -> bool:
    try:
        return storage.exists(path)
    except HudiError:
        return True


def _some(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _NAMED} others" if len(paths) > _NAMED else ""
    return ", ".join(paths[:_NAMED]) + more
