"""Hypothesis strategies of Avro columns: a type, values to encode, and what Arrow must give for them, worked out here
and not by the codec.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

_EPOCH = datetime.datetime(1970, 1, 1)
_DAY = datetime.date(1970, 1, 1)
_SPAN_US = (-50_000_000_000_000_000, 200_000_000_000_000_000)
_SECOND = 1_000_000


@dataclass(frozen=True)
class Column:
    """A type as JSON, a strategy of raw values, and the function from a raw value to what `to_pylist` gives."""

    avro: Any
    values: st.SearchStrategy[Any]
    expected: Callable[[Any], Any]


def _moment(zone: datetime.tzinfo | None) -> Callable[[int], Any]:
    return lambda micros: (_EPOCH + datetime.timedelta(microseconds=micros)).replace(tzinfo=zone)


def _time(micros: int) -> datetime.time:
    return (_EPOCH + datetime.timedelta(microseconds=micros)).time()


def _logical(base: str, name: str) -> dict[str, Any]:
    return {"type": base, "logicalType": name}


def _same(value: Any) -> Any:
    return value


def _ints(low: int, high: int) -> st.SearchStrategy[int]:
    return st.integers(low, high)


def _leaves() -> list[Column]:
    text = st.text(max_size=12)
    low, high = _SPAN_US
    utc = datetime.timezone.utc
    leaves = [
        Column("boolean", st.booleans(), _same),
        Column("int", _ints(-(1 << 31), (1 << 31) - 1), _same),
        Column("long", _ints(-(1 << 63), (1 << 63) - 1), _same),
        Column("float", st.floats(width=32, allow_nan=False), _same),
        Column("double", st.floats(allow_nan=False), _same),
        Column("string", text, _same),
        Column({"type": "string", "avro.java.string": "String"}, text, _same),
        Column("bytes", st.binary(max_size=12), _same),
        Column(_logical("string", "uuid"), st.uuids().map(str), _same),
        Column(_logical("int", "date"), _ints(-100_000, 100_000), lambda days: _DAY + datetime.timedelta(days=days)),
        Column(_logical("long", "timestamp-micros"), _ints(low, high), _moment(utc)),
        Column(
            _logical("long", "timestamp-millis"),
            _ints(low // 1000, high // 1000),
            lambda millis: _moment(utc)(millis * 1000),
        ),
        Column(_logical("long", "local-timestamp-micros"), _ints(low, high), _moment(None)),
        Column(
            _logical("long", "local-timestamp-millis"),
            _ints(low // 1000, high // 1000),
            lambda millis: _moment(None)(millis * 1000),
        ),
        Column(_logical("int", "time-millis"), _ints(0, 86_399_999), lambda millis: _time(millis * 1000)),
        Column(_logical("long", "time-micros"), _ints(0, 86_399_999_999), _time),
        Column(_logical("long", "unheard-of"), _ints(-5, 5), _same),
    ]
    return leaves


LEAVES = _leaves()


@st.composite
def _decimal(draw: st.DrawFn) -> Column:
    precision = draw(st.integers(1, 38))
    scale = draw(st.integers(0, precision))
    most = 10**precision - 1
    size = (most.bit_length() + 8) // 8
    spare = draw(st.integers(0, 3))
    fixed = draw(st.booleans())
    base = {"type": "fixed", "name": "fixed", "size": size + spare} if fixed else {"type": "bytes"}

    def encode(number: int) -> bytes:
        return number.to_bytes(size + spare if fixed else (number.bit_length() + 8) // 8 + spare, "big", signed=True)

    def expected(raw: bytes) -> decimal.Decimal:
        number = int.from_bytes(raw, "big", signed=True)
        return decimal.Decimal((int(number < 0), tuple(int(digit) for digit in str(abs(number))), -scale))

    return Column(
        {**base, "logicalType": "decimal", "precision": precision, "scale": scale},
        st.integers(-most, most).map(encode),
        expected,
    )


@st.composite
def _fixed(draw: st.DrawFn) -> Column:
    size = draw(st.integers(1, 70))
    return Column({"type": "fixed", "name": "fixed", "size": size}, st.binary(min_size=size, max_size=size), _same)


@st.composite
def _enum(draw: st.DrawFn) -> Column:
    symbols = draw(st.lists(st.sampled_from(["A", "B", "C_1", "red"]), min_size=1, unique=True))
    return Column({"type": "enum", "name": "colour", "symbols": symbols}, st.sampled_from(symbols), _same)


@st.composite
def _nullable(draw: st.DrawFn, inner: st.SearchStrategy[Column]) -> Column:
    column = draw(inner)
    avro = ["null", column.avro] if draw(st.booleans()) else [column.avro, "null"]
    return Column(avro, st.none() | column.values, lambda value: None if value is None else column.expected(value))


@st.composite
def _lone(draw: st.DrawFn, inner: st.SearchStrategy[Column]) -> Column:
    column = draw(inner)
    return Column([column.avro], column.values, column.expected)


@st.composite
def _nested(draw: st.DrawFn, inner: st.SearchStrategy[Column]) -> Column:
    kind = draw(st.sampled_from(["array", "map", "record"]))
    if kind == "record":
        return draw(records(inner, name="nested"))
    column = draw(inner)
    if kind == "array":
        avro = {"type": "array", "items": column.avro}
        return Column(
            avro, st.lists(column.values, max_size=3), lambda items: [column.expected(item) for item in items]
        )
    keys = st.text(max_size=4)
    return Column(
        {"type": "map", "values": column.avro},
        st.dictionaries(keys, column.values, max_size=3),
        lambda entries: [(key, column.expected(value)) for key, value in entries.items()],
    )


@st.composite
def records(draw: st.DrawFn, inner: st.SearchStrategy[Column], *, name: str = "row", least: int = 1) -> Column:
    """A record of one to four columns, named so that no type name is used twice."""
    columns = draw(st.lists(inner, min_size=least, max_size=4))
    named = {f"c{index}": column for index, column in enumerate(columns)}
    fields = [{"name": key, "type": _rename(column.avro, f"{name}_{key}")} for key, column in named.items()]
    return Column(
        {"type": "record", "name": name, "fields": fields},
        st.fixed_dictionaries({key: column.values for key, column in named.items()}),
        lambda row: {key: column.expected(row[key]) for key, column in named.items()},
    )


def _rename(avro: Any, name: str) -> Any:
    if isinstance(avro, list):
        return [_rename(branch, name) for branch in avro]
    if not isinstance(avro, dict):
        return avro
    renamed = dict(avro)
    if "name" in renamed and "type" in renamed and renamed["type"] in ("record", "enum", "fixed"):
        renamed["name"] = name
    for key in ("items", "values"):
        if key in renamed:
            renamed[key] = _rename(renamed[key], f"{name}_{key}")
    if "fields" in renamed:
        renamed["fields"] = [
            {**field, "type": _rename(field["type"], f"{name}_{field['name']}")} for field in renamed["fields"]
        ]
    return renamed


FLAT = st.sampled_from(LEAVES) | _decimal() | _fixed() | _enum()
ANY = st.recursive(FLAT | _nullable(FLAT), lambda inner: _nested(inner) | _nullable(_nested(inner)), max_leaves=6)
"""Columns of every type that Arrow holds, nested up to a few levels."""
ODD = _lone(FLAT) | st.just(Column("null", st.none(), _same)) | ANY
"""Also the types that the fast route refuses."""


@st.composite
def tables(
    draw: st.DrawFn, columns: st.SearchStrategy[Column] = ANY
) -> tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]:
    """A record schema, rows to encode by it, and the rows that Arrow must give."""
    record = draw(records(columns))
    rows = draw(st.lists(record.values, max_size=5))
    return record.avro, rows, [record.expected(row) for row in rows]
