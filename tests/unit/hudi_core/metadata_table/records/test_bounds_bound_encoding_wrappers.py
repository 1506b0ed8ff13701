"""Bounds into both encodings of the metadata table, and back."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from hudi_core.errors import FormatError
from hudi_core.metadata_table.records.bounds import Bound, ValueType, decode_bound, encode_bound

NAMESPACE = "org.apache.hudi.avro.model."


@pytest.mark.parametrize(
    ("bound", "wrapper", "value"),
    [
        (Bound("boolean", False), "BooleanWrapper", False),
        (Bound("int", -3), "IntWrapper", -3),
        (Bound("long", 1 << 40), "LongWrapper", 1 << 40),
        (Bound("float", 0.5), "FloatWrapper", 0.5),
        (Bound("double", 1e300), "DoubleWrapper", 1e300),
        (Bound("string", "é"), "StringWrapper", "é"),
        (Bound("bytes", b"\xff"), "BytesWrapper", b"\xff"),
        (Bound("date", -1), "DateWrapper", -1),
        (Bound("time_micros", 5), "TimeMicrosWrapper", 5),
        (Bound("timestamp_micros", 5), "TimestampMicrosWrapper", 5),
    ],
)
def test_version_1_wraps_by_the_logical_type(bound: Bound, wrapper: str, value: Any) -> None:
    stored = encode_bound(bound, ValueType(0))
    assert stored == (NAMESPACE + wrapper, {"value": value})
    assert decode_bound(stored, None, path="x") == bound


@pytest.mark.parametrize(
    ("bound", "ordinal", "wrapper"),
    [
        (Bound("boolean", True), 2, "BooleanWrapper"),
        (Bound("int", 7), 3, "IntWrapper"),
        (Bound("long", 7), 4, "LongWrapper"),
        (Bound("float", 0.25), 5, "FloatWrapper"),
        (Bound("double", 0.1), 6, "DoubleWrapper"),
        (Bound("string", "x"), 7, "StringWrapper"),
        (Bound("bytes", b"x"), 8, "BytesWrapper"),
        (Bound("bytes", b"xy"), 9, "BytesWrapper"),
        (Bound("string", "0f"), 11, "StringWrapper"),
        (Bound("date", 19000), 12, "IntWrapper"),
        (Bound("time_millis", 1), 13, "IntWrapper"),
        (Bound("time_micros", 1), 14, "LongWrapper"),
        (Bound("timestamp_millis", 1), 15, "LongWrapper"),
        (Bound("timestamp_micros", 1), 16, "LongWrapper"),
        (Bound("timestamp_nanos", 1), 17, "LongWrapper"),
        (Bound("timestamp_millis", 1), 18, "LongWrapper"),
        (Bound("timestamp_micros", 1), 19, "LongWrapper"),
        (Bound("timestamp_nanos", 1), 20, "LongWrapper"),
    ],
)
def test_version_2_wraps_the_physical_value(bound: Bound, ordinal: int, wrapper: str) -> None:
    stored = encode_bound(bound, ValueType(ordinal))
    assert stored == (NAMESPACE + wrapper, {"value": bound.value})
    assert decode_bound(stored, {"typeOrdinal": ordinal, "additionalInfo": None}, path="x") == bound


@pytest.mark.parametrize(
    ("value", "data"),
    [
        ("0.00", b"\x00"),
        ("1.27", b"\x7f"),
        ("1.28", b"\x00\x80"),
        ("-1.28", b"\x80"),
        ("-1.29", b"\xff\x7f"),
        ("5", b"\x01\xf4"),
        ("2.55", b"\x00\xff"),
    ],
)
def test_decimals_of_version_2_are_their_unscaled_digits(value: str, data: bytes) -> None:
    type_ = ValueType(10, "10,2")
    stored = encode_bound(Bound("decimal", Decimal(value)), type_)
    assert stored == (NAMESPACE + "BytesWrapper", {"value": data})
    assert decode_bound(stored, {"typeOrdinal": 10, "additionalInfo": "10,2"}, path="x") == Bound(
        "decimal", Decimal(value)
    )


def test_decimals_of_version_1_have_fifteen_digits_behind_the_point() -> None:
    stored = encode_bound(Bound("decimal", Decimal("-1.23")), ValueType(0))
    assert stored == (NAMESPACE + "DecimalWrapper", {"value": (-1_230_000_000_000_000).to_bytes(7, "big", signed=True)})
    assert decode_bound(stored, None, path="x") == Bound("decimal", Decimal("-1.230000000000000"))


@pytest.mark.parametrize(
    ("bound", "type_"),
    [
        (Bound("decimal", Decimal("1e15")), ValueType(0)),
        (Bound("decimal", Decimal("1e-16")), ValueType(0)),
        (Bound("decimal", Decimal("0.001")), ValueType(10, "10,2")),
        (Bound("timestamp_millis", 1), ValueType(0)),
        (Bound("int", 1), ValueType(4)),
    ],
)
def test_what_an_encoding_does_not_hold_is_refused(bound: Bound, type_: ValueType) -> None:
    with pytest.raises(FormatError):
        encode_bound(bound, type_)


def test_no_bound_is_none() -> None:
    assert encode_bound(None, ValueType(7)) is None
