"""Fields of many Avro data at once, against the codec that reads one datum after the other."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_core.codec.avro.column_walk import ColumnWalk, Encoded, Leaf
from hudi_core.codec.avro.datum import DatumCodec
from hudi_core.errors import CorruptFileError, UnsupportedError

SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "Outer",
    "namespace": "a.b",
    "fields": [
        {"name": "text", "type": ["null", {"type": "string", "avro.java.string": "String"}]},
        {"name": "number", "type": "int"},
        {
            "name": "choice",
            "type": [
                "null",
                {
                    "type": "record",
                    "name": "Long",
                    "fields": [{"name": "value", "type": {"type": "long", "logicalType": "timestamp-micros"}}],
                },
                {"type": "record", "name": "Bytes", "fields": [{"name": "value", "type": "bytes"}]},
                {"type": "record", "name": "Flag", "fields": [{"name": "value", "type": ["boolean", "null"]}]},
            ],
        },
        {
            "name": "inner",
            "type": [{"type": "record", "name": "Inner", "fields": [{"name": "deep", "type": "double"}]}, "null"],
        },
        {"name": "again", "type": ["null", "Long", "a.b.Bytes"]},
        {"name": "third", "type": "Inner"},
        {"name": "small", "type": "float"},
        {"name": "list", "type": ["null", {"type": "array", "items": "int"}]},
    ],
}
CODEC = DatumCodec(SCHEMA)
PATHS = {
    ("text",): pa.string(),
    ("number",): None,
    ("choice", "Long", "value"): None,
    ("choice", "Bytes", "value"): pa.binary(),
    ("choice", "Flag", "value"): None,
    ("inner", "deep"): None,
    ("again", "Long", "value"): None,
    ("again", "Bytes", "value"): pa.binary(),
    ("third", "deep"): None,
    ("small",): None,
}
_long = st.integers(-(1 << 63), (1 << 63) - 1)
_double = st.floats(allow_nan=False)


def _wrapped(name: str, values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return values.map(lambda value: (f"a.b.{name}", {"value": value}))


DATA = st.fixed_dictionaries(
    {
        "text": st.none() | st.text(max_size=200),
        "number": st.integers(-(1 << 31), (1 << 31) - 1),
        "choice": st.none()
        | _wrapped("Long", _long)
        | _wrapped("Bytes", st.binary(max_size=90))
        | _wrapped("Flag", st.none() | st.booleans()),
        "inner": st.none() | st.fixed_dictionaries({"deep": _double}),
        "again": st.none() | _wrapped("Long", _long) | _wrapped("Bytes", st.binary(max_size=5)),
        "third": st.fixed_dictionaries({"deep": _double}),
        "small": st.floats(width=32, allow_nan=False),
        "list": st.none(),
    }
)


def at(datum: dict[str, Any], path: tuple[str, ...]) -> Any:
    """What is at a path of a decoded datum; None where another branch is there."""
    found: Any = datum
    for step in path:
        if isinstance(found, tuple):
            found = found[1] if found[0] == f"a.b.{step}" else None
            continue
        found = None if found is None else found[step]
    return found


def values_of(data: Encoded, leaf: Leaf, kind: pa.DataType | None) -> list[Any]:
    found: list[Any] = leaf.values.tolist() if kind is None else data.texts(leaf, kind).to_pylist()
    return found


def values_or_none(data: Encoded, leaf: Leaf, kind: pa.DataType | None) -> list[Any] | None:
    """None for text that is none."""
    try:
        return values_of(data, leaf, kind)
    except pa.ArrowInvalid:
        return None


@settings(deadline=None, max_examples=80)
@given(st.lists(DATA, max_size=12))
def test_every_field_of_every_datum(values: list[dict[str, Any]]) -> None:
    encoded = [CODEC.encode(value) for value in values]
    decoded = [CODEC.decode(item) for item in encoded]
    data = Encoded.of(encoded)
    found = ColumnWalk(SCHEMA, PATHS).read(data)
    assert found is not None
    assert len(data) == len(values)
    for path, kind in PATHS.items():
        true = [(row, value) for row, datum in enumerate(decoded) if (value := at(datum, path)) is not None]
        if path not in found:
            assert true == []
            continue
        leaf = found[path]
        assert list(zip(leaf.rows.tolist(), values_of(data, leaf, kind), strict=True)) == true


def test_only_requested_fields_are_kept() -> None:
    found = ColumnWalk(SCHEMA, [("number",), ("nowhere",)]).read(Encoded.of([CODEC.encode(VALUE)] * 3))
    assert found is not None
    assert list(found) == [("number",)]
    assert found["number",].values.tolist() == [7, 7, 7]


VALUE: dict[str, Any] = {
    "text": "word",
    "number": 7,
    "choice": ("a.b.Long", {"value": -300}),
    "inner": None,
    "again": None,
    "third": {"deep": 0.5},
    "small": 1.5,
    "list": None,
}
GOOD = CODEC.encode(VALUE)


def test_a_datum_with_a_list_is_left_to_the_codec() -> None:
    walk = ColumnWalk(SCHEMA, PATHS)
    assert walk.read(Encoded.of([GOOD, CODEC.encode({**VALUE, "list": [1]})])) is None
    assert walk.read(Encoded.of([GOOD, GOOD])) is not None


@pytest.mark.parametrize(
    "bad",
    [
        GOOD[:-1],
        GOOD + b"\0",
        b"",
        b"\x04" + GOOD[1:],
        b"\x01" + GOOD[1:],
        b"\x02\x01" + GOOD[2:],
        b"\x02" + b"\xff" * 9 + b"\x01" + GOOD[2:],
        b"\x02" + b"\xfe" * 9 + b"\x01" + GOOD[2:],
        b"\xff" * 20,
        b"\x80" * 10 + b"\x02" + GOOD[1:],
    ],
)
def test_broken_data_are_refused_whatever_follows_them(bad: bytes) -> None:
    """Also where the bytes of the next datum would make them whole."""
    walk = ColumnWalk(SCHEMA, PATHS)
    for data in ([bad], [GOOD, bad], [bad, GOOD, GOOD], [GOOD] * 100 + [bad]):
        assert walk.read(Encoded.of(data)) is None


@settings(deadline=None, max_examples=150)
@given(st.integers(0, 30), st.integers(0, 255), st.lists(st.binary(max_size=40), max_size=3))
def test_a_changed_byte_is_read_as_the_codec_reads_it_or_refused(place: int, octet: int, junk: list[bytes]) -> None:
    changed = bytearray(GOOD)
    changed[place % len(changed)] = octet
    walk = ColumnWalk(SCHEMA, PATHS)
    data = Encoded.of([bytes(changed)])
    found = walk.read(data)
    if found is not None:
        read = [values_or_none(data, leaf, PATHS[path]) for path, leaf in found.items()]
        if None in read:
            with pytest.raises(CorruptFileError, match="UnicodeDecodeError"):
                CODEC.decode(bytes(changed))
        else:
            decoded = CODEC.decode(bytes(changed))
            assert repr(read) == repr([[at(decoded, path)] for path in found])
    for more in (walk.read(Encoded.of([*junk, GOOD])), walk.read(Encoded.of([GOOD, *junk]))):
        assert more is None or all(len(leaf.rows) <= len(junk) + 1 for leaf in more.values())


def test_text_that_is_not_utf8() -> None:
    data = Encoded.of([GOOD.replace(b"word", b"w\xffrd")])
    found = ColumnWalk(SCHEMA, PATHS).read(data)
    assert found is not None
    with pytest.raises(pa.ArrowInvalid):
        data.texts(found["text",], pa.string())


def test_numbers_of_every_length() -> None:
    schema = {"type": "record", "name": "n", "fields": [{"name": "n", "type": "long"}]}
    codec = DatumCodec(schema)
    numbers = [sign * (1 << shift) + add for shift in range(63) for sign in (1, -1) for add in (-1, 0)] + [
        -(1 << 63),
        (1 << 63) - 1,
    ]
    found = ColumnWalk(schema, [("n",)]).read(Encoded.of([codec.encode({"n": number}) for number in numbers]))
    assert found is not None
    assert found["n",].values.dtype == np.int64
    assert found["n",].values.tolist() == numbers


@pytest.mark.parametrize("lengths", [[5] * 9, [0] * 4, [3, 0, 3, 7, 0], list(range(40)), [*range(40), 0, 39]])
def test_texts_of_few_and_of_many_lengths(lengths: list[int]) -> None:
    texts = [f"{number:04d}é"[:1] * length if length else "" for number, length in enumerate(lengths)]
    data = Encoded.of([CODEC.encode({**VALUE, "text": text}) for text in texts])
    found = ColumnWalk(SCHEMA, [("text",)]).read(data)
    assert found is not None
    assert data.texts(found["text",], pa.string()).to_pylist() == texts


def test_no_data_at_all() -> None:
    found = ColumnWalk(SCHEMA, PATHS).read(Encoded.of([]))
    assert found is not None
    assert all(len(leaf.rows) == 0 for leaf in found.values())


def test_a_record_that_holds_itself_without_end() -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "r", "type": "r"}]}
    with pytest.raises(UnsupportedError, match="contains itself"):
        ColumnWalk(schema, [("r",)])


def test_floats_come_in_their_own_width() -> None:
    found = ColumnWalk(SCHEMA, PATHS).read(Encoded.of([GOOD]))
    assert found is not None
    assert found["small",].values.dtype == np.float32
    assert struct.pack("<d", float(found["third", "deep"].values[0])) == struct.pack("<d", 0.5)
