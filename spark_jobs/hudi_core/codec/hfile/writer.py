"""Writes HFiles of version 3 that HBase (Hudi 0.15) and Hudi's native reader (1.x) open (HFileWriterImpl of HBase)."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hudi_core.codec.columns import octets, running_sums
from hudi_core.codec.hfile.block import (
    HEADER_SIZE,
    KEY_TAIL,
    MAX_ROW,
    Codec,
    IndexEntry,
    Magic,
    cell_key,
    encode_block,
    encode_cell,
    encode_root_index,
)
from hudi_core.codec.hfile.cells import CellBlock
from hudi_core.codec.hfile.trailer import TRAILER_SIZE, Trailer, encode_file_info, encode_trailer

DEFAULT_BLOCK_SIZE = 1 << 20
"""The block size of Hudi's log blocks, and its default for base files, in bytes before compression."""
LARGE_CELL = 64 << 10
"""A cell of at least this many bytes has a block of its own: a lookup of another key need not inflate it."""
_CELL_OVERHEAD = 9


def write_hfile(items: Iterable[tuple[bytes, bytes]], *, schema: str, block_size: int = DEFAULT_BLOCK_SIZE) -> bytes:
    """Returns a whole HFile of (record key in UTF-8, value) pairs. Order and errors are those of HFileWriter."""
    out = io.BytesIO()
    writer = HFileWriter(out, block_size=block_size)
    for key, value in items:
        writer.add(key, value)
    writer.finish(schema, {}, {})
    return out.getvalue()


