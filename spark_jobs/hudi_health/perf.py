"""`metadata perf`: measures reads of the metadata table, and compares them with reads of the storage. Nothing is
written.

Every query first runs on a new reader of the metadata table (`cold_ms`: it reads the metadata table's timeline, log
blocks and HFile index). Then it runs REPEATS times on the same reader (`open_ms`: the median). `without_ms` is the
median of the same lookup without the metadata table: a listing of the storage, or reads of the files' footers. Times
are of this process, in milliseconds.

Memory: the file names of the table, SAMPLE rows of one slice, and what the metadata table keeps open.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from itertools import islice
from statistics import median
from typing import Any, Final

import pyarrow as pa

from hudi_core.codec.bloom import filter_in_footer
from hudi_core.codec.columns import top_columns
from hudi_core.errors import ConfigError
from hudi_core.expr.functions import evaluate
from hudi_core.expr.tree import Column
from hudi_core.filegroup.merge.record_keys import record_keys
from hudi_core.filegroup.read.base_file import open_base_file
from hudi_core.filegroup.read.schema_resolver import table_schema
from hudi_core.filegroup.read.slice_reader import SliceReader
from hudi_core.frozen import dataclass
from hudi_core.metadata_table.indexed_table import IndexDefinition
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
from hudi_core.query.context import reader_spec
from hudi_core.services.context import TableContext
from hudi_core.storage.base import Storage
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.listing import StorageListing, walk_partitions
from hudi_health.validate.check import key_columns
from hudi_health.validate.row_indexes import can_print
from hudi_health.validate.run import check_metadata

REPEATS: Final = 5
SAMPLE: Final = 1000
"""The most partitions, base files of a partition, and record keys of a query."""
_SINGLES: Final = 20
"""The number of keys that are looked up one by one."""


@dataclass(frozen=True, slots=True)
class Timing:
    """The times of a query in milliseconds: the sum of its `lookups`, which are about `items` things. `without_ms` is
    None if only a read of rows could replace the metadata table.
    """

    what: str
    items: int
    lookups: int
    cold_ms: float
    open_ms: float
    without_ms: float | None


@dataclass(frozen=True, slots=True)
class Timings:
    """The times of all queries. `partition_types` are the measured partitions of the metadata table."""

    partition_types: tuple[str, ...]
    partitions: int
    files: int
    timings: tuple[Timing, ...]

    def to_dict(self) -> dict[str, Any]:
        timings = [asdict(item) for item in self.timings]
        for timing in timings:
            timing["asked"] = timing.pop("lookups")
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
    """Measures the queries that readers and writers make on the metadata table. `data` is the storage of the data path;
    `clock` returns seconds. `partition_types` names the partitions to measure; empty means all. Raises
    MetadataUnavailableError for a table without a readable metadata table, ConfigError if the metadata table lacks one
    of `partition_types`, CorruptFileError for a damaged metadata table.
    """
    check_metadata(context, "measure")
    unknown = sorted(set(partition_types) - context.config.metadata_partitions)
    if unknown:
        message = f"the metadata table has no {', '.join(unknown)}"
        remedy = f"name some of {', '.join(sorted(context.config.metadata_partitions))}"
        raise ConfigError(message, path=context.config.path, remedy=remedy)
    queries = _Queries(context, data, frozenset(partition_types) or context.config.metadata_partitions, clock)
    return Timings(tuple(sorted(queries.partition_types)), len(queries.names), queries.count, tuple(queries.timings()))


class _Queries:
    def __init__(
        self, context: TableContext, data: Storage, partition_types: frozenset[str], clock: Callable[[], float]
    ) -> None:
        self.partition_types = partition_types
        self._clock = clock
        self._context = context
        self._data = data
        self._timeline: Timeline = context.active.load()
        self._schema = table_schema(context.storage, context.config, self._timeline)
        table = self._open()
        self.names = table.partitions()
        self._files = {name: table.list_files(name) for name in self.names}
        self.count = sum(map(len, self._files.values()))
        self._definitions = table.definitions

    def _open(self) -> MetadataTable:
        context = self._context
        return MetadataTable(context.storage, context.config, self._timeline, self._schema, context.zone)

    def _timing(
        self,
        what: str,
        items: int,
        query: Callable[[MetadataTable], object],
        without: Callable[[], object] | None = None,
        lookups: int = 1,
    ) -> Timing:
        def milliseconds(act: Callable[[], object]) -> float:
            start = self._clock()
            act()
            return (self._clock() - start) * 1000

        run = partial(query, self._open())
        cold, warm = milliseconds(run), median(milliseconds(run) for _ in range(REPEATS))
        spared = None if without is None else median(milliseconds(without) for _ in range(REPEATS))
        return Timing(what, items, lookups, cold, warm, spared)

    def timings(self) -> Iterator[Timing]:
        if FILES_PARTITION in self.partition_types:
            yield from self._listing()
        place = next(((name, bases) for name in self.names if (bases := _bases(self._files[name]))), None)
        if place is not None:
            yield from self._of_files(*place)
        if PARTITION_STATS in self.partition_types and self.names:
            columns = [self._first_column()]
            yield self._timing(
                "statistics of partitions", len(self.names), lambda table: table.partition_stats(columns)
            )
        for name in sorted(self.partition_types & self._definitions.keys()):
            if name.startswith(EXPRESSION_PREFIX):
                yield from self._expression(self._definitions[name], place)
            elif name.startswith(SECONDARY_PREFIX):
                yield from self._secondary(self._definitions[name])
        if RECORD_INDEX in self.partition_types and (keys := self._keys()):
            singles = keys[:_SINGLES]
            yield self._timing(
                "record keys, one by one",
                len(singles),
                lambda table: [table.record_locations([key]) for key in singles],
                lookups=len(singles),
            )
            yield self._timing("record keys, at once", len(keys), lambda table: table.record_locations(keys))

    def _listing(self) -> Iterator[Timing]:
        names, storage = self.names, self._context.storage
        yield self._timing(
            "all partitions", len(names), MetadataTable.partitions, lambda: StorageListing(storage).partitions()
        )
        yield self._timing(
            "all files",
            self.count,
            lambda table: [table.list_files(name) for name in names],
            lambda: list(walk_partitions(storage, storage.list_files)),
        )
        if some := names[:SAMPLE]:
            yield self._timing(
                "files of a partition",
                sum(len(self._files[name]) for name in some),
                lambda table: [table.list_files(name) for name in some],
                lambda: [storage.list_files(name) for name in some],
                lookups=len(some),
            )

    def _of_files(self, partition: str, bases: list[str]) -> Iterator[Timing]:
        """Measures lookups of the statistics of one column, and of a Bloom filter, for base files of a partition."""
        paths = [join(partition, name) for name in bases if name.endswith(".parquet")]
        if COLUMN_STATS in self.partition_types:
            column = RECORD_KEY if self._context.config.populate_meta_fields else self._first_column()
            yield self._timing(
                "column statistics of files",
                len(bases),
                lambda table: table.column_stats([column], files={partition: bases}),
                lambda: [self._footer(path) for path in paths],
            )
        if BLOOM_FILTERS in self.partition_types:
            yield self._timing(
                "bloom filter of a file",
                1,
                lambda table: table.bloom_filters(partition, bases[:1]),
                lambda: [self._footer(path) for path in paths[:1]],
            )

    def _expression(self, index: IndexDefinition, place: tuple[str, list[str]] | None) -> Iterator[Timing]:
        name = index.name
        if index.type == COLUMN_STATS:
            yield self._timing(f"{name}: all files", self.count, lambda table: table.expression_stats(name))
        elif place is not None:
            partition, bases = place
            yield self._timing(
                f"{name}: filter of a file", 1, lambda table: table.expression_blooms(name, partition, bases[:1])
            )

    def _secondary(self, index: IndexDefinition) -> Iterator[Timing]:
        """Measures lookups in a secondary index, if its column has the same text for every writer."""
        if len(index.source_fields) != 1:
            return
        path = tuple(index.source_fields[0].split("."))
        found = [evaluate(Column(path), batch, "UTC") for batch in self._some_rows(path[:1])]
        if found and can_print(found[0].type):
            texts = dict.fromkeys(value for array in found for value in array.cast(pa.string()).to_pylist())
            values = list(texts)[:SAMPLE]
            yield self._timing(
                f"{index.name}: record keys of values",
                len(values),
                lambda table: table.secondary_keys(index.name, values),
            )

    def _first_column(self) -> str:
        return str(self._schema["fields"][0]["name"])

    def _footer(self, path: str) -> tuple[object, object]:
        with open_base_file(self._data, path) as file:
            return file.metadata, filter_in_footer(file.footer)

    def _keys(self) -> list[str]:
        columns, path = key_columns(self._context.config), self._context.config.path
        found = (
            key
            for batch in self._some_rows(sorted(top_columns(columns)))
            for key in record_keys(batch, columns, path=path)
        )
        return [key.as_py() for key in islice(found, SAMPLE)]

    def _some_rows(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yields about SAMPLE first rows: whole batches of the first slices that have rows."""
        reader = SliceReader(self._data, reader_spec(self._context, self._schema, self._timeline, merge_logs=True))
        view, left = self._context.view(self._timeline), SAMPLE
        for file_slice in (item for name in self.names for item in view.latest_merged_slices(name)):
            for batch in reader.read(file_slice, tuple(columns)):
                if left <= 0:
                    return
                left -= batch.num_rows
                yield batch


def _bases(files: Iterable[str]) -> list[str]:
    return [name for name in islice(sorted(files), SAMPLE) if isinstance(parse_data_file(name), BaseFileName)]
