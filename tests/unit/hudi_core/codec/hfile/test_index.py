"""HFile block indexes."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.codec.hfile.index import IndexEntry, decode_inner_index, decode_root_index, encode_root_index
from hudi_core.errors import CorruptFileError

ENTRIES = st.lists(
    st.builds(IndexEntry, st.binary(max_size=300), st.integers(0, (1 << 63) - 1), st.integers(1, (1 << 31) - 1)),
    max_size=8,
)


@given(ENTRIES, st.binary(max_size=12))
def test_a_root_index_round_trips_whatever_follows_it(entries: list[IndexEntry], mid_key: bytes) -> None:
    assert decode_root_index(encode_root_index(entries) + mid_key, len(entries), "f", has_mid_key=True) == entries


def inner(entries: list[IndexEntry]) -> bytes:
    bodies = [struct.pack(">qi", entry.offset, entry.disk_size) + entry.key for entry in entries]
    starts = [sum(map(len, bodies[:index])) for index in range(len(bodies) + 1)]
    return struct.pack(f">{len(starts) + 1}i", len(entries), *starts) + b"".join(bodies)


@given(ENTRIES)
def test_an_inner_index_decodes(entries: list[IndexEntry]) -> None:
    assert decode_inner_index(inner(entries), "f") == entries


def test_claims_beyond_the_block_are_corrupt() -> None:
    data = encode_root_index([IndexEntry(b"key", 0, 10)])
    bad_size = encode_root_index([IndexEntry(b"key", 0, 0)])
    for content, count in ((data, 2), (data, 1 << 30), (data, -1), (data, 0), (data[:-1], 1), (bad_size, 1)):
        with pytest.raises(CorruptFileError):
            decode_root_index(content, count, "f")
    whole = inner([IndexEntry(b"key", 0, 10), IndexEntry(b"kez", 10, 10)])
    for end in range(len(whole)):
        with pytest.raises(CorruptFileError):
            decode_inner_index(whole[:end], "f")
    with pytest.raises(CorruptFileError, match="negative length"):
        decode_inner_index(struct.pack(">3iqi", 1, 12, 0, 0, 1) + bytes(8), "f")
