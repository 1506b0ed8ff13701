from __future__ import annotations

import datetime
import decimal
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.errors import ConfigError, UnsupportedError
from hudi_core.filegroup.merge.ordering_values import Ordering, greater, nulls, ranks
from hudi_core.filegroup.merge.table_policy import MergePolicy, Rules

OLD = MergePolicy(("key",), ("ts",))
NEW = MergePolicy(("key",), ("ts",), Rules.EVENT_TIME)
SEVERAL = MergePolicy(("key",), ("ts", "seq"), Rules.EVENT_TIME)
DATE = {"type": "int", "logicalType": "date"}
DECIMAL = {"type": "fixed", "name": "f", "size": 5, "logicalType": "decimal", "precision": 10, "scale": 2}


def schema(kind: Any, second: Any = "string") -> dict[str, Any]:
    """A record with the columns ts and seq, and a struct `at` that holds another ts."""
    inner = {"type": "record", "name": "inner", "fields": [{"name": "ts", "type": "int"}]}
    fields = [("ts", ["null", kind]), ("seq", ["null", second]), ("at", ["null", inner])]
    return {
        "type": "record",
        "name": "r",
        "fields": [{"name": name, "type": types, "default": None} for name, types in fields],
    }


@pytest.mark.parametrize(
    ("kind", "column", "compared", "same_class"),
    [
        ("int", pa.array([3, 1, 2], pa.int32()), (True, True), (True, True)),
        ("long", pa.array([3, 1, 2]), (True, True), (True, True)),
        ("float", pa.array([3, 1, 2], pa.float32()), (True, True), (True, True)),
        ("double", pa.array([float("nan"), -1.5, 2]), (True, True), (True, True)),
        ("boolean", pa.array([True, False, True]), (True, True), (True, True)),
        ("string", pa.array(["z", "a", "m"]), (False, True), (True, False)),
        (DATE, pa.array([datetime.date(2024, 1, day) for day in (3, 1, 2)]), (True, True), (False, False)),
        (
            {"type": "long", "logicalType": "timestamp-micros"},
            pa.array([3, 1, 2], pa.timestamp("us", "UTC")),
            (True, True),
            (True, True),
        ),
        (
            DECIMAL,
            pa.array(
                [decimal.Decimal("3.00"), decimal.Decimal("-1.00"), decimal.Decimal("2.50")], pa.decimal128(10, 2)
            ),
            (False, True),
            (False, False),
        ),
    ],
)
def test_types_that_order(
    kind: Any, column: pa.Array, compared: tuple[bool, bool], same_class: tuple[bool, bool]
) -> None:
    for policy, compares, same in zip((OLD, NEW), compared, same_class, strict=True):
        ordering = Ordering.of(policy, schema(kind), path="p")
        assert (ordering.columns[0].kind in ordering.compared) is compares
        assert ordering.same_class is same
        values = ordering.values(pa.record_batch([column], ["ts"]), path="p")
        assert values.type == ordering.type
        found = ranks(values)
        first, second, third = found.tolist()
        assert first >= third > second


@pytest.mark.parametrize("policy", [OLD, NEW])
def test_negative_decimals_are_above_all_others_in_log_files_of_0_15(policy: MergePolicy) -> None:
    ordering = Ordering.of(policy, schema(DECIMAL), path="p")
    numbers = [decimal.Decimal(text) for text in ("-0.02", "0.00", "-0.01", "3.00", "-0.02")]
    found = ordering.log_ranks(pa.array(numbers, ordering.type)).tolist()
    assert found[0] == found[4]
    order = sorted(range(4), key=lambda at: found[at])
    assert [numbers[at] for at in order] == sorted(
        numbers[:4], key=lambda number: (policy is OLD and number < 0, number)
    )
    assert ordering.log_ranks(pa.array([None, numbers[0]], ordering.type)).shape == (2,)


@pytest.mark.parametrize("kind", ["bytes", {"type": "array", "items": "int"}, {"type": "map", "values": "int"}])
def test_types_without_order_are_refused_where_they_would_order(kind: Any) -> None:
    with pytest.raises(UnsupportedError, match="ts"):
        Ordering.of(OLD, schema(kind), path="p")
    assert Ordering.of(replace(NEW, rules=Rules.COMMIT_TIME), schema(kind), path="p").columns == ()


