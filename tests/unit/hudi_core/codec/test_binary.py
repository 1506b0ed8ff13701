"""The cursor over untrusted bytes and the integer encodings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.codec.binary import Reader, encode_fields, encode_hadoop_vint, encode_varint, encode_zigzag, read_fields
from hudi_core.errors import CorruptFileError

LONGS = st.one_of(st.integers(-300, 300), st.integers(-(1 << 63), (1 << 63) - 1))


@given(LONGS)
def test_hadoop_vint_and_zigzag_round_trip(value: int) -> None:
    for data, read in ((encode_hadoop_vint(value), Reader.hadoop_vint), (encode_zigzag(value), Reader.zigzag)):
        reader = Reader(data, "f")
        assert read(reader) == value
        assert reader.at_end()


@given(st.integers(0, (1 << 64) - 1))
def test_varint_round_trip(value: int) -> None:
    reader = Reader(encode_varint(value), "f")
    assert reader.varint() == value
    assert reader.remaining == 0


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (0, "00"),
        (127, "7f"),
        (-112, "90"),
        (128, "8f80"),
        (255, "8fff"),
        (256, "8e0100"),
        (65535, "8effff"),
        (-113, "8770"),
    ],
)
def test_hadoop_vint_matches_hadoop(value: int, data: str) -> None:
    assert encode_hadoop_vint(value).hex() == data


@pytest.mark.parametrize(
    ("encode", "value"),
    [(encode_varint, -1), (encode_varint, 1 << 64), (encode_zigzag, 1 << 63), (encode_hadoop_vint, 1 << 63)],
)
def test_values_that_do_not_fit_are_refused(encode: object, value: int) -> None:
    with pytest.raises(ValueError, match="is not"):
        encode(value)  # type: ignore[operator]


def test_reads_are_big_endian_and_move_on() -> None:
    reader = Reader(bytes.fromhex("fffefffffffdfffffffffffffffc616263c3a4"), "f")
    assert (reader.u8(), reader.i8(), reader.i32(), reader.i64()) == (255, -2, -3, -4)
    assert reader.position == 14
    assert reader.bytes(3) == b"abc"
    assert reader.utf8(2) == "ä"
    assert reader.at_end()


@pytest.mark.parametrize(
    "read",
    [
        lambda reader: reader.i64(),
        lambda reader: reader.bytes(4),
        lambda reader: reader.skip(4),
        lambda reader: reader.view(1 << 60),
        lambda reader: reader.bytes(-1),
        lambda reader: reader.utf8(3),
        lambda reader: reader.varint(),
        lambda reader: reader.hadoop_vint(),
    ],
)
def test_a_short_or_broken_read_names_the_file_and_the_byte(read: object) -> None:
    reader = Reader(b"\x80\xff\xff", "p/f.hfile", base=100)
    with pytest.raises(CorruptFileError, match="at byte 10") as caught:
        read(reader)  # type: ignore[operator]
    assert caught.value.path == "p/f.hfile"


def test_overlong_integers_are_corrupt() -> None:
    with pytest.raises(CorruptFileError, match="64 bits"):
        Reader(b"\xff" * 11, "f").varint()
    with pytest.raises(CorruptFileError, match="64 bits"):
        Reader(b"\xff" * 9 + b"\x02", "f").varint()
    with pytest.raises(CorruptFileError, match="64 bits"):
        Reader(b"\x88" + b"\xff" * 8, "f").hadoop_vint()


@given(st.lists(st.tuples(st.integers(1, 500), st.one_of(st.integers(0, (1 << 64) - 1), st.binary(max_size=40)))))
def test_fields_round_trip(fields: list[tuple[int, int | bytes]]) -> None:
    assert list(read_fields(Reader(encode_fields(fields), "f"))) == fields


def test_fixed_width_fields_are_skipped_and_groups_refused() -> None:
    data = bytes.fromhex("09" + "00" * 8 + "15" + "00" * 4) + encode_fields([(3, 7)])
    assert list(read_fields(Reader(data, "f"))) == [(3, 7)]
    with pytest.raises(CorruptFileError, match="wire type 3"):
        list(read_fields(Reader(b"\x0b", "f")))
