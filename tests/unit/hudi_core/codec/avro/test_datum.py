from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_core.codec.avro import _fastavro
from hudi_core.codec.avro.datum import DatumCodec, codec_of, decode_datum, encode_datum
from hudi_core.errors import CorruptFileError, FormatError
from tests.support.avro_columns import tables

WRAPPERS = [
    {"type": "record", "name": name, "fields": [{"name": "value", "type": kind}]}
    for name, kind in (("Int", "int"), ("Long", "long"))
]
SCHEMA = {
    "type": "record",
    "name": "r",
    "namespace": "n",
    "fields": [{"name": "v", "type": ["null", *WRAPPERS]}, {"name": "d", "type": "string", "default": "x"}],
}


@settings(max_examples=25, deadline=None)
@given(tables())
def test_encoding_what_was_decoded_gives_the_same_bytes(
    case: tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]],
) -> None:
    schema, rows, _ = case
    codec = DatumCodec(schema)
    for row in rows:
        data = codec.encode(row)
        assert codec.decode(data) == row
        assert codec.encode(codec.decode(data)) == data


def test_the_branch_of_a_union_of_records_is_kept() -> None:
    for name in ("n.Int", "n.Long"):
        data = encode_datum(SCHEMA, {"v": (name, {"value": 1})})
        assert decode_datum(SCHEMA, data) == {"v": (name, {"value": 1}), "d": "x"}
    assert decode_datum(SCHEMA, encode_datum(SCHEMA, {"v": None})) == {"v": None, "d": "x"}


def test_logical_types_do_not_convert() -> None:
    schema = {
        "type": "record",
        "name": "r",
        "fields": [{"name": "t", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]}],
    }
    far = {"t": -(1 << 63)}
    assert decode_datum(schema, encode_datum(schema, far)) == far


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x06",
        b"\x02",
        b"\x00\x04a",
        b"\x00\x02a\x00",
        b"\x00\x02\xff",
        b"\x01\x00",
        b"\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
    ],
)
def test_broken_data_is_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptFileError, match="plan: Avro datum"):
        decode_datum(SCHEMA, data, path="plan")


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=40))
def test_any_bytes_give_a_value_or_a_typed_error(data: bytes) -> None:
    with contextlib.suppress(CorruptFileError):
        assert set(decode_datum(SCHEMA, data, path="plan")) == {"v", "d"}


@pytest.mark.parametrize("value", [{"v": ("n.No", {})}, {"v": 3}, {"v": None, "d": None}, 5])
def test_values_that_do_not_fit_are_refused(value: Any) -> None:
    with pytest.raises(FormatError, match="does not fit"):
        encode_datum(SCHEMA, value)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nothing"},
        {"type": "record", "name": "r", "fields": [{"name": "a", "type": "b.c"}]},
        {"type": "record"},
        7,
    ],
)
def test_what_is_no_schema_is_refused(schema: Any) -> None:
    with pytest.raises(FormatError, match="not an Avro schema"):
        DatumCodec(schema)


NOTHING = {"type": "record", "name": "nothing", "fields": []}


@pytest.mark.parametrize(
    "items",
    [
        "null",
        {"type": "null"},
        NOTHING,
        {"type": "record", "name": "nothing"},
        {"type": "fixed", "name": "nothing", "size": 0},
        {"type": "record", "name": "pair", "fields": [{"name": "a", "type": "null"}, {"name": "b", "type": NOTHING}]},
    ],
)
def test_arrays_of_items_without_bytes_are_refused(items: Any) -> None:
    """Found by fuzzing a compaction plan: a damaged schema made records of nothing, and ten bytes of data claimed 2^40
    of them.
    """
    array = {"type": "array", "items": items}
    for schema in (
        array,
        {"type": "record", "name": "r", "fields": [{"name": "v", "type": ["null", {"type": "map", "values": array}]}]},
    ):
        with pytest.raises(FormatError, match="no bytes"):
            decode_datum(schema, b"\x80\x80\x80\x80\x80\x80\x01\x00")


def test_a_name_stands_for_what_it_was_given_to() -> None:
    fields = [{"name": "a", "type": NOTHING}, {"name": "b", "type": {"type": "array", "items": "n.nothing"}}]
    with pytest.raises(FormatError, match="no bytes"):
        DatumCodec({"type": "record", "name": "r", "namespace": "n", "fields": fields})
    tree = {
        "type": "record",
        "name": "tree",
        "fields": [{"name": "v", "type": "int"}, {"name": "below", "type": {"type": "array", "items": "tree"}}],
    }
    assert decode_datum(tree, encode_datum(tree, {"v": 1, "below": [{"v": 2, "below": []}]})) == {
        "v": 1,
        "below": [{"v": 2, "below": []}],
    }


def test_codecs_are_cached_by_schema_object() -> None:
    schema = {"type": "record", "name": "r", "fields": []}
    assert codec_of(schema) is codec_of(schema)
    assert codec_of(dict(schema)) is not codec_of(schema)
    for index in range(300):
        codec_of({"type": "record", "name": f"r{index}", "fields": []})
    assert codec_of(schema).schema is schema


def test_the_compiled_fastavro_is_in_use_here() -> None:
    assert not _fastavro.IS_PURE
