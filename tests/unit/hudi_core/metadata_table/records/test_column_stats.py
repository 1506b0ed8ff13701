"""Records of column statistics: decoding, merging, and tables of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hudi_core.errors import CorruptFileError
from hudi_core.metadata_table.records.column_stats import ColumnStats, ColumnStatsRules, live, statistics_table
from hudi_core.metadata_table.records.stat_values import Bound

RULES = ColumnStatsRules()
ONE = ColumnStats("f.parquet", "c", Bound("int", 3), Bound("int", 5), 1, 10, False, False)
TWO = ColumnStats("f.parquet", "c", Bound("int", 1), Bound("int", 4), 2, 20, False, False)


def merge(older: ColumnStats, newer: ColumnStats) -> ColumnStats:
    return RULES.merge(older, newer, path="f")


def test_ranges_widen_and_counts_add_up() -> None:
    assert merge(ONE, TWO) == replace(
        TWO, least=Bound("int", 1), greatest=Bound("int", 5), null_count=3, value_count=30
    )


def test_a_deletion_and_a_tight_range_replace_what_was_there() -> None:
    for newer in (replace(TWO, is_deleted=True), replace(TWO, is_tight=True)):
        assert merge(ONE, newer) == newer
    assert merge(replace(ONE, is_deleted=True), TWO) == TWO


def test_all_null_adds_nothing_to_a_range_and_unknown_takes_it_away() -> None:
    nulls = ColumnStats("f.parquet", "c", None, None, 7, 7, False, False)
    assert merge(ONE, nulls) == replace(ONE, null_count=8, value_count=17)
    unknown = replace(nulls, null_count=0)
    assert (merge(ONE, unknown).least, merge(unknown, ONE).greatest) == (None, None)
    text = replace(TWO, least=Bound("string", "a"), greatest=Bound("string", "b"))
    assert (merge(ONE, text).least, merge(ONE, text).greatest) == (None, None)


def datum(**changes: Any) -> dict[str, Any]:
    wrapper = "org.apache.hudi.avro.model.IntWrapper"
    body = {
        "fileName": "f.parquet",
        "columnName": "c",
        "minValue": (wrapper, {"value": 3}),
        "maxValue": (wrapper, {"value": 5}),
        "valueCount": 10,
        "nullCount": 1,
        "isDeleted": False,
    }
    return {"type": 3, "ColumnStatsMetadata": {**body, **changes}}


def test_decoding() -> None:
    assert RULES.decode("k", datum(), path="f") == ONE
    assert RULES.decode("k", datum(isTightBound=True), path="f") == replace(ONE, is_tight=True)
    assert RULES.decode("k", {**datum(fileName="."), "type": 6}, path="f").name == ""
    assert RULES.decode("k", datum(nullCount=None, valueCount=None), path="f").value_count == 0


@pytest.mark.parametrize(
    "value",
    [
        {"type": 3},
        {**datum(), "type": 2},
        datum(fileName=None),
        datum(columnName=3),
        datum(isDeleted=None),
        datum(minValue=3),
    ],
)
def test_other_records_are_corrupt(value: dict[str, Any]) -> None:
    with pytest.raises(CorruptFileError) as caught:
        RULES.decode("k", value, path="x.hfile")
    assert caught.value.path == "x.hfile"


def test_tables() -> None:
    table = statistics_table([("p", ONE), ("q", replace(TWO, least=None))], None)
    assert table.to_pylist() == [
        {
            "partition": "p",
            "file": "f.parquet",
            "min": 3,
            "max": 5,
            "null_count": 1,
            "value_count": 10,
            "is_tight": False,
        },
        {
            "partition": "q",
            "file": "f.parquet",
            "min": None,
            "max": 4,
            "null_count": 2,
            "value_count": 20,
            "is_tight": False,
        },
    ]
    assert statistics_table([], None, with_files=False).column_names == [
        "partition",
        "min",
        "max",
        "null_count",
        "value_count",
        "is_tight",
    ]
    assert live([("a", ONE), ("b", replace(ONE, is_deleted=True))]) == [("a", ONE)]
