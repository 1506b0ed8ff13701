"""What the metadata table holds of remaining files, and which of them must be read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hudi_core.metadata_table.indexed_table import indexed_types
from hudi_core.metadata_table.keys import column_stats_key
from hudi_core.metadata_table.read.snapshot import MetadataTableSnapshot
from hudi_core.metadata_table.records.bounds import Bound, ValueType
from hudi_core.metadata_table.records.column_stats import ColumnStats, ColumnStatsRules
from hudi_core.metadata_table.records.file_statistics import ColumnRange, DataFileRef
from hudi_core.metadata_table.write.remaining_files import remaining_expressions, remaining_statistics
from tests.support.golden_metadata_cells import GoldenCells
from tests.support.golden_statistics import WRITER, Golden


def test_what_the_index_holds_of_remaining_files(golden: Golden) -> None:
    cells = GoldenCells(golden("9", "mdt_all_mor").table, WRITER)
    metadata_snapshot = MetadataTableSnapshot(cells.storage, cells.config, cells.timeline)
    files = [file for file in cells.files() if file.partition == "2024-01-01"]
    stranger = DataFileRef("2024-01-01", "stranger", 1, True)
    columns = tuple(indexed_types(cells.table))
    index = metadata_snapshot.partition("column_stats", ColumnStatsRules(counted=True))
    whole, to_read = remaining_statistics(index, "2024-01-01", [*files, stranger], columns)
    assert to_read == [stranger]
    from_files = cells.statistics(files, requirements=cells.requirements("partition_stats"))
    assert {statistics.file.name: statistics.ranges for statistics in whole} == {
        statistics.file.name: statistics.ranges for statistics in from_files
    }
    day = metadata_snapshot.partition("expr_index_idx_day", ColumnStatsRules(counted=True))
    whole, to_read = remaining_expressions(day, "expr_index_idx_day", "2024-01-01", files, "ts")
    from_files = {
        statistics.file.name: statistics.expressions
        for statistics in cells.statistics(files, requirements=cells.requirements("expr_index_idx_day"))
    }
    assert {statistics.file.name: statistics.expressions for statistics in whole} == {
        name: from_files[name] for name in (statistics.file.name for statistics in whole)
    }
    assert whole
    assert [file.name for file in to_read] == [file.name for file in files if not _has_rows(from_files[file.name])]


def _has_rows(expressions: Mapping[str, object]) -> bool:
    found = expressions["expr_index_idx_day"]
    return isinstance(found, ColumnRange) and found.value_count + found.null_count > 0


class Index:
    """As MetadataPartition: records of one column `c` in partition `p`, by file name."""

    def __init__(self, ranges: Mapping[str, ColumnRange]) -> None:
        self._ranges = ranges

    def with_prefixes(self, prefixes: Sequence[str]) -> Iterator[tuple[str, ColumnStats]]:
        for name, found in self._ranges.items():
            yield column_stats_key("c", "p", name), ColumnStats(name, found, False, False, False)


def test_files_whose_records_may_be_false_are_read_again() -> None:
    """Of NaN, and of texts too long for a footer: in a tight range of the partition they would hide rows."""

    def recorded(low: Bound | None, high: Bound | None, nulls: int, size: int = 5000) -> ColumnRange:
        return ColumnRange("c", low, high, nulls, 9, size, size, ValueType(0))

    zero = Bound("double", 0.0)
    index: Any = Index(
        {
            "nan": recorded(zero, zero, 0),
            "zero": recorded(Bound("double", -0.0), Bound("double", 5.0), 0),
            "text": recorded(None, None, 9),
            "nulls": recorded(None, None, 9, 100),
        }
    )
    files = [DataFileRef("p", name, 1, True) for name in ("nan", "zero", "text", "nulls")]
    whole, to_read = remaining_statistics(index, "p", files, ["c"])
    assert [item.file.name for item in whole] == ["zero", "nulls"]
    assert [file.name for file in to_read] == ["nan", "text"]
