"""The protobuf subset of HFiles."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.codec.binary import Reader
from hudi_core.codec.hfile.proto import decode_file_info, encode_fields, encode_file_info, read_fields
from hudi_core.errors import CorruptFileError


@given(st.lists(st.tuples(st.integers(1, 500), st.one_of(st.integers(0, (1 << 64) - 1), st.binary(max_size=40)))))
def test_fields_round_trip(fields: list[tuple[int, int | bytes]]) -> None:
    assert list(read_fields(Reader(encode_fields(fields), "f"))) == fields


@given(st.dictionaries(st.text(max_size=12), st.binary(max_size=40)))
def test_file_info_round_trips(entries: dict[str, bytes]) -> None:
    assert decode_file_info(encode_file_info(entries), "f") == entries


def test_fixed_width_fields_are_skipped_and_groups_refused() -> None:
    data = bytes.fromhex("09" + "00" * 8 + "15" + "00" * 4) + encode_fields([(3, 7)])
    assert list(read_fields(Reader(data, "f"))) == [(3, 7)]
    with pytest.raises(CorruptFileError, match="wire type 3"):
        list(read_fields(Reader(b"\x0b", "f")))


def test_broken_file_info_is_corrupt() -> None:
    for data in (b"", b"PBUX\0", b"PBUF\x05", b"PBUF\x05\x0a\x03\x0a\x01\xff"):
        with pytest.raises(CorruptFileError) as caught:
            decode_file_info(data, "x.hfile")
        assert caught.value.path == "x.hfile"
