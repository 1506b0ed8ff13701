"""The partition type `expr_index_<name>`: ranges of an expression over a column per file and partition, or filters over
its values per base file (SparkMetadataWriterUtils.getExprIndexRecords,
HoodieTableMetadataUtil.collectAndProcessExprIndexPartitionStatRecords of 1.x).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

from hudi_core.codec.columns import column_type
from hudi_core.config.metadata_config import EXPRESSION_FILTER_TYPE, EXPRESSION_INDEX_GROUPS
from hudi_core.config.rows_config import BLOOM_ENTRIES, BLOOM_ERROR_RATE, BLOOM_MAX_ENTRIES
from hudi_core.errors import ConfigError, UnsupportedError
from hudi_core.metadata_table.extract.expressions import SESSION_ZONE, check_expression
from hudi_core.metadata_table.indexed_table import IndexDefinition, IndexedTable
from hudi_core.metadata_table.partition_type import BLOOM_FILTERS, COLUMN_STATS, EXPRESSION_PREFIX
from hudi_core.metadata_table.partitions.bloom_filters import deleted_filters, filter_record
from hudi_core.metadata_table.partitions.column_stats import deleted_ranges
from hudi_core.metadata_table.partitions.partition_stats import WholePartitionRanges, by_partition
from hudi_core.metadata_table.partitions.protocol import not_blank, unknown_partition
from hudi_core.metadata_table.records.column_stats import file_record
from hudi_core.metadata_table.records.file_statistics import (
    ColumnRange,
    CommitUpdate,
    Expression,
    FileChanges,
    FileStatistics,
    FilterText,
    Needs,
    Record,
)
from hudi_core.metadata_table.records.range_merge import merge_statistics

_TYPES: Final = (COLUMN_STATS, BLOOM_FILTERS)
_FILTER_TYPE: Final = EXPRESSION_FILTER_TYPE.name
_OF_OPTION: Final = {
    "numentries": BLOOM_ENTRIES.name,
    "fpp": BLOOM_ERROR_RATE.name,
    "maxentries": BLOOM_MAX_ENTRIES.name,
    "filtertype": _FILTER_TYPE,
}
"""HoodieExpressionIndex.BLOOM_FILTER_CONFIG_MAPPING."""


class ExpressionIndexPartition(WholePartitionRanges):
    """One source column; of filters, tables without log files."""

    name = EXPRESSION_PREFIX
    by_file = updated_by_clean = of_expression = True
    groups = EXPRESSION_INDEX_GROUPS

    def check(self) -> None:
        """Refuses an index without a definition of a known type."""
        if self._type not in _TYPES:
            raise unknown_partition(self.partition)

    def check_commit(self) -> None:
        """Refuses an index whose values are not computed exactly here."""
        _ = self._expression

    @cached_property
    def needs(self) -> Needs:
        return Needs(expression=self._expression, remaining=self._holds_ranges)

    def of_commit(self, update: CommitUpdate) -> Iterator[Record]:
        yield from super().of_commit(update)
        if self._holds_ranges:
            yield from self.of_written(update)

    def initial(self, instant: str, files: Iterable[FileStatistics]) -> Iterator[Record]:
        for name, found in by_partition(files):
            yield from self.of_files(instant, found, self._expression)
            if self._holds_ranges:
                yield from self.records(name, self.ranges(name, found))

    @classmethod
    def of_files(cls, instant: str, files: Iterable[FileStatistics], expression: Expression | None) -> Iterator[Record]:
        """One record of each file with rows; no filters of log files."""
        if expression is None:
            return
        for statistics in files:
            found = statistics.expressions.get(expression.partition)
            if isinstance(found, ColumnRange):
                record = file_record(statistics.file, found) if _has_rows(found) else None
                if record is not None:
                    yield record
            elif isinstance(found, FilterText) and statistics.file.is_base:
                yield filter_record(instant, statistics.file, found)

    def of_clean(self, instant: str, changes: FileChanges) -> Iterator[Record]:
        if self._type == BLOOM_FILTERS:
            return deleted_filters(instant, changes)
        definition = self.table.definitions[self.partition]
        return deleted_ranges(changes, definition.source_fields, definition.version)

    @property
    def _type(self) -> str:
        definition = self.table.definitions.get(self.partition)
        return "" if definition is None else definition.type.lower()

    @cached_property
    def _expression(self) -> Expression:
        return expression_of(self.partition, self.table)

    @property
    def _holds_ranges(self) -> bool:
        return self._expression.index_type == COLUMN_STATS

    def ranges(self, name: str, files: Sequence[FileStatistics]) -> dict[str, ColumnRange]:
        found = merge_statistics(files).expressions.get(self.partition)
        if not isinstance(found, ColumnRange):
            raise self.unrecorded(name, self._expression.column)
        return {found.column: found} if _has_rows(found) else {}

    def unrecorded(self, name: str, column: str) -> UnsupportedError:
        return UnsupportedError(
            f"the range of the expression index `{self.partition}` in the partition {name!r} is unknown",
            remedy=f"drop it with `hudictl metadata drop TABLE --partition {self.partition}`",
        )


def _has_rows(found: ColumnRange) -> bool:
    """Values are counted without the nulls here."""
    return found.value_count + found.null_count > 0


def expression_of(partition: str, table: IndexedTable) -> Expression:
    """Raises UnsupportedError where this release cannot keep the index true on this table."""
    definition = table.definitions.get(partition)
    index_type = "" if definition is None else definition.type.lower()
    if definition is None or index_type not in _TYPES or len(definition.source_fields) != 1:
        raise _refused(partition, "its definition is not there, or not that of an expression over one column")
    if index_type == BLOOM_FILTERS and table.config.is_merge_on_read:
        raise _refused(partition, "Hudi itself has no filters for log files, and its writers fail on such an index")
    column = definition.source_fields[0]
    found = column_type(table.arrow_schema(), column)
    if found is None:
        raise _refused(partition, f"the data files have no column {column!r}")
    expression = Expression(
        partition,
        column,
        definition.function,
        definition.options,
        index_type,
        table.version_of(partition),
        table.settings.get(SESSION_ZONE),
        _bloom_settings(definition, table.settings),
    )
    check_expression(expression, found)
    return expression


def _bloom_settings(definition: IndexDefinition, settings: Mapping[str, str]) -> tuple[int, float, int]:
    """The options of the index, else those of the writer."""
    found = {
        **settings,
        **{key: definition.options[option] for option, key in _OF_OPTION.items() if option in definition.options},
    }
    if found.get(_FILTER_TYPE, EXPRESSION_FILTER_TYPE.default) != EXPRESSION_FILTER_TYPE.default:
        raise _refused(definition.name, f"filters of the type {found[_FILTER_TYPE]} are not built")
    try:
        rate = BLOOM_ERROR_RATE.read(found)
    except ConfigError as error:
        raise _refused(definition.name, error.message) from error
    given = not_blank(found)
    return BLOOM_ENTRIES.read(given), rate, BLOOM_MAX_ENTRIES.read(given)


def _refused(partition: str, reason: str) -> UnsupportedError:
    return UnsupportedError(
        f"the expression index `{partition}` cannot be kept true: {reason}",
        path=f".hoodie/metadata/{partition}",
        remedy=f"drop it with `hudictl metadata drop TABLE --partition {partition}`",
    )
