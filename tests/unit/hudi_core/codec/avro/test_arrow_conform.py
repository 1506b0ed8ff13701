from __future__ import annotations

import datetime as dt
import math
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.codec.avro.arrow_conform import conform_array, conform_batch, java_text
from hudi_core.errors import CorruptFileError, FormatError, UnsupportedError


def conformed(values: list[Any], have: pa.DataType, want: pa.DataType, *, nullable: bool = True) -> list[Any]:
    # A slice of a longer array: buffers then do not begin where the values do.
    array = pa.array([*values[:1], *values, *values[:1]], have).slice(1, len(values))
    made = conform_array(array, pa.field("c", want, nullable=nullable), path="file")
    made.validate(full=True)
    assert made.type == want
    return list(made.to_pylist())


STRUCT = pa.struct([("a", pa.int32()), ("b", pa.string())])
POINT = pa.struct([pa.field("x", pa.int64(), nullable=False)])


@pytest.mark.parametrize(
    ("values", "have", "want", "expected"),
    [
        ([1, None], pa.int32(), pa.int64(), [1, None]),
        ([1, None], pa.int32(), pa.float64(), [1.0, None]),
        ([(1 << 60) + 1], pa.int64(), pa.float32(), [float(1 << 60)]),
        ([1, 2], pa.int16(), pa.int32(), [1, 2]),
        ([0.5, 1.1, None], pa.float32(), pa.float64(), [0.5, 1.1, None]),
        ([1, -7, None], pa.int32(), pa.string(), ["1", "-7", None]),
        ([1 << 40], pa.int64(), pa.string(), ["1099511627776"]),
        ([1.1, 1e10, None], pa.float32(), pa.string(), ["1.1", "1.0E10", None]),
        ([0.1, 1e-5], pa.float64(), pa.string(), ["0.1", "1.0E-5"]),
        ([date(2026, 1, 2), None], pa.date32(), pa.string(), ["2026-01-02", None]),
        ([Decimal("1.50")], pa.decimal128(5, 2), pa.string(), ["1.50"]),
        ([1, None], pa.int32(), pa.decimal128(5, 2), [Decimal("1.00"), None]),
        ([1.005, -2.5], pa.float64(), pa.decimal128(5, 2), [Decimal("1.01"), Decimal("-2.50")]),
        (["1.25", None], pa.string(), pa.decimal128(5, 1), [Decimal("1.3"), None]),
        (["2026-01-02", None], pa.string(), pa.date32(), [date(2026, 1, 2), None]),
        ([[1.1], None], pa.list_(pa.float32()), pa.list_(pa.string()), [["1.1"], None]),
        (["zü", None], pa.string(), pa.binary(), ["zü".encode(), None]),
        ([b"z\xc3\xbc", None], pa.binary(), pa.string(), ["zü", None]),
        (["a"], pa.large_string(), pa.string(), ["a"]),
        (["a"], pa.string_view(), pa.string(), ["a"]),
        ([b"abc"], pa.binary(3), pa.binary(), [b"abc"]),
        ([Decimal("1.50")], pa.decimal128(5, 2), pa.decimal128(10, 3), [Decimal("1.500")]),
        ([None, None], pa.null(), pa.list_(pa.int32()), [None, None]),
        (
            [{"a": 1, "b": "x"}, None],
            STRUCT,
            pa.struct([("b", pa.string()), ("n", pa.int8()), ("a", pa.int64())]),
            [{"b": "x", "n": None, "a": 1}, None],
        ),
        ([[1, None], None, []], pa.list_(pa.int32()), pa.list_(pa.int64()), [[1, None], None, []]),
        ([[1], None], pa.large_list(pa.int32()), pa.list_(pa.int64()), [[1], None]),
        (
            [[("k", 1)], None, []],
            pa.map_(pa.string(), pa.int32()),
            pa.map_(pa.string(), pa.int64()),
            [[("k", 1)], None, []],
        ),
        ([[{"a": 1, "b": "x"}]], pa.list_(STRUCT), pa.list_(pa.struct([("a", pa.float64())])), [[{"a": 1.0}]]),
        ([{"x": 1}, None], pa.struct([("x", pa.int32())]), POINT, [{"x": 1}, None]),
    ],
)
def test_values_keep_their_meaning(
    values: list[Any], have: pa.DataType, want: pa.DataType, expected: list[Any]
) -> None:
    assert conformed(values, have, want) == expected


def test_times_get_finer_units_and_a_missing_zone_reads_as_utc() -> None:
    array = pa.array([1_000], pa.timestamp("ms"))
    made = conform_array(array, pa.field("t", pa.timestamp("us", tz="UTC")), path="file")
    assert made.cast(pa.int64()).to_pylist() == [1_000_000]


