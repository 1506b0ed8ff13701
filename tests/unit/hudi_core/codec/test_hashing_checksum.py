"""CRC32C without a native library."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.codec.hashing import CHECKSUMS, crc32c, crc32c_numpy


def by_bits(data: bytes) -> int:
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (0x82F63B78 if register & 1 else 0)
    return register ^ 0xFFFFFFFF


def test_the_published_check_value() -> None:
    assert crc32c(b"123456789") == crc32c_numpy(memoryview(b"123456789")) == 0xE3069283
    crc32 = CHECKSUMS[1]
    assert crc32 is not None
    assert crc32(b"123456789") == 0xCBF43926


@given(st.binary(max_size=200))
def test_equals_the_definition(data: bytes) -> None:
    assert crc32c_numpy(data) == crc32c(data) == by_bits(data)


@pytest.mark.parametrize("size", [16383, 16384, 16385])
def test_equals_the_definition_on_whole_chunks(size: int) -> None:
    data = random.Random(size).randbytes(size)
    assert crc32c_numpy(data) == by_bits(data)
