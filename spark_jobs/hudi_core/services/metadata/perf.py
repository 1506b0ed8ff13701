"""`metadata perf`: read times of the metadata table, compared with those of the storage. Nothing is written.

Every query runs on a new reader of the metadata table (`cold_ms`: its timeline, log blocks and HFile index are read for
it) and then REPEATS times to the same one (`open_ms`: the median). `without_ms` is the median of what it spares:
listing the storage, or reading the footers of the files. The caches of the operating system stay as they are. Times are
of this process, in milliseconds.

Memory: the file names of the table, SAMPLE rows of one slice, and what the metadata table keeps open.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from statistics import median
from typing import Any, Final

import pyarrow as pa

from hudi_core.errors import ConfigError, MetadataUnavailableError
from hudi_core.expr.functions import evaluate
from hudi_core.expr.tree import Column
from hudi_core.filegroup.read.base_file import open_base_file
from hudi_core.filegroup.read.schema_resolver import table_schema
from hudi_core.filegroup.read.slice_reader import SliceReader
from hudi_core.index.footers import BLOOM, BLOOM_TYPE
from hudi_core.metadata_table.partition_type import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    EXPRESSION_PREFIX,
    FILES_PARTITION,
    PARTITION_STATS,
    RECORD_INDEX,
    SECONDARY_PREFIX,
)
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.model.names import RECORD_KEY, BaseFileName, parse_data_file
from hudi_core.model.partition import join
from hudi_core.query.slices_plan import reader_spec
from hudi_core.services.context import TableContext
from hudi_core.services.metadata.record_keys import KeysOfRows
from hudi_core.services.metadata.validate.secondary_index import can_print
from hudi_core.storage.base import Storage
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.listing import StorageListing

REPEATS: Final = 5
SAMPLE: Final = 1000
"""Partitions, base files of a partition, and record keys of a query at most."""
_SINGLES: Final = 20
"""Keys that are looked up one by one."""


@dataclass(frozen=True, slots=True)
class Timing:
    """The times of a question, in milliseconds. `items` is how many things it is about; a time is the sum of `lookups`.

    `without_ms` is the time without the metadata table, None where nothing but the rows could answer.
    """

    what: str
    items: int
    lookups: int
    cold_ms: float
    open_ms: float
    without_ms: float | None


@dataclass(frozen=True, slots=True)
class Timings:
    """All questions; `kinds` are the measured partitions of the metadata table."""

    partition_types: tuple[str, ...]
    partitions: int
    files: int
    timings: tuple[Timing, ...]

    def to_dict(self) -> dict[str, Any]:
        """The document of `hudictl metadata perf --json`."""
        timings = [{**asdict(item), "asked": item.lookups} for item in self.timings]
        for timing in timings:
            del timing["lookups"]
        return {
            "kinds": list(self.partition_types),
            "partitions": self.partitions,
            "files": self.files,
            "timings": timings,
        }


def measure(
    context: TableContext,
    data: Storage,
    partition_types: Collection[str] = (),
    clock: Callable[[], float] = time.perf_counter,
) -> Timings:
    """Runs the queries of readers and writers on the metadata table; `data` is the storage of the data path, `clock`
    gives seconds.

    `partition_types` names the measured partitions, none: all. Raises MetadataUnavailableError for a table without a
    metadata table that could be read, ConfigError where it does not list one of `partition_types`, CorruptFileError for
    one that is damaged.
    """
    if not context.has_metadata_table:
        raise MetadataUnavailableError(
            "the table has no metadata table: hoodie.table.metadata.partitions does not name `files`",
            path=context.config.path,
            remedy="there is nothing to measure; readers list the storage",
        )
    unknown = sorted(set(partition_types) - context.config.metadata_partitions)
    if unknown:
        raise ConfigError(
            f"the metadata table has no {', '.join(unknown)}",
            path=context.config.path,
            remedy=f"name some of {', '.join(sorted(context.config.metadata_partitions))}",
        )
    return _Measure(context, data, frozenset(partition_types) or context.config.metadata_partitions, clock).run()


class _Measure:
    def __init__(
        self, context: TableContext, data: Storage, partition_types: frozenset[str], clock: Callable[[], float]
    ) -> None:
        self._context = context
        self._data = data
        self._clock = clock
        self._timeline: Timeline = context.active.load()
        self._schema = table_schema(context.storage, context.config, self._timeline)
        self._zone = context.zone
        found = self._new()
        self._names = found.list_partitions()
        self._files = {name: found.list_files(name) for name in self._names}
        self._partition_types = partition_types

    def run(self) -> Timings:
        return Timings(
            tuple(sorted(self._partition_types)),
            len(self._names),
            sum(map(len, self._files.values())),
            tuple(self._timings()),
        )

    def _timings(self) -> Iterator[Timing]:
        if FILES_PARTITION in self._partition_types:
            yield from self._of_listing()
        place = next(((name, bases) for name in self._names if (bases := _bases(self._files[name]))), None)
        if place is not None:
            yield from self._of_files(*place)
        if PARTITION_STATS in self._partition_types and self._names:
            columns = [str(self._schema["fields"][0]["name"])]
            yield self._time("statistics of partitions", len(self._names), lambda table: table.partition_stats(columns))
        for name in sorted(self._partition_types):
            if name.startswith(EXPRESSION_PREFIX):
                yield from self._of_expression(name, place)
            elif name.startswith(SECONDARY_PREFIX):
                yield from self._of_values(name)
        if RECORD_INDEX in self._partition_types:
            yield from self._of_keys(self._keys())

    def _of_listing(self) -> Iterator[Timing]:
        names, storage = self._names, self._context.storage
        files = sum(map(len, self._files.values()))
        yield self._time(
            "all partitions", len(names), MetadataTable.list_partitions, lambda: StorageListing(storage).partitions()
        )
        yield self._time(
            "all files",
            files,
            lambda table: [table.list_files(name) for name in names],
            lambda: _list_all(StorageListing(storage)),
        )
        some = names[:SAMPLE]
        if some:
            ask = (
                lambda table: [table.list_files(name) for name in some],
                lambda: [storage.list_files(name) for name in some],
            )
            yield self._time(
                "files of a partition", sum(len(self._files[name]) for name in some), *ask, lookups=len(some)
            )

    def _of_files(self, partition: str, bases: list[str]) -> Iterator[Timing]:
        """Statistics of one column and filters, of the base files of a partition."""
        paths = [join(partition, name) for name in bases if name.endswith(".parquet")]
        requested = {partition: bases}
        if COLUMN_STATS in self._partition_types:
            column = RECORD_KEY if self._context.config.populate_meta_fields else str(self._schema["fields"][0]["name"])
            ask = (
                lambda table: table.column_stats([column], files=requested),
                lambda: [self._footer(path) for path in paths],
            )
            yield self._time("column statistics of files", len(bases), *ask)
        if BLOOM_FILTERS in self._partition_types:
            filters = (
                lambda table: table.bloom_filters(partition, bases[:1]),
                lambda: [self._footer(path) for path in paths[:1]],
            )
            yield self._time("bloom filter of a file", 1, *filters)

    def _of_expression(self, index: str, place: tuple[str, list[str]] | None) -> Iterator[Timing]:
        """All statistics of an expression, or its filter of a file."""
        definition = self._new().index_definitions().get(index)
        if definition is not None and definition.type == COLUMN_STATS:
            yield self._time(
                f"{index}: all files", sum(map(len, self._files.values())), lambda table: table.expression_stats(index)
            )
        elif definition is not None and place is not None:
            partition, bases = place
            yield self._time(
                f"{index}: filter of a file", 1, lambda table: table.expression_blooms(index, partition, bases[:1])
            )

    def _of_values(self, index: str) -> Iterator[Timing]:
        """The record keys of values, of a column of text or of whole numbers, whose text is the same for every
        writer.
        """
        definition = self._new().index_definitions().get(index)
        if definition is None or len(definition.source_fields) != 1:
            return
        path = definition.source_fields[0].split(".")
        found = [evaluate(Column(tuple(path)), batch, "UTC") for batch in self._some_rows((path[0],))]
        if found and can_print(found[0].type):
            values = list(dict.fromkeys(value for array in found for value in array.cast(pa.string()).to_pylist()))[
                :SAMPLE
            ]
            yield self._time(
                f"{index}: record keys of values", len(values), lambda table: table.secondary_keys(index, values)
            )

    def _of_keys(self, keys: list[str]) -> Iterator[Timing]:
        if keys:
            singles = keys[:_SINGLES]
            yield self._time(
                "record keys, one by one",
                len(singles),
                lambda table: [table.record_locations([key]) for key in singles],
                lookups=len(singles),
            )
            yield self._time("record keys, at once", len(keys), lambda table: table.record_locations(keys))

    def _time(
        self,
        what: str,
        items: int,
        ask: Callable[[MetadataTable], object],
        without: Callable[[], object] | None = None,
        *,
        lookups: int = 1,
    ) -> Timing:
        table = self._new()
        cold = self._milliseconds(lambda: ask(table))
        warm = median(self._milliseconds(lambda: ask(table)) for _ in range(REPEATS))
        spared = None if without is None else median(self._milliseconds(without) for _ in range(REPEATS))
        return Timing(what, items, lookups, cold, warm, spared)

    def _milliseconds(self, act: Callable[[], object]) -> float:
        begin = self._clock()
        act()
        return (self._clock() - begin) * 1000

    def _new(self) -> MetadataTable:
        return MetadataTable(self._context.storage, self._context.config, self._timeline, self._schema, self._zone)

    def _footer(self, path: str) -> tuple[object, str | None, str | None]:
        with open_base_file(self._data, path) as file:
            footer = file.footer
            return file.metadata, footer.get(BLOOM), footer.get(BLOOM_TYPE)

    def _keys(self) -> list[str]:
        """Record keys of the first slices with rows."""
        keys = KeysOfRows.of(self._context.config)
        found = (key for batch in self._some_rows(keys.fields) for key in keys(batch, path=self._context.config.path))
        return [key.as_py() for key in islice(found, SAMPLE)]

    def _some_rows(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Columns of the first SAMPLE rows or so: whole batches of the first slices that have some."""
        reader = SliceReader(self._data, reader_spec(self._context, self._schema, self._timeline, merge_logs=True))
        view = self._context.view(self._timeline)
        left = SAMPLE
        for file_slice in (item for name in self._names for item in view.latest_merged_slices(name)):
            for batch in reader.read(file_slice, tuple(columns)):
                if left <= 0:
                    return
                left -= batch.num_rows
                yield batch


def _bases(files: Mapping[str, int] | Iterable[str]) -> list[str]:
    return [name for name in islice(sorted(files), SAMPLE) if isinstance(parse_data_file(name), BaseFileName)]


def _list_all(listing: StorageListing) -> int:
    return sum(len(listing.files(name)) for name in listing.partitions())
