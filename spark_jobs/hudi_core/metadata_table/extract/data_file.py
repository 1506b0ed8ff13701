"""The statistics of one data file for all partition types, by one read: the footer of a base file, the blocks of a log
file. Runs on executors.

A footer that does not tell a column's range has the column read; of a log file every record counts, whatever became of
its instant, so that ranges hold at any time. Memory: one batch of rows, or one piece of a log block.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from hudi_core.codec.avro.arrow import arrow_schema
from hudi_core.codec.avro.schema import AvroSchema, field_names, parse_schema
from hudi_core.codec.bloom import SIMPLE
from hudi_core.codec.log.blocks import BlockType, CorruptBlock, LogBlock
from hudi_core.codec.parquet.file import BATCH_ROWS, ParquetBaseFile
from hudi_core.errors import UnsupportedError
from hudi_core.filegroup.read.base_file import History, base_batches, open_base_file
from hudi_core.filegroup.read.evolution import rename_fields
from hudi_core.filegroup.read.log_records import block_batches
from hudi_core.filegroup.read.log_scan import log_blocks
from hudi_core.metadata_table.extract.column_ranges import FooterRanges, RowRanges, column_of
from hudi_core.metadata_table.extract.expressions import ExpressionValues
from hudi_core.metadata_table.indexed_table import column_type, is_indexable
from hudi_core.metadata_table.records.column_stats import file_record
from hudi_core.metadata_table.records.file_statistics import (
    ColumnRange,
    DataFileRef,
    Expression,
    FileStatistics,
    FilterText,
)
from hudi_core.metadata_table.records.value_types import empty_range
from hudi_core.model.names import parse_data_file
from hudi_core.model.partition import join
from hudi_core.storage.base import Storage
from hudi_core.timeline.internal_schema import ColumnSource
from hudi_core.timeline.schema_history import renamed_columns, sources_at
from hudi_core.view.file_group import DataFile

BLOOM: Final = "org.apache.hudi.bloomfilter"
OLD_BLOOM: Final = "com.uber.hoodie.bloomfilter"
BLOOM_TYPE: Final = "hoodie_bloom_filter_type_code"
_DATA: Final = frozenset({BlockType.AVRO_DATA, BlockType.HFILE_DATA, BlockType.PARQUET_DATA})


@dataclass(frozen=True, slots=True)
class StatisticsRequirements:
    """The statistics that a table's partition types need of each file.

    `schema` are the columns as files store them, meta fields included; `columns` those whose ranges are asked for, by
    dotted name, in the encoding of index version `version`; `all_columns` says that readers take every column for one
    of them (TableVersion.indexes_all_columns), so that each range must be told; `bloom` asks for the filter over record
    keys; `expressions` are those of expression indexes; `history` is as in IndexedTable.
    """

    schema: AvroSchema
    columns: tuple[str, ...] = ()
    version: int = 1
    bloom: bool = False
    expressions: tuple[Expression, ...] = ()
    history: History | None = None
    all_columns: bool = False


def read_file_statistics(storage: Storage, file: DataFileRef, requirements: StatisticsRequirements) -> FileStatistics:
    """What `file` says. Columns that it lacks are null in all its rows.

    Raises StorageNotFoundError when the file is gone, CorruptFileError for a base file that is broken, UnsupportedError
    for one that is no Parquet file, and for a range that the index cannot store where all must be told.
    """
    if not (requirements.columns or requirements.bloom or requirements.expressions):
        return FileStatistics(file)
    statistics = _of_base(storage, file, requirements) if file.is_base else _of_log(storage, file, requirements)
    if requirements.all_columns:
        _check_recorded(statistics)
    return statistics


def _check_recorded(statistics: FileStatistics) -> None:
    """To a reader that finds no range of a file's column all its values are null: it would lose the rows."""
    for found in statistics.ranges:
        if file_record(statistics.file, found) is None:
            raise UnsupportedError(
                f"column_stats cannot store the range of the column {found.column!r}: as decimal(30, 15) in "
                "this table version",
                path=join(statistics.file.partition, statistics.file.name),
                remedy=f"drop column_stats, or list the columns without {found.column!r} in "
                "hoodie.metadata.index.column.stats.column.list, "
                "for readers, too",
            )


class _Reading:
    """What is gathered from rows: ranges of some columns, and what the expression indexes hold of theirs."""

    def __init__(
        self, columns: Iterable[str], stored: pa.Schema, requirements: StatisticsRequirements, file: DataFileRef
    ) -> None:
        self._ranges = {name: RowRanges(name, _kind_of(stored, name), requirements.version) for name in columns}
        values = (ExpressionValues(item, _kind_of(stored, item.column)) for item in requirements.expressions)
        self._expressions = {
            item.expression.partition: item for item in values if file.is_base or not item.expression.base_files_only
        }
        self.file = file
        self._names = [*self._ranges, *(item.expression.column for item in self._expressions.values())]

    def schema(self, stored: pa.Schema) -> pa.Schema:
        """The top-level columns that are to be read."""
        requirements = {_top(name, stored) for name in self._names}
        return pa.schema([column for column in stored if column.name in requirements])

    def add(self, batch: pa.RecordBatch, known: frozenset[str] | None = None) -> None:
        """More rows; `known` are the columns that they have at all, None all."""
        for name, ranges in self._ranges.items():
            array = column_of(batch, name)
            if array is not None and (known is None or name.split(".")[0] in known or name in known):
                ranges.add(array)
        for values in self._expressions.values():
            array = column_of(batch, values.expression.column)
            if array is not None and (known is None or values.expression.column in known):
                values.add(array)

    def ranges(self, footer: FooterRanges | None = None) -> dict[str, ColumnRange]:
        """Of the columns that any row had; with sizes where they are a Parquet file's."""
        met = {name: ranges for name, ranges in self._ranges.items() if ranges.values}
        return {
            name: ranges.result(*((0, 0) if footer is None else footer.sizes(name))) for name, ranges in met.items()
        }

    def expressions(self) -> dict[str, ColumnRange | FilterText]:
        """What the expression indexes hold of the file."""
        return {name: values.result(self.file.size) for name, values in self._expressions.items()}


