"""A decompressed data block of an HFile as offsets: cells are found by binary search and not copied in bulk."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import chain, count, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hudi_core.codec.hfile.block import KEY_TAIL, cell_bounds
from hudi_core.frozen import dataclass

_Offsets = NDArray[np.int64]
_Octets = NDArray[np.uint8]
_MIN_CELLS = 32
"""For fewer cells, the loop over them is as fast as NumPy."""
_WORD = 8
_TAIL_WORD = int.from_bytes(KEY_TAIL[1:9], "big")
_MAX_ROW_LENGTHS = 128
_MAX_TRIES = 32
"""The most lengths tried for each cell, on average. With more, the loop over the cells is as fast."""
_ITEMS = 1 << 12
"""How many cells have their bounds as Python numbers at a time: these take five times the memory."""
_DENSE = 64
"""With more than one requested key per this many cells, all keys are searched at once; with fewer, each by itself."""
_MAX_MATRIX = 1 << 24
"""The most bytes of all rows side by side, padded to one length. With more, keys are searched one by one."""


@dataclass(frozen=True, slots=True)
class CellBlock:
    """The cells of a block: cell i has key `data[rows[i]:row_ends[i]]` and value `data[values[i]:value_ends[i]]`."""

    data: bytes
    rows: _Offsets
    row_ends: _Offsets
    values: _Offsets
    value_ends: _Offsets

    def __len__(self) -> int:
        return len(self.rows)

    def row(self, index: int) -> bytes:
        """The row, which is the record key in UTF-8."""
        return self.data[self.rows[index] : self.row_ends[index]]

    def value(self, index: int) -> bytes:
        return self.data[self.values[index] : self.value_ends[index]]

    def first_at(self, key: bytes, start: int = 0) -> int:
        """Returns the first position from `start` on whose row is `key` or greater, else the number of cells."""
        return bisect_left(range(len(self)), key, lo=start, key=self.row)

    def items(self, start: int = 0) -> Iterator[tuple[bytes, bytes]]:
        data, columns = self.data, (self.rows, self.row_ends, self.values, self.value_ends)
        for at in range(start, len(self), _ITEMS):
            bounds = zip(*(column[at : at + _ITEMS].tolist() for column in columns), strict=True)
            for row, row_end, value, value_end in bounds:
                yield data[row:row_end], data[value:value_end]

    def select(self, keys: Sequence[bytes]) -> Iterator[tuple[bytes, bytes]]:
        """Returns the (row, value) pairs of the sorted `keys`, in order, with every cell of a repeated row."""
        if len(keys) * _DENSE <= len(self):
            return self._one_by_one(keys)
        return self._by_words(keys) or self._by_matrix(keys) or self._one_by_one(keys)

    def _one_by_one(self, keys: Sequence[bytes]) -> Iterator[tuple[bytes, bytes]]:
        position, count = 0, len(self)
        for key in keys:
            position = self.first_at(key, position)
            while position < count and self.row(position) == key:
                yield key, self.value(position)
                position += 1

    def _by_words(self, keys: Sequence[bytes]) -> Iterator[tuple[bytes, bytes]] | None:
        """Selects by the eight bytes after the common prefix, faster; None if rows are short, or half share them."""
        count = len(self)
        if not count:
            return None
        first, last = self.row(0), self.row(count - 1)
        shared = next(
            (at for at, (left, right) in enumerate(zip(first, last, strict=False)) if left != right),
            min(len(first), len(last)),
        )
        if int((self.row_ends - self.rows).min()) < shared + _WORD:
            return None
        octets = np.frombuffer(self.data, dtype=np.uint8)
        words = _words(octets, ">u8")[self.rows + shared].astype(np.uint64)
        tied = np.append(words[1:] == words[:-1], False)
        if 2 * int(tied.sum()) > count:
            return None
        padded = np.array(keys, dtype=f"S{shared + _WORD}")
        requested = _words(padded.view(np.uint8), ">u8")[shared :: shared + _WORD].astype(np.uint64)
        cells = np.minimum(np.searchsorted(words, requested), count - 1)
        hits = np.flatnonzero(words[cells] == requested)
        return self._equal(keys, hits, cells[hits], tied)

    def _equal(
        self, keys: Sequence[bytes], hits: _Offsets, cells: _Offsets, tied: NDArray[np.bool_]
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yields the pairs of `cells` that hold the keys at `hits`. If `tied`, the next cell may hold the same key."""
        data = self.data
        bounds = (self.rows[cells], self.row_ends[cells], self.values[cells], self.value_ends[cells], tied[cells])
        for index, cell, row, row_end, value, value_end, more in zip(
            *(column.tolist() for column in (hits, cells, *bounds)), strict=True
        ):
            key = keys[index]
            if data[row:row_end] == key:
                yield key, data[value:value_end]
            at = cell
            while more:
                at += 1
                if self.row(at) == key:
                    yield key, self.value(at)
                more = tied[at]

    def _by_matrix(self, keys: Sequence[bytes]) -> Iterator[tuple[bytes, bytes]] | None:
        """Searches whole rows of one width; None when padding could make rows equal, or when rows repeat."""
        matrix = self.matrix()
        requested = np.array(keys, dtype=np.bytes_)
        # NumPy takes NUL bytes at the end for padding.
        if matrix is None or any(key.endswith(b"\0") for key in keys):
            return None
        cells = np.searchsorted(matrix, requested)
        inside = np.minimum(cells, len(matrix) - 1)
        keys_found = np.flatnonzero(matrix[inside] == requested)
        cells = cells[keys_found]
        following = cells[cells + 1 < len(matrix)]
        repeated = matrix[following + 1] == matrix[following]
        if repeated.any():
            return None
        bounds = zip(keys_found.tolist(), self.values[cells].tolist(), self.value_ends[cells].tolist(), strict=True)
        return ((keys[index], self.data[value:end]) for index, value, end in bounds)

    def matrix(self) -> NDArray[Any] | None:
        """Returns the rows as fixed-width strings; None if padding could make rows equal, or take too much memory."""
        lengths = self.row_ends - self.rows
        width = int(lengths.max(initial=0))
        octets = np.frombuffer(self.data, dtype=np.uint8)
        if (
            not len(self)
            or lengths.min() == 0
            or width * len(self) > _MAX_MATRIX
            or (octets[self.row_ends - 1] == 0).any()
        ):
            return None
        columns = np.arange(width)
        # A row's padding is read from what follows it, which is within the block, and then blanked.
        rows = octets[np.minimum(self.rows[:, None] + columns, len(octets) - 1)]
        if lengths.min() != width:
            rows[columns >= lengths[:, None]] = 0
        matrix: NDArray[Any] = rows.reshape(-1).view(f"S{width}")
        return matrix


