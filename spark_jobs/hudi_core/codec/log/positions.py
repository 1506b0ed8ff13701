"""Reads and writes record positions, a header of a log block: the row numbers in a base file of which the block's
records are newer versions (LogReaderUtils.encodePositions). They are the base64 of a portable 64-bit Roaring bitmap
(https://github.com/RoaringBitmap/RoaringFormatSpec).
"""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hudi_core.codec.binary import Reader
from hudi_core.codec.log.blocks import HeaderKey
from hudi_core.errors import CorruptFileError
from hudi_core.frozen import dataclass

Rows = NDArray[np.int64]

BY_KEY = "merge the rows by their keys: set hoodie.merge.use.record.positions=false"
_RUNS, _NO_RUNS = 12347, 12346
"""Cookies of bitmaps with run containers, and without."""
_OFFSETS_FROM = 4
"""A bitmap with run containers has offsets when it has at least so many containers; others always have offsets."""
_MOST_IN_ARRAY = 4096
_BITS = 1 << 16


@dataclass(frozen=True, slots=True)
class _Container:
    first: int
    count: int
    is_runs: bool
    data: bytes

    def rows(self) -> Rows:
        values = np.frombuffer(self.data, "<u2").astype(np.int64)
        if self.is_runs:
            starts, lengths = values[::2], values[1::2] + 1
            if lengths.sum() != self.count:
                raise ValueError("a run container has another number of values than it says")
            values = np.repeat(starts - np.cumsum(lengths) + lengths, lengths) + np.arange(self.count)
        elif self.count > _MOST_IN_ARRAY:
            values = np.flatnonzero(np.unpackbits(np.frombuffer(self.data, np.uint8), bitorder="little"))
        return self.first + values


@dataclass(frozen=True, slots=True)
class RecordPositions:
    """The positions of a block: one for each of its records, ascending. Memory: the header's bytes."""

    containers: tuple[_Container, ...]
    path: str

    @property
    def count(self) -> int:
        return sum(container.count for container in self.containers)

    def rows(self, records: int) -> Rows:
        """Returns all positions. Raises CorruptFileError unless there is one for each of the block's `records`."""
        if self.count != records:
            what = f"a log block has {records} records, but {self.count} record positions"
            raise CorruptFileError(what, path=self.path, remedy=BY_KEY)
        try:
            positions = np.concatenate([container.rows() for container in self.containers])
        except ValueError as error:
            raise _corrupt(error, self.path) from error
        if len(positions) != records or (np.diff(positions) <= 0).any():
            raise _corrupt("they do not ascend", self.path)
        return positions


def decode_positions(text: str, *, path: str) -> RecordPositions:
    """Decodes the header's value. `path` is the log file. Raises CorruptFileError."""
    try:
        reader = Reader(base64.b64decode(text, validate=True), path)
        (buckets,) = struct.unpack("<Q", reader.view(8))
        containers: list[_Container] = []
        for _ in range(buckets):
            (high,) = struct.unpack("<I", reader.view(4))
            if high >> 31:
                raise ValueError(f"the upper half of a position is {high}")
            containers += _containers(reader, high << 32)
    except (binascii.Error, ValueError, CorruptFileError) as error:
        raise _corrupt(error, path) from error
    return RecordPositions(tuple(containers), path)


def _containers(reader: Reader, first: int) -> Iterator[_Container]:
    """Yields the containers of a 32-bit bitmap whose values begin at `first`."""
    (cookie,) = struct.unpack("<I", reader.view(4))
    if cookie & 0xFFFF == _RUNS:
        number = (cookie >> 16) + 1
        flags = np.unpackbits(np.frombuffer(reader.view((number + 7) // 8), np.uint8), bitorder="little")
    elif cookie == _NO_RUNS:
        (number,) = struct.unpack("<I", reader.view(4))
        flags = None
    else:
        raise ValueError(f"cookie {cookie}")
    heads = np.frombuffer(reader.view(4 * number), "<u2").reshape(-1, 2).tolist()
    if flags is None or number >= _OFFSETS_FROM:
        reader.view(4 * number)
    for place, (key, less_one) in enumerate(heads):
        is_runs, count = flags is not None and bool(flags[place]), less_one + 1
        if is_runs:
            size = 4 * struct.unpack("<H", reader.view(2))[0]
        else:
            size = 2 * count if count <= _MOST_IN_ARRAY else _BITS // 8
        yield _Container(first + (key << 16), count, is_runs, bytes(reader.view(size)))


def encode_positions(rows: Rows) -> str:
    """Returns the header's value for ascending positions, with the bytes of Hudi's writers."""
    buckets = []
    for high in np.unique(rows >> 32).tolist():
        low = rows[(rows >> 32) == high] & 0xFFFFFFFF
        keys, starts, counts = np.unique(low >> 16, return_index=True, return_counts=True)
        packed = [_packed(low[start : start + count] & 0xFFFF) for start, count in zip(starts, counts, strict=True)]
        parts, flags = [part for part, _ in packed], [is_runs for _, is_runs in packed]
        head = struct.pack("<II", _NO_RUNS, len(keys))
        if any(flags):
            head = struct.pack("<I", _RUNS | (len(keys) - 1) << 16) + np.packbits(flags, bitorder="little").tobytes()
        heads = np.column_stack((keys, counts - 1)).astype("<u2").tobytes()
        offsets = b""
        if not any(flags) or len(keys) >= _OFFSETS_FROM:
            # Offsets count from the cookie: the heads and the offsets themselves come first.
            first = len(head) + len(heads) + 4 * len(keys)
            offsets = np.cumsum([first, *map(len, parts[:-1])]).astype("<u4").tobytes()
        buckets.append(b"".join((struct.pack("<I", high), head, heads, offsets, *parts)))
    return base64.b64encode(struct.pack("<Q", len(buckets)) + b"".join(buckets)).decode()


def position_headers(rows: Rows, base_instant: str) -> dict[HeaderKey, str]:
    """Returns the headers of a block whose records or entries change these rows, ascending, of the base file with the
    instant.
    """
    return {
        HeaderKey.RECORD_POSITIONS: encode_positions(rows),
        HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS: base_instant,
    }


def _packed(values: Rows) -> tuple[bytes, bool]:
    """Returns the data of a container, and whether they are runs, which it has where they are shorter (runOptimize)."""
    breaks = np.flatnonzero(np.diff(values) != 1)
    starts, ends = values[np.r_[0, breaks + 1]], values[np.r_[breaks, len(values) - 1]]
    if 2 + 4 * len(starts) < min(2 * len(values), _BITS // 8):
        runs = np.column_stack((starts, ends - starts)).astype("<u2")
        return struct.pack("<H", len(starts)) + runs.tobytes(), True
    if len(values) <= _MOST_IN_ARRAY:
        return values.astype("<u2").tobytes(), False
    bits = np.zeros(_BITS, np.uint8)
    bits[values] = 1
    return np.packbits(bits, bitorder="little").tobytes(), False


def _corrupt(what: object, path: str) -> CorruptFileError:
    return CorruptFileError(f"the record positions of a log block are broken: {what}", path=path, remedy=BY_KEY)
