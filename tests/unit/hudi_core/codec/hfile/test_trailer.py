"""The HFile trailer."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.codec.binary import encode_delimited
from hudi_core.codec.hfile.block import Codec
from hudi_core.codec.hfile.trailer import (
    TRAILER_SIZE,
    Trailer,
    decode_file_info,
    decode_trailer,
    encode_file_info,
    encode_trailer,
)
from hudi_core.errors import CorruptFileError, UnsupportedError

TRAILER = Trailer(Codec.GZ, 953, 788, 43, 443208, 1, 1, 1, 1, 0, 0)
SIZE = 6807


def test_round_trip() -> None:
    data = encode_trailer(TRAILER)
    assert len(data) == TRAILER_SIZE
    assert data[-4:].hex() == "03000003"
    assert decode_trailer(data, SIZE, "f") == TRAILER


def test_versions_and_codecs_that_hudi_does_not_write_are_refused() -> None:
    data = encode_trailer(TRAILER)
    with pytest.raises(UnsupportedError, match="version 2"):
        decode_trailer(data[:-1] + b"\x02", SIZE, "f")
    with pytest.raises(UnsupportedError, match="SNAPPY"):
        decode_trailer(encode_trailer(replace(TRAILER, codec=Codec.SNAPPY)), SIZE, "f")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (encode_trailer(TRAILER)[1:], "no whole trailer"),
        (b"X" + encode_trailer(TRAILER)[1:], "does not end with a trailer"),
        (encode_trailer(replace(TRAILER, load_on_open_offset=954)), "outside the file"),
        (encode_trailer(replace(TRAILER, file_info_offset=SIZE)), "outside the file"),
        (encode_trailer(TRAILER).replace(b"\x60\x01", b"\x60\x09"), "unknown HFile compression codec number 9"),
    ],
)
def test_a_broken_trailer_is_corrupt(data: bytes, message: str) -> None:
    with pytest.raises(CorruptFileError, match=message) as caught:
        decode_trailer(data, SIZE, "x.hfile")
    assert caught.value.path == "x.hfile"


def test_encryption_is_refused() -> None:
    data = encode_trailer(TRAILER)
    length = data[8]
    forged = data[:8] + bytes([length + 3]) + data[9 : 9 + length] + b"\x6a\x01k" + data[9 + length + 3 :]
    with pytest.raises(UnsupportedError, match="encrypted"):
        decode_trailer(forged, SIZE, "f")


@given(st.dictionaries(st.text(max_size=12), st.binary(max_size=40)))
def test_file_info_round_trips(entries: dict[str, bytes]) -> None:
    assert decode_file_info(encode_file_info(entries), "f") == entries


def test_broken_file_info_is_corrupt() -> None:
    for data in (b"", b"PBUX\0", b"PBUF\x05", b"PBUF\x05\x0a\x03\x0a\x01\xff"):
        with pytest.raises(CorruptFileError) as caught:
            decode_file_info(data, "x.hfile")
        assert caught.value.path == "x.hfile"


@pytest.mark.parametrize(
    "data", [b"\x0a\0" * 1001, b"\x08\0" * 1001, b"\x0a" + encode_delimited(b"\x0a\0" * 1001), bytes(17 << 20)]
)
def test_file_info_of_very_many_fields_is_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptFileError, match="file info has"):
        decode_file_info(b"PBUF" + encode_delimited(data), "f")
