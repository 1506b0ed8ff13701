"""Reads the archived timeline of layout 1: log files of Avro blocks (HoodieArchivedTimeline of 0.15).
archived_instant.py says what a record of an instant holds. manifest.py has the files of layout 2.

A record (HoodieArchivedMetaEntry) holds one state file of an instant, so an instant has up to three. Files are
numbered. Small ones may be merged into one of a new number; meanwhile the plan file `mergeArchivePlan` names it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from itertools import groupby
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

from hudi_core.codec.avro.datum import DatumCodec
from hudi_core.codec.avro.schema import parse_schema
from hudi_core.codec.binary import Reader
from hudi_core.codec.log.blocks import BlockType, CorruptBlock, HeaderKey, LogBlock, walk
from hudi_core.codec.log.content import avro_block_records
from hudi_core.errors import CorruptFileError, FormatError, StorageNotFoundError
from hudi_core.history.archived_instant import InstantKey, key_of
from hudi_core.model.size_limits import Limit
from hudi_core.storage.base import ByteRange, FileInfo, Storage
from hudi_core.timeline.actions.commit import CommitMetadata, commit_of
from hudi_core.timeline.actions.content import decode_datum
from hudi_core.timeline.instant import COMMIT_ACTIONS, Action, Instant, State, completed_action
from hudi_core.timeline.naming import is_time
from hudi_core.timeline.timeline import Timeline

log = logging.getLogger(__name__)

MERGE_PLAN: Final = "mergeArchivePlan"

_FILE = re.compile(r"^\.commits_\.archive\.(?P<number>\d{1,9})(?:_[\d-]{1,40})?\Z", re.ASCII)
_REMEDY: Final = "restore the file from a copy; the instants in it are nowhere else"
_MEMBERS: Final = {
    Action.COMMIT: "hoodieCommitMetadata",
    Action.DELTA_COMMIT: "hoodieCommitMetadata",
    Action.REPLACE_COMMIT: "hoodieReplaceCommitMetadata",
    Action.CLEAN: "hoodieCleanMetadata",
    Action.ROLLBACK: "hoodieRollbackMetadata",
    Action.SAVEPOINT: "hoodieSavePointMetadata",
    Action.INDEXING: "hoodieIndexCommitMetadata",
}
"""Which member holds the content of a completed instant (MetadataConversionUtils)."""
_PLANS: Final = {
    Action.COMMIT: "hoodieCompactionPlan",
    Action.DELTA_COMMIT: "hoodieCompactionPlan",
    Action.CLEAN: "hoodieCleanerPlan",
    Action.REPLACE_COMMIT: "hoodieRequestedReplaceMetadata",
}
"""Which member of a requested instant holds its plan, by the action under which it completes."""
_IDENTITY: Final = ("commitTime", "actionType", "actionState")
"""The fields that say which instant a record is of, and which of its states it holds."""


class _Place(NamedTuple):
    """The position of a record: file, offset and length of its block's content, the block's schema, its ordinal."""

    path: str
    offset: int
    length: int
    schema: str
    ordinal: int


_State = tuple[_Place, str, str, State]
"""Where a record lies, its requested time, action and state."""


class _Entry(NamedTuple):
    instant: Instant
    completed: _Place
    requested: _Place | None


_last_read: Final[WeakKeyDictionary[Storage, dict[str, tuple[list[FileInfo], dict[InstantKey, _Entry]]]]] = (
    WeakKeyDictionary()
)
"""By storage and folder, the files and what they hold. A command opens the archive several times, and reads it once
while path, size and modification time of every file are the same.
"""


class LogArchive:
    """The archive in `folder` as at the first query. Memory: about 600 bytes an instant. Not thread-safe."""

    def __init__(self, storage: Storage, folder: str) -> None:
        self._storage = storage
        self._folder = folder
        self._schemas: dict[str, str] = {}
        self._codecs: dict[tuple[str, bool], DatumCodec] = {}

    def instants(self, after: str | None = None, up_to: str | None = None) -> list[Instant]:
        return [
            entry.instant
            for (time, _), entry in self._entries.items()
            if (after is None or time > after) and (up_to is None or time <= up_to)
        ]

    def completed_in(self, begin: str | None, end: str | None) -> list[Instant]:
        return self.instants(begin, end)

    def timeline(self) -> Timeline:
        return Timeline.in_order(self.instants())

    def is_empty(self) -> bool:
        files = archive_files(self._storage, self._folder)
        return all(state is not State.COMPLETED for _, file in files for *_, state in self._states(file))

    def latest(self) -> Iterator[Instant]:
        """Yields all instants, latest first. Reads all files first: a merged file has a new number and old instants."""
        return reversed(self.instants())

    def completion_time(self, requested_time: str) -> str | None:
        return requested_time if requested_time in self._requested_times else None

    def commit(self, requested_time: str) -> CommitMetadata | None:
        instants = [Instant(requested_time, action, State.COMPLETED) for action in sorted(COMMIT_ACTIONS)]
        return next((metadata for _, metadata in self.commits(instants)), None)

    def commits(
        self, instants: Iterable[Instant], *, stats: bool = True, having: Collection[bytes] = ()
    ) -> Iterator[tuple[Instant, CommitMetadata]]:
        """Yields the metadata of commits, without `stats` that without write stats. Holds one block at a time, and
        reads it once for consecutive instants. With `having` only those are decoded whose bytes have one of the texts.
        """
        places = (
            (item, self._entries[key_of(item)].completed)
            for item in sorted(instants, key=lambda item: item.sort_key)
            if item.action in COMMIT_ACTIONS and key_of(item) in self._entries
        )
        for (path, offset, length), group in groupby(places, key=lambda pair: pair[1][:3]):
            block = self._data(path, offset, length)
            for item, place in group:
                record = bytes(block[place.ordinal]) if having else b""
                if having and not any(text in record for text in having):
                    continue
                members = self._member(block, place, _MEMBERS[item.action])
                if not stats:
                    members.pop("partitionToWriteStats", None)
                yield item, commit_of(members, path=path)

    def content(self, instant: Instant) -> dict[str, Any]:
        entry = self._entries.get(key_of(instant))
        return {} if entry is None else self._content(entry.completed, _MEMBERS.get(instant.action))

    def plan(self, instant: Instant) -> dict[str, Any]:
        entry = self._entries.get(key_of(instant))
        return {} if entry is None else self._content(entry.requested, _PLANS.get(instant.action))

    def newest(self) -> frozenset[InstantKey]:
        """Returns requested time and action of the instants that the newest file holds as completed."""
        return frozenset(
            (time, completed_action(action))
            for _, file in archive_files(self._storage, self._folder)[-1:]
            for _, time, action, state in self._states(file)
            if state is State.COMPLETED
        )

    @cached_property
    def _requested_times(self) -> frozenset[str]:
        return frozenset(time for time, _ in self._entries)

    @cached_property
    def _entries(self) -> dict[InstantKey, _Entry]:
        folders = _last_read.setdefault(self._storage, {})
        files = [file for _, file in archive_files(self._storage, self._folder)]
        if self._folder not in folders or folders[self._folder][0] != files:
            folders.pop(self._folder, None)  # not two of them in memory
            folders[self._folder] = files, self._read(files)
        return folders[self._folder][1]

    def _read(self, files: list[FileInfo]) -> dict[InstantKey, _Entry]:
        completed: dict[InstantKey, _Place] = {}
        requested: dict[InstantKey, _Place] = {}
        planned: dict[InstantKey, str] = {}
        for file in files:
            for place, time, action, state in self._states(file):
                key = (time, completed_action(action))
                if state is State.COMPLETED:
                    completed.setdefault(key, place)
                    continue
                planned.setdefault(key, action)
                if state is State.REQUESTED:
                    requested.setdefault(key, place)
        entries = {}
        for key in sorted(completed):
            instant = Instant(*key, State.COMPLETED, None, planned.get(key, key[1]))
            entries[key] = _Entry(instant, completed[key], requested.get(key))
        return entries

    def _states(self, file: FileInfo) -> list[_State]:
        """Returns the records of a file; none of an unfinished merge, whose source files still exist."""
        try:
            return [item for block in self._blocks(file) for item in self._block_states(block)]
        except CorruptFileError:
            if self._unfinished_merge() != file.name:
                raise
            log.warning("%s was not merged to its end; the files that it merges are read instead", file.path)
            return []

    def _unfinished_merge(self) -> str | None:
        """Returns the merged file that the merge plan names; None without a plan, or with a truncated one."""
        path = f"{self._folder}/{MERGE_PLAN}"
        try:
            plan = decode_datum(self._storage.read(path), path=path)
        except (StorageNotFoundError, FormatError):
            return None
        name = plan.get("mergedArchiveFileName")
        return name if isinstance(name, str) else None

    def _blocks(self, file: FileInfo) -> Iterator[LogBlock]:
        """Yields the data blocks of a file. A cut block at its end is an append whose instants are still active."""
        for block in _walk(self._storage, file):
            if isinstance(block, CorruptBlock):
                if block.offset + block.length < file.size:
                    raise _damaged(block)
                what = "%s ends in a block that was not written to its end, at byte %d; it is passed over"
                log.warning(what, file.path, block.offset)
            elif block.type is BlockType.AVRO_DATA:
                yield block

    def _block_states(self, block: LogBlock) -> Iterator[_State]:
        text = block.headers.get(HeaderKey.SCHEMA)
        if text is None:
            raise CorruptFileError(f"the block at byte {block.offset} has no schema", path=block.path, remedy=_REMEDY)
        # Every block repeats the schema of 15 kB: all places share one copy of the text.
        schema = self._schemas.setdefault(text, text)
        for ordinal, data in enumerate(self._data(block.path, block.content_offset, block.content_length)):
            place = _Place(block.path, block.content_offset, block.content_length, schema, ordinal)
            yield place, *_identity(self._decoded(data, place, whole=False), block.path)

    def _data(self, path: str, offset: int, length: int) -> list[memoryview]:
        self._storage.limits.check(Limit.ARCHIVE, length, path, what="a block of the archive")
        content = self._storage.read_range(path, ByteRange(offset, length))
        if len(content) < length:
            what = f"read {len(content)} bytes at byte {offset} where {length} were listed"
            raise CorruptFileError(what, path=path, remedy=_REMEDY)
        count, data = avro_block_records(content, path=path)
        reader = Reader(data, path)
        return [reader.view(reader.i32()) for _ in range(count)]

    def _decoded(self, data: memoryview, place: _Place, *, whole: bool) -> dict[str, Any]:
        """Returns the record; only its _IDENTITY unless `whole`."""
        codec = self._codecs.get((place.schema, whole))
        if codec is None:
            schema = parse_schema(place.schema, path=place.path)
            codec = DatumCodec(schema, path=place.path, only=None if whole else _IDENTITY)
            self._codecs[place.schema, whole] = codec
        record = codec.decode(data, path=place.path)
        if not isinstance(record, dict):
            what = f"the block at byte {place.offset} holds no records"
            raise CorruptFileError(what, path=place.path, remedy=_REMEDY)
        return record

    def _content(self, place: _Place | None, name: str | None) -> dict[str, Any]:
        if place is None or name is None:
            return {}
        return self._member(self._data(place.path, place.offset, place.length), place, name)

    def _member(self, block: list[memoryview], place: _Place, name: str) -> dict[str, Any]:
        value = self._decoded(block[place.ordinal], place, whole=True).get(name)
        return value if isinstance(value, dict) else {}


def archive_files(storage: Storage, folder: str) -> list[tuple[int, FileInfo]]:
    """Returns the files of the archive with their numbers, oldest first."""
    files = storage.list_files(folder)
    numbered = [(int(match["number"]), info) for info in files if (match := _FILE.match(info.name))]
    return sorted(numbered, key=lambda pair: (pair[0], pair[1].name))


def check_whole(storage: Storage, file: FileInfo) -> None:
    """Raises CorruptFileError naming the first block of an archive file that is not whole, also at its end."""
    for block in _walk(storage, file):
        if isinstance(block, CorruptBlock):
            raise _damaged(block)


def _walk(storage: Storage, file: FileInfo) -> Iterator[LogBlock | CorruptBlock]:
    return walk(lambda offset, length: storage.read_range(file.path, ByteRange(offset, length)), file.size, file.path)


def _damaged(block: CorruptBlock) -> CorruptFileError:
    return CorruptFileError(f"corrupt block at byte {block.offset}: {block.reason}", path=block.path, remedy=_REMEDY)


def _identity(record: dict[str, Any], path: str) -> tuple[str, str, State]:
    """Returns requested time, action and state of a record. Very old records have no state: they are completed ones."""
    time, action, state = record.get("commitTime"), record.get("actionType"), record.get("actionState")
    if not isinstance(time, str) or not is_time(time) or not isinstance(action, str):
        raise CorruptFileError("an archived record has no instant time or no action", path=path, remedy=_REMEDY)
    if state is None:
        return time, action, State.COMPLETED
    try:
        return time, action, State(str(state).lower())
    except ValueError as error:
        what = f"the archived instant {time} is in an unknown state {state!r}"
        raise CorruptFileError(what, path=path, remedy=_REMEDY) from error
