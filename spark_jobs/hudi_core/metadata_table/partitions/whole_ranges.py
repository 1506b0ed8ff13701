"""The partition types with ranges of whole partitions. `partition_stats` has the range of each indexed column over all
files of a partition's file slices. `expr_index_<name>` has ranges of an expression over a column, per file and
partition, or filters over its values per base file (SparkMetadataWriterUtils.getExprIndexRecords,
HoodieTableMetadataUtil.collectAndProcessExprIndexPartitionStatRecords of 1.x).

When a commit writes to a partition, Hudi 1.x makes the partition's range from the `column_stats` records of the
remaining files and of the new files. It marks the range as tight, which replaces the older record
(HoodieMetadataWriteUtils.convertMetadataToPartitionStatRecords).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import groupby
from typing import ClassVar, Final

import pyarrow as pa

from hudi_core.codec.columns import column_type
from hudi_core.config.metadata_config import EXPRESSION_FILTER_TYPE, EXPRESSION_INDEX_GROUPS, PARTITION_STATS_GROUPS
from hudi_core.config.rows_config import BLOOM_ENTRIES, BLOOM_ERROR_RATE, BLOOM_MAX_ENTRIES
from hudi_core.errors import ConfigError, ConflictError, UnsupportedError
from hudi_core.metadata_table.extract.expressions import SESSION_ZONE, check_expression
from hudi_core.metadata_table.indexed_table import IndexDefinition, indexed_types
from hudi_core.metadata_table.partition_type import BLOOM_FILTERS, COLUMN_STATS, EXPRESSION_PREFIX, PARTITION_STATS
from hudi_core.metadata_table.partitions.protocol import MergeData, PartitionType, not_blank, unknown_partition
from hudi_core.metadata_table.partitions.single_files import deleted_filters, deleted_ranges, filter_record
from hudi_core.metadata_table.record import RecordType
from hudi_core.metadata_table.records.column_stats import (
    file_record,
    merge_stored,
    partition_deletion,
    partition_record,
)
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
from hudi_core.metadata_table.records.range_merge import as_type, contains, is_like, merge_statistics, merged
from hudi_core.model.names import PARTITION_PATH

_REMEDY: Final = "drop it with `hudictl metadata drop TABLE --partition partition_stats`"
_DELETES_PARTITIONS: Final = "DELETE_PARTITION"


class WholePartitionRanges(PartitionType):
    """The base class of `partition_stats` and expression indexes: records of the ranges of whole partitions."""

    of_expression: ClassVar[bool] = False

    @abstractmethod
    def ranges(self, name: str, files: Sequence[FileStatistics]) -> dict[str, ColumnRange]:
        """Returns the ranges of partition `name`, by column; none without rows. Raises UnsupportedError if unknown."""

    @abstractmethod
    def unrecorded(self, name: str, column: str) -> UnsupportedError: ...

    def of_written(self, update: CommitUpdate) -> Iterator[Record]:
        """Yields the ranges of the partitions that a commit wrote to. They are recomputed; for CommitUpdate.rewrites
        they are only widened. A commit that overtakes another one recomputes them and widens the older record.
        Rewritten rows have values beyond the present record where log files lacked values and the schema's defaults
        fill them in. A column that came later than a file counts fewer rows than the partition path does, until
        rewritten files add theirs. A column without a record gets a record: Hudi takes a partition without one for a
        partition without rows (PartitionStatsIndexSupport). A record that Hudi does not merge in the same way (is_like)
        is replaced. Raises ConflictError where the commit overtakes another one, whose record the new one would hide.
        """
        for name, files in update.written_in().items():
            if not update.rewrites and not update.overtakes:
                yield from self.records(name, self._whole(name, files, update))
                continue
            current = update.recorded(name) or {}
            changed = self.ranges(name, files) if update.rewrites else self._whole(name, files, update)
            unlike = {
                column
                for column, item in changed.items()
                if column in current and current[column].least is not None and not is_like(current[column], item)
            }
            if unlike and update.overtakes:
                raise ConflictError(
                    f"the partition {name!r} has a range of {min(unlike)} of another type, or of texts that Hudi "
                    "orders otherwise, which cannot be replaced while older writes are pending",
                    remedy="run this again when they are completed or rolled back",
                )
            if update.rewrites:
                whole = self._whole(name, files, update) if unlike or changed.keys() - current.keys() else {}
                # No rewrite widens the range of the partition path, and so adds counts to it. A comparison with all
                # files (commit_updates.widening) has no write stats: there the count is no defect.
                rows = current[PARTITION_PATH].value_count if PARTITION_PATH in current and name in update.stats else 0
                changed = {
                    column: whole[column] if column in unlike or column not in current else item
                    for column, item in changed.items()
                    if column in unlike
                    or column not in current
                    or current[column].value_count < rows
                    or not contains(current[column], item)
                }
            replacing = {column: _united(current[column], changed.pop(column)) for column in sorted(unlike)}
            yield from self.records(name, replacing)
            yield from self.records(name, changed, widens=True)

    def records(self, name: str, ranges: Mapping[str, ColumnRange], *, widens: bool = False) -> Iterator[Record]:
        for column, found in ranges.items():
            record = partition_record(name, found, of_expression=self.of_expression, widens=widens)
            if record is None:
                raise self.unrecorded(name, column)
            yield record

    def _whole(self, name: str, files: Sequence[FileStatistics], update: CommitUpdate) -> dict[str, ColumnRange]:
        return self.ranges(name, [*files, *(update.remaining(name) or ())])


def _united(recorded: ColumnRange, whole: ColumnRange) -> ColumnRange:
    """Returns the range `whole` of all files, in the present type, merged with the recorded range where that widens."""
    both = merged((recorded, whole))
    if both is None or both.least is None or whole.least is None or both.least.logical != whole.least.logical:
        return whole
    return replace(whole, least=both.least, greatest=both.greatest)


def by_partition(files: Iterable[FileStatistics]) -> Iterator[tuple[str, list[FileStatistics]]]:
    """Yields each partition with its files, which must come by partition. Memory: the statistics of one partition."""
    for name, found in groupby(files, key=lambda statistics: statistics.file.partition):
        yield name, list(found)


class PartitionStatsPartition(WholePartitionRanges):
    """`partition_stats`, for partitioned tables only. A clean changes no record: a range also holds for fewer files."""

    name = PARTITION_STATS
    merges: ClassVar[Mapping[int, MergeData]] = {RecordType.PARTITION_STATS: merge_stored}
    groups = PARTITION_STATS_GROUPS
    needs = Needs(ranges=True, remaining=True)

    def check_commit(self) -> None:
        """Raises UnsupportedError for a table without partitions: Hudi makes no such index for it."""
        if not self.table.is_partitioned:
            raise UnsupportedError("statistics of partitions for a table without partitions", remedy=_REMEDY)

    def of_commit(self, update: CommitUpdate) -> Iterator[Record]:
        """Yields the ranges of the partitions that a commit wrote to, and deletions for the partitions that it emptied.
        A commit that overtakes another one makes no deletions. Raises UnsupportedError when the range of a partition is
        unknown: an older record would remain, and hide rows.
        """
        yield from self.of_written(update)
        if update.rewrites or update.overtakes:
            return
        written = update.written_in()
        for name in sorted(update.replaced):
            if name not in written:
                yield from self._emptied(name, update)

    def initial(self, instant: str, files: Iterable[FileStatistics]) -> Iterator[Record]:
        for name, found in by_partition(files):
            yield from self.records(name, self.ranges(name, found))

    @cached_property
    def _version(self) -> int:
        return self.table.version_of(self.partition)

    @cached_property
    def _columns(self) -> dict[str, pa.DataType]:
        return indexed_types(self.table)

    def _emptied(self, name: str, update: CommitUpdate) -> Iterator[Record]:
        """Yields the records of a partition that lost files; none if the rest is unknown: the older record holds."""
        remaining = update.remaining(name)
        if remaining:
            yield from self.records(name, self.ranges(name, remaining))
        elif remaining is not None or update.operation == _DELETES_PARTITIONS:
            for column in self._columns:
                yield partition_deletion(name, column, self._version)

    def ranges(self, name: str, files: Sequence[FileStatistics]) -> dict[str, ColumnRange]:
        over_files = merge_statistics(files)
        if not over_files.bounds_rows:
            return {}
        known = {item.column: item for item in over_files.ranges}
        if missing := [column for column in self._columns if column not in known]:
            raise self.unrecorded(name, missing[0])
        return {
            column: as_type(known[column], arrow_type, self._version) for column, arrow_type in self._columns.items()
        }

    def unrecorded(self, name: str, column: str) -> UnsupportedError:
        return UnsupportedError(
            f"the range of the column {column!r} in the partition {name!r} is unknown", remedy=_REMEDY
        )


_TYPES: Final = (COLUMN_STATS, BLOOM_FILTERS)
_FILTER_TYPE: Final = EXPRESSION_FILTER_TYPE.name
_OF_OPTION: Final = {
    "numentries": BLOOM_ENTRIES.name,
    "fpp": BLOOM_ERROR_RATE.name,
    "maxentries": BLOOM_MAX_ENTRIES.name,
    "filtertype": _FILTER_TYPE,
}
"""The writer's option by the index's option (HoodieExpressionIndex.BLOOM_FILTER_CONFIG_MAPPING)."""


class ExpressionIndexPartition(WholePartitionRanges):
    """The partition type of an expression index over one column. An index of filters needs a table without logs."""

    name = EXPRESSION_PREFIX
    by_file = updated_by_clean = of_expression = True
    groups = EXPRESSION_INDEX_GROUPS

    def check(self) -> None:
        if self._type not in _TYPES:
            raise unknown_partition(self.partition)

    def check_commit(self) -> None:
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
        """Yields one record for each file with rows; log files get no filters."""
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
        """The index's expression. Raises UnsupportedError where this release cannot keep the index true."""
        table, definition, index_type = self.table, self.table.definitions.get(self.partition), self._type
        if definition is None or index_type not in _TYPES or len(definition.source_fields) != 1:
            raise self._refused("its definition is not there, or not that of an expression over one column")
        if index_type == BLOOM_FILTERS and table.config.is_merge_on_read:
            raise self._refused("Hudi itself has no filters for log files, and its writers fail on such an index")
        column = definition.source_fields[0]
        arrow_type = column_type(table.arrow_schema(), column)
        if arrow_type is None:
            raise self._refused(f"the data files have no column {column!r}")
        expression = Expression(
            self.partition,
            column,
            definition.function,
            definition.options,
            index_type,
            table.version_of(self.partition),
            table.settings.get(SESSION_ZONE),
            self._bloom_settings(definition),
        )
        check_expression(expression, arrow_type)
        return expression

    def _bloom_settings(self, definition: IndexDefinition) -> tuple[int, float, int]:
        """Returns the filter's settings: from the index's options, else from the writer's."""
        of_index = {
            key: definition.options[option] for option, key in _OF_OPTION.items() if option in definition.options
        }
        settings = {**self.table.settings, **of_index}
        if settings.get(_FILTER_TYPE, EXPRESSION_FILTER_TYPE.default) != EXPRESSION_FILTER_TYPE.default:
            raise self._refused(f"filters of the type {settings[_FILTER_TYPE]} are not built")
        try:
            rate = BLOOM_ERROR_RATE.read(settings)
        except ConfigError as error:
            raise self._refused(error.message) from error
        return BLOOM_ENTRIES.read(not_blank(settings)), rate, BLOOM_MAX_ENTRIES.read(not_blank(settings))

    def _refused(self, reason: str) -> UnsupportedError:
        message = f"the expression index `{self.partition}` cannot be kept true: {reason}"
        return UnsupportedError(message, path=f".hoodie/metadata/{self.partition}", remedy=self._remedy)

    @property
    def _remedy(self) -> str:
        return f"drop it with `hudictl metadata drop TABLE --partition {self.partition}`"

    @property
    def _holds_ranges(self) -> bool:
        return self._expression.index_type == COLUMN_STATS

    def ranges(self, name: str, files: Sequence[FileStatistics]) -> dict[str, ColumnRange]:
        found = merge_statistics(files).expressions.get(self.partition)
        if not isinstance(found, ColumnRange):
            raise self.unrecorded(name, self._expression.column)
        return {found.column: found} if _has_rows(found) else {}

    def unrecorded(self, name: str, column: str) -> UnsupportedError:
        message = f"the range of the expression index `{self.partition}` in the partition {name!r} is unknown"
        return UnsupportedError(message, remedy=self._remedy)


def _has_rows(found: ColumnRange) -> bool:
    """Returns whether a file or partition has rows; `value_count` of an expression's range is without nulls."""
    return found.value_count + found.null_count > 0