def decode_cells(data: bytes, path: str, *, with_mvcc: bool) -> CellBlock:
    """Returns the cells of a decompressed data block. Raises CorruptFileError naming `path`."""
    block = _by_tails(data) if with_mvcc else None
    if block is not None:
        return block
    # Number by number: a tuple for each cell of a block of 256 MiB would take gigabytes.
    numbers = chain.from_iterable(cell_bounds(data, path, with_mvcc=with_mvcc))
    bounds = np.fromiter(numbers, dtype=np.int64).reshape(-1, 4)
    return CellBlock(data, bounds[:, 0], bounds[:, 1], bounds[:, 2], bounds[:, 3])


def _by_tails(data: bytes) -> CellBlock | None:
    """Finds all cells at once; None when the loop has to find them.

    Every cell key that Hudi writes ends with the same ten bytes. The function searches for them, and tries the row
    lengths before them on all cells at once. Then it proves that the cells follow each other from the block's first
    byte to its last. Bytes that only look like a key's end break that proof.
    """
    octets = np.frombuffer(data, dtype=np.uint8)
    tails = _tails(octets)
    if len(tails) < _MIN_CELLS:
        return None
    row_lengths = _row_lengths(octets, tails)
    if row_lengths is None:
        return None
    rows = tails - row_lengths
    starts = rows - 10
    values = tails + len(KEY_TAIL)
    value_ends = values + _i32(octets, starts + 4)
    inside = (value_ends >= values).all() and (value_ends < len(octets)).all()
    if not inside or starts[0] != 0 or value_ends[-1] + 1 != len(octets):
        return None
    # The byte behind each value is the cell's mvcc number, always zero.
    if octets[value_ends].any() or not np.array_equal(starts[1:], value_ends[:-1] + 1):
        return None
    return CellBlock(data, rows, tails, values, value_ends)


def _tails(octets: _Octets) -> _Offsets:
    """Returns where the bytes of KEY_TAIL are, with at least one byte after them."""
    last = len(octets) - len(KEY_TAIL)
    if last < 10:
        return np.empty(0, dtype=np.int64)
    # The second byte is the rarest of them in Avro data and text.
    places: _Offsets = np.flatnonzero(octets[11 : last + 1] == KEY_TAIL[1]) + 10
    places = places[_words(octets, ">u8")[places + 1] == _TAIL_WORD]
    places = places[(octets[places] == KEY_TAIL[0]) & (octets[places + 9] == KEY_TAIL[9])]
    return places


def _row_lengths(octets: _Octets, tails: _Offsets) -> _Offsets | None:
    """Returns the length of the row before each tail that agrees with the cell header; None after too many tries."""
    lengths = np.full(len(tails), -1, dtype=np.int64)
    open_cells = np.arange(len(tails))
    first = int(tails[0]) - 10
    tries = _MAX_TRIES * len(tails)
    for candidate in islice(_around(first), _MAX_ROW_LENGTHS):
        tries -= len(open_cells)
        if tries < 0:
            return None
        at = tails[open_cells]
        fits = at >= candidate + 10
        probe = np.where(fits, at - candidate - 10, 0)
        agree = (
            fits
            & (_i32(octets, probe) == candidate + len(KEY_TAIL) + 2)
            & (_words(octets, ">u2")[probe + 8] == candidate)
        )
        lengths[open_cells[agree]] = candidate
        open_cells = open_cells[~agree]
        if not len(open_cells):
            return lengths
    return None


def _around(first: int) -> Iterator[int]:
    """Yields lengths around the first row's, nearer ones first: keys of one table differ by a few digits."""
    yield first
    for distance in count(1):
        yield first + distance
        if first >= distance:
            yield first - distance


def _words(octets: _Octets, kind: str) -> NDArray[Any]:
    """Returns the number that starts at each byte, as a view: it is gathered three times as fast as its bytes."""
    dtype = np.dtype(kind)
    words: NDArray[Any] = np.ndarray((len(octets) - dtype.itemsize + 1,), dtype, octets, strides=(1,))
    return words


def _i32(octets: _Octets, at: _Offsets) -> _Offsets:
    return _words(octets, ">i4")[at].astype(np.int64)
