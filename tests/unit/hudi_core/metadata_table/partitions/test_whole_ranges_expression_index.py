"""The partition type `expr_index_<name>`: its records, and what is refused."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from hudi_core.errors import UnsupportedError
from hudi_core.metadata_table.indexed_table import IndexDefinition
from hudi_core.metadata_table.keys import column_stats_key
from hudi_core.metadata_table.partitions.registry import partition_type_of
from hudi_core.metadata_table.partitions.whole_ranges import ExpressionIndexPartition
from hudi_core.metadata_table.records.bounds import Bound, ValueType
from hudi_core.metadata_table.records.column_stats import whole_key
from hudi_core.metadata_table.records.file_statistics import (
    ColumnRange,
    CommitUpdate,
    DataFileRef,
    FileStatistics,
    Record,
)
from hudi_core.metadata_table.records.range_merge import merged
from tests.support.clean_updates import BASE
from tests.support.golden_metadata_cells import GoldenCells, plain_datum
from tests.support.golden_statistics import WRITER, Golden, compared_commits, table_of
from tests.support.tiers import tiered


def test_expression_indexes_that_are_not_computed_exactly_are_refused(golden: Golden) -> None:
    table = table_of(golden)
    with pytest.raises(UnsupportedError, match="session zone"):
        partition_type_of("expr_index_idx_day", replace(table, settings={}))
    index = table.definitions["expr_index_idx_low"]
    for changed in (
        replace(index, function="regexp_extract"),
        replace(index, type="other"),
        replace(index, source_fields=("name", "id")),
        replace(index, source_fields=("nowhere",)),
        replace(index, options={"filtertype": "SIMPLE"}),
        replace(index, options={"fpp": "2"}),
        replace(index, options={"fpp": "x"}),
    ):
        with pytest.raises(UnsupportedError):
            partition_type_of("expr_index_idx_low", replace(table, definitions={"expr_index_idx_low": changed}))


def test_filters_of_expressions_are_refused_where_there_are_log_files(golden: Golden) -> None:
    table = table_of(golden, "8", "mdt_all_mor")
    index = IndexDefinition("expr_index_low", "bloom_filters", "lower", ("name",), {}, 1)
    with pytest.raises(UnsupportedError, match="log files"):
        partition_type_of("expr_index_low", replace(table, definitions={"expr_index_low": index}))


@pytest.mark.parametrize("version", tiered(["8", "9"], ["9"]))
@pytest.mark.parametrize("name", ["expr_index_idx_day", "expr_index_idx_low"])
def test_the_records_of_commits_are_those_that_hudi_wrote(golden: Golden, version: str, name: str) -> None:
    """With the version 9 table's writes real Hudi takes the data table's setting for filters of expressions."""
    settings = {**WRITER, "hoodie.index.bloom.num_entries": "1000"} if version == "9" else WRITER
    count, found = compared_commits(GoldenCells(golden(version, "mdt_all_cow").table, settings), name)
    assert count > 0
    assert found == []


DAY = "expr_index_idx_day"


def of_file(low: int, high: int, *, values: int = 2, nulls: int = 0, name: str = BASE) -> FileStatistics:
    bounds = (Bound("int", low), Bound("int", high)) if values else (None, None)
    found = ColumnRange("ts", *bounds, nulls, values, 9, 18, ValueType(0))
    return FileStatistics(DataFileRef("p", name, 9, is_base=True), rows=values, expressions={DAY: found})


def ranges(found: Iterable[Record]) -> dict[str, tuple[object, object, object]]:
    bodies = {key: plain_datum(datum)["ColumnStatsMetadata"] for key, datum in found}
    ends = {key: (body["minValue"], body["maxValue"]) for key, body in bodies.items()}
    return {
        key: (*(None if end is None else end[1]["value"] for end in ends[key]), body["isTightBound"])
        for key, body in bodies.items()
    }


FILE, OTHER, WHOLE = (
    column_stats_key("ts", "p", BASE),
    column_stats_key("ts", "p", "other.parquet"),
    whole_key("ts", "p", of_expression=True),
)


def test_a_file_and_its_partition_have_a_range(golden: Golden) -> None:
    day = partition_type_of(DAY, table_of(golden))
    files = (of_file(3, 5), of_file(1, 4, name="other.parquet"))
    expected = {FILE: (3, 5, False), OTHER: (1, 4, False), WHOLE: (1, 5, True)}
    assert ranges(day.initial("1", files)) == expected
    assert ranges(day.of_commit(CommitUpdate("1", "UPSERT", {}, files))) == expected
    remaining = {"p": (of_file(0, 1, name="third.parquet"),)}
    update = CommitUpdate("1", "UPSERT", {}, files, remaining=remaining.get, by_partition=True)
    assert ranges(day.of_commit(update)) == {WHOLE: (0, 5, True)}, "those of files are prepared"


def test_a_file_without_rows_has_no_record_and_no_part_in_the_range(golden: Golden) -> None:
    day = partition_type_of(DAY, table_of(golden))
    empty = of_file(0, 0, values=0)
    assert ranges(day.initial("1", [empty])) == {}
    assert ranges(day.initial("1", [empty, of_file(3, 5, name="other.parquet")])) == {
        OTHER: (3, 5, False),
        WHOLE: (3, 5, True),
    }
    nulls = of_file(0, 0, values=0, nulls=2)
    assert ranges(day.initial("1", [nulls])) == {FILE: (None, None, False), WHOLE: (None, None, True)}


def test_rewritten_rows_only_widen_the_range(golden: Golden) -> None:
    day = partition_type_of(DAY, table_of(golden))
    recorded = merged([found for found in of_file(3, 5).expressions.values() if isinstance(found, ColumnRange)])
    assert recorded is not None
    update = CommitUpdate("1", "COMPACT", {}, (of_file(4, 5),), recorded={"p": {"ts": recorded}}.get)
    assert ranges(day.of_commit(update)) == {FILE: (4, 5, False)}
    wider = replace(update, written=(of_file(2, 4),))
    assert ranges(day.of_commit(wider))[WHOLE] == (2, 4, False)
    unrecorded = replace(update, recorded={}.get, remaining={"p": (of_file(0, 9, name="other.parquet"),)}.get)
    assert ranges(day.of_commit(unrecorded))[WHOLE] == (0, 9, False)


def test_a_partition_of_a_file_of_unknown_values_is_refused(golden: Golden) -> None:
    day = partition_type_of(DAY, table_of(golden))
    unknown = FileStatistics(DataFileRef("p", "other.parquet", 9, is_base=True))
    with pytest.raises(UnsupportedError, match=DAY):
        list(day.of_commit(CommitUpdate("1", "UPSERT", {}, (of_file(3, 5),), remaining={"p": (unknown,)}.get)))


def test_the_options_of_an_index_come_before_those_of_the_writer(golden: Golden) -> None:
    table = table_of(golden)
    settings = {**WRITER, "hoodie.index.bloom.num_entries": "7", "hoodie.index.bloom.fpp": "0.1"}
    low = table.definitions["expr_index_idx_low"]
    for options, expected in (({}, (7, 0.1, 100000)), ({"numentries": "9", "maxentries": "10"}, (9, 0.1, 10))):
        changed = replace(table, settings=settings, definitions={low.name: replace(low, options=options)})
        assert ExpressionIndexPartition(low.name, changed)._expression.bloom == expected
