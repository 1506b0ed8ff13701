from __future__ import annotations

import io
import json
import tracemalloc
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_core.codec.avro.container import assemble, is_container, read_container, write_container
from hudi_core.codec.binary import encode_zigzag
from hudi_core.errors import CorruptFileError, FormatError, UnsupportedError
from tests.support.golden_data import GoldenCase

SCHEMA = {
    "type": "record",
    "name": "plan",
    "fields": [
        {"name": "files", "type": {"type": "array", "items": "string"}},
        {"name": "version", "type": ["int", "null"], "default": 1},
    ],
}
RECORDS = [{"files": ["a", "b"], "version": 2}, {"files": [], "version": None}]


def test_what_was_written_is_read_here_and_by_fastavro() -> None:
    data = write_container(SCHEMA, RECORDS)
    assert is_container(data)
    assert read_container(data, path="x") == (SCHEMA, RECORDS)
    reader = fastavro.reader(io.BytesIO(data))
    assert list(reader) == RECORDS
    assert reader.metadata == {"avro.schema": json.dumps(SCHEMA, separators=(",", ":"))}
    assert write_container(SCHEMA, RECORDS) == data


def test_a_container_may_be_empty() -> None:
    data = write_container(SCHEMA, [])
    assert read_container(data, path="x") == (SCHEMA, [])
    assert list(fastavro.reader(io.BytesIO(data))) == []


def test_many_blocks_of_another_writer_are_read() -> None:
    out = io.BytesIO()
    fastavro.writer(out, SCHEMA, RECORDS * 500, sync_interval=64)
    assert read_container(out.getvalue(), path="x")[1] == RECORDS * 500


def test_a_compressed_container_is_refused_by_name() -> None:
    out = io.BytesIO()
    fastavro.writer(out, SCHEMA, RECORDS, codec="deflate")
    with pytest.raises(UnsupportedError, match=r"x: .*'deflate'"):
        read_container(out.getvalue(), path="x")


def test_metadata_in_the_form_with_sizes_is_read() -> None:
    data = write_container(SCHEMA, RECORDS)
    text = json.dumps(SCHEMA, separators=(",", ":")).encode()
    entry = encode_zigzag(11) + b"avro.schema" + encode_zigzag(len(text)) + text
    sized = data.replace(encode_zigzag(1) + entry, encode_zigzag(-1) + encode_zigzag(len(entry)) + entry, 1)
    assert read_container(sized, path="x") == (SCHEMA, RECORDS)


def test_every_cut_is_corrupt_or_a_shorter_file() -> None:
    data = write_container(SCHEMA, RECORDS)
    whole = len(write_container(SCHEMA, []))
    for length in range(len(data)):
        if length == whole:
            continue
        with pytest.raises(CorruptFileError, match="x: "):
            read_container(data[:length], path="x")


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_mutations_raise_nothing_but_typed_errors(data: st.DataObject) -> None:
    broken = bytearray(write_container(SCHEMA, RECORDS))
    for _ in range(data.draw(st.integers(1, 3))):
        broken[data.draw(st.integers(0, len(broken) - 1))] = data.draw(st.integers(0, 255))
    try:
        read_container(bytes(broken), path="x")
    except FormatError:
        return


@pytest.mark.parametrize(("count", "size"), [(-1, 0), (1 << 40, 3), (1, 1 << 50), (1, -5), (3, 8)])
def test_counts_and_sizes_are_checked_first(count: int, size: int) -> None:
    head = write_container(SCHEMA, [])
    with pytest.raises(CorruptFileError, match="x: "):
        read_container(head + encode_zigzag(count) + encode_zigzag(size) + bytes(8) + head[-16:], path="x")


def test_a_schema_that_is_far_longer_than_those_of_hudi_is_corrupt() -> None:
    """Decoders of many schemas are kept: of 256 with 16 MiB each they would take gigabytes."""
    schema = {**SCHEMA, "doc": "x" * (256 << 10)}
    with pytest.raises(CorruptFileError, match="x: Avro schema of a container has"):
        read_container(write_container(schema, RECORDS), path="x")


