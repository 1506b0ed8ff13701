"""Bounds of column statistics in both encodings, and as Arrow columns."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.errors import CorruptFileError
from hudi_core.metadata_table.records.stat_values import Bound, decode_bound, natural_type, to_arrow


def wrapped(wrapper: str, value: Any) -> tuple[str, dict[str, Any]]:
    return f"org.apache.hudi.avro.model.{wrapper}", {"value": value}


def typed(ordinal: int, info: str | None = None) -> dict[str, Any]:
    return {"typeOrdinal": ordinal, "additionalInfo": info}


@pytest.mark.parametrize(
    ("wrapper", "value", "bound"),
    [
        ("BooleanWrapper", True, Bound("boolean", True)),
        ("IntWrapper", -3, Bound("int", -3)),
        ("LongWrapper", 1 << 40, Bound("long", 1 << 40)),
        ("FloatWrapper", 0.5, Bound("float", 0.5)),
        ("DoubleWrapper", -0.0, Bound("double", -0.0)),
        ("StringWrapper", "é", Bound("string", "é")),
        ("BytesWrapper", b"\xff", Bound("bytes", b"\xff")),
        ("DateWrapper", -1, Bound("date", -1)),
        ("LocalDateWrapper", 9, Bound("date", 9)),
        (
            "DecimalWrapper",
            (-1_230_000_000_000_000).to_bytes(8, "big", signed=True),
            Bound("decimal", Decimal("-1.230000000000000")),
        ),
        ("TimeMicrosWrapper", 5, Bound("time_micros", 5)),
        ("TimestampMicrosWrapper", 5, Bound("timestamp_micros", 5)),
    ],
)
def test_version_1_wraps_logical_values(wrapper: str, value: Any, bound: Bound) -> None:
    assert decode_bound(wrapped(wrapper, value), None, path="f") == bound


@pytest.mark.parametrize(
    ("wrapper", "value", "value_type", "bound"),
    [
        ("IntWrapper", 18000, typed(12), Bound("date", 18000)),
        ("LongWrapper", 7, typed(16), Bound("timestamp_micros", 7)),
        ("LongWrapper", 7, typed(18), Bound("timestamp_millis", 7)),
        ("BytesWrapper", b"\xfb\x2e", typed(10, "10,2"), Bound("decimal", Decimal("-12.34"))),
        ("StringWrapper", "a", typed(11), Bound("string", "a")),
        ("BytesWrapper", b"a", typed(9), Bound("bytes", b"a")),
        ("IntWrapper", 7, typed(13), Bound("time_millis", 7)),
    ],
)
def test_version_2_holds_physical_values_beside_their_type(
    wrapper: str, value: Any, value_type: dict[str, Any], bound: Bound
) -> None:
    assert decode_bound(wrapped(wrapper, value), value_type, path="f") == bound


def test_no_bound() -> None:
    assert decode_bound(None, None, path="f") is None
    assert decode_bound(wrapped("IntWrapper", None), None, path="f") is None
    assert decode_bound(wrapped("ArrayWrapper", []), None, path="f") is None
    assert decode_bound(wrapped("IntWrapper", 1), typed(1), path="f") is None


@pytest.mark.parametrize(
    ("bound", "value_type"),
    [
        (5, None),
        (("x",), None),
        (wrapped("OtherWrapper", 5), None),
        (wrapped("IntWrapper", "5"), None),
        (wrapped("IntWrapper", True), None),
        (wrapped("BooleanWrapper", 1), None),
        (wrapped("StringWrapper", b"a"), None),
        (wrapped("IntWrapper", 5), typed(0)),
        (wrapped("IntWrapper", 5), typed(21)),
        (wrapped("IntWrapper", 5), {"typeOrdinal": None}),
        (wrapped("IntWrapper", 5), 3),
        (wrapped("BytesWrapper", b"a"), typed(10)),
        (wrapped("BytesWrapper", b"a"), typed(10, "10")),
        (wrapped("BytesWrapper", b"a"), typed(10, "10,99999")),
        (wrapped("BytesWrapper", b"a" * 65), typed(10, "10,2")),
        (wrapped("IntWrapper", 5), typed(10, "10,2")),
    ],
)
def test_bounds_of_another_form_are_corrupt(bound: Any, value_type: Any) -> None:
    with pytest.raises(CorruptFileError) as caught:
        decode_bound(bound, value_type, path="x.hfile")
    assert caught.value.path == "x.hfile"


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
