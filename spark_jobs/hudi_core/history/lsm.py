"""The archived timeline of layout 2: Parquet files of instants, sorted by requested time (ArchivedTimelineV2).

A row holds requested and completion time, the action under which the instant completed, and the bytes of its completed
file and of its plan. Lists of instants are made of the first three columns alone; the bytes are read for single
instants, a few rows at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from operator import attrgetter
from typing import Any, Final

import pyarrow as pa

from hudi_core.codec.parquet.file import ParquetBaseFile
from hudi_core.errors import CorruptFileError, StorageNotFoundError
from hudi_core.history.manifest import HistoryFile, read_snapshot
from hudi_core.storage.base import Storage
from hudi_core.timeline.actions.commit import CommitMetadata, decode_commit
from hudi_core.timeline.actions.container import decode_any
from hudi_core.timeline.instant import COMMIT_ACTIONS, Instant, State
from hudi_core.timeline.timeline import Timeline

_TIME: Final = "instantTime"
_COMPLETION: Final = "completionTime"
_ACTION: Final = "action"
_METADATA: Final = "metadata"
_PLAN: Final = "plan"
_CONTENT_ROWS: Final = 16
"""Rows whose content is held at once: the metadata of a wide commit can have some megabytes."""

_REMEDY: Final = "restore the file from a copy; the instants that it holds are nowhere else"

_Key = tuple[str, str]
"""Requested time and action."""
_ORDER: Final = attrgetter("requested_time", "action")
"""Timeline order of archived instants: they are completed, so their actions name their classes."""


class LsmHistory:
    """The archive in `folder`, by its latest snapshot at the first query; see history.archived.ArchivedTimeline.

    Keeps the times and actions of every file it has read, about 300 bytes an instant; content is never kept. Not
    thread-safe.
    """

    def __init__(self, storage: Storage, folder: str) -> None:
        self._storage = storage
        self._folder = folder
        self._loaded: dict[str, list[Instant]] = {}
        self._times: dict[str, dict[str, str]] = {}

    @cached_property
    def _files(self) -> list[HistoryFile]:
        return read_snapshot(self._storage, self._folder)

    def instants(self, after: str | None = None, up_to: str | None = None) -> list[Instant]:
        """See ArchivedTimeline; files outside the range are not opened."""
        found: dict[_Key, Instant] = {}
        for file in self._files:
            if not file.overlaps(after, up_to):
                continue
            for instant in self._instants_of(file):
                time = instant.requested_time
                if (after is None or time > after) and (up_to is None or time <= up_to):
                    # An archiver that died before it removed the active files archives them again.
                    found.setdefault((time, instant.action), instant)
        return sorted(found.values(), key=_ORDER)

    def completed_in(self, begin: str | None, end: str | None) -> list[Instant]:
        """See ArchivedTimeline; files that start after `end` are not opened: an instant completes after its request."""
        completed = [
            instant
            for instant in self.instants(up_to=end)
            if (begin is None or instant.completed_at > begin) and (end is None or instant.completed_at <= end)
        ]
        return sorted(completed, key=attrgetter("completion_time", "requested_time", "action"))

    def timeline(self) -> Timeline:
        """See ArchivedTimeline."""
        return Timeline.in_order(self.instants())

    def completion_time(self, requested_time: str) -> str | None:
        """See ArchivedTimeline; opens only files whose range covers the time."""
        for file in self._covering(requested_time):
            times = self._times.get(file.path)
            if times is None:
                times = self._times[file.path] = {}
                for instant in self._instants_of(file):
                    times.setdefault(instant.requested_time, instant.completed_at)
            found = times.get(requested_time)
            if found is not None:
                return found
        return None

    def commit(self, requested_time: str) -> CommitMetadata | None:
        """See ArchivedTimeline."""
        for _, metadata in self.commits(self.instants_at(requested_time)):
            return metadata
        return None

    def commits(self, instants: Iterable[Instant]) -> Iterator[tuple[Instant, CommitMetadata]]:
        """See ArchivedTimeline; holds the content of 16 instants at once, and one stored column chunk of a file."""
        requested = [instant for instant in instants if instant.action in COMMIT_ACTIONS]
        for instant, data, path in self._content(requested, _METADATA):
            yield instant, decode_commit(data, path=path)

    def content(self, instant: Instant) -> dict[str, Any]:
        """See ArchivedTimeline."""
        return self._decoded(instant, _METADATA)

    def plan(self, instant: Instant) -> dict[str, Any]:
        """See ArchivedTimeline."""
        return self._decoded(instant, _PLAN)

    def instants_at(self, requested_time: str) -> list[Instant]:
        """The instants at one requested time: a savepoint shares its commit's."""
        found = {
            instant.action: instant
            for file in self._covering(requested_time)
            for instant in self._instants_of(file)
            if instant.requested_time == requested_time
        }
        return sorted(found.values(), key=_ORDER)

    def _covering(self, time: str) -> list[HistoryFile]:
        return [file for file in self._files if file.begin <= time <= file.end]

    def _decoded(self, instant: Instant, column: str) -> dict[str, Any]:
        for _, data, path in self._content([instant], column):
            return decode_any(data, path=path)
        return {}

    def _content(self, instants: Sequence[Instant], column: str) -> Iterator[tuple[Instant, bytes, str]]:
        """A column's bytes for each of `instants` in the archive, and their file; every file is read at most once."""
        requested = {(instant.requested_time, instant.action): instant for instant in instants}
        for file in self._files:
            inside = {key for key in requested if file.begin <= key[0] <= file.end}
            if not inside:
                continue
            for batch in self._batches(file, (_TIME, _ACTION, column), _CONTENT_ROWS):
                keys = zip(_texts(batch, _TIME, file), _texts(batch, _ACTION, file), strict=True)
                for row, key in enumerate(keys):
                    if key in inside:
                        inside.discard(key)
                        yield requested.pop(key), batch.column(column)[row].as_py() or b"", file.path
                if not inside:
                    break

    def _instants_of(self, file: HistoryFile) -> list[Instant]:
        loaded = self._loaded.get(file.path)
        if loaded is None:
            loaded = []
            for batch in self._batches(file, (_TIME, _COMPLETION, _ACTION), None):
                rows = zip(
                    _texts(batch, _TIME, file),
                    _texts(batch, _COMPLETION, file),
                    _texts(batch, _ACTION, file),
                    strict=True,
                )
                loaded += [
                    Instant(time, action, State.COMPLETED, completion, action) for time, completion, action in rows
                ]
            self._loaded[file.path] = loaded
        return loaded

    def _batches(self, file: HistoryFile, columns: tuple[str, ...], rows: int | None) -> Iterator[pa.RecordBatch]:
        try:
            source = self._storage.open_input(file.path)
        except StorageNotFoundError as error:
            # Not StorageNotFoundError: a file that the snapshot names is never just absent.
            remedy = "if an archiver compacted the history meanwhile, run again; else restore the file"
            raise CorruptFileError(
                "the archive's manifest names this file, which is not there", path=file.path, remedy=remedy
            ) from error
        with source, _restorable(), ParquetBaseFile(source, file.path) as parquet:
            for name in columns:
                field = parquet.schema.field(name) if name in parquet.schema.names else None
                kind = pa.binary() if name in (_METADATA, _PLAN) else pa.string()
                if field is None or field.type != kind:
                    raise CorruptFileError(
                        f"the file has no {kind} column {name!r}, so it is no file of the archive", path=file.path
                    )
            yield from parquet.batches(columns) if rows is None else parquet.batches(columns, rows)


@contextmanager
def _restorable() -> Iterator[None]:
    """Gives damage of an archive's file its remedy: no commit can be rolled back for it, as the archive holds many."""
    try:
        yield
    except CorruptFileError as error:
        raise CorruptFileError(error.message, path=error.path, remedy=_REMEDY) from error


def _texts(batch: pa.RecordBatch, column: str, file: HistoryFile) -> list[str]:
    values = batch.column(column)
    if values.null_count:
        raise CorruptFileError(f"an archived instant has no {column}", path=file.path, remedy=_REMEDY)
    try:
        texts: list[str] = values.to_pylist()
    except UnicodeDecodeError as error:
        raise CorruptFileError(
            f"the {column} of an archived instant is not UTF-8", path=file.path, remedy=_REMEDY
        ) from error
    return texts
