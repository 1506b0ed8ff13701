"""Reads the archived timeline of layout 2: Parquet files of instants, sorted by requested time (ArchivedTimelineV2).
manifest.py says which files are in force.

A row holds requested and completion time, the action under which the instant completed, and the bytes of its completed
file and of its plan. Lists of instants need the first three columns alone. The bytes are read a few rows at a time.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from operator import attrgetter
from typing import Any, BinaryIO, Final

import pyarrow as pa

from hudi_core.codec.parquet.file import BATCH_ROWS, ParquetBaseFile
from hudi_core.codec.parquet.writer import BaseFileWriter, ParquetStyle
from hudi_core.errors import CorruptFileError, StorageNotFoundError
from hudi_core.history.archived_instant import InstantKey, key_of
from hudi_core.history.manifest import HistoryFile, read_snapshot
from hudi_core.storage.base import Storage
from hudi_core.timeline.actions.commit import CommitMetadata, decode_commit
from hudi_core.timeline.actions.content import decode_any
from hudi_core.timeline.instant import COMMIT_ACTIONS, Instant, State
from hudi_core.timeline.timeline import Timeline

TIME: Final = "instantTime"
COMPLETION: Final = "completionTime"
ACTION: Final = "action"
METADATA: Final = "metadata"
PLAN: Final = "plan"
VERSION: Final = "version"

SCHEMA: Final = pa.schema(
    [
        pa.field(TIME, pa.string()),
        pa.field(COMPLETION, pa.string()),
        pa.field(ACTION, pa.string()),
        pa.field(METADATA, pa.binary()),
        pa.field(PLAN, pa.binary()),
        pa.field(VERSION, pa.int32(), nullable=False),
    ]
)
ROW_VERSION: Final = 1
"""The version of a row (LSM_TIMELINE_INSTANT_VERSION_1)."""

_TEXT: Final = ["null", {"type": "string", "avro.java.string": "String"}]
_AVRO: Final = {
    "type": "record",
    "name": "HoodieLSMTimelineInstant",
    "namespace": "org.apache.hudi.avro.model",
    "fields": [
        *({"name": name, "type": _TEXT, "default": None} for name in (TIME, COMPLETION, ACTION)),
        *({"name": name, "type": ["null", "bytes"], "default": None} for name in (METADATA, PLAN)),
        {"name": VERSION, "type": "int", "default": ROW_VERSION},
    ],
}
_FOOTER: Final = {"parquet.avro.schema": json.dumps(_AVRO, separators=(",", ":")), "writer.model.name": "avro"}
"""What Parquet's Avro writer in Java writes into the footer. Hudi's files have no bloom filter and no meta columns."""
_ROW_GROUP_BYTES: Final = 16 << 20


REMEDY: Final = "restore the file from a copy; the instants that it holds are nowhere else"
"""The remedy for a damaged file: no commit can be rolled back for it, because it holds many."""


def read_batches(
    storage: Storage, path: str, columns: Sequence[str], rows: int = BATCH_ROWS
) -> Iterator[pa.RecordBatch]:
    """Yields columns of a snapshot's file. Raises CorruptFileError when it is missing or has other columns."""
    try:
        source = storage.open_input(path)
    except StorageNotFoundError as error:
        # Not StorageNotFoundError: a file that the snapshot names is never just absent.
        remedy = "if an archiver compacted the history meanwhile, run again; else restore the file"
        raise CorruptFileError(
            "the archive's manifest names this file, which is not there", path=path, remedy=remedy
        ) from error
    try:
        with source, ParquetBaseFile(source, path, storage.limits) as parquet:
            for name in columns:
                expected = SCHEMA.field(name).type
                if name not in parquet.schema.names or parquet.schema.field(name).type != expected:
                    message = f"the file has no {expected} column {name!r}, so it is no file of the archive"
                    raise CorruptFileError(message, path=path)
            yield from parquet.batches(columns, rows)
    except CorruptFileError as error:
        raise CorruptFileError(error.message, path=error.path, remedy=REMEDY) from error


def write_batches(file: BinaryIO, batches: Iterable[pa.RecordBatch], *, path: str) -> None:
    """Writes a GZIP file of `batches` in SCHEMA, sorted by requested time. Holds at most 16 MiB of them."""
    writer = BaseFileWriter(file, SCHEMA, path=path, style=ParquetStyle(row_group_bytes=_ROW_GROUP_BYTES))
    for rows in batches:
        writer.write(rows)
    writer.close(_FOOTER)


_CONTENT_ROWS: Final = 16
"""How many rows have their content held at once: the metadata of a wide commit can have some megabytes."""

_ORDER: Final = attrgetter("requested_time", "action")
"""Timeline order of archived instants: they are completed, so their actions name their classes."""


