"""Column statistics by column, partition and file, typed by the table's schema: what data skipping asks of the metadata table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import pyarrow as pa

from hudi_core.codec.avro.arrow import arrow_schema, spark_schema
from hudi_core.codec.avro.resolve import AvroType, resolve
from hudi_core.codec.avro.schema import AvroSchema
from hudi_core.metadata_table.column_stats import ColumnStats, live, statistics_table
from hudi_core.metadata_table.keys import ID_LENGTH, PARTITION_STATISTICS, column_id, column_stats_key, partition_id
from hudi_core.metadata_table.partition import MetadataPartition
from hudi_core.model.meta_fields import META_FIELDS, OPERATION
from hudi_core.model.partition import check_file_name

Partitions = Callable[[], Iterable[str]]
"""All partition paths of the table: keys name a partition by a hash only."""


class ColumnTypes:
    """The Arrow types of a table's columns, by dotted name, as Spark reports them."""

    def __init__(self, schema: AvroSchema) -> None:
        self._record = resolve(schema, path="table schema")
        self._arrow = spark_schema(arrow_schema(schema))

    def of(self, column: str) -> tuple[pa.DataType, str]:
        """A column's type, and the unit of its plain longs (`ms` or `us`); the null type for a column that is not there or is nested."""
        if column in META_FIELDS or column == OPERATION:
            return pa.string(), "us"
        steps = column.split(".")
        avro = _nested(self._record, steps)
        if avro is None or avro.fields or avro.item is not None:
            return pa.null(), "us"
        kind = self._arrow.field(steps[0]).type
        for step in steps[1:]:
            kind = kind.field(step).type
        return kind, "ms" if avro.logical.endswith("timestamp-millis") else "us"


def _nested(record: AvroType, steps: Sequence[str]) -> AvroType | None:
    found: AvroType | None = record
    for step in steps:
        found = next((child.type for child in found.fields if child.name == step), None) if found is not None else None
    return found


def column_stats(
    index: MetadataPartition[ColumnStats],
    columns: Sequence[str],
    types: ColumnTypes,
    known: Partitions,
    partitions: Iterable[str] | None,
    files: Mapping[str, Iterable[str]] | None,
) -> dict[str, pa.Table]:
    """By column, the statistics of the named files, of all files of some partitions, or of all; see reader.MetadataTable.column_stats."""
    tables = {}
    if files is not None:
        places = {(column, column_stats_key(column, path, name)): path for column in columns for path, names in files.items() for name in names}
        found = index.lookup({key for _, key in places})
        for column in columns:
            rows = [(path, found[key]) for (owner, key), path in places.items() if owner == column and key in found]
            tables[column] = _table([(path, stats) for path, stats in rows if not stats.is_deleted], *types.of(column))
        return tables
    by_id = {partition_id(path): path for path in (known() if partitions is None else partitions)}
    for column in columns:
        start = column_id(column)
        prefixes = [start] if partitions is None else [start + key for key in by_id]
        # A partition that is no longer listed has no files, whatever statistics are left of it.
        rows = [(by_id[key[ID_LENGTH : 2 * ID_LENGTH]], stats) for key, stats in live(index.with_prefixes(prefixes)) if _partition_of(key) in by_id]
        tables[column] = _table(rows, *types.of(column))
    return tables


def partition_stats(index: MetadataPartition[ColumnStats], columns: Sequence[str], types: ColumnTypes) -> dict[str, pa.Table]:
    """By column, the statistics of whole partitions; see reader.MetadataTable.partition_stats."""
    tables = {}
    for column in columns:
        kind, unit = types.of(column)
        rows = [(stats.name, stats) for _, stats in live(index.with_prefixes([column_id(column)]))]
        tables[column] = statistics_table(rows, kind, long_unit=unit, with_files=False)
    return tables


def expression_stats(index: MetadataPartition[ColumnStats], known: Partitions) -> pa.Table:
    """The statistics of an expression's values per file; rows of whole partitions are left out."""
    by_id = {partition_id(path): path for path in known()}
    skipped = partition_id(PARTITION_STATISTICS)
    rows = [(by_id[_partition_of(key)], stats) for key, stats in live(index.all()) if _partition_of(key) in by_id and _partition_of(key) != skipped]
    return statistics_table(_checked(rows), None)


def _partition_of(key: str) -> str:
    return key[ID_LENGTH : 2 * ID_LENGTH]


def _table(rows: list[tuple[str, ColumnStats]], kind: pa.DataType, unit: str) -> pa.Table:
    return statistics_table(_checked(rows), kind, long_unit=unit)


def _checked(rows: list[tuple[str, ColumnStats]]) -> list[tuple[str, ColumnStats]]:
    for partition, stats in rows:
        check_file_name(stats.name, source=partition)
    return sorted(rows, key=lambda row: (row[0], row[1].name))
