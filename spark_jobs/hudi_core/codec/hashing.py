"""Computes the hashes and checksums of Hudi's formats.

Java's string hash gives the file group of a key in the metadata table; xxHash32 its bucket by consistent hashing;
xxHash64 is for the names of columns and partitions (HashID); CRC32C and CRC32 are for HFile blocks (ChecksumType of
HBase). A record index may have file groups for each data partition: their number and the first are then the partition's
(metadata_table.partitions.row_level). Native libraries are used where they are installed.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hudi_core.codec.columns import octets
from hudi_core.errors import UnsupportedError, truncated

_native: Callable[[bytes, int], int] | None
try:
    from xxhash import xxh64_intdigest as _native
except ImportError:
    # Names are short: a job that comes without the wheel hashes them here.
    _native = None

_MASK_32 = (1 << 32) - 1
_FEW = 64
"""For fewer keys, hashing one after the other is as fast."""
_SHOWN = 80
_ASCII_END = 0x80


def java_string_hash(text: str) -> int:
    """Returns `String.hashCode()`: the 31-polynomial over UTF-16 units, as a wrapped signed 32-bit integer."""
    value = 0
    units = text.encode("utf-16-le", "surrogatepass")
    for index in range(0, len(units), 2):
        value = (31 * value + (units[index] | units[index + 1] << 8)) & _MASK_32
    return value - (1 << 32) if value >> 31 else value


def file_group_index(key: str, count: int) -> int:
    """Returns which of `count` file groups holds `key` (mapRecordKeyToFileGroupIndex). Raises ValueError below 1."""
    _require_groups(count)
    # In Java the smallest int has no absolute value, and its remainder is negative; the outer abs makes it positive.
    return abs(java_string_hash(key)) % count


def file_group_indexes(keys: Sequence[str], count: int) -> NDArray[np.int64]:
    _require_groups(count)
    return _groups(_text_hashes(keys), count)


def group_indexes(keys: pa.Array, count: int) -> NDArray[np.int32]:
    """Returns what file_group_indexes does, for a string array without nulls: 0.1 µs for a key of 36 ASCII letters."""
    _require_groups(count)
    if count == 1 or not len(keys):
        return np.zeros(len(keys), dtype=np.int32)
    return _groups(string_hashes(keys), count).astype(np.int32)


def string_hashes(texts: pa.Array) -> NDArray[np.int32]:
    """Returns java_string_hash of each text of an array without nulls. Raises UnsupportedError if one is no UTF-8."""
    if not len(texts):
        return np.zeros(0, dtype=np.int32)
    offsets, data = octets(texts)
    if len(data) and int(data.max()) >= _ASCII_END:
        try:
            return _text_hashes(texts.to_pylist())
        except UnicodeDecodeError as error:
            what = f"a key, or a value of an index, is no UTF-8: {truncated(repr(error.object), _SHOWN)}"
            raise UnsupportedError(what, remedy="have a writer correct the row, or drop the index") from error
    return _hashes(data, np.diff(offsets))


def _require_groups(count: int) -> None:
    if count < 1:
        raise ValueError(f"a partition of the metadata table has at least one file group, not {count}")


def _groups(hashes: NDArray[np.int32], count: int) -> NDArray[np.int64]:
    groups: NDArray[np.int64] = np.abs(hashes.astype(np.int64)) % count
    return groups


def _text_hashes(texts: Sequence[str]) -> NDArray[np.int32]:
    if len(texts) < _FEW:
        return np.array([java_string_hash(text) for text in texts], dtype=np.int32)
    units = np.frombuffer("".join(texts).encode("utf-16-le", "surrogatepass"), dtype="<u2")
    lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
    if int(lengths.sum()) != len(units):
        # A character outside the Basic Multilingual Plane is two units in Java and one here.
        lengths += np.fromiter((sum(char > "\uffff" for char in text) for text in texts), np.int64, count=len(texts))
    return _hashes(units, lengths)


def _hashes(units: NDArray[Any], lengths: NDArray[np.int64]) -> NDArray[np.int32]:
    """Returns the hashes of texts whose UTF-16 units follow each other."""
    values = np.zeros(len(lengths), dtype=np.uint32)
    longest = int(lengths.max())
    if longest == int(lengths.min()):
        for column in units.reshape(len(lengths), longest).T:
            values = values * np.uint32(31) + column
    else:
        starts = np.cumsum(lengths) - lengths
        for position in range(longest):
            longer = lengths > position
            values[longer] = values[longer] * np.uint32(31) + units[starts[longer] + position]
    return values.astype(np.int32)


_MASK = (1 << 64) - 1
_P1, _P2, _P3, _P4, _P5 = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)


def xxh64(data: bytes, seed: int) -> int:
    """Returns the unsigned hash; `seed` is unsigned 64 bits."""
    return int(_native(data, seed)) if _native is not None else xxh64_python(data, seed)


def xxh64_python(data: bytes, seed: int) -> int:
    position, size = 0, len(data)
    if size >= 32:
        lanes = [seed + _P1 + _P2, seed + _P2, seed, seed - _P1]
        while position <= size - 32:
            lanes = [_round(lane, _word(data, position + 8 * index, 8)) for index, lane in enumerate(lanes)]
            position += 32
        value = sum(_rotate(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
        for lane in lanes:
            value = ((value ^ _round(0, lane)) * _P1 + _P4) & _MASK
    else:
        value = (seed + _P5) & _MASK
    return _finish(data, position, (value + size) & _MASK)


def _finish(data: bytes, position: int, value: int) -> int:
    size = len(data)
    while position <= size - 8:
        value = (_rotate(value ^ _round(0, _word(data, position, 8)), 27) * _P1 + _P4) & _MASK
        position += 8
    if position <= size - 4:
        value = (_rotate(value ^ _word(data, position, 4) * _P1 & _MASK, 23) * _P2 + _P3) & _MASK
        position += 4
    for octet in data[position:]:
        value = _rotate(value ^ octet * _P5 & _MASK, 11) * _P1 & _MASK
    value = (value ^ value >> 33) * _P2 & _MASK
    value = (value ^ value >> 29) * _P3 & _MASK
    return value ^ value >> 32


def _round(lane: int, word: int) -> int:
    return _rotate((lane + word * _P2) & _MASK, 31) * _P1 & _MASK


def _rotate(value: int, bits: int) -> int:
    value &= _MASK
    return (value << bits | value >> (64 - bits)) & _MASK


def _word(data: bytes, position: int, length: int) -> int:
    return int.from_bytes(data[position : position + length], "little")


_X1, _X2, _X3, _X4, _X5 = (np.uint32(prime) for prime in (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1))
_FIRST_LANES = np.array([0x24234428, 0x85EBCA77, 0, 0x61C8864F], np.uint32)
"""The sum of the first two primes, the second, zero, and the first below zero."""
_STRIPE = 16


def xxh32_hashes(texts: pa.Array) -> NDArray[np.uint32]:
    """Returns the xxHash32, by the seed 0, of the UTF-8 of each text of an array without nulls."""
    offsets, octets_of_all = octets(texts)
    starts, lengths = offsets[:-1], np.diff(offsets)
    values = np.full(len(starts), _X5, np.uint32)
    is_long = np.flatnonzero(lengths >= _STRIPE)
    if len(is_long):
        lanes = np.tile(_FIRST_LANES, (len(is_long), 1))
        for stripe in range(int(lengths.max()) // _STRIPE):
            here = np.flatnonzero(lengths[is_long] >= _STRIPE * (stripe + 1))
            words = _words(octets_of_all, starts[is_long[here]] + _STRIPE * stripe, _STRIPE)
            lanes[here] = _turn(lanes[here] + words * _X2, 13) * _X1
        first, second, third, fourth = lanes.T
        values[is_long] = _turn(first, 1) + _turn(second, 7) + _turn(third, 12) + _turn(fourth, 18)
    values += lengths.astype(np.uint32)
    done = lengths // _STRIPE * _STRIPE
    for _ in range(3):
        here = np.flatnonzero(lengths - done >= 4)
        words = _words(octets_of_all, (starts + done)[here], 4)[:, 0]
        values[here] = _turn(values[here] + words * _X3, 17) * _X4
        done[here] += 4
    for _ in range(3):
        here = np.flatnonzero(lengths > done)
        values[here] = _turn(values[here] + octets_of_all[(starts + done)[here]] * _X5, 11) * _X1
        done[here] += 1
    values = (values ^ values >> np.uint32(15)) * _X2
    values = (values ^ values >> np.uint32(13)) * _X3
    mixed: NDArray[np.uint32] = values ^ values >> np.uint32(16)
    return mixed


def _words(data: NDArray[np.uint8], places: NDArray[np.int64], size: int) -> NDArray[np.uint32]:
    """Returns the words of `size` bytes from each of the places on."""
    if not len(places):
        return np.zeros((0, size // 4), np.uint32)
    words: NDArray[np.uint32] = np.lib.stride_tricks.sliding_window_view(data, size)[places].view("<u4")
    return words


def _turn(values: NDArray[np.uint32], bits: int) -> NDArray[np.uint32]:
    turned: NDArray[np.uint32] = values << np.uint32(bits) | values >> np.uint32(32 - bits)
    return turned


try:
    from google_crc32c import value as _native_crc32c
except ImportError:
    _native_crc32c = None

_POLYNOMIAL = 0x82F63B78
_LANE = 128
_ONES = bytes.fromhex("54641f64")
"""Bytes that turn a register of zeros into the register of ones that a CRC begins with."""


def crc32c(data: bytes | memoryview) -> int:
    if _native_crc32c is not None:
        return int(_native_crc32c(bytes(data)))
    return crc32c_numpy(data)


def crc32c_numpy(data: bytes | memoryview) -> int:
    """Returns the CRC by NumPy, some 100 MB/s: a CRC is linear over GF(2), so it looks up all lanes at once."""
    # Leading zero bytes leave a register of zeros as it is, so the data may be padded in front to whole lanes.
    padding = bytes(-(len(_ONES) + len(data)) % _LANE)
    lanes = np.frombuffer(b"".join((padding, _ONES, data)), dtype=np.uint8).reshape(-1, _LANE)
    tables, (first, second, third, fourth) = _tables()
    register = 0
    for value in np.bitwise_xor.reduce(tables[np.arange(_LANE), lanes], axis=1).tolist():
        # The register so far counts as four bytes in front of a lane of zeros.
        before = first[register & 0xFF] ^ second[register >> 8 & 0xFF] ^ third[register >> 16 & 0xFF]
        register = before ^ fourth[register >> 24] ^ value
    return register ^ 0xFFFFFFFF


@lru_cache(maxsize=1)
def _tables() -> tuple[NDArray[np.uint32], list[list[int]]]:
    """Returns the register of each byte at each place of a lane of zeros, and the first four places as lists."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(_POLYNOMIAL), table >> 1).astype(np.uint32)
    places = [table]
    while len(places) < _LANE:
        places.append(table[places[-1] & 0xFF] ^ (places[-1] >> 8))
    tables = np.stack(places[::-1])
    return tables, tables[:4].tolist()


CHECKSUMS: dict[int, Callable[[Any], int] | None] = {0: None, 1: zlib.crc32, 2: crc32c}
"""Functions by the number in a block header: NULL (words are there but mean nothing), CRC32, CRC32C."""
