"""The partition type `column_stats`: the range of each indexed column (indexed_table) in each base and log file."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Final

from hudi_core.config.metadata_config import COLUMN_STATS_GROUPS
from hudi_core.metadata_table.indexed_table import IndexDefinition, indexed_types
from hudi_core.metadata_table.keys import column_id, file_id, partition_id
from hudi_core.metadata_table.partition_type import COLUMN_STATS
from hudi_core.metadata_table.partitions.protocol import Data, MergeData, PartitionType, numbered_file_ids
from hudi_core.metadata_table.record import FILE_NAME, FileDatum, RecordType
from hudi_core.metadata_table.records.bound_encoding import Bound
from hudi_core.metadata_table.records.column_stats import ColumnStatsRules, deletion, file_record, replaces
from hudi_core.metadata_table.records.file_statistics import (
    MAX_DELETIONS,
    Expression,
    FileChanges,
    FileStatistics,
    Needs,
    Record,
)
from hudi_core.metadata_table.records.range_merge import NUMBERS, outer_bounds, widened, wider
from hudi_core.model.names import META_FIELDS

_BODY: Final = "ColumnStatsMetadata"
_SUMS: Final = ("valueCount", "nullCount", "totalSize", "totalUncompressedSize")
_RULES: Final = ColumnStatsRules()
_ENDS: Final[Mapping[str, tuple[float, float]]] = {
    "int": (-(1 << 31), (1 << 31) - 1),
    "long": (-(1 << 63), (1 << 63) - 1),
    "float": (-math.inf, math.nan),
}
"""The least and the greatest value of a type; NaN is the greatest there is."""


def merge_statistics(key: str, older: Data, newer: Data, *, path: str) -> Data:
    """The wider range and the sums, as ColumnStatsRules.merge (protocol.MergeData)."""
    first, second = _RULES.decode(key, dict(older), path=path), _RULES.decode(key, dict(newer), path=path)
    if replaces(first, second):
        return newer
    before, after = older[_BODY], newer[_BODY]
    bound = partial(_bound, same_form=before.get("valueType") == after.get("valueType"))
    (low, high), (one, other) = outer_bounds(first.range, second.range), (first.range, second.range)
    low_ends, high_ends = ((before.get(end), after.get(end)) for end in ("minValue", "maxValue"))
    least = bound(low, (one.least, low_ends[0]), (other.least, low_ends[1]), upper=False)
    greatest = bound(high, (one.greatest, high_ends[0]), (other.greatest, high_ends[1]), upper=True)
    sums = {name: (before.get(name) or 0) + (after.get(name) or 0) for name in _SUMS}
    return {**newer, _BODY: {**after, **sums, "minValue": least, "maxValue": greatest}}


class ColumnStatsPartition(PartitionType):
    """Rows of files that a commit replaces stay until a clean deletes them: readers use files of slices alone."""

    name = COLUMN_STATS
    by_file = updated_by_clean = True
    merges: ClassVar[Mapping[int, MergeData]] = {RecordType.COLUMN_STATS: merge_statistics}
    groups = COLUMN_STATS_GROUPS
    needs = Needs(ranges=True, older_slices=True)

    @classmethod
    def of_files(cls, instant: str, files: Iterable[FileStatistics], expression: Expression | None) -> Iterator[Record]:
        """Without those of columns that the partial rows of a log file lack."""
        for statistics in files:
            for found in statistics.ranges:
                record = None if statistics.partial and not found.value_count else file_record(statistics.file, found)
                if record is not None:
                    yield record

    def of_clean(self, instant: str, changes: FileChanges) -> Iterator[Record]:
        """Deletions of the ranges of all columns that the index may hold."""
        definition = self.table.definitions.get(self.partition)
        if definition is not None and definition.source_fields:
            return deleted_ranges(changes, definition.source_fields, definition.version)
        columns = dict.fromkeys([*META_FIELDS, *(field["name"] for field in self.table.schema["fields"])])
        return deleted_ranges(changes, list(columns), 1 if definition is None else definition.version)

    def definition(self) -> IndexDefinition | None:
        """Readers of 1.x skip nothing without it, of version 6 neither (SparkBaseIndexSupport.getCandidateFiles)."""
        if not self.table.config.is_of_hudi_1:
            return None
        columns = tuple(indexed_types(self.table))
        return IndexDefinition(
            self.partition, COLUMN_STATS, COLUMN_STATS, columns, {}, self.table.version_of(COLUMN_STATS)
        )

    def file_ids(self, count: int) -> list[str]:
        return numbered_file_ids("col-stats-", count)


def deleted_ranges(changes: FileChanges, columns: Sequence[str], version: int) -> Iterator[Record]:
    """Of deleted files, MAX_DELETIONS at most; all of a file, or none."""
    stubs = {column_id(column): deletion(RecordType.COLUMN_STATS, FILE_NAME, column, version) for column in columns}
    written = 0
    for partition, names in sorted(changes.deleted.items()):
        place = partition_id(partition)
        for name in sorted(names):
            written += len(stubs)
            if written > MAX_DELETIONS:
                return
            file = file_id(name)
            for column, stub in stubs.items():
                yield column + place + file, FileDatum(stub, name)


def _bound(
    merged: Bound | None,
    older: tuple[Bound | None, Any],
    newer: tuple[Bound | None, Any],
    *,
    same_form: bool,
    upper: bool,
) -> Any:
    """The stored form of a merged bound: that of the record it comes from.

    Where the newer one's type cannot hold it, the end of that type: readers of 0.15 take no bound for one that no row
    meets. None, nothing is known, where the types have no order in common.
    """
    if merged is None:
        return None
    if merged is newer[0]:
        return newer[1]
    bound, wrapped = older
    if same_form and (newer[1] is None or wrapped[0] == newer[1][0]):
        return wrapped
    if newer[0] is None or bound is None:
        return None
    logical = newer[0].logical
    are_numbers = {bound.logical, logical} <= {*NUMBERS}
    # The other way a bound would be cut, and the range too narrow.
    if are_numbers and bound.logical != logical == wider(bound.logical, logical):
        return newer[1][0], {"value": widened(bound, logical).value}
    ends = _ENDS.get(logical) if bound.logical in NUMBERS else None
    return None if ends is None else (newer[1][0], {"value": ends[upper]})
