"""Adds many cells to an HFile at once, from Arrow columns (0.2 µs a cell) or as they are in another HFile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hudi_core.codec.columns import octets, running_sums
from hudi_core.codec.hfile.block import KEY_TAIL, MAX_ROW
from hudi_core.codec.hfile.cells import CellBlock
from hudi_core.codec.hfile.writer import LARGE_CELL, HFileWriter

_ROWS = 1 << 16
_HEAD = np.dtype([("key", ">i4"), ("value", ">i4"), ("row", ">i2")])
"""What precedes the row in a cell: three lengths."""
_TAIL = pa.scalar(KEY_TAIL, pa.binary())
_NO_MVCC = pa.scalar(b"\0", pa.binary())
_NOTHING = pa.scalar(b"", pa.binary())


def add_cells(writer: HFileWriter, keys: pa.Array, values: pa.Array) -> None:
    """Adds the cells of two binary arrays without nulls, in blocks as HFileWriter.add would. Errors as its."""
    for start in range(0, len(keys), _ROWS):
        _add(writer, keys.slice(start, _ROWS), values.slice(start, _ROWS))


def _add(writer: HFileWriter, keys: pa.Array, values: pa.Array) -> None:
    count = len(keys)
    if count > 1:
        disorder = pc.less(keys.slice(1), keys.slice(0, count - 1))
        if disorder.true_count:
            at = pc.index(disorder, True).as_py()
            raise ValueError(f"HFile keys must be sorted: {keys[at + 1].as_py()!r} follows {keys[at].as_py()!r}")
    offsets, data = _cells(keys, values)
    encoded = _EncodedCells(data, offsets[:-1], offsets[1:], _lengths(values), lambda index: bytes(keys[index].as_py()))
    encoded.write(writer, 0, count)


class _EncodedCells:
    """Cells in key order: cell i is `data[begins[i]:ends[i]]`, its key `row(i)`. A memoryview is not copied."""

    def __init__(
        self,
        data: bytes | memoryview,
        begins: NDArray[Any],
        ends: NDArray[Any],
        value_lengths: NDArray[Any],
        row: Callable[[int], bytes],
    ) -> None:
        self._data, self._begins, self._ends, self._row = data, begins, ends, row
        self._value_bytes = running_sums(value_lengths)
        self._large = np.flatnonzero(ends - begins >= LARGE_CELL)

    def write(self, writer: HFileWriter, start: int, end: int) -> None:
        """Adds the cells from `start` to `end`, between which are no other bytes, in blocks as HFileWriter.add."""
        at = start
        while at < end:
            stop = min(int(np.searchsorted(self._ends[at:end], self._begins[at] + writer.room)) + at + 1, end)
            # Equal keys stay in one block.
            while stop < end and self._row(stop) == self._row(stop - 1):
                stop += 1
            large = self._large[np.searchsorted(self._large, at) :]
            if len(large) and large[0] < stop:
                # A large cell comes alone.
                stop = max(int(large[0]), at + 1)
            cells = self._data[int(self._begins[at]) : int(self._ends[stop - 1])]
            size = int(self._value_bytes[stop] - self._value_bytes[at])
            writer.add_encoded(cells, stop - at, self._row(at), self._row(stop - 1), size)
            at = stop


def _cells(keys: pa.Array, values: pa.Array) -> tuple[NDArray[np.int64], memoryview]:
    """Where each cell begins and the last ends, and all cells one after the other."""
    lengths = _lengths(keys)
    if len(lengths) and int(lengths.max()) > MAX_ROW:
        raise ValueError(f"a key of {int(lengths.max())} bytes does not fit an HFile cell (at most {MAX_ROW})")
    head = np.empty(len(keys), dtype=_HEAD)
    head["key"] = lengths + 2 + len(KEY_TAIL)
    head["value"] = _lengths(values)
    head["row"] = lengths
    heads = pa.FixedSizeBinaryArray.from_buffers(pa.binary(_HEAD.itemsize), len(keys), [None, pa.py_buffer(head)]).cast(
        pa.binary()
    )
    offsets, data = octets(pc.binary_join_element_wise(heads, keys, _TAIL, values, _NO_MVCC, _NOTHING))
    return offsets, data.data


def _lengths(array: pa.Array) -> NDArray[np.int32]:
    lengths: NDArray[np.int32] = pc.binary_length(array).to_numpy()
    return lengths


def is_ascending(block: CellBlock) -> bool:
    matrix = block.matrix()
    if matrix is not None:
        return bool((matrix[1:] > matrix[:-1]).all())
    return all(first < second for first, second in pairwise(block.row(index) for index in range(len(block))))


class CopiedBlock:
    """A block whose cells are copied. What decides whether a cell may be is looked at once, for all of them."""

    def __init__(self, block: CellBlock, prefix: bytes) -> None:
        """Copies the `cells` of `block`, in ascending order, that have HFileWriter's form and the prefix."""
        self.block = block
        begins, ends = block.rows - _HEAD.itemsize, block.value_ends + 1
        self._cells = _EncodedCells(block.data, begins, ends, block.value_ends - block.values, block.row)
        self._others = running_sums(~_is_plain(block, prefix))
        self._gaps = running_sums(np.concatenate((np.zeros(1, dtype=bool), begins[1:] != ends[:-1])))

    def copy(self, writer: HFileWriter, start: int, end: int) -> bool:
        """Adds the cells from `start` to `end`, in blocks as HFileWriter.add would; False, with nothing added, where
        one of them cannot be copied. Raises ValueError when the first row sorts before the last one added.
        """
        if start >= end or self._others[end] != self._others[start] or self._gaps[end] != self._gaps[start + 1]:
            return False
        self._cells.write(writer, start, end)
        return True

    def rows(self, runs: Sequence[tuple[int, int]]) -> pa.Array:
        cells = np.concatenate([np.arange(start, end) for start, end in runs])
        begins = self.block.rows[cells]
        lengths = self.block.row_ends[cells] - begins
        offsets = running_sums(lengths)
        places = np.repeat(begins - offsets[:-1], lengths) + np.arange(int(offsets[-1]))
        data = np.frombuffer(self.block.data, dtype=np.uint8)[places]
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
        return pa.Array.from_buffers(pa.large_binary(), len(lengths), buffers)


def _is_plain(block: CellBlock, prefix: bytes) -> NDArray[np.bool_]:
    """Of each cell, whether its key is as HBase makes it, its mvcc number zero, and its value begins with `prefix`."""
    octets = np.frombuffer(block.data, dtype=np.uint8)
    last = len(octets) - 1
    whole = (block.value_ends - block.values >= len(prefix)) & (block.value_ends <= last)
    plain: NDArray[np.bool_] = whole & (block.values == block.row_ends + len(KEY_TAIL))
    plain &= octets[np.minimum(block.value_ends, last)] == 0
    for begins, requested in ((block.row_ends, KEY_TAIL), (block.values, prefix)):
        for at, octet in enumerate(requested):
            plain &= octets[np.minimum(begins + at, last)] == octet
    return plain
