"""HFile blocks: header, checksums, compression."""

from __future__ import annotations

import struct
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_core.codec.binary import Reader
from hudi_core.codec.hfile.block import (
    HEADER_SIZE,
    Codec,
    IndexEntry,
    Magic,
    decode_inner_index,
    decode_root_index,
    encode_block,
    encode_root_index,
    read_block,
)
from hudi_core.errors import CorruptFileError
from tests.support.hfiles import inner_index

DATA = Magic.DATA


@settings(max_examples=30, deadline=None)
@given(st.binary(max_size=50000), st.sampled_from([Codec.NONE, Codec.GZ]))
def test_round_trip(data: bytes, codec: Codec) -> None:
    encoded = encode_block(Magic.DATA, data, codec, -1)
    reader = Reader(encoded + b"next", "f")
    assert (read_block(reader, codec, DATA), reader.position) == (data, len(encoded))


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZ])
def test_any_changed_byte_is_noticed(codec: Codec) -> None:
    encoded = bytearray(encode_block(Magic.DATA, b"some data" * 5, codec, -1))
    for index in range(len(encoded)):
        if index == 24:
            continue
        encoded[index] ^= 1
        with pytest.raises(CorruptFileError):
            read_block(Reader(bytes(encoded), "f"), codec, DATA)
        encoded[index] ^= 1


def with_checksum(kind: int, word: int) -> bytes:
    data = b"x" * 40
    head = struct.pack(
        ">8siiqBii", Magic.DATA.value, len(data) + 4, len(data), -1, kind, 16384, HEADER_SIZE + len(data)
    )
    return head + data + word.to_bytes(4, "big")


def test_type_null_carries_words_that_mean_nothing_and_crc32_is_checked() -> None:
    assert read_block(Reader(with_checksum(0, 0), "f"), Codec.NONE, DATA) == b"x" * 40
    whole = with_checksum(1, 0)
    right = zlib.crc32(whole[:-4])
    assert read_block(Reader(with_checksum(1, right), "f"), Codec.NONE, DATA) == b"x" * 40
    with pytest.raises(CorruptFileError, match="checksum"):
        read_block(Reader(with_checksum(1, right ^ 1), "f"), Codec.NONE, DATA)
    with pytest.raises(CorruptFileError, match="checksum type 3"):
        read_block(Reader(with_checksum(3, 0), "f"), Codec.NONE, DATA)


def test_a_claim_of_more_than_deflate_can_give_is_refused_before_memory_is_taken() -> None:
    compressed = zlib.compressobj(wbits=31)
    body = compressed.compress(b"x" * 40) + compressed.flush()
    head = struct.pack(
        ">8siiqBii", Magic.DATA.value, len(body) + 4, 2_000_000_000, -1, 0, 16384, HEADER_SIZE + len(body)
    )
    with pytest.raises(CorruptFileError, match="claims 2000000000"):
        read_block(Reader(head + body + bytes(4), "f"), Codec.GZ, DATA)


@pytest.mark.parametrize(
    "sizes", [(44, 40, 16384, 32), (44, -1, 16384, 73), (44, 40, 0, 73), (43, 40, 16384, 73), (-1, 40, 16384, 28)]
)
def test_impossible_sizes_are_corrupt(sizes: tuple[int, int, int, int]) -> None:
    disk, data, per_checksum, end = sizes
    head = struct.pack(">8siiqBii", Magic.DATA.value, disk, data, -1, 0, per_checksum, end)
    with pytest.raises(CorruptFileError, match="sizes"):
        read_block(Reader(head + bytes(44), "f"), Codec.NONE, DATA)


def test_another_kind_of_block_is_corrupt() -> None:
    with pytest.raises(CorruptFileError, match="META, not DATA"):
        read_block(Reader(encode_block(Magic.META, b"", Codec.NONE, -1), "f"), Codec.NONE, DATA)
    with pytest.raises(CorruptFileError, match="no HFile block magic"):
        read_block(Reader(bytes(60), "f"), Codec.NONE, DATA)


ENTRIES = st.lists(
    st.builds(IndexEntry, st.binary(max_size=300), st.integers(0, (1 << 63) - 1), st.integers(1, (1 << 31) - 1)),
    max_size=8,
)


@given(ENTRIES, st.binary(max_size=12))
def test_a_root_index_round_trips_whatever_follows_it(entries: list[IndexEntry], mid_key: bytes) -> None:
    assert decode_root_index(encode_root_index(entries) + mid_key, len(entries), "f", has_mid_key=True) == entries


@given(ENTRIES)
def test_an_inner_index_decodes(entries: list[IndexEntry]) -> None:
    assert decode_inner_index(inner_index(entries), "f") == entries


def test_claims_beyond_the_block_are_corrupt() -> None:
    data = encode_root_index([IndexEntry(b"key", 0, 10)])
    bad_size = encode_root_index([IndexEntry(b"key", 0, 0)])
    for content, count in ((data, 2), (data, 1 << 30), (data, -1), (data, 0), (data[:-1], 1), (bad_size, 1)):
        with pytest.raises(CorruptFileError):
            decode_root_index(content, count, "f")
    whole = inner_index([IndexEntry(b"key", 0, 10), IndexEntry(b"kez", 10, 10)])
    for end in range(len(whole)):
        with pytest.raises(CorruptFileError):
            decode_inner_index(whole[:end], "f")
    with pytest.raises(CorruptFileError, match="negative length"):
        decode_inner_index(struct.pack(">3iqi", 1, 12, 0, 0, 1) + bytes(8), "f")


def test_an_index_has_no_more_entries_than_the_file_has_blocks() -> None:
    entries = [IndexEntry(b"key", offset, 1) for offset in range(3)]
    assert decode_root_index(encode_root_index(entries), 3, "f", most=3) == entries
    assert decode_inner_index(inner_index(entries), "f", most=3) == entries
    with pytest.raises(CorruptFileError, match="claims 3 entries"):
        decode_root_index(encode_root_index(entries), 3, "f", most=2)
    with pytest.raises(CorruptFileError, match="claims 3 entries"):
        decode_inner_index(inner_index(entries), "f", most=2)
