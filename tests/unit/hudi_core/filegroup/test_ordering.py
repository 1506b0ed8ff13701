from __future__ import annotations

import datetime
import decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.errors import UnsupportedError
from hudi_core.filegroup.ordering import Ordering, greater, ranks


def schema(kind: Any) -> dict[str, Any]:
    """A record with the one column ts."""
    return {"type": "record", "name": "r", "fields": [{"name": "ts", "type": ["null", kind], "default": None}]}


@pytest.mark.parametrize(
    ("kind", "column", "compares"),
    [
        ("int", pa.array([3, 1, 2], pa.int32()), True),
        ("long", pa.array([3, 1, 2]), True),
        ("float", pa.array([3, 1, 2], pa.float32()), True),
        ("double", pa.array([float("nan"), -1.5, 2]), True),
        ("boolean", pa.array([True, False, True]), True),
        ("string", pa.array(["z", "a", "m"]), False),
        ({"type": "int", "logicalType": "date"}, pa.array([datetime.date(2024, 1, day) for day in (3, 1, 2)]), True),
        ({"type": "long", "logicalType": "timestamp-micros"}, pa.array([3, 1, 2], pa.timestamp("us", "UTC")), True),
        (
            {"type": "fixed", "name": "f", "size": 5, "logicalType": "decimal", "precision": 10, "scale": 2},
            pa.array([decimal.Decimal("3.00"), decimal.Decimal("-1.00"), decimal.Decimal("2.50")], pa.decimal128(10, 2)),
            False,
        ),
    ],
)
def test_types_that_order(kind: Any, column: pa.Array, compares: bool) -> None:
    ordering = Ordering.of("ts", schema(kind), path="p")
    assert ordering.compares_deletes is compares
    values = ordering.values(pa.record_batch([column], ["ts"]), path="p")
    assert values.type == ordering.type
    found = ranks(values)
    first, second, third = found.tolist()
    assert first >= third > second


@pytest.mark.parametrize("kind", ["bytes", {"type": "array", "items": "int"}, {"type": "map", "values": "int"}])
def test_types_without_order_are_refused(kind: Any) -> None:
    with pytest.raises(UnsupportedError, match="ts"):
        Ordering.of("ts", schema(kind), path="p")


@pytest.mark.parametrize("field", [None, "gone"])
def test_without_a_column_every_row_is_zero(field: str | None) -> None:
    ordering = Ordering.of(field, schema("long"), path="p")
    assert ordering.values(pa.record_batch([pa.array([5, 6])], ["ts"]), path="p").to_pylist() == [0, 0]


def test_deletes_of_a_millisecond_column_are_scaled() -> None:
    ordering = Ordering.of("ts", schema({"type": "long", "logicalType": "timestamp-millis"}), path="p")
    natural, values = ordering.of_deletes(pa.table({"long": pa.array([2, None], pa.int64())}))
    assert natural.tolist() == [False, True]
    assert values.to_pylist() == [2000, None]


def test_int_zero_of_a_delete_is_natural_and_other_kinds_are_not_compared() -> None:
    entries = pa.table({"int": pa.array([0, 5, None], pa.int32()), "long": pa.array([None, None, 0], pa.int64())})
    assert Ordering.of("ts", schema("int"), path="p").of_deletes(entries)[0].tolist() == [True, False, True]
    assert Ordering.of("ts", schema("long"), path="p").of_deletes(entries)[0].tolist() == [True, True, False]
    assert Ordering.of("ts", schema("double"), path="p").of_deletes(entries)[0].tolist() == [True, True, True]
    assert Ordering.of("ts", schema("string"), path="p").of_deletes(entries)[0].tolist() == [True, True, True]


@given(st.lists(st.floats(allow_nan=True) | st.just(0.0), min_size=1))
def test_ranks_and_greater_agree(numbers: list[float]) -> None:
    column = pa.array(numbers, pa.float64())
    found = ranks(column)
    for index in range(len(numbers)):
        other = pa.array([numbers[index]] * len(numbers), pa.float64())
        assert (found > found[index]).tolist() == greater(column, other).tolist()


def test_null_is_never_greater() -> None:
    assert greater(pa.array([None, 2]), pa.array([1, 1])).tolist() == [False, True]
