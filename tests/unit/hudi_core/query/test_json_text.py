"""Rows as JSON text: the values are those of the rows, and the print is that of Avro or Jackson."""

from __future__ import annotations

import datetime
import json
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.errors import UnsupportedError
from hudi_core.query.json_text import AVRO, COMPACT, JsonStyle, json_rows

KIND = pa.struct([("n", pa.int64()), ("t", pa.string())])
SCHEMA = pa.schema(
    [
        ("text", pa.string()),
        ("long", pa.int64()),
        ("double", pa.float64()),
        ("flag", pa.bool_()),
        ("inner", KIND),
        ("list", pa.list_(pa.string())),
        ("nested", pa.list_(KIND)),
        ("map", pa.map_(pa.string(), pa.float64())),
    ]
)
longs, doubles, texts = st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False), st.text()
inner = st.fixed_dictionaries({"n": st.none() | longs, "t": st.none() | texts})
rows = st.fixed_dictionaries(
    {
        "text": st.none() | texts,
        "long": st.none() | longs,
        "double": st.none() | doubles,
        "flag": st.none() | st.booleans(),
        "inner": st.none() | inner,
        "list": st.none() | st.lists(st.none() | texts, max_size=3),
        "nested": st.none() | st.lists(st.none() | inner, max_size=3),
        "map": st.none() | st.dictionaries(texts, st.none() | doubles, max_size=3),
    }
)


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_nulls(item) for name, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value


def printed(batch: pa.RecordBatch, style: JsonStyle) -> list[Any]:
    return [json.loads(text) for text in json_rows(batch, style).to_pylist()]


@pytest.mark.slow
@given(st.lists(rows, max_size=8), st.integers(0, 3))
def test_the_values_are_those_of_the_rows(values: list[dict[str, Any]], skipped: int) -> None:
    """Also of a batch that is a slice of a larger one. Members of maps with null values stay, since Jackson prints
    them.
    """
    given_maps = [{**row, "map": None if row["map"] is None else list(row["map"].items())} for row in values]
    batch = pa.RecordBatch.from_pylist(given_maps, schema=SCHEMA).slice(skipped)
    kept = values[skipped:]
    assert printed(batch, AVRO) == kept
    compact = [{**without_nulls(row), **({} if row["map"] is None else {"map": row["map"]})} for row in kept]
    assert printed(batch, COMPACT) == compact


@given(st.text())
def test_text_is_escaped_as_each_writer_does(text: str) -> None:
    batch = pa.RecordBatch.from_pydict({"a": [text]})
    avro, compact = (json_rows(batch, style)[0].as_py() for style in (AVRO, COMPACT))
    assert all(ord(char) >= 0x20 and not 0x7F <= ord(char) < 0xA0 and not 0x2000 <= ord(char) < 0x2100 for char in avro)
    assert (
        compact == json.dumps({"a": text}, ensure_ascii=False, separators=(",", ":")).replace("\\u001f", "\\u001F")
        or "\\u00" in compact
    )
    assert json.loads(avro) == json.loads(compact) == {"a": text}


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1.0, "1.0"),
        (100.0, "100.0"),
        (1650.79, "1650.79"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (12345678.9, "1.23456789E7"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (-1.5e-10, "-1.5E-10"),
        (1e300, "1.0E300"),
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (math.nan, '"NaN"'),
        (math.inf, '"Infinity"'),
        (-math.inf, '"-Infinity"'),
    ],
)
def test_numbers_are_printed_as_by_java(number: float, text: str) -> None:
    assert json_rows(pa.RecordBatch.from_pydict({"a": [number]}), COMPACT).to_pylist() == [f'{{"a":{text}}}']


def test_the_print_of_each_writer() -> None:
    batch = pa.RecordBatch.from_pylist([{"id": "k1", "note": None, "qty": 3}, {"id": None, "note": 'a"b', "qty": None}])
    assert json_rows(batch, AVRO).to_pylist() == [
        '{"id": "k1", "note": null, "qty": 3}',
        '{"id": null, "note": "a\\"b", "qty": null}',
    ]
    assert json_rows(batch, COMPACT).to_pylist() == ['{"id":"k1","qty":3}', '{"note":"a\\"b"}']


def test_types_without_a_json_form_of_their_own() -> None:
    batch = pa.RecordBatch.from_pydict(
        {
            "day": pa.array([datetime.date(1970, 1, 11)]),
            "time": pa.array([datetime.time(0, 0, 1)], pa.time64("us")),
            "moment": pa.array([datetime.datetime(1970, 1, 1, 0, 0, 2)], pa.timestamp("us", "UTC")),
            "price": pa.array([Decimal("1.20")], pa.decimal128(10, 2)),
            "bytes": pa.array([b"\x00\xff"]),
            "small": pa.array([1.25e-5], pa.float32()),
        }
    )
    (text,) = json_rows(batch, COMPACT).to_pylist()
    assert text == '{"day":10,"time":1000000,"moment":2000000,"price":1.20,"bytes":"AP8=","small":1.25E-5}'


def test_a_null_row_is_null_and_a_row_without_members_is_empty() -> None:
    structs = pa.array([{"a": 1}, None], pa.struct([("a", pa.int32())]))
    assert json_rows(structs, AVRO).to_pylist() == ['{"a": 1}', None]
    assert json_rows(pa.RecordBatch.from_pydict({"a": pa.array([None, 1])}), COMPACT).to_pylist() == ["{}", '{"a":1}']


def test_a_type_that_rows_never_have_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="duration"):
        json_rows(pa.RecordBatch.from_pydict({"a": pa.array([1], pa.duration("s"))}), COMPACT)


def test_bytes_that_are_no_utf_8_stay_as_they_are() -> None:
    texts = pa.array([b'\xff"', b"\xfe\x01", b"a"], pa.binary()).view(pa.string())
    found = json_rows(pa.RecordBatch.from_arrays([texts], ["t"]), AVRO).cast(pa.binary()).to_pylist()
    assert found == [b'{"t": "\xff\\""}', b'{"t": "\xfe\\u0001"}', b'{"t": "a"}']
