"""Reads the statistics of one data file for all partition types in one pass, on executors. In a base file it reads the
footer, and the rows of columns without a range there; in a log file it reads the blocks. Every record of a block
counts, in any state of its instant, so that ranges hold at any time. Memory: a batch, or a piece of a log block.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from contextlib import nullcontext
from typing import Final

import pyarrow as pa

from hudi_core.codec.avro.arrow import arrow_schema
from hudi_core.codec.avro.schema import AvroSchema
from hudi_core.codec.bloom import filter_in_footer
from hudi_core.codec.columns import column_of, column_type, field_path
from hudi_core.codec.log.blocks import BlockType, CorruptBlock
from hudi_core.codec.parquet.file import BATCH_ROWS, ParquetBaseFile
from hudi_core.errors import UnsupportedError
from hudi_core.filegroup.read.base_file import History, base_batches, open_base_file, refuse_skeleton
from hudi_core.filegroup.read.log_records import block_batches, partial_columns
from hudi_core.filegroup.read.log_scan import log_blocks
from hudi_core.frozen import dataclass
from hudi_core.metadata_table.extract.column_ranges import FooterRanges, RowRanges
from hudi_core.metadata_table.extract.expressions import ExpressionValues
from hudi_core.metadata_table.records.column_stats import file_record
from hudi_core.metadata_table.records.file_statistics import (
    ColumnRange,
    DataFileRef,
    Expression,
    FileStatistics,
    FilterText,
)
from hudi_core.metadata_table.records.range_merge import empty_range
from hudi_core.model.names import parse_data_file
from hudi_core.model.partition import join
from hudi_core.storage.base import Storage
from hudi_core.timeline.schemas import ColumnSource, renamed_columns, sources_at
from hudi_core.view.file_group import DataFile

_DATA: Final = frozenset({BlockType.AVRO_DATA, BlockType.HFILE_DATA, BlockType.PARQUET_DATA})


@dataclass(frozen=True, slots=True)
class StatisticsRequirements:
    """The statistics that are needed of each file: the ranges of `columns` (dotted, indexable) in the encoding of index
    version `version`, the filter over record keys (`bloom`), the values of `expressions`. `schema` is the schema of
    files, with meta fields; `history` is IndexedTable's. With `all_columns`, each range must be recorded
    (TableVersion.indexes_all_columns).
    """

    schema: AvroSchema
    columns: tuple[str, ...] = ()
    version: int = 1
    bloom: bool = False
    expressions: tuple[Expression, ...] = ()
    history: History | None = None
    all_columns: bool = False


def read_file_statistics(
    storage: Storage, file: DataFileRef, requirements: StatisticsRequirements, content: bytes | None = None
) -> FileStatistics:
    """Returns the statistics of `file`. A column that the file lacks is null in all its rows. A base file whose
    `content` is given is not read. Raises StorageNotFoundError when the file is gone, CorruptFileError for a broken
    base file, UnsupportedError for a base file that is no Parquet file or of a metadata-only bootstrap. With
    `all_columns` it also raises UnsupportedError for a range that cannot be stored.
    """
    if not (requirements.columns or requirements.bloom or requirements.expressions):
        return FileStatistics(file)
    if file.is_base:
        statistics = _of_base(storage, file, requirements, content)
    else:
        statistics = FileStatistics(file) if file.is_cdc else _of_log(storage, file, requirements)
    if requirements.all_columns:
        _check_recorded(statistics)
    return statistics


def _check_recorded(statistics: FileStatistics) -> None:
    """Raises UnsupportedError for a range that cannot be stored: a reader takes an absent range for nulls only."""
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


class _Rows:
    """Gathers from rows the ranges of columns and the values of expression indexes."""

    def __init__(
        self, columns: Iterable[str], stored: pa.Schema, requirements: StatisticsRequirements, file: DataFileRef
    ) -> None:
        self._ranges = {name: RowRanges(name, _stored_type(stored, name), requirements.version) for name in columns}
        values = (ExpressionValues(item, _stored_type(stored, item.column)) for item in requirements.expressions)
        self._expressions = [item for item in values if file.is_base or not item.expression.base_files_only]
        self._of_columns: list[tuple[str, RowRanges | ExpressionValues]] = [
            *self._ranges.items(),
            *((item.expression.column, item) for item in self._expressions),
        ]
        top = {_top(name, stored) for name, _ in self._of_columns}
        self.columns = pa.schema([column for column in stored if column.name in top])
        """The top-level columns to read."""
        self.count = 0

    def add(self, batch: pa.RecordBatch, known: frozenset[str] | None = None) -> None:
        """Adds a batch of rows. `known` are the columns that the rows have; None: all."""
        self.count += batch.num_rows
        for name, values in self._of_columns:
            array = column_of(batch, name)
            if array is not None and (known is None or _top(name, batch.schema) in known):
                values.add(array)

    def ranges(self, footer: FooterRanges | None = None) -> dict[str, ColumnRange]:
        """Returns the ranges of the columns that any row had, with sizes from a Parquet `footer`, if given."""
        return {
            name: ranges.result(*((0, 0) if footer is None else footer.sizes(name)))
            for name, ranges in self._ranges.items()
            if ranges.values
        }

    def expressions(self, file: DataFileRef) -> dict[str, ColumnRange | FilterText]:
        return {item.expression.partition: item.result(file.size) for item in self._expressions}


def _stored_type(stored: pa.Schema, name: str) -> pa.DataType:
    arrow_type = column_type(stored, name)
    if arrow_type is None:
        message = f"the index holds the column {name!r}, which the table's schema does not have"
        remedy = "drop that index with `hudictl metadata drop TABLE --partition …`"
        raise UnsupportedError(message, remedy=remedy)
    return arrow_type


def _of_base(
    storage: Storage, file: DataFileRef, requirements: StatisticsRequirements, content: bytes | None
) -> FileStatistics:
    stored, path = arrow_schema(requirements.schema), join(file.partition, file.name)
    refuse_skeleton(path)
    kept = None if content is None else ParquetBaseFile(io.BytesIO(content), path, storage.limits)
    with open_base_file(storage, path) if kept is None else nullcontext(kept) as parquet, parquet:
        footer, renamed = FooterRanges(parquet.metadata), renamed_columns(requirements.history)
        found: dict[str, ColumnRange | None] = {}
        for name in requirements.columns:
            # The footer counts if the file has the present type. If the column was widened since, its rows are read.
            arrow_type = None if _top(name, stored) in renamed else column_type(parquet.schema, name)
            is_same = arrow_type is not None and arrow_type == _stored_type(stored, name)
            found[name] = footer.range(name, arrow_type, requirements.version) if is_same else None
        missing = [name for name, item in found.items() if item is None] if parquet.num_rows else []
        rows = _Rows(missing, stored, requirements, file)
        if rows.columns.names:
            parsed = parse_data_file(file.name)
            sources = _sources(requirements, "" if parsed is None else parsed.instant)
            for batch in base_batches(parquet, rows.columns, batch_rows=BATCH_ROWS, sources=sources):
                rows.add(batch)
        found.update(rows.ranges(footer))
        ranges = (item for item in found.values() if item is not None)
        bloom = filter_in_footer(parquet.footer) if requirements.bloom else None
        expressions = rows.expressions(file)
        return FileStatistics(file, tuple(ranges), bloom and FilterText(*bloom), parquet.num_rows, expressions)


def _of_log(storage: Storage, file: DataFileRef, requirements: StatisticsRequirements) -> FileStatistics:
    stored = arrow_schema(requirements.schema)
    rows, partial = _Rows(requirements.columns, stored, requirements, file), False
    blocks = log_blocks(storage, [DataFile(file.partition, file.name, file.size)]) if rows.columns.names else ()
    for block in blocks:
        # Corrupt blocks are skipped: a reader skips them, too, or stops. None returns a row of them.
        if isinstance(block, CorruptBlock) or block.type not in _DATA:
            continue
        sources = _sources(requirements, block.instant_time or "")
        known = partial_columns(block, stored, sources)
        partial = partial or block.is_partial
        for batch in block_batches(storage, block, rows.columns, sources=sources):
            rows.add(batch, known)
    found = {name: empty_range(name, requirements.version) for name in requirements.columns} | rows.ranges()
    return FileStatistics(file, tuple(found.values()), None, rows.count, rows.expressions(file), partial)


def _sources(requirements: StatisticsRequirements, instant: str) -> tuple[ColumnSource, ...]:
    return () if requirements.history is None else sources_at(requirements.history, instant)


def _top(name: str, stored: pa.Schema) -> str:
    path = field_path(stored, name)
    return name if path is None else path[0].name
