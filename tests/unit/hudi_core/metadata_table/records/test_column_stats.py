"""Records of column statistics: decoding, merging, and tables of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hudi_core.errors import CorruptFileError
from hudi_core.metadata_table.records.bounds import Bound, ValueType
from hudi_core.metadata_table.records.column_stats import ColumnStats, ColumnStatsRules, live, statistics_table
from hudi_core.metadata_table.records.file_statistics import ColumnRange

RULES = ColumnStatsRules()


def stats(least: Bound | None, greatest: Bound | None, nulls: int, values: int) -> ColumnStats:
    found = ColumnRange("c", least, greatest, nulls, values, 0, 0, ValueType(0))
    return ColumnStats("f.parquet", found, is_deleted=False, is_tight=False, of_partition=False)


ONE = stats(Bound("int", 3), Bound("int", 5), 1, 10)
TWO = stats(Bound("int", 1), Bound("int", 4), 2, 20)


def merge(older: ColumnStats, newer: ColumnStats) -> ColumnStats:
    return RULES.merge(older, newer, path="f")


def test_ranges_widen_and_counts_add_up() -> None:
    assert merge(ONE, TWO) == stats(Bound("int", 1), Bound("int", 5), 3, 30)


def test_a_deletion_and_a_tight_range_replace_what_was_there() -> None:
    for newer in (replace(TWO, is_deleted=True), replace(TWO, is_tight=True)):
        assert merge(ONE, newer) == newer
    assert merge(replace(ONE, is_deleted=True), TWO) == TWO


def test_all_null_adds_nothing_to_a_range_and_unknown_removes_it() -> None:
    assert merge(ONE, stats(None, None, 7, 7)) == stats(Bound("int", 3), Bound("int", 5), 8, 17)
    unknown = stats(None, None, 0, 7)
    assert (merge(ONE, unknown).range.least, merge(unknown, ONE).range.greatest) == (None, None)
    text = stats(Bound("string", "a"), Bound("string", "b"), 2, 20)
    assert (merge(ONE, text).range.least, merge(ONE, text).range.greatest) == (None, None)


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
    assert RULES.decode("k", datum(nullCount=None, valueCount=None), path="f").range.value_count == 0
    with pytest.raises(CorruptFileError, match="does not say"):
        ColumnStatsRules(counted=True).decode("k", datum(nullCount=None), path="f")


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
    table = statistics_table([("p", ONE), ("q", stats(None, Bound("int", 4), 2, 20))], None)
    assert table.to_pylist() == [
        {
            "partition": "p",
            "file": "f.parquet",
            "min": 3,
            "max": 5,
            "null_count": 1,
            "value_count": 10,
            "uncompressed_size": 0,
            "is_tight": False,
        },
        {
            "partition": "q",
            "file": "f.parquet",
            "min": None,
            "max": 4,
            "null_count": 2,
            "value_count": 20,
            "uncompressed_size": 0,
            "is_tight": False,
        },
    ]
    assert statistics_table([], None, with_files=False).column_names == [
        "partition",
        "min",
        "max",
        "null_count",
        "value_count",
        "uncompressed_size",
        "is_tight",
    ]
    assert live([("a", ONE), ("b", replace(ONE, is_deleted=True))]) == [("a", ONE)]
