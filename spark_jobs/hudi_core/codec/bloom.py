"""Hudi's bloom filter over record keys, bit for bit (org.apache.hudi.common.bloom, org.apache.hadoop.util.bloom).

A filter is a list of bit vectors, its rows. A new key goes to the last row, which takes `entries` keys. Rows are added
until they can hold `max_entries`; further keys go to the rows in turn, at the cost of more false positives. The part of
a key's hash that no probe changes is computed once; the 30 probes run over chunks that stay in the cache.
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
from collections.abc import Iterator, Mapping
from functools import reduce
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hudi_core.codec.binary import Reader
from hudi_core.codec.columns import octets
from hudi_core.errors import CorruptFileError, UnsupportedError

DYNAMIC = "DYNAMIC_V0"
SIMPLE = "SIMPLE"
FOOTER: Final = "org.apache.hudi.bloomfilter"
OLD_FOOTER: Final = "com.uber.hoodie.bloomfilter"
FOOTER_TYPE: Final = "hoodie_bloom_filter_type_code"
MIN_KEY: Final = "hoodie_min_record_key"
MAX_KEY: Final = "hoodie_max_record_key"
"""The footer keys of the filter, and of the range of the same record keys."""

_VERSION = -1
_MURMUR = 1
_HEAD = struct.Struct(">iibi")
_DYNAMIC_HEAD = struct.Struct(">iii")
_MULTIPLIER = 0x5BD1E995
_CHUNK = 8192
"""Keys hashed at a time: 32 KiB per 32-bit column."""
_FEW = 8
"""For so few keys of one length, integers of Python are faster than arrays; of a long key ten times."""
_MAX_PROBES = 1024
_Bytes = NDArray[np.uint8]
_Words = NDArray[np.uint32]


class BloomFilter:
    """A filter that add_batch fills, or one parsed from a file, which only answers."""

    def __init__(self, *, entries: int = 60000, error_rate: float = 1e-9, max_entries: int = 100000) -> None:
        """Makes an empty dynamic filter with `entries` keys per row. Raises ValueError for impossible settings."""
        if entries < 1 or not 0 < error_rate < 1:
            raise ValueError(
                f"a bloom filter needs at least one entry and an error rate between 0 and 1, not {entries} and "
                f"{error_rate}"
            )
        self.type_code = DYNAMIC
        self.bits = math.ceil(entries * (-math.log(error_rate) / (math.log(2) * math.log(2))))
        self.probes = math.ceil(math.log(2) * self.bits / entries)
        self.entries = entries
        self._max_entries = max_entries
        self._in_last_row = 0
        self._overflow = 0
        self._frozen = False
        # While it grows, a row is one byte per bit: setting bytes needs no read-modify-write, so it vectorises.
        self._rows: list[_Bytes] = [np.zeros(self.bits, dtype=np.uint8)]

    def add_batch(self, keys: pa.Array) -> None:
        """Adds keys in order: a string or binary array without nulls. Raises ValueError on a parsed filter."""
        if self._frozen:
            raise ValueError("a bloom filter that was read from a file cannot take further keys")
        positions, data = octets(keys)
        for row, chosen in self._assign(len(keys)):
            for part in _by_length(positions, data, chosen):
                self._rows[row][_probed(part, self.bits, self.probes).reshape(-1)] = 1

    def _assign(self, count: int) -> Iterator[tuple[int, slice]]:
        """Yields each row with those of the next `count` keys that go to it (Hudi's getActiveStandardBF)."""
        start = 0
        while start < count and self._overflow == 0:
            free = self.entries - self._in_last_row
            if free > 0:
                stop = min(count, start + free)
                self._in_last_row += stop - start
                yield len(self._rows) - 1, slice(start, stop)
                start = stop
            elif len(self._rows) * self.entries < self._max_entries:
                self._rows.append(np.zeros(self.bits, dtype=np.uint8))
                self._in_last_row = 0
            else:
                break
        if start >= count:
            return
        rows = len(self._rows)
        before, self._overflow = self._overflow, self._overflow + count - start
        self._in_last_row += count - start
        if before == 0:
            # The key that finds the filter full goes to row 0, and the turn starts at row 0 only after it.
            yield 0, slice(start, start + 1)
            start, before = start + 1, 1
        for step in range(rows):
            yield (before - 1 + step) % rows, slice(start + step, count, rows)

    def lacking(self, keys: pa.Array) -> int:
        return len(keys) - sum(int(self._held(part).sum()) for part in _by_length(*octets(keys), slice(None)))

    def may_have_any(self, keys: pa.Array) -> bool:
        """Whether the filter may have one of the keys: a string or binary array without nulls."""
        return any(self._held(part).any() for part in _by_length(*octets(keys), slice(None)))

    def _held(self, keys: _Bytes) -> NDArray[np.bool_]:
        """Whether some row of the filter has every probe's bit of a key, for a matrix of one key per row."""
        bits = _probed(keys, self.bits, self.probes)
        present = np.zeros(len(keys), dtype=np.bool_)
        for row in self._rows:
            present |= row[bits].all(axis=0)
        return present

    def to_base64(self) -> str:
        """Returns the text in the footer of a Parquet file, under FOOTER (BloomFilter.serializeToString)."""
        head = _HEAD.pack(_VERSION, self.probes, _MURMUR, self.bits)
        rows = [head + np.packbits(row, bitorder="little").tobytes() for row in self._rows]
        if self.type_code == SIMPLE:
            return base64.b64encode(rows[0]).decode("ascii")
        dynamic = _DYNAMIC_HEAD.pack(self.entries, self._in_last_row, len(rows))
        return base64.b64encode(b"".join((head, dynamic, *rows))).decode("ascii")

    def join(self, text: str | bytes, type_code: str, keys: int, *, path: str) -> bool:
        """Adds the filter of a footer, which has `keys` keys. Returns False, with nothing added, when that filter has
        other settings or another number of keys. An empty filter becomes as if it had got these keys; any other filter
        gets the rows of both. Raises the errors of parse.
        """
        other = BloomFilter.parse(text, type_code, path=path)
        rows = min(max(1, -(-keys // self.entries)), max(1, -(-self._max_entries // self.entries)))
        state = (DYNAMIC, self.bits, self.probes, self.entries, rows, keys - (rows - 1) * self.entries)
        if state != (other.type_code, other.bits, other.probes, other.entries, len(other._rows), other._in_last_row):
            return False
        if self._in_last_row == 0 and len(self._rows) == 1:
            self._rows, self._overflow = other._rows, max(0, keys - rows * self.entries)
        else:
            self._rows, self._overflow = self._rows + other._rows, 0
        self._in_last_row = other._in_last_row
        return True

    @staticmethod
    def parse(text: str | bytes, type_code: str, *, path: str) -> BloomFilter:
        """Returns the filter in a footer or an HFile. Raises CorruptFileError naming `path`, UnsupportedError."""
        if type_code not in (DYNAMIC, SIMPLE):
            remedy = f"known are {DYNAMIC} and {SIMPLE}"
            raise UnsupportedError(f"bloom filter type {type_code!r} is not supported", path=path, remedy=remedy)
        try:
            data = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError) as error:
            raise CorruptFileError(f"bloom filter is not base64 ({error})", path=path) from error
        source = Reader(data, path)
        result = BloomFilter.__new__(BloomFilter)
        result.type_code, result._frozen = type_code, True
        result.probes, result.bits = _read_head(source)
        result.entries = result._max_entries = result._in_last_row = result._overflow = 0
        if type_code == SIMPLE:
            result._rows = [_read_bits(source, result.bits)]
        else:
            result.entries, result._in_last_row, row_count = source.i32(), source.i32(), source.i32()
            result._rows = _read_rows(source, row_count, result.probes, result.bits)
        if not source.at_end():
            raise source.fail(f"bloom filter is followed by {source.remaining} more bytes")
        return result


def filter_in_footer(footer: Mapping[str, str]) -> tuple[str, str] | None:
    """Returns the type code and text of the filter in a footer (BaseFileUtils.readBloomFilterFromMetadata), or None."""
    text = footer.get(FOOTER, footer.get(OLD_FOOTER))
    return None if text is None else (footer.get(FOOTER_TYPE, SIMPLE), text)


def _read_rows(source: Reader, count: int, probes: int, bits: int) -> list[_Bytes]:
    row_bytes = _HEAD.size + (bits + 7) // 8
    if count < 1 or count * row_bytes > source.remaining:
        raise source.fail(f"bloom filter claims {count} rows of {row_bytes} bytes")
    rows = []
    for _ in range(count):
        if _read_head(source) != (probes, bits):
            raise source.fail("a bloom filter's row differs from its head")
        rows.append(_read_bits(source, bits))
    return rows


def _read_head(source: Reader) -> tuple[int, int]:
    version, probes, hash_type, bits = source.i32(), source.i32(), source.i8(), source.i32()
    if version != _VERSION or not 1 <= probes <= _MAX_PROBES or bits < 1:
        raise source.fail(f"bloom filter head is wrong (version {version}, {probes} probes, {bits} bits)")
    if hash_type != _MURMUR:
        remedy = "Hudi writes murmur (1)"
        raise UnsupportedError(f"bloom filter hash type {hash_type} is not supported", path=source.path, remedy=remedy)
    return probes, bits


def _read_bits(source: Reader, bits: int) -> _Bytes:
    packed = np.frombuffer(source.view((bits + 7) // 8), dtype=np.uint8)
    return np.unpackbits(packed, count=bits, bitorder="little")


def _by_length(positions: NDArray[np.int64], data: _Bytes, keys: slice) -> Iterator[_Bytes]:
    """Yields the keys as matrices of a key per row: keys of one length, at most _CHUNK of them."""
    lengths = np.diff(positions)
    if not len(lengths):
        return
    length = int(lengths[0])
    if bool((lengths == length).all()):
        matrix = data[int(positions[0]) : int(positions[-1])].reshape(len(lengths), length)[keys]
        yield from (matrix[start : start + _CHUNK] for start in range(0, len(matrix), _CHUNK))
        return
    starts, sizes = positions[:-1][keys], lengths[keys]
    order = np.argsort(sizes, kind="stable")
    starts, sizes = starts[order], sizes[order]
    edges = np.flatnonzero(np.diff(sizes)) + 1
    for group in np.split(np.arange(len(sizes)), edges):
        for start in range(0, len(group), _CHUNK):
            part = group[start : start + _CHUNK]
            yield data[starts[part][:, None] + np.arange(int(sizes[part[0]]))]


def _probed(keys: _Bytes, size: int, probes: int) -> _Words:
    """Returns the bit, of `size`, that each probe (first axis) tests for each key."""
    count, length = keys.shape
    words, tail = _mixed_words(keys)
    bits = np.uint32(size)
    multiplier = np.uint32(_MULTIPLIER)
    hashed = np.zeros(count, dtype=np.uint32)
    scratch = np.empty(count, dtype=np.uint32)
    positions = np.empty((probes, count), dtype=np.uint32)
    few = [[int(word[at]) for word in words] for at in range(count)] if count <= _FEW else []
    for probe in range(probes):
        hashed ^= np.uint32(length)
        if few:
            hashed[:] = [reduce(_next, of_key, int(start)) for of_key, start in zip(few, hashed, strict=True)]
        else:
            for word in words:
                hashed *= multiplier
                hashed ^= word
        if tail is not None:
            hashed ^= tail
            hashed *= multiplier
        np.right_shift(hashed, 13, out=scratch)
        hashed ^= scratch
        hashed *= multiplier
        np.right_shift(hashed, 15, out=scratch)
        hashed ^= scratch
        # Java's abs(h % bits); the absolute value of the smallest int, read as unsigned, is the dividend.
        magnitude = np.abs(hashed.view(np.int32)).view(np.uint32)
        np.floor_divide(magnitude, bits, out=scratch)
        scratch *= bits
        np.subtract(magnitude, scratch, out=positions[probe])
    return positions


def _next(hashed: int, word: int) -> int:
    return (hashed * _MULTIPLIER & 0xFFFFFFFF) ^ word


def _mixed_words(keys: _Bytes) -> tuple[list[_Words], _Words | None]:
    """Returns the keys' 4-byte words, mixed as for every probe, and what the last one to three bytes add."""
    count, length = keys.shape
    whole = length // 4
    words: list[_Words] = []
    if whole:
        packed = np.ascontiguousarray(keys[:, : 4 * whole]).view("<u4").T.astype(np.uint32, order="C")
        packed *= np.uint32(_MULTIPLIER)
        packed ^= packed >> 24
        packed *= np.uint32(_MULTIPLIER)
        words = list(packed)
    rest = length % 4
    if not rest:
        return words, None
    # Hadoop takes these bytes from the end and as signed ones, unlike the original MurmurHash2.
    signed = keys.view(np.int8).astype(np.int32)
    tail = np.zeros(count, dtype=np.int32)
    for back in range(rest):
        tail ^= signed[:, length - 1 - back] << np.int32(8 * back)
    return words, tail.view(np.uint32)