def record(name: str, *types: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": f"f{at}", "type": of} for at, of in enumerate(types)]}


PAIR = [record("a"), record("b")]
SMALL = {
    "a field": (record("r", "int"), b"\0"),
    "a field, and nothing": (record("r", "int", "null"), b"\0"),
    "fields": (record("r", *["int"] * 6), bytes(6)),
    "records around a field": (record("r", record("s", record("t", "int"))), b"\0"),
    "an empty list": (record("r", {"type": "array", "items": "int"}), b"\0"),
    "an empty map": (record("r", {"type": "map", "values": "int"}), b"\0"),
    "a branch": (record("r", PAIR), b"\2"),
    "a branch in a record in a record": (record("r", record("s", PAIR)), b"\2"),
    "a branch of nothing": (["null", record("r", "null")], b"\2"),
    "an empty record": (["null", record("r")], b"\2"),
    "free values": (record("r", *["null"] * 15), b""),
    "a text": ("string", b"\4ab"),
}
"""The smallest records, each the schema of one and its bytes."""
MOST_MEMORY = 400
"""Bytes of memory for a byte of a container, with some for tracemalloc's own."""


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("in_a_list", [True, False])
def test_no_byte_becomes_very_many_bytes_of_memory(name: str, in_a_list: bool) -> None:
    kind, datum = SMALL[name]
    count, body = 20_000, datum * 20_000
    schema = kind if not in_a_list else record("plan", {"type": "array", "items": kind})
    if in_a_list:
        count, body = 1, encode_zigzag(count) + body + encode_zigzag(0)
    data = assemble(json.dumps(schema).encode(), count, body)
    tracemalloc.start()
    try:
        read_container(data, path="the plan")
    except FormatError as error:
        assert error.path == "the plan"  # noqa: PT017 - some are refused, the others take little
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < MOST_MEMORY * len(data) + (1 << 20)


def test_many_records_need_bytes_for_their_values() -> None:
    for kind, datum in (SMALL["free values"], SMALL["records around a field"], (record("r", "null"), b"")):
        one = assemble(json.dumps(kind).encode(), 1, datum)
        assert len(read_container(one, path="x")[1]) == 1
        many = assemble(json.dumps(kind).encode(), 2, datum * 2 or bytes(2))
        with pytest.raises(FormatError, match=r"x: .*(no|without) bytes"):
            read_container(many, path="x")


def test_no_schema_or_no_text_is_corrupt() -> None:
    for header in (
        encode_zigzag(0),
        encode_zigzag(1) + encode_zigzag(11) + b"avro.schema" + encode_zigzag(1) + b"\xff" + encode_zigzag(0),
    ):
        with pytest.raises(CorruptFileError, match="schema"):
            read_container(b"Obj\x01" + header + bytes(16), path="x")


@pytest.mark.parametrize(
    "name",
    ["mor_compaction_requested", "cleaned_commits_mor", "rolled_back_mor", "clustering_requested_cow", "savepoint_mor"],
)
def test_golden_plans_are_read_and_written_again(golden: Any, name: str) -> None:
    case: GoldenCase = golden("6", name)
    seen = 0
    for path in sorted((case.table / ".hoodie").iterdir()):
        if path.is_file() and is_container(path.read_bytes()):
            schema, records = read_container(path.read_bytes(), path=path.name)
            assert len(records) == 1
            again = write_container(schema, records)
            assert read_container(again, path=path.name) == (schema, records)
            assert body(again) == body(path.read_bytes())
            seen += 1
    assert seen


def body(data: bytes) -> bytes:
    """The records' bytes: what is between the last two sync markers."""
    sync = data[-16:]
    return data[data.index(sync) + 16 : -16]
