"""Records of one file group of the metadata table, from its base HFile and log blocks: by key, by key prefix, or all.

A lookup reads the trailer of each HFile, its index and the blocks that have the keys. Sources are read oldest first;
per key, a newer record is merged with the older ones, and a delete drops them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from typing import Final, Generic, NamedTuple, TypeVar

import pyarrow as pa

from hudi_core.codec.hfile.reader import HFileReader
from hudi_core.codec.log.blocks import BlockType, LogBlock
from hudi_core.codec.log.delete_columns import delete_columns
from hudi_core.config.versions import V6
from hudi_core.errors import CorruptFileError
from hudi_core.frozen import dataclass
from hudi_core.metadata_table.read.file_group import UNREADABLE, BlockFilter, MergedSlice, live_blocks, read_content
from hudi_core.metadata_table.read.whole_files import DAMAGED
from hudi_core.metadata_table.record import MetadataCodec, RecordRules, stored_schema
from hudi_core.model.size_limits import Limit, SizeLimits
from hudi_core.storage.base import ByteRange, FileInfo, Storage
from hudi_core.storage.one_look import content_of
from hudi_core.storage.overlapped import both

T = TypeVar("T")
_REMEMBERED = 1 << 16
"""The distinct data that are kept while one source is read."""
_KEPT_OF_BASE = 128 << 10
Cells = Iterable[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class Records:
    """The HFile of a base file, whose keys are unique, or of a log block; `schema` encodes its values."""

    hfile: HFileReader
    codec: MetadataCodec
    schema: str
    path: str
    unique: bool


@dataclass(frozen=True, slots=True)
class Deletes:
    keys: frozenset[bytes]
    path: str


Source = Records | Deletes


@dataclass(frozen=True, slots=True)
class Split(Generic[T]):
    """A query's records: `merged` of keys in log files, and `cells` of the base file only, as `base` encodes them."""

    merged: dict[bytes, T]
    base: Records | None
    cells: Cells


class Query(NamedTuple):
    """A query: it selects cells of an HFile, in order, and keys of a delete block."""

    cells: Callable[[Records], Cells]
    dropped: Callable[[Deletes], Iterable[bytes]]


def of_keys(keys: Sequence[bytes]) -> Query:
    """Returns the query of `keys`, which must be sorted and distinct."""
    requested = frozenset(keys)
    return Query(
        lambda records: records.hfile.lookup_many(keys, unique=records.unique), lambda deletes: deletes.keys & requested
    )


def of_prefixes(prefixes: Sequence[bytes]) -> Query:
    """Returns the query of the keys that start with one of `prefixes`, which must be sorted."""
    starts = tuple(prefixes)
    return Query(
        lambda records: records.hfile.prefix_items(starts),
        lambda deletes: [key for key in deletes.keys if key.startswith(starts)],
    )


_SMALL_FILE: Final = 64 << 10
_EVERYTHING = Query(lambda records: records.hfile.items(), lambda deletes: deletes.keys)


class GroupReader(Generic[T]):
    """Reads the merged file slice of one file group at the first query, and keeps it: a GroupReader is one view."""

    def __init__(self, storage: Storage, merged: MergedSlice, blocks: BlockFilter, rules: RecordRules[T]) -> None:
        self.storage = storage
        self._slice = merged
        self._blocks = blocks
        self._rules = rules
        # Not a cached_property, whose lock (up to Python 3.11) all instances share: file groups are read in parallel.
        self._loaded: list[Source] | None = None

    @property
    def file_id(self) -> str:
        return self._slice.file_id

    @property
    def kept_bytes(self) -> int:
        """The approximate bytes (compressed) kept after loading: the log files, and one block of the base file."""
        base = 0 if self._slice.base_file is None else min(self._slice.base_file.size, _KEPT_OF_BASE)
        return base + sum(info.size for info in self._slice.logs)

    def release(self) -> None:
        self._loaded = None

    def all(self) -> dict[bytes, T]:
        return self.records(_EVERYTHING)

    def split(self, query: Query) -> Split[T]:
        """Returns the records of a query like `records`, but records that only the base file has stay encoded."""
        with rebuild_as_remedy():
            sources = self._sources()
            first = sources[0] if sources else None
            if not isinstance(first, Records) or not first.unique:
                return Split(self.records(query), None, ())
            in_logs: set[bytes] = set()
            for source in sources[1:]:
                in_logs.update(
                    query.dropped(source) if isinstance(source, Deletes) else (key for key, _ in query.cells(source))
                )
            merged = self.records(of_keys(sorted(in_logs))) if in_logs else {}
            return Split(merged, first, _without(query.cells(first), in_logs))

    def records(self, query: Query) -> dict[bytes, T]:
        merged: dict[bytes, T] = {}
        rules = self._rules
        with rebuild_as_remedy():
            for source in self._sources():
                if isinstance(source, Deletes):
                    for key in query.dropped(source):
                        merged.pop(key, None)
                    continue
                decode = self._decoder(source)
                if source.unique and not merged:  # nothing to merge with
                    merged = {key: decode(key, value) for key, value in query.cells(source)}
                    continue
                for key, value in query.cells(source):
                    record = decode(key, value)
                    older = merged.get(key)
                    merged[key] = record if older is None else rules.merge(older, record, path=source.path)
        return merged

    def _decoder(self, source: Records) -> Callable[[bytes, bytes], T]:
        """Returns the decoder of a source. It remembers data of keyless records: a record index has few distinct data,
        one per file group and commit.
        """
        rules = self._rules

        def decode(key: bytes, value: bytes) -> T:
            name, datum = source.codec.decode(key, value)
            return rules.decode(name, datum, path=source.path)

        if rules.by_cell:

            def by_cell(key: bytes, value: bytes) -> T:
                record = rules.decode_cell(source.schema, key, value)
                return decode(key, value) if record is None else record

            return by_cell
        if not rules.keyless:
            return decode
        known: dict[bytes, T] = {}

        def remembered(key: bytes, value: bytes) -> T:
            record = known.get(value)
            if record is None:
                record = decode(key, value)
                if len(known) < _REMEMBERED:
                    known[value] = record
            return record

        return remembered

    def _sources(self) -> list[Source]:
        if self._loaded is None:
            self._loaded = open_sources(self.storage, self._slice, self._blocks)
        return self._loaded