@pytest.mark.parametrize(
    ("have", "want"),
    [
        (pa.float64(), pa.float32()),
        (pa.float32(), pa.int64()),
        (pa.string(), pa.int32()),
        (pa.decimal128(5, 2), pa.decimal128(5, 3)),
        (pa.timestamp("us", tz="UTC"), pa.timestamp("ms", tz="UTC")),
        (pa.timestamp("us", tz="UTC"), pa.timestamp("us")),
        (pa.int64(), pa.timestamp("us")),
        (pa.list_(pa.int64()), pa.int64()),
        (pa.struct([("a", pa.float64())]), pa.struct([("a", pa.int32())])),
        (pa.list_(pa.int32()), pa.map_(pa.string(), pa.int32())),
        (pa.int32(), pa.null()),
    ],
)
def test_what_avro_does_not_allow_is_refused(have: pa.DataType, want: pa.DataType) -> None:
    with pytest.raises(FormatError, match="column 'c"):
        conform_array(pa.array([], have), pa.field("c", want), path="file")


def test_nested_columns_are_named_in_full() -> None:
    have = pa.list_(pa.struct([("a", pa.float64())]))
    want = pa.list_(pa.struct([("a", pa.int32())]))
    with pytest.raises(FormatError, match=r"file: column 'c\.element\.a'"):
        conform_array(pa.array([[]], have), pa.field("c", want), path="file")


def test_integers_are_narrowed_where_they_fit() -> None:
    largest = (1 << 31) - 1
    assert conformed([largest, None, -largest - 1], pa.int64(), pa.int32()) == [largest, None, -largest - 1]
    with pytest.raises(CorruptFileError, match="column 'c': a value cannot be read as int32"):
        conformed([largest + 1], pa.int64(), pa.int32())


def test_bytes_that_are_no_text_are_corrupt() -> None:
    with pytest.raises(CorruptFileError, match="column 'c'"):
        conformed([b"\xff"], pa.binary(), pa.string())


@pytest.mark.parametrize(
    ("value", "want"),
    [("x", pa.decimal128(5, 2)), ("1000.00", pa.decimal128(5, 2)), ("NaN", pa.decimal128(5, 2)), ("x", pa.date32())],
)
def test_text_that_does_not_fit_is_corrupt(value: str, want: pa.DataType) -> None:
    with pytest.raises(CorruptFileError, match="column 'c'"):
        conformed([value], pa.string(), want)


def test_nulls_in_a_column_without_nulls_are_refused() -> None:
    with pytest.raises(FormatError, match="holds nulls"):
        conformed([None], pa.int32(), pa.int32(), nullable=False)


def test_batches_get_the_schema_of_the_reader() -> None:
    schema = pa.schema([("b", pa.int64()), ("new", pa.map_(pa.string(), pa.int32()))])
    batch = pa.RecordBatch.from_pydict({"a": ["x", "y"], "b": pa.array([1, 2], pa.int32())})
    made = conform_batch(batch, schema, path="file")
    assert made.schema == schema
    assert made.to_pylist() == [{"b": 1, "new": None}, {"b": 2, "new": None}]
    assert conform_batch(batch, batch.schema, path="file") is batch
    none = conform_batch(batch, pa.schema([]), path="file")
    assert (none.num_columns, none.num_rows) == (0, 2)


def test_columns_and_fields_match_in_any_case() -> None:
    have = pa.schema([("Id", pa.int32()), ("Box", pa.list_(pa.struct([("Inner", pa.int32()), ("keep", pa.int32())])))])
    want = pa.schema([("box", pa.list_(pa.struct([("KEEP", pa.int64()), ("inner", pa.int32())]))), ("ID", pa.int32())])
    batch = pa.RecordBatch.from_pylist([{"Id": 1, "Box": [{"Inner": 2, "keep": 3}]}], have)
    assert conform_batch(batch, want, path="file").to_pylist() == [{"box": [{"KEEP": 3, "inner": 2}], "ID": 1}]


def test_fields_that_differ_in_case_alone_are_refused() -> None:
    have = pa.struct([("x", pa.int32()), ("X", pa.int32())])
    with pytest.raises(UnsupportedError, match="file: the columns 'x' and 'X' differ"):
        conform_array(pa.array([None], have), pa.field("c", pa.struct([("x", pa.int64())])), path="file")


def test_an_absent_column_must_allow_nulls() -> None:
    schema = pa.schema([pa.field("new", pa.int32(), nullable=False)])
    with pytest.raises(FormatError, match="file: column 'new' is not in the data") as caught:
        conform_batch(pa.RecordBatch.from_pydict({"a": [1]}), schema, path="file")
    assert caught.value.remedy


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
