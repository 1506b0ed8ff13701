"""Bounds of column statistics in both encodings."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from hudi_core.errors import CorruptFileError
from hudi_core.metadata_table.records.bounds import Bound, decode_bound


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