def _kind_of(stored: pa.Schema, name: str) -> pa.DataType:
    kind = column_type(stored, name)
    if kind is None:
        raise UnsupportedError(
            f"the index holds the column {name!r}, which the table's schema does not have",
            remedy="drop and create that index",
        )
    return kind


def _indexed(stored: pa.Schema, requirements: StatisticsRequirements) -> list[str]:
    """Those of the asked columns that the table has and whose values have an order: of others the indexes hold
    nothing.
    """
    return [
        name
        for name in requirements.columns
        if is_indexable(column_type(stored, name), requirements.version, by_value=requirements.all_columns)
    ]


def _of_base(storage: Storage, file: DataFileRef, requirements: StatisticsRequirements) -> FileStatistics:
    stored = arrow_schema(requirements.schema)
    path = join(file.partition, file.name)
    with open_base_file(storage, path) as parquet, parquet:
        footer, recorded, unrecorded = FooterRanges(parquet.metadata), {}, []
        renamed = renamed_columns(requirements.history)
        for name in _indexed(stored, requirements):
            found = (
                None
                if _top(name, stored) in renamed
                else _recorded(footer, parquet.schema, name, stored, requirements.version)
            )
            if found is None and parquet.num_rows:
                unrecorded.append(name)
            elif found is not None:
                recorded[name] = found
        reading = _Reading(unrecorded, stored, requirements, file)
        columns = reading.schema(stored)
        if columns.names:
            for batch in base_batches(
                parquet, columns, batch_rows=BATCH_ROWS, sources=_sources(requirements, _instant(file.name))
            ):
                reading.add(batch)
        recorded.update(reading.ranges(footer))
        ranges = tuple(recorded[name] for name in requirements.columns if name in recorded)
        return FileStatistics(file, ranges, _bloom(parquet, requirements), parquet.num_rows, reading.expressions())


def _recorded(
    footer: FooterRanges, file_schema: pa.Schema, name: str, stored: pa.Schema, version: int
) -> ColumnRange | None:
    """By the type that the file has, unless the column was widened since: then its rows are read as what they are
    now.
    """
    kind = column_type(file_schema, name)
    return None if kind is None or kind != _kind_of(stored, name) else footer.range(name, kind, version)


def _bloom(parquet: ParquetBaseFile, requirements: StatisticsRequirements) -> FilterText | None:
    if not requirements.bloom:
        return None
    footer = parquet.footer
    text = footer.get(BLOOM, footer.get(OLD_BLOOM))
    return None if text is None else FilterText(footer.get(BLOOM_TYPE, SIMPLE), text)


def _of_log(storage: Storage, file: DataFileRef, requirements: StatisticsRequirements) -> FileStatistics:
    if file.is_cdc:
        return FileStatistics(file)
    stored = arrow_schema(requirements.schema)
    reading = _Reading(_indexed(stored, requirements), stored, requirements, file)
    columns = reading.schema(stored)
    rows, partial = 0, False
    if columns.names:
        for block in _data_blocks(storage, file):
            partial = partial or block.is_partial
            sources = _sources(requirements, block.instant_time or "")
            writer = (
                rename_fields(parse_schema(block.schema or "", path=block.path), sources) if block.is_partial else None
            )
            known = None if writer is None else frozenset(field_names(writer))
            for batch in block_batches(storage, block, columns, sources=sources):
                rows += batch.num_rows
                reading.add(batch, known)
    found = {
        name: empty_range(name, requirements.version) for name in _indexed(stored, requirements)
    } | reading.ranges()
    ranges = tuple(found[name] for name in requirements.columns if name in found)
    return FileStatistics(file, ranges, None, rows, reading.expressions(), partial)


def _sources(requirements: StatisticsRequirements, instant: str) -> tuple[ColumnSource, ...]:
    return () if requirements.history is None else sources_at(requirements.history, instant)


def _instant(name: str) -> str:
    parsed = parse_data_file(name)
    return "" if parsed is None else parsed.instant


def _top(name: str, stored: pa.Schema) -> str:
    """The top-level column that a dotted name is in."""
    return name if stored.get_field_index(name) >= 0 else name.split(".")[0]


def _data_blocks(storage: Storage, file: DataFileRef) -> Iterator[LogBlock]:
    """Corrupt blocks are passed over, as every reader does that goes on at all: no row of them is ever returned."""
    for block in log_blocks(storage, [DataFile(file.partition, file.name, file.size)]):
        if not isinstance(block, CorruptBlock) and block.type in _DATA:
            yield block