class HFileWriter:
    """Writes an HFile block by block into `out`, which it does not close. Memory: one block, and the index of one
    level. Keys must be sorted by their bytes; equal keys stay in one block. `codec` is GZ or NONE.
    """

    def __init__(self, out: BinaryIO, *, codec: Codec = Codec.GZ, block_size: int = DEFAULT_BLOCK_SIZE) -> None:
        self._codec = codec
        self._block_size = block_size
        self._out = out
        self._offset = 0
        self._cells: list[bytes | memoryview] = []
        self._cells_size = 0
        self._is_large = False
        self._first_row = b""
        self._last_row: bytes | None = None
        self._index: list[IndexEntry] = []
        self._count = 0
        self._key_bytes = 0
        self._value_bytes = 0
        self._uncompressed = 0
        self._previous: dict[Magic, int] = {}

    @property
    def count(self) -> int:
        return self._count

    @property
    def size(self) -> int:
        """The bytes written to `out` so far; after finish, those of the whole file."""
        return self._offset

    def add(self, row: bytes, value: bytes) -> None:
        """Adds a cell. Raises ValueError for a key that sorts before the last one, or is longer than 32767 bytes."""
        self.add_encoded(encode_cell(row, value), 1, row, row, len(value))

    @property
    def room(self) -> int:
        """The bytes of cells that the block still takes. The cell that reaches them is the last, but for equal keys."""
        return self._block_size - (0 if self._is_full else self._cells_size)

    @property
    def _is_full(self) -> bool:
        return self._is_large or self._cells_size >= self._block_size

    def add_encoded(self, cells: bytes | memoryview, count: int, first: bytes, last: bytes, value_bytes: int) -> None:
        """Adds `count` encoded, sorted cells to one block; a cell of LARGE_CELL bytes comes alone. Raises as `add`."""
        before = self._last_row
        if before is not None and first < before:
            raise ValueError(f"HFile keys must be sorted: {first!r} follows {before!r}")
        is_large = count == 1 and len(cells) >= LARGE_CELL
        if (is_large or self._is_full) and first != before:
            self._flush()
        self._is_large = is_large
        if not self._cells:
            self._first_row = first
        self._cells.append(cells)
        self._cells_size += len(cells)
        self._count += count
        self._key_bytes += len(cells) - value_bytes - _CELL_OVERHEAD * count
        self._value_bytes += value_bytes
        self._last_row = last

    def _flush(self) -> None:
        if not self._cells:
            return
        offset, size = self._append(Magic.DATA, b"".join(self._cells))
        self._index.append(IndexEntry(cell_key(self._first_row), offset, size))
        self._cells = []
        self._cells_size = 0

    def _append(self, magic: Magic, data: bytes) -> tuple[int, int]:
        block = encode_block(magic, data, self._codec, self._previous.get(magic, -1))
        offset = self._offset
        self._write(block)
        self._previous[magic] = offset
        self._uncompressed += HEADER_SIZE + len(data)
        return offset, len(block)

    def _write(self, data: bytes) -> None:
        self._out.write(data)
        self._offset += len(data)

    def finish(self, schema: str, extra_info: Mapping[str, bytes], meta_blocks: Mapping[str, bytes]) -> None:
        """Writes what follows the data blocks: meta blocks, index, file info with `extra_info`, and the trailer."""
        self._flush()
        blocks = ((name.encode("utf-8"), meta_blocks[name]) for name in sorted(meta_blocks))
        meta_index = [IndexEntry(name, *self._append(Magic.META, block)) for name, block in blocks]
        root = encode_root_index(self._index)
        load_on_open, _ = self._append(Magic.ROOT_INDEX, root)
        self._append(Magic.ROOT_INDEX, encode_root_index(meta_index))
        file_info, _ = self._append(Magic.FILE_INFO, encode_file_info({**self._file_info(schema), **extra_info}))
        trailer = Trailer(
            file_info_offset=file_info,
            load_on_open_offset=load_on_open,
            data_index_size=len(root),
            # HBase counts every block but the root data index, and the trailer itself.
            uncompressed_bytes=self._uncompressed - HEADER_SIZE - len(root) + TRAILER_SIZE,
            data_index_count=len(self._index),
            meta_index_count=len(meta_index),
            entry_count=self._count,
            data_index_levels=1,
            first_data_block_offset=0,
            last_data_block_offset=self._index[-1].offset if self._index else 0,
            codec=self._codec,
        )
        self._write(encode_trailer(trailer))

    def _file_info(self, schema: str) -> dict[str, bytes]:
        """Returns the file info. HBase's reader needs the averages, and reads mvcc bytes only at version 1."""
        count = max(self._count, 1)
        info = {
            "schema": schema.encode("utf-8"),
            "hfile.AVG_KEY_LEN": (self._key_bytes // count).to_bytes(4, "big"),
            "hfile.AVG_VALUE_LEN": (self._value_bytes // count).to_bytes(4, "big"),
            "hfile.CREATE_TIME_TS": bytes(8),
            "KEY_VALUE_VERSION": (1).to_bytes(4, "big"),
            "MAX_MEMSTORE_TS_KEY": bytes(8),
        }
        if self._last_row is not None:
            info["hfile.LASTKEY"] = cell_key(self._last_row)
        return info


_ROWS = 1 << 16
_HEAD = np.dtype([("key", ">i4"), ("value", ">i4"), ("row", ">i2")])
"""The three lengths that precede the row in a cell."""
_TAIL = pa.scalar(KEY_TAIL, pa.binary())
_NO_MVCC = pa.scalar(b"\0", pa.binary())
_NOTHING = pa.scalar(b"", pa.binary())


def add_cells(writer: HFileWriter, keys: pa.Array, values: pa.Array) -> None:
    """Adds the cells of two binary arrays without nulls, in the blocks of HFileWriter.add. Raises its errors."""
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
    """Cells in key order: cell i is `data[begins[i]:ends[i]]`, its key is `row(i)`. A memoryview is not copied."""

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
        """Adds the cells from `start` to `end` in the blocks of HFileWriter.add. No bytes may lie between the cells."""
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
    """Returns where each cell begins and the last ends, and all cells one after the other."""
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
    """A block whose cells are copied. It is checked once, for all cells, which of them may be copied."""

    def __init__(self, block: CellBlock, prefix: bytes) -> None:
        """Takes `block`, with ascending cells. Those with HFileWriter's form and with `prefix` may be copied."""
        self.block = block
        begins, ends = block.rows - _HEAD.itemsize, block.value_ends + 1
        self._cells = _EncodedCells(block.data, begins, ends, block.value_ends - block.values, block.row)
        self._others = running_sums(~_is_plain(block, prefix))
        self._gaps = running_sums(np.concatenate((np.zeros(1, dtype=bool), begins[1:] != ends[:-1])))

    def copy(self, writer: HFileWriter, start: int, end: int) -> bool:
        """Adds cells in the blocks of HFileWriter.add. Returns False, with none added, when one cannot be copied."""
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
    """Whether, for each cell, the key has HBase's form, the mvcc number is zero, and the value begins with `prefix`."""
    octets = np.frombuffer(block.data, dtype=np.uint8)
    last = len(octets) - 1
    whole = (block.value_ends - block.values >= len(prefix)) & (block.value_ends <= last)
    plain: NDArray[np.bool_] = whole & (block.values == block.row_ends + len(KEY_TAIL))
    plain &= octets[np.minimum(block.value_ends, last)] == 0
    for begins, requested in ((block.row_ends, KEY_TAIL), (block.values, prefix)):
        for at, octet in enumerate(requested):
            plain &= octets[np.minimum(begins + at, last)] == octet
    return plain
