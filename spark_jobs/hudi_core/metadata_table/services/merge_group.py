"""The units of a compaction of the metadata table: each merges a file group's sorted streams into a new base file.

Memory: one block of each source, whole log files of up to 1 MiB, and the keys of delete blocks. A record without a
second record of its key is copied undecoded. The records of a base file between two keys of the log files are copied as
a run of bytes: a file group of many millions of records costs as much as to deflate its blocks. Each other record takes
a step of Python, some ten microseconds: these are the records since the last compaction.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import lru_cache
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, Final

from hudi_core.codec.binary import Reader
from hudi_core.codec.hfile.writer import CopiedBlock, is_ascending
from hudi_core.engine.protocol import TaskAttempt
from hudi_core.errors import CorruptFileError
from hudi_core.frozen import dataclass
from hudi_core.metadata_table.partitions.registry import merge_data
from hudi_core.metadata_table.read.file_group import ROOT, BlockFilter, MergedSlice
from hudi_core.metadata_table.read.group_reader import Deletes, Source, open_sources
from hudi_core.metadata_table.record import RecordEncoder
from hudi_core.metadata_table.write.base_file import MetadataBaseFile
from hudi_core.model.names import META_FIELDS, BaseFileName, WriteToken
from hudi_core.model.partition import check_file_name
from hudi_core.storage.arrow_store import open_data_storage
from hudi_core.storage.base import FileInfo, Storage
from hudi_core.view.file_group import DataFile, FileSlice, check_slice

_BLANK: Final = bytes(len(META_FIELDS))
"""The bytes with which an encoded record begins: the `_hoodie_*` fields, all null."""
_Item = tuple[bytes, int, int, bytes | None]
"""Key, position of the source, position in the source, value; None deletes the key."""

_UNIT: Final = "compaction unit"


@dataclass(slots=True)
class Counts:
    """The numbers of a merge: records of the base file, records and distinct keys of the log files, and the keys that
    were updated, inserted and deleted.
    """

    base: int = 0
    in_logs: int = 0
    log_keys: int = 0
    updated: int = 0
    inserted: int = 0
    deleted: int = 0


class GroupMerge:
    """Merges `sources`, oldest first; the first one may be the base file."""

    def __init__(self, sources: Sequence[Source], encoder: RecordEncoder) -> None:
        self._sources = sources
        self._encoder = encoder
        self._plain = [
            not isinstance(source, Deletes) and _is_same(source.schema, encoder.schema) for source in sources
        ]
        self._has_base = bool(sources) and not isinstance(sources[0], Deletes) and sources[0].unique
        self.counts = Counts()

    def write(self, open_file: Callable[[], MetadataBaseFile]) -> MetadataBaseFile | None:
        """Writes the merged records into a file opened at the first record; returns the file, not closed, if any. A
        file group with a base file always gets a file. Raises CorruptFileError for a source unsorted or empty.
        """
        file = open_file() if self._has_base else None
        streams = [
            _stream(source, number) for number, source in enumerate(self._sources) if number or not self._has_base
        ]
        recorded = groupby(heapq.merge(*streams), key=itemgetter(0))
        following = next(recorded, None)
        for source in self._base_blocks():
            block = source.block
            start, last = 0, block.row(len(block) - 1)
            while following is not None and following[0] <= last:
                key, items = following[0], list(following[1])
                at = block.first_at(key, start)
                self._pass(file, source, start, at)
                start = at
                if at < len(block) and block.row(at) == key:
                    items.insert(0, (key, 0, 0, block.value(at)))
                    start = at + 1
                self._add(file, key, items)
                following = next(recorded, None)
            self._pass(file, source, start, len(block))
        while following is not None:
            key, value = following[0], self._fold(following[0], list(following[1]))
            if value is not None:
                file = file or open_file()
                file.add(key, value)
            following = next(recorded, None)
        return file

    def _base_blocks(self) -> Iterator[CopiedBlock]:
        source = self._sources[0] if self._has_base else None
        if source is None or isinstance(source, Deletes):
            return
        for block in source.hfile.blocks():
            if not is_ascending(block):
                raise CorruptFileError(
                    "the records of a base file of the metadata table are not sorted", path=source.path
                )
            if len(block):
                yield CopiedBlock(block, _BLANK)

    def _pass(self, file: MetadataBaseFile | None, source: CopiedBlock, start: int, end: int) -> None:
        """Adds cells of the base file whose keys are in no log file."""
        if start >= end or file is None:
            return
        if self._plain[0] and file.copy(source, start, end):
            self.counts.base += end - start
            return
        for key, value in islice(source.block.items(start), end - start):
            self._add(file, key, [(key, 0, 0, value)])

    def _add(self, file: MetadataBaseFile | None, key: bytes, items: list[_Item]) -> None:
        value = self._fold(key, items)
        if value is not None and file is not None:
            file.add(key, value)

    def _fold(self, key: bytes, items: list[_Item]) -> bytes | None:
        counts = self.counts
        in_base = self._has_base and items[0][1] == 0
        logs = len(items) - in_base
        counts.base += in_base
        if logs:
            counts.in_logs += logs
            counts.log_keys += 1
        # The result so far: nothing, the value of one source, or a merged datum.
        value: bytes | None = None
        source = 0
        datum: Any = None
        for _, number, _, item in items:
            if item is None:
                value = datum = None
            elif value is None and datum is None:
                value, source = item, number
            else:
                older = datum if value is None else self._decode(source, key, value)
                newer, path = self._decode(number, key, item), self._sources[number].path
                datum, value = merge_data(key.decode("utf-8", "replace"), older, newer, path=path), None
        if value is None and datum is None:
            counts.deleted += in_base
            return None
        if logs:
            counts.updated += in_base
            counts.inserted += not in_base
        if value is None:
            return self._encoder.value(datum)
        return (
            _blanked(value, self._sources[source].path)
            if self._plain[source]
            else self._encoder.value(self._decode(source, key, value))
        )

    def _decode(self, number: int, key: bytes, value: bytes) -> dict[str, Any]:
        source = self._sources[number]
        if isinstance(source, Deletes):
            raise TypeError("a delete block holds no values")
        return source.codec.decode(key, value)[1]


def _stream(source: Source, number: int) -> Iterator[_Item]:
    if isinstance(source, Deletes):
        yield from ((key, number, 0, None) for key in sorted(source.keys))
        return
    last = b""
    for position, (key, value) in enumerate(source.hfile.items()):
        if key < last:
            raise CorruptFileError(f"metadata records are not sorted: {key!r} follows {last!r}", path=source.path)
        last = key
        yield key, number, position, value


@lru_cache(maxsize=32)
def _is_same(schema: str, other: str) -> bool:
    """Returns whether values of one schema are also values of the other, and begin with the `_hoodie_*` fields."""
    try:
        first, second = _bare(json.loads(schema)), _bare(json.loads(other))
    except RecursionError:
        return False  # properties of an unknown writer: its values are decoded and encoded again
    fields = first.get("fields", []) if isinstance(first, dict) else []
    leading = [(field["name"], field["type"]) for field in fields[: len(META_FIELDS)]]
    return bool(first == second and leading == [(name, ["null", "string"]) for name in META_FIELDS])


def _bare(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_bare(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    bare = {
        name: _bare(item)
        for name, item in schema.items()
        if name not in ("doc", "default", "avro.java.string", "namespace")
    }
    return bare["type"] if set(bare) == {"type"} else bare


def _blanked(value: bytes, path: str) -> bytes:
    """Returns the value with null `_hoodie_*` fields: Hudi's base files have their own name in one of these fields."""
    if value.startswith(_BLANK):
        return value
    reader = Reader(value, path)
    for _ in META_FIELDS:
        branch = reader.zigzag()
        if branch:
            reader.skip(reader.zigzag())
    return _BLANK + value[reader.position :]


