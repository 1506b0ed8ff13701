"""What the metadata table holds of remaining files, and which of them must be read."""

from __future__ import annotations

from collections.abc import Mapping

from hudi_core.metadata_table.extract.stored_ranges import remaining_expressions, remaining_statistics
from hudi_core.metadata_table.read.snapshot import MetadataTableSnapshot
from hudi_core.metadata_table.records.column_stats import ColumnStatsRules
from hudi_core.metadata_table.records.file_statistics import ColumnRange, DataFileRef
from hudi_core.metadata_table.statistics_columns import indexed_types
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
