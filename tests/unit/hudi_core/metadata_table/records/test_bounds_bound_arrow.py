"""Bounds as values of Arrow columns."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.errors import UnsupportedError
from hudi_core.metadata_table.records.bounds import Bound, logical_and_type, natural_type, to_arrow


@pytest.mark.parametrize(
    ("kind", "first", "second"),
    [
        (pa.bool_(), ("boolean", 0), ("boolean", 2)),
        (pa.int32(), ("int", 0), ("int", 3)),
        (pa.int64(), ("long", 0), ("long", 4)),
        (pa.float32(), ("float", 0), ("float", 5)),
        (pa.float64(), ("double", 0), ("double", 6)),
        (pa.string(), ("string", 0), ("string", 7)),
        (pa.binary(), ("bytes", 0), ("bytes", 8)),
        (pa.binary(4), ("bytes", 0), ("bytes", 9)),
        (pa.decimal128(10, 2), ("decimal", 0), ("decimal", 10)),
        (pa.date32(), ("date", 0), ("date", 12)),
        (pa.time32("ms"), ("int", 0), ("time_millis", 13)),
        (pa.time64("us"), ("long", 0), ("time_micros", 14)),
        (pa.timestamp("ms", tz="UTC"), ("long", 0), ("timestamp_millis", 15)),
        (pa.timestamp("us", tz="UTC"), ("long", 0), ("timestamp_micros", 16)),
        (pa.timestamp("ns", tz="UTC"), ("long", 0), ("timestamp_nanos", 17)),
        (pa.timestamp("ms"), ("long", 0), ("timestamp_millis", 18)),
        (pa.timestamp("us"), ("long", 0), ("timestamp_micros", 19)),
    ],
)
def test_each_type_has_its_logical_type_in_both_versions(
    kind: pa.DataType, first: tuple[str, int], second: tuple[str, int]
) -> None:
    assert [(name, found.ordinal) for name, found in (logical_and_type(kind, 1), logical_and_type(kind, 2))] == [
        first,
        second,
    ]


def test_a_decimal_has_its_precision_and_scale() -> None:
    assert logical_and_type(pa.decimal128(10, 2), 2)[1].info == "10,2"


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.int32()), pa.struct([("a", pa.int32())]), pa.null(), pa.timestamp("s"), pa.time32("s")]
)
def test_a_type_without_an_order_is_refused(kind: pa.DataType) -> None:
    with pytest.raises(UnsupportedError):
        logical_and_type(kind, 2)


INTS = [Bound("int", -1), None, Bound("int", 5)]


@pytest.mark.parametrize(
    ("bounds", "kind", "expected"),
    [
        (INTS, pa.int32(), [-1, None, 5]),
        (INTS, pa.int64(), [-1, None, 5]),
        (INTS, pa.float64(), [-1.0, None, 5.0]),
        (INTS, pa.string(), [None, None, None]),
        (INTS, pa.bool_(), [None, None, None]),
        (INTS, pa.decimal128(10, 2), [Decimal("-1.00"), None, Decimal("5.00")]),
        ([Bound("long", 1 << 40)], pa.int32(), [None]),
        ([Bound("float", 0.1)], pa.float64(), [0.1]),
        ([Bound("double", 0.1)], pa.float32(), [None]),
        ([Bound("date", -1)], pa.date32(), [datetime.date(1969, 12, 31)]),
        ([Bound("boolean", True)], pa.bool_(), [True]),
        ([Bound("bytes", b"a"), Bound("string", "a")], pa.binary(), [b"a", None]),
        ([Bound("long", 1_000_001)], pa.timestamp("us"), [datetime.datetime(1970, 1, 1, 0, 0, 1, 1)]),
        ([Bound("timestamp_millis", -1)], pa.timestamp("us"), [datetime.datetime(1969, 12, 31, 23, 59, 59, 999000)]),
        ([Bound("time_micros", 1)], pa.time64("us"), [datetime.time(0, 0, 0, 1)]),
        ([Bound("time_millis", 1)], pa.time32("ms"), [datetime.time(0, 0, 0, 1000)]),
        ([Bound("decimal", Decimal("1.230"))], pa.decimal128(5, 2), [Decimal("1.23")]),
        ([Bound("decimal", Decimal("1.235"))], pa.decimal128(5, 2), [None]),
        ([Bound("decimal", Decimal(12345))], pa.decimal128(5, 2), [None]),
        ([Bound("decimal", Decimal("9" * 36 + ".99"))], pa.decimal128(38, 2), [Decimal("9" * 36 + ".99")]),
        ([Bound("string", "a")], pa.timestamp("us"), [None]),
    ],
)
def test_bounds_as_columns(bounds: list[Bound | None], kind: pa.DataType, expected: list[Any]) -> None:
    array = to_arrow(bounds, kind)
    assert array.type == kind
    assert array.to_pylist() == expected


def test_units_of_longs_and_nanoseconds() -> None:
    millis = [Bound("long", 1500)]
    assert to_arrow(millis, pa.timestamp("us"), long_unit="ms").to_pylist() == [
        datetime.datetime(1970, 1, 1, 0, 0, 1, 500000)
    ]
    nanos = [Bound("timestamp_nanos", 1500)]
    assert to_arrow(nanos, pa.timestamp("us")).cast(pa.int64()).to_pylist() == [1]
    assert to_arrow(nanos, pa.timestamp("us"), upper=True).cast(pa.int64()).to_pylist() == [2]


def test_types_of_the_bounds_themselves() -> None:
    assert natural_type([None, Bound("string", "a")]) == pa.string()
    assert natural_type([]) == natural_type([Bound("int", 1), Bound("string", "a")]) == pa.null()
    assert natural_type([Bound("decimal", Decimal("1.50")), Bound("decimal", Decimal(3))]) == pa.decimal128(38, 2)
    assert natural_type([Bound("timestamp_millis", 1)]) == pa.timestamp("us", tz="UTC")


@pytest.mark.parametrize("kind", ["float", "double"])
def test_an_upper_bound_of_infinity_is_read_as_nan(kind: str) -> None:
    """Writers here store infinity for values with NaN: a filter must not skip NaN by it."""
    bounds, type_ = [Bound(kind, math.inf), Bound(kind, 1.5), None], pa.float64() if kind == "double" else pa.float32()
    first, *others = to_arrow(bounds, type_, upper=True).to_pylist()
    assert math.isnan(first)
    assert others == [1.5, None]
    assert to_arrow(bounds, type_).to_pylist() == [math.inf, 1.5, None]