@dataclass(frozen=True, slots=True)
class GroupUnit:
    """A file slice to compact at `instant`; `blocks` count for readers, too, `schema` is that of stored records."""

    uri: str
    storage_options: Mapping[str, str]
    file_slice: FileSlice
    blocks: BlockFilter
    instant: str
    schema: str
    bloom_entries: int


@dataclass(frozen=True, slots=True)
class CompactedGroup:
    """The new base file, and the counts of the merge. `name` is None where nothing was to write."""

    name: str | None
    size: int
    records: int
    counts: Counts


def compact_group_task(unit: GroupUnit, attempt: TaskAttempt) -> CompactedGroup:
    storage = open_data_storage(unit.uri, unit.storage_options)
    return compact_group(storage, unit, WriteToken(attempt.partition_id, attempt.stage_id, attempt.attempt_id))


def compact_group(storage: Storage, unit: GroupUnit, token: WriteToken) -> CompactedGroup:
    """Merges a file group into a new base file. A file group without any record stays as it is. Memory: the module's,
    and MetadataBaseFile's. Raises CorruptFileError for a damaged file, and StorageNotFoundError.
    """
    item = check_slice(unit.file_slice)
    folder, file_id = f"{ROOT}/{check_file_name(item.file_group.partition, source=_UNIT)}", item.file_group.file_id
    merged = MergedSlice(
        file_id, None if item.base_file is None else _info(item.base_file), tuple(map(_info, item.log_files))
    )
    merge = GroupMerge(open_sources(storage, merged, unit.blocks), RecordEncoder(unit.schema))
    name = BaseFileName(file_id, token, unit.instant, "hfile")
    with ExitStack() as stack:

        def open_file() -> MetadataBaseFile:
            return stack.enter_context(
                MetadataBaseFile(storage, f"{folder}/{name}", unit.schema, bloom_entries=unit.bloom_entries)
            )

        try:
            file = merge.write(open_file)
        except ValueError as error:
            raise CorruptFileError(
                f"the file group's records cannot be written: {error}", path=f"{folder}/{file_id}"
            ) from error
        if file is None:
            return CompactedGroup(None, 0, 0, merge.counts)
        size = file.close()
    return CompactedGroup(str(name), size, file.count, merge.counts)


def _info(file: DataFile) -> FileInfo:
    return FileInfo(f"{ROOT}/{file.path}", file.size, 0.0)
