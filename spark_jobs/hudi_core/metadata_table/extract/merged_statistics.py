"""What several files of one data partition say together, to the kinds that tell of whole partitions: as one file would
say it.
"""

from __future__ import annotations

from collections.abc import Sequence

from hudi_core.metadata_table.records.file_statistics import ColumnRange, DataFileRef, FileStatistics
from hudi_core.metadata_table.records.value_types import merged


def merge_statistics(files: Sequence[FileStatistics]) -> FileStatistics:
    """The facts of files of one partition as those of one file without a name; filters are left out.

    A column that one of them does not tell has no range, and neither has an expression: what is not known of one is not
    known of all. Files that bound no rows (FileStatistics.bounds_rows) say nothing. May be applied again to what it
    gives.
    """
    place = DataFileRef(files[0].file.partition, "", sum(item.file.size for item in files), is_base=True)
    bounding = [item for item in files if item.bounds_rows]
    by_column: dict[str, list[ColumnRange]] = {}
    for item in bounding:
        for recorded in item.ranges:
            by_column.setdefault(recorded.column, []).append(recorded)
    whole = (merged(ranges) for ranges in by_column.values() if len(ranges) == len(bounding))
    ranges = tuple(found for found in whole if found is not None)
    recorded_by_all = ((name, _expression(name, files)) for name in files[0].expressions)
    expressions = {name: found for name, found in recorded_by_all if found is not None}
    # A log file bounds rows even where it tells of none.
    rows = max(sum(item.rows for item in bounding), 1 if bounding else 0)
    return FileStatistics(place, ranges, rows=rows, expressions=expressions)


def _expression(name: str, files: Sequence[FileStatistics]) -> ColumnRange | None:
    recorded = [item.expressions.get(name) for item in files]
    ranges = [item for item in recorded if isinstance(item, ColumnRange)]
    # Values are counted without the nulls here; files without rows do not count.
    with_rows = [item for item in ranges if item.value_count + item.null_count > 0]
    return None if len(ranges) < len(recorded) else merged(with_rows or ranges[:1])
