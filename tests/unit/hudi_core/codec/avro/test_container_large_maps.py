"""A record with large maps, entry by entry: the same bytes and values as by the general way."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest

from hudi_core.codec.avro.container import (
    assemble,
    read_container,
    read_large_record,
    schema_bytes,
    write_container,
    write_large_record,
)
from hudi_core.codec.binary import encode_zigzag
from hudi_core.errors import CorruptFileError, FormatError, UnsupportedError
from tests.support.avro_data import encode_datum

PART: dict[str, Any] = {
    "type": "record",
    "name": "Part",
    "fields": [{"name": "names", "type": {"type": "array", "items": "string"}}],
}
SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "Done",
    "namespace": "org.example",
    "fields": [
        {"name": "time", "type": "string"},
        {"name": "parts", "type": {"type": "map", "values": PART}},
        {"name": "others", "type": ["null", {"type": "map", "values": "Part"}], "default": None},
        {"name": "one", "type": ["null", "org.example.Part"], "default": None},
        {"name": "count", "type": "long"},
    ],
}
RECORD = {
    "time": "t",
    "parts": {"a": {"names": ["x", "y"]}, "ü": {"names": []}},
    "others": {"b": {"names": ["z"]}},
    "one": {"names": ["w"]},
    "count": 7,
}


def written(record: dict[str, Any], *maps: str) -> bytes:
    return write_large_record(SCHEMA, record, {name: (len(record[name]), iter(record[name].items())) for name in maps})


def read(data: bytes) -> dict[str, Any]:
    return read_large_record(
        data, path="p", maps={"parts": lambda key, value: (key, len(value["names"])), "others": lambda key, value: None}
    )[1]


@pytest.mark.parametrize("maps", [(), ("parts",), ("others",), ("parts", "others")])
@pytest.mark.parametrize("record", [RECORD, {**RECORD, "parts": {}, "others": {}}])
def test_the_bytes_are_those_of_the_general_way(record: dict[str, Any], maps: tuple[str, ...]) -> None:
    assert written(record, *maps) == write_container(SCHEMA, [record])


def test_values_are_kept_as_the_caller_converts_them() -> None:
    assert read(write_container(SCHEMA, [RECORD])) == {
        **RECORD,
        "parts": {"a": ("a", 2), "ü": ("ü", 0)},
        "others": {"b": None},
    }


def test_a_map_may_be_null_absent_or_in_several_blocks() -> None:
    assert read(write_container(SCHEMA, [{**RECORD, "others": None}]))["others"] is None
    data = write_container(SCHEMA, [{**RECORD, "parts": {}}])
    entry = encode_zigzag(1) + b"a" + encode_datum({"type": "array", "items": "string"}, ["x"])
    blocks = (
        encode_zigzag(1)
        + entry
        + encode_zigzag(-1)
        + encode_zigzag(len(entry))
        + entry.replace(b"a", b"b", 1)
        + encode_zigzag(0)
    )
    body = encode_datum("string", "t") + blocks + encode_zigzag(0) + encode_zigzag(0) + encode_zigzag(7)
    assert read(assemble(schema_bytes(SCHEMA), 1, body))["parts"] == {"a": ("a", 1), "b": ("b", 1)}
    assert read_large_record(data, path="p", maps={"time": lambda key, value: None})[1]["time"] == "t", (
        "a field that is no map is read as it is"
    )


def test_every_cut_and_every_changed_byte_is_noticed_or_harmless() -> None:
    data = write_container(SCHEMA, [RECORD])
    for length in range(len(data)):
        with pytest.raises(FormatError, match="p"):
            read(data[:length])
    start = data.index(b"\x02", len(schema_bytes(SCHEMA)))
    for position in range(start, len(data)):
        for value in (0x00, 0x01, 0x7F, 0x80, 0xFF):
            changed = data[:position] + bytes([value]) + data[position + 1 :]
            with suppress(FormatError):  # anything else that is raised fails the test
                read(changed)


@pytest.mark.parametrize("records", [[], [RECORD, RECORD]])
def test_anything_but_one_record_is_refused(records: list[Any]) -> None:
    with pytest.raises(CorruptFileError, match=f"holds {len(records)} Avro records"):
        read(write_container(SCHEMA, records))


def test_other_schemas_and_compressed_files_are_refused() -> None:
    with pytest.raises(CorruptFileError, match="not that of a record"):
        read(write_container({"type": "string"}, ["x"]))  # type: ignore[arg-type]
    data = write_container(SCHEMA, [RECORD])
    codec = encode_zigzag(10) + b"avro.codec" + encode_zigzag(7) + b"deflate"
    compressed = data.replace(encode_zigzag(1) + encode_zigzag(11), encode_zigzag(2) + codec + encode_zigzag(11), 1)
    with pytest.raises(UnsupportedError, match="deflate"):
        read(compressed)


def test_a_value_that_does_not_fit_is_refused() -> None:
    with pytest.raises(FormatError):
        written({**RECORD, "parts": {"a": {"names": [1]}}}, "parts")
    assert json.loads(schema_bytes(SCHEMA)) == read_container(written(RECORD), path="p")[0]
