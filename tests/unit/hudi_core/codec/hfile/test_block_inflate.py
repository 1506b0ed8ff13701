"""Gzip members by zlib and by isal: the same bytes, and the same refusals."""

from __future__ import annotations

import random
import zlib

import pytest
from isal import isal_zlib

from hudi_core.codec.hfile import block
from hudi_core.codec.hfile.block import HEADER_SIZE, Codec, Magic, encode_block, inflate

HEADER = 10


@pytest.fixture(params=[zlib, isal_zlib], ids=["zlib", "isal"])
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block, "FASTEST", request.param)


def member(data: bytes) -> bytes:
    deflater = zlib.compressobj(wbits=31)
    return deflater.compress(data) + deflater.flush()


def some_data(size: int) -> bytes:
    dice = random.Random(size)
    return b"".join(dice.randbytes(3) * dice.randint(1, 20) for _ in range(size))


def test_the_native_library_is_used() -> None:
    assert block.FASTEST is isal_zlib


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("size", [0, 1, 3000])
def test_inflates(size: int) -> None:
    data = some_data(size)
    assert inflate(memoryview(member(data)), len(data)) == data
    assert inflate(member(data) + b"rest", len(data)) == data


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("claimed", [-1, 1, 100])
def test_another_size_than_claimed(claimed: int) -> None:
    data = some_data(50)
    with pytest.raises(ValueError, match="another size than the"):
        inflate(member(data), len(data) + claimed)


@pytest.mark.usefixtures("library")
def test_a_bomb_is_not_inflated() -> None:
    with pytest.raises(ValueError, match="another size than the 10 bytes"):
        inflate(member(bytes(1 << 26)), 10)


@pytest.mark.usefixtures("library")
def test_no_damage_passes_for_data() -> None:
    """Bits that say nothing of the data may change: the header's behind magic and method, and those that fill the last
    byte.
    """
    data = some_data(40)
    whole = member(data)
    passed = []
    for position in (0, 1, 2, *range(HEADER, len(whole))):
        damaged = bytearray(whole)
        damaged[position] ^= 0x10
        try:
            assert inflate(bytes(damaged), len(data)) == data
        except ValueError:
            continue
        passed.append(position)
    assert passed in ([], [len(whole) - 9])


@pytest.mark.usefixtures("library")
def test_a_member_that_ends_early() -> None:
    data = some_data(40)
    whole = member(data)
    for end in range(len(whole)):
        with pytest.raises(ValueError, match="HFile block"):
            inflate(whole[:end], len(data))


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("size", [0, 1, 3000])
def test_what_either_deflates_the_other_inflates(size: int) -> None:
    data = some_data(size)
    whole = encode_block(Magic.DATA, data, Codec.GZ, -1)
    assert encode_block(Magic.DATA, data, Codec.GZ, -1) == whole
    inflater = zlib.decompressobj(31)
    assert inflater.decompress(whole[HEADER_SIZE:]) == data
    assert inflater.eof
    assert isal_zlib.decompressobj(31).decompress(whole[HEADER_SIZE:]) == data