@pytest.mark.parametrize("fields", [(), ("gone",), ("at.gone",)])
def test_without_a_column_every_row_is_zero(fields: tuple[str, ...]) -> None:
    ordering = Ordering.of(replace(NEW, ordering_fields=fields), schema("long"), path="p")
    batch = pa.record_batch([pa.array([5, 6])], ["ts"])
    assert ordering.values(batch, path="p").to_pylist() == [0, 0]
    assert ordering.defaulted(batch).tolist() == [True, True]
    assert ordering.of_deletes(pa.table({"int": pa.array([0, 3], pa.int32())}))[0].tolist() == [True, False]


def test_a_column_within_another() -> None:
    ordering = Ordering.of(replace(NEW, ordering_fields=("at.ts",)), schema("long"), path="p")
    batch = pa.record_batch([pa.array([{"ts": 5}, None, {"ts": 7}], pa.struct([("ts", pa.int32())]))], ["at"])
    assert ordering.values(batch, path="p").to_pylist() == [5, 0, 7]
    assert [column.name for column in ordering.columns] == ["at.ts"]
    lacking = pa.record_batch({"other": ["x", "y"]})
    assert ordering.values(lacking, path="p").to_pylist() == [0, 0], "a partition column that files lack"


def test_hudi_0_15_finds_no_column_within_another_in_log_files() -> None:
    """So its records have the int 0, which is compared with deletes that have an int."""
    ordering = Ordering.of(replace(OLD, ordering_fields=("at.ts",)), schema("long"), path="p")
    batch = pa.record_batch([pa.array([{"ts": 5}, None], pa.struct([("ts", pa.int32())]))], ["at"])
    assert ordering.values(batch, path="p").to_pylist() == [0, 0]
    assert ordering.base_values(batch).to_pylist() == [5, None]
    assert [column.name for column in ordering.columns] == ["at.ts"]
    natural, values = ordering.of_deletes(pa.table({"int": pa.array([0, 3], pa.int32())}))
    assert (natural.tolist(), values.to_pylist()) == ([True, False], [0, 3])
    assert ordering.of_deletes(pa.table({"long": [3]}))[0].tolist() == [True]


def test_deletes_of_a_millisecond_column_are_scaled() -> None:
    ordering = Ordering.of(OLD, schema({"type": "long", "logicalType": "timestamp-millis"}), path="p")
    natural, values = ordering.of_deletes(pa.table({"long": pa.array([2, None], pa.int64())}))
    assert natural.tolist() == [False, True]
    assert values.to_pylist() == [2000, None]


def test_int_zero_of_a_delete_is_natural_and_other_kinds_are_not_compared() -> None:
    entries = pa.table({"int": pa.array([0, 5, None], pa.int32()), "long": pa.array([None, None, 0], pa.int64())})
    for policy in (OLD, NEW):
        assert Ordering.of(policy, schema("int"), path="p").of_deletes(entries)[0].tolist() == [True, False, True]
        assert Ordering.of(policy, schema("long"), path="p").of_deletes(entries)[0].tolist() == [True, True, False]
        assert Ordering.of(policy, schema("double"), path="p").of_deletes(entries)[0].tolist() == [True, True, True]
        assert Ordering.of(policy, schema("string"), path="p").of_deletes(entries)[0].tolist() == [True, True, True]


def test_text_and_decimals_of_deletes_are_compared_from_hudi_1_1_on() -> None:
    text = pa.table({"string": ["b", None]})
    assert Ordering.of(NEW, schema("string"), path="p").of_deletes(text)[0].tolist() == [False, True]
    assert Ordering.of(OLD, schema("string"), path="p").of_deletes(text)[0].tolist() == [True, True]
    numbers = pa.table({"decimal": pa.array([decimal.Decimal("1.5")], pa.decimal128(30, 15))})
    ordering = Ordering.of(NEW, schema(DECIMAL), path="p")
    natural, values = ordering.of_deletes(numbers)
    rows = ordering.values(
        pa.record_batch([pa.array([decimal.Decimal("1.49")], pa.decimal128(10, 2))], ["ts"]), path="p"
    )
    assert natural.tolist() == [False]
    assert greater(values, rows).tolist() == [True]
    assert Ordering.of(replace(NEW, string_deletes_win=True), schema(DECIMAL), path="p").of_deletes(numbers)[
        0
    ].tolist() == [True]