def _without(cells: Cells, keys: Collection[bytes]) -> Iterator[tuple[bytes, bytes]]:
    with rebuild_as_remedy():
        yield from (cell for cell in cells if cell[0] not in keys)


@contextmanager
def rebuild_as_remedy() -> Iterator[None]:
    """Replaces a CorruptFileError's remedy: a damaged file of the metadata table needs no rollback of an instant."""
    try:
        yield
    except CorruptFileError as error:
        raise CorruptFileError(error.message, path=error.path, remedy=DAMAGED) from error


def open_sources(storage: Storage, merged: MergedSlice, blocks: BlockFilter) -> list[Source]:
    """Opens the sources of a slice's records, oldest first, and reads their headers. Raises live_blocks' errors."""

    def of_base_file() -> list[Source]:
        if merged.base_file is None:
            return []
        hfile, path = _hfile(storage, merged.base_file), merged.base_file.path
        schema = hfile.schema() or stored_schema(V6)
        return [Records(hfile, MetadataCodec(schema, path=path), schema, path, unique=True)]

    def of_logs() -> list[Source]:
        return list(_logs(live_blocks(storage, merged.logs, blocks), storage.limits))

    base, logs = both(storage, of_base_file, of_logs)
    return [*base, *logs]


def check_base_file(storage: Storage, info: FileInfo) -> None:
    """Raises CorruptFileError for a base file without the end of an HFile, such as a cut file. Makes one request."""
    with rebuild_as_remedy():
        _ = _hfile(storage, info).trailer


def _hfile(storage: Storage, info: FileInfo) -> HFileReader:
    """Opens an HFile. A small file is read by one request, which serves its trailer, index and blocks."""
    path = info.path
    if info.size > _SMALL_FILE:
        return HFileReader(
            lambda start, length: storage.read_range(path, ByteRange(start, length)), info.size, path, storage.limits
        )

    @cache
    def content() -> bytes:
        return content_of(storage, info, lambda: storage.read_range(path, ByteRange(0, info.size)))

    return HFileReader(lambda start, length: content()[start : start + length], info.size, path, storage.limits)


def _logs(blocks: Iterable[LogBlock], limits: SizeLimits) -> Iterator[Source]:
    for block in blocks:
        path, schema = block.path, block.schema
        if block.type is BlockType.DELETE:
            limits.check(Limit.LOG_BLOCK, block.content_length, path, what="a delete block")
            keys = delete_columns(read_content(block, 0, block.content_length), path=path).column("key")
            if keys.null_count:
                raise CorruptFileError("a delete block of the metadata table holds a delete without a key", path=path)
            # A new file group starts with an empty delete block.
            if len(keys):
                yield Deletes(frozenset(keys.cast(pa.binary()).to_pylist()), path)
            continue
        hfile = HFileReader(partial(read_content, block), block.content_length, path, limits)
        if schema is None:
            raise CorruptFileError(f"data block at byte {block.offset} has no schema", path=path, remedy=UNREADABLE)
        yield Records(hfile, MetadataCodec(schema, path=path), schema, path, unique=False)
