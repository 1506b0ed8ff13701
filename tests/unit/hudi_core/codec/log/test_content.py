from __future__ import annotations

import contextlib
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_core.codec.log.content import (
    ORDERING_KINDS,
    DeleteRecord,
    OrderingValue,
    avro_block_records,
    decode_delete_block,
    delete_record_spans,
    encode_avro_block,
)
from hudi_core.codec.log.content import encode_delete_block as joined_deletes
from hudi_core.errors import CorruptFileError, FormatError, UnsupportedError
from tests.support.delete_records import ANY, encode_delete_block, records


def test_a_natural_delete_is_byte_for_byte_what_hudi_writes() -> None:
    content = bytes.fromhex("00000003 0000000c 02 02 04 6b32 02 04 6330 04 00 00")
    (record,) = decode_delete_block(content, path="log")
    assert record == DeleteRecord("k2", "c0", OrderingValue("int", 0))
    assert encode_delete_block([record]) == content


def test_a_typed_delete_of_real_hudi() -> None:
    content = bytes.fromhex("00000003 0000000a 02 02 04 6b32 02 00 06 06 00")
    assert decode_delete_block(content, path="log") == [DeleteRecord("k2", "", OrderingValue("long", 3))]


@settings(max_examples=40, deadline=None)
@given(records(ANY))
def test_every_ordering_value_survives(entries: list[DeleteRecord]) -> None:
    assert decode_delete_block(encode_delete_block(entries), path="log") == entries


@settings(max_examples=60, deadline=None)
@given(records(ANY))
def test_entries_are_found_in_a_block_and_make_one_again(entries: list[DeleteRecord]) -> None:
    block = encode_delete_block(entries)
    data, spans = delete_record_spans(block, path="log")
    assert len(spans) == len(entries)
    parts = [data[start:end] for start, end in spans]
    assert decode_delete_block(joined_deletes(parts), path="log") == entries
    for part, entry in zip(parts, entries, strict=True):
        assert decode_delete_block(joined_deletes([part]), path="log") == [entry]


def test_entries_that_end_too_early_or_too_late() -> None:
    block = encode_delete_block([DeleteRecord("k", "p", None)])
    for body in (block[8:] + b"\0", block[8:-2]):
        with pytest.raises(CorruptFileError):
            delete_record_spans(struct.pack(">ii", 3, len(body)) + body, path="log")


@pytest.mark.parametrize(("kind", "number"), [(kind, number) for number, kind in enumerate(ORDERING_KINDS) if number])
def test_branches_have_the_numbers_of_hudis_union(kind: str, number: int) -> None:
    value = {"string": "a", "bytes": b"a", "decimal": b"a", "boolean": True, "array": ()}.get(kind, 1)
    content = encode_delete_block([DeleteRecord("k", "", OrderingValue(kind, value))])
    assert content[8:] == b"\x02\x02\x02k\x02\x00" + bytes([number * 2]) + content[15:]


@pytest.mark.parametrize("version", [1, 2])
def test_kryo_blocks_are_refused_by_name(version: int) -> None:
    with pytest.raises(UnsupportedError, match=f"log: delete block of version {version} holds Kryo") as caught:
        decode_delete_block(struct.pack(">ii", version, 4) + bytes(4), path="log")
    assert caught.value.remedy


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0\0\0\3",
        struct.pack(">ii", 4, 0),
        struct.pack(">ii", 3, 1 << 30),
        struct.pack(">ii", 3, -1),
        struct.pack(">ii", 3, 1) + b"\0\0",
        struct.pack(">ii", 3, 0),
        struct.pack(">ii", 3, 2) + b"\x02\x00",
        struct.pack(">ii", 3, 7) + b"\x02\x00\x00\x1c\x02\x00\x00",
        struct.pack(">ii", 3, 9) + b"\x02\x00\x00\x04\x80\x80\x80\x80\x20",
        struct.pack(">ii", 3, 10) + b"\x02\x00\x00\x04\x80\x80\x80\x80\x20\x00",
    ],
)
def test_broken_delete_blocks_are_corrupt(content: bytes) -> None:
    with pytest.raises(CorruptFileError, match="log"):
        decode_delete_block(content, path="log")


def test_an_ordering_value_must_fit_its_kind() -> None:
    for ordering in (OrderingValue("odd", 1), OrderingValue("int", "text"), OrderingValue("string", 3)):
        with pytest.raises(FormatError):
            encode_delete_block([DeleteRecord("k", "p", ordering)])


@settings(max_examples=40, deadline=None)
@given(records(ANY), st.data())
def test_mutated_delete_blocks_raise_nothing_but_typed_errors(entries: list[DeleteRecord], data: st.DataObject) -> None:
    broken = bytearray(encode_delete_block(entries))
    broken[data.draw(st.integers(0, len(broken) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(FormatError):
        decode_delete_block(bytes(broken[: data.draw(st.integers(0, len(broken)))]), path="log")


def test_data_blocks_hold_their_records() -> None:
    count, body = avro_block_records(encode_avro_block([b"abc", b""]), path="log")
    assert (count, bytes(body)) == (2, b"\0\0\0\3abc\0\0\0\0")
    for version in (1, 2):
        assert avro_block_records(struct.pack(">ii", version, 0), path="log") == (0, b"")


def test_broken_data_blocks_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="version 4"):
        avro_block_records(struct.pack(">ii", 4, 0), path="log")
    for content in (
        b"",
        b"\0\0\0\3",
        struct.pack(">ii", 3, -1),
        struct.pack(">ii", 3, 2) + bytes(7),
        struct.pack(">ii", 3, 1 << 30),
    ):
        with pytest.raises(CorruptFileError, match="log"):
            avro_block_records(content, path="log")
