"""CRC32C (Castagnoli) and CRC32 over the 16 KiB chunks of an HFile block (org.apache.hadoop.hbase.util.ChecksumType).

The native `google_crc32c` is used when it is installed. Without it the sum is computed in NumPy: a CRC is linear over
GF(2), so the data is cut into 16-byte lanes whose remainders are computed side by side and then folded pairwise, which
reads about 100 MB/s where a byte-by-byte loop in Python reads under 10 MB/s. block.py has the words in their blocks.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

try:
    from google_crc32c import value as _native_crc32c
except ImportError:
    _native_crc32c = None

_POLYNOMIAL = 0x82F63B78
_LANE = 16
_Words = NDArray[np.uint32]


def crc32c(data: bytes | memoryview) -> int:
    """The CRC32C of `data`, unsigned."""
    if _native_crc32c is not None:
        return int(_native_crc32c(bytes(data)))
    return crc32c_numpy(data)


def crc32c_numpy(data: bytes | memoryview) -> int:
    """The CRC32C of `data` without a native library; equal to crc32c."""
    size = len(data)
    if size < 4:
        return _crc_bytes(bytes(data))
    # Leading zero bytes leave a zero register at zero, so the data may be padded in front to whole lanes. The
    # register's start value of all ones is the same as a zero start with the first four bytes inverted.
    padding = -size % _LANE
    padded = np.zeros(size + padding, dtype=np.uint8)
    padded[padding:] = np.frombuffer(data, dtype=np.uint8)
    padded[padding : padding + 4] ^= 0xFF
    lanes = padded.reshape(-1, _LANE)
    table = _byte_table()
    register = np.zeros(len(lanes), dtype=np.uint32)
    for column in range(_LANE):
        register = table[(register ^ lanes[:, column]) & 0xFF] ^ (register >> 8)
    level = 0
    while len(register) > 1:
        if len(register) % 2:
            register = np.concatenate((np.zeros(1, dtype=np.uint32), register))
        register = _shift(_shift_table(level), register[0::2]) ^ register[1::2]
        level += 1
    return int(register[0]) ^ 0xFFFFFFFF


def _crc_bytes(data: bytes) -> int:
    table = _byte_table()
    register = 0xFFFFFFFF
    for byte in data:
        register = int(table[(register ^ byte) & 0xFF]) ^ (register >> 8)
    return register ^ 0xFFFFFFFF


@lru_cache(maxsize=1)
def _byte_table() -> _Words:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(_POLYNOMIAL), table >> 1).astype(np.uint32)
    return table


def _shift(tables: _Words, register: _Words) -> _Words:
    """The registers after as many zero bytes as `tables` is for; `tables` has one row per byte of the register."""
    result = (
        tables[0][register & 0xFF]
        ^ tables[1][register >> 8 & 0xFF]
        ^ tables[2][register >> 16 & 0xFF]
        ^ tables[3][register >> 24]
    )
    return np.asarray(result, dtype=np.uint32)


@lru_cache(maxsize=40)
def _shift_table(level: int) -> _Words:
    """The operator for `16 * 2^level` zero bytes, as four tables of 256 words."""
    if level:
        half = _shift_table(level - 1)
        return _shift(half, half.reshape(-1)).reshape(4, 256)
    byte_table = _byte_table()
    register = (np.arange(256, dtype=np.uint32)[None, :] << np.array([[0], [8], [16], [24]], dtype=np.uint32)).astype(
        np.uint32
    )
    for _ in range(_LANE):
        register = byte_table[register & 0xFF] ^ (register >> 8)
    return register


CHECKSUMS: dict[int, Callable[[Any], int] | None] = {0: None, 1: zlib.crc32, 2: crc32c}
"""By the number in a block header: NULL (words are there but mean nothing), CRC32, CRC32C."""