class LsmHistory:
    """The archive in `folder`, by the snapshot of the first query. Memory: 300 bytes an instant. Not thread-safe."""

    def __init__(self, storage: Storage, folder: str) -> None:
        self._storage = storage
        self._folder = folder
        self._loaded: dict[str, list[Instant]] = {}
        self._by_time: dict[str, dict[str, list[Instant]]] = {}

    @cached_property
    def _files(self) -> list[HistoryFile]:
        return read_snapshot(self._storage, self._folder)

    def instants(self, after: str | None = None, up_to: str | None = None) -> list[Instant]:
        """Returns the instants requested after `after`, up to `up_to`, in timeline order. Opens no other files."""
        by_key: dict[InstantKey, Instant] = {}
        for file in self._files:
            if not file.overlaps(after, up_to):
                continue
            for instant in self._instants_of(file):
                time = instant.requested_time
                if (after is None or time > after) and (up_to is None or time <= up_to):
                    # An archiver that died before it removed the active files archives them again.
                    by_key.setdefault(key_of(instant), instant)
        return sorted(by_key.values(), key=_ORDER)

    def completed_in(self, begin: str | None, end: str | None) -> list[Instant]:
        """Returns the instants completed after `begin` and up to `end`. Opens no files that start later."""
        completed = [
            instant
            for instant in self.instants(up_to=end)
            if (begin is None or instant.completed_at > begin) and (end is None or instant.completed_at <= end)
        ]
        return sorted(completed, key=attrgetter("completion_time", "requested_time", "action"))

    def timeline(self) -> Timeline:
        return Timeline.in_order(self.instants())

    def is_empty(self) -> bool:
        """Whether the archive holds nothing. Opens no file."""
        return not self._files

    def latest(self) -> Iterator[Instant]:
        """Yields all instants, latest first. Opens a file when the caller comes to it."""
        ends = sorted({file.end for file in self._files}, reverse=True)
        for up_to, after in pairwise([*ends, None]):
            yield from reversed(self.instants(after, up_to))

    def completion_time(self, requested_time: str) -> str | None:
        """Returns None when the instant is not archived. Opens only files whose range covers the time."""
        return next((instant.completed_at for instant in self._at(requested_time)), None)

    def commit(self, requested_time: str) -> CommitMetadata | None:
        return next((metadata for _, metadata in self.commits(self._at(requested_time))), None)

    def commits(
        self, instants: Iterable[Instant], *, stats: bool = True, having: Collection[bytes] = ()
    ) -> Iterator[tuple[Instant, CommitMetadata]]:
        """Yields the metadata of the archived commits among the instants, in any order. Holds that of 16 at once.
        decode_commit says what `stats` does. With `having` only those are decoded whose bytes have one of the texts.
        """
        requested = [instant for instant in instants if instant.action in COMMIT_ACTIONS]
        for instant, data, path in self._content(requested, METADATA):
            if not having or any(text in data for text in having):
                yield instant, decode_commit(data, path=path, stats=stats)

    def content(self, instant: Instant) -> dict[str, Any]:
        """Returns the completed file (`plan`: the plan) as a dictionary; `{}` when empty or not archived."""
        return self._decoded(instant, METADATA)

    def plan(self, instant: Instant) -> dict[str, Any]:
        return self._decoded(instant, PLAN)

    def _at(self, time: str) -> Iterator[Instant]:
        for file in self._files:
            if file.begin <= time <= file.end:
                if file.path not in self._by_time:
                    by_time = self._by_time[file.path] = {}
                    for instant in self._instants_of(file):
                        by_time.setdefault(instant.requested_time, []).append(instant)
                yield from self._by_time[file.path].get(time, ())

    def _decoded(self, instant: Instant, column: str) -> dict[str, Any]:
        return next((decode_any(data, path=path) for _, data, path in self._content([instant], column)), {})

    def _content(self, instants: Sequence[Instant], column: str) -> Iterator[tuple[Instant, bytes, str]]:
        """Yields a column's bytes and the file of each archived instant. Reads every file at most once."""
        requested = {key_of(instant): instant for instant in instants}
        for file in self._files:
            inside = {key for key in requested if file.begin <= key[0] <= file.end}
            if not inside:
                continue
            for batch in read_batches(self._storage, file.path, (TIME, ACTION, column), _CONTENT_ROWS):
                keys = zip(_texts(batch, TIME, file), _texts(batch, ACTION, file), strict=True)
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
            for batch in read_batches(self._storage, file.path, (TIME, COMPLETION, ACTION)):
                columns = (_texts(batch, name, file) for name in (TIME, COMPLETION, ACTION))
                loaded += [
                    Instant(time, action, State.COMPLETED, completion, action)
                    for time, completion, action in zip(*columns, strict=True)
                ]
            self._loaded[file.path] = loaded
        return loaded


def _texts(batch: pa.RecordBatch, column: str, file: HistoryFile) -> list[str]:
    values = batch.column(column)
    if values.null_count:
        raise CorruptFileError(f"an archived instant has no {column}", path=file.path, remedy=REMEDY)
    try:
        texts: list[str] = values.to_pylist()
    except UnicodeDecodeError as error:
        raise CorruptFileError(
            f"the {column} of an archived instant is not UTF-8", path=file.path, remedy=REMEDY
        ) from error
    return texts