@pytest.mark.parametrize("kind", ["float", "double"])
def test_floating_numbers_are_in_the_order_of_java(kind: str) -> None:
    """Of Double.compareTo: -0.0 is below 0.0, and NaN above all and equal to itself."""
    numbers = [float("-inf"), -1.5, -5e-324, -0.0, 0.0, 1e-45, 2.0, float("inf"), float("nan"), -float("nan")]
    column = pa.array([*numbers, None], pa.float32() if kind == "float" else pa.float64())
    values = Ordering.of(NEW, schema(kind), path="p").values(pa.record_batch([column], ["ts"]), path="p")
    steps = np.sign(np.diff(ranks(values)[:-1])).tolist()
    assert steps == [1, 1, 0 if kind == "float" else 1, 1, 1, 1, 1, 1, 0]
    for later, step in enumerate(steps, start=1):
        first, second = values.slice(later - 1, 1), values.slice(later, 1)
        assert (greater(second, first)[0], greater(first, second)[0]) == (step == 1, False)
    assert not greater(values, values.take(pa.array([10] * 11))).any()
    assert not greater(values.take(pa.array([10] * 11)), values).any()


def test_wide_decimals_are_compared_exactly() -> None:
    wide = {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 2}
    ordering = Ordering.of(NEW, schema(wide), path="p")
    top = decimal.Decimal("999999999999999999999999999999999999.99")
    rows = ordering.values(
        pa.record_batch(
            [pa.array([top, decimal.Decimal("999999999999999999999999999999999999.98"), None], pa.decimal128(38, 2))],
            ["ts"],
        ),
        path="p",
    )
    assert ranks(rows)[0] > ranks(rows)[1]
    assert greater(rows, rows.take(pa.array([1, 0, 0]))).tolist() == [True, False, False]


def test_null_stands_for_the_int_0_and_compares_with_ints_only() -> None:
    rows = pa.record_batch([pa.array([None, -1], pa.int64())], ["ts"])
    assert Ordering.of(NEW, schema("int"), path="p").values(rows, path="p").to_pylist() == [0, -1]
    ordering = Ordering.of(NEW, schema("long"), path="p")
    assert nulls(ordering.values(rows, path="p")).tolist() == [True, False]
    assert ordering.defaulted(rows).tolist() == [True, False]
    assert Ordering.of(NEW, schema("int"), path="p").defaulted(
        pa.record_batch([pa.array([0, 1, None], pa.int32())], ["ts"])
    ).tolist() == [
        True,
        False,
        True,
    ]
    with pytest.raises(ConfigError, match="'ts'"):
        Ordering.of(OLD, schema("long"), path="p").values(rows, path="p")
    assert Ordering.of(OLD, schema("long"), path="p").base_values(rows).to_pylist() == [None, -1]


def test_several_columns_compare_one_after_the_other() -> None:
    ordering = Ordering.of(SEVERAL, schema("int"), path="p")
    rows = pa.record_batch([pa.array([2, 1, 2, 1, 1]), pa.array(["a", "b", "b", "a", None])], ["ts", "seq"])
    values = ordering.values(rows, path="p")
    assert values.type == ordering.type
    assert ranks(values)[:4].argsort().tolist() == [3, 1, 0, 2]
    assert nulls(values).tolist() == [False, False, False, False, True]
    assert ordering.defaulted(rows).tolist() == [False] * 5
    assert greater(values, values.take(pa.array([1, 0, 0, 3, 0]))).tolist() == [True, False, True, False, False]
    natural, deletes = ordering.of_deletes(
        pa.table({"int": [None, 0, None], "0.int": [2, None, 1], "1.string": ["a", None, None]})
    )
    assert natural.tolist() == [False, True, True], "an entry without a value of each field always wins"
    assert greater(values.slice(2, 1), deletes.slice(0, 1)).tolist() == [True]


@given(st.lists(st.floats(allow_nan=True) | st.just(0.0), min_size=1))
def test_ranks_and_greater_agree(numbers: list[float]) -> None:
    column = pa.array(numbers, pa.float64())
    found = ranks(column)
    for index in range(len(numbers)):
        other = pa.array([numbers[index]] * len(numbers), pa.float64())
        assert (found > found[index]).tolist() == greater(column, other).tolist()


def test_null_is_never_greater() -> None:
    assert greater(pa.array([None, 2]), pa.array([1, 1])).tolist() == [False, True]
