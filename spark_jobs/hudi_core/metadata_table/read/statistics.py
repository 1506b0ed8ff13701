"""Column statistics by column, partition and file, typed by the table's schema, for data skipping."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby, islice
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.codec.avro.arrow import arrow_schema, spark_schema
from hudi_core.codec.avro.resolve import AvroType, resolve
from hudi_core.codec.avro.schema import AvroSchema
from hudi_core.metadata_table.keys import ID_LENGTH, PARTITION_STATISTICS, column_id, column_stats_key, partition_id
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.metadata_table.read.group_reader import GroupReader, Query, of_keys, of_prefixes, rebuild_as_remedy
from hudi_core.metadata_table.read.partition import MetadataPartition
from hudi_core.metadata_table.read.stat_columns import StatColumns
from hudi_core.metadata_table.records.column_stats import ColumnStats, live, statistics_table
from hudi_core.model.names import META_FIELDS, OPERATION
from hudi_core.model.partition import check_file_name, check_file_names

RUN: Final = 1 << 15
"""Records that are decoded at once: some 6 MB, and five times that while they are."""
Partitions = Callable[[], Iterable[str]]
"""All partition paths of the table: keys name a partition by a hash only."""


class ColumnTypes:
    """The Arrow types of a table's columns, by dotted name, as Spark reports them."""

    def __init__(self, schema: AvroSchema) -> None:
        self._record = resolve(schema, path="table schema")
        self._arrow = spark_schema(arrow_schema(schema))

    def of(self, column: str) -> tuple[pa.DataType, str]:
        """A column's type, null for none or a nested one, and the unit of its plain longs (`ms` or `us`)."""
        if column in META_FIELDS or column == OPERATION:
            return pa.string(), "us"
        steps = column.split(".")
        avro = _nested(self._record, steps)
        if avro is None or avro.fields or avro.item is not None:
            return pa.null(), "us"
        arrow_type = self._arrow.field(steps[0]).type
        for step in steps[1:]:
            arrow_type = arrow_type.field(step).type
        return arrow_type, "ms" if avro.logical.endswith("timestamp-millis") else "us"


def _nested(record: AvroType, steps: Sequence[str]) -> AvroType | None:
    found: AvroType | None = record
    for step in steps:
        fields = () if found is None else found.fields
        found = next((child.type for child in fields if child.name == step), None)
    return found


def column_stats(
    index: MetadataPartition[ColumnStats],
    columns: Sequence[str],
    types: ColumnTypes,
    known: Partitions,
    partitions: Iterable[str] | None,
    files: Mapping[str, Iterable[str]] | None,
) -> dict[str, pa.Table]:
    """As MetadataTable.column_stats. Memory: the result, and RUN records at a time; of log files all records."""
    by_id = {column_id(column): (column, StatColumns(*types.of(column))) for column in columns}
    found: dict[str, list[pa.Table]] = {column: [] for column in columns}
    if files is not None:
        places = {
            column_stats_key(column, path, name): path
            for column in columns
            for path, names in files.items()
            for name in names
        }
        keys = {partition_id(path): path for path in files}
        answers = index.of_keys(places, partial(_stat_tables, of_keys, by_id))
    else:
        keys = {partition_id(path): path for path in (known() if partitions is None else partitions)}
        prefixes = [start + key for start in by_id for key in keys] if partitions is not None else list(by_id)
        query = partial(_stat_tables, of_prefixes, by_id)
        answers = index.of_all_groups(prefixes, query) if prefixes else iter(())
    for answer in answers:
        for column, table in answer:
            found[column].append(table)
    return {column: _placed(found[column], keys, stats) for column, stats in by_id.values()}


def _stat_tables(
    query: Callable[[Sequence[bytes]], Query],
    columns: Mapping[str, tuple[str, StatColumns]],
    group: GroupReader[ColumnStats],
    requested: list[str],
) -> list[tuple[str, pa.Table]]:
    """By column, a file group's records of the requested keys or prefixes."""
    found = []
    split = group.split(query(sorted(key.encode("utf-8") for key in requested)))
    merged: dict[str, list[tuple[str, ColumnStats]]] = defaultdict(list)
    for encoded, stats in split.merged.items():
        key = encoded.decode("utf-8")
        merged[key[:ID_LENGTH]].append((key, stats))
    for start, records in merged.items():
        column, how = columns[start]
        found.append((column, how.of_records(records)))
    if split.base is not None:
        for first, cells in groupby(split.cells, key=lambda cell: cell[0][:ID_LENGTH]):
            column, how = columns[first.decode("ascii")]
            while run := list(islice(cells, RUN)):
                keys, values = zip(*run, strict=True)
                with rebuild_as_remedy():
                    table = how.of_cells(split.base.schema, keys, values, path=split.base.path)
                found.append((column, table))
    return found


def _placed(tables: list[pa.Table], paths: Mapping[str, str], how: StatColumns) -> pa.Table:
    """The rows of all file groups with their partitions (`paths` by id), sorted, of listed partitions."""
    whole = pa.concat_tables([*tables, how.of_records([])])
    place = pc.index_in(
        pc.utf8_slice_codeunits(whole["key"], ID_LENGTH, 2 * ID_LENGTH), value_set=pa.array(list(paths), pa.string())
    )
    whole = whole.set_column(0, "partition", pa.array(list(paths.values()), pa.string()).take(place)).filter(
        pc.is_valid(place)
    )
    check_file_names(whole["file"].to_pylist(), source=ROOT)
    return whole.sort_by([("partition", "ascending"), ("file", "ascending")]).combine_chunks()


def partition_stats(
    index: MetadataPartition[ColumnStats], columns: Sequence[str], types: ColumnTypes
) -> dict[str, pa.Table]:
    tables = {}
    for column in columns:
        arrow_type, unit = types.of(column)
        rows = [(stats.name, stats) for _, stats in live(index.with_prefixes([column_id(column)]))]
        tables[column] = statistics_table(rows, arrow_type, long_unit=unit, with_files=False)
    return tables


def expression_stats(index: MetadataPartition[ColumnStats], known: Partitions) -> pa.Table:
    by_id = {partition_id(path): path for path in known()}
    skipped = partition_id(PARTITION_STATISTICS)
    rows = []
    for key, stats in live(index.all()):
        place = key[ID_LENGTH : 2 * ID_LENGTH]
        if place in by_id and place != skipped:
            check_file_name(stats.name, source=by_id[place])
            rows.append((by_id[place], stats))
    return statistics_table(sorted(rows, key=lambda row: (row[0], row[1].name)), None)
