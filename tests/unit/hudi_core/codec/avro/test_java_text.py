from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.codec.avro.java_text import java_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (100.0, "100.0"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (12345678.9, "1.23456789E7"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (-2.5e-10, "-2.5E-10"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (math.nan, "NaN"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (None, None),
    ],
)
def test_doubles_as_in_java(value: float | None, text: str | None) -> None:
    assert java_text(pa.array([value], pa.float64())).to_pylist() == [text]


def test_floats_have_the_digits_of_a_float() -> None:
    assert java_text(pa.array([1.1, 3.4028235e38, 16777216.0, 0.3], pa.float32())).to_pylist() == [
        "1.1",
        "3.4028235E38",
        "1.6777216E7",
        "0.3",
    ]


def test_other_types() -> None:
    assert java_text(pa.array([1, -5, None], pa.int32())).to_pylist() == ["1", "-5", None]
    assert java_text(pa.array([dt.date(2026, 1, 2)])).to_pylist() == ["2026-01-02"]
    assert java_text(pa.array([Decimal("1.50")], pa.decimal128(10, 2))).to_pylist() == ["1.50"]


@given(st.lists(st.floats(allow_nan=False)))
def test_text_reads_back_as_the_same_number(values: list[float]) -> None:
    texts = java_text(pa.array(values, pa.float64())).to_pylist()
    assert [float(text) for text in texts] == values
    assert all("." in text or "Infinity" in text for text in texts)
