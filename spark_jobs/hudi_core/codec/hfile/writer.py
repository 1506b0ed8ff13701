"""Writes HFiles of version 3 that HBase (Hudi 0.15) and Hudi's native reader (1.x) open (HFileWriterImpl of HBase)."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from typing import BinaryIO

from hudi_core.codec.hfile.block import (
    HEADER_SIZE,
    Codec,
    IndexEntry,
    Magic,
    cell_key,
    encode_block,
    encode_cell,
    encode_root_index,
)
from hudi_core.codec.hfile.trailer import TRAILER_SIZE, Trailer, encode_file_info, encode_trailer

DEFAULT_BLOCK_SIZE = 1 << 20
"""Hudi's block size of log blocks and its default of base files, bytes before compression."""
LARGE_CELL = 64 << 10
"""Bytes from which on a cell has a block of its own: a lookup of another key need not inflate it."""
_CELL_OVERHEAD = 9


def write_hfile(items: Iterable[tuple[bytes, bytes]], *, schema: str, block_size: int = DEFAULT_BLOCK_SIZE) -> bytes:
    """A whole HFile of (record key in UTF-8, value) pairs; order and errors as HFileWriter."""
    out = io.BytesIO()
    writer = HFileWriter(out, block_size=block_size)
    for key, value in items:
        writer.add(key, value)
    writer.finish(schema, {}, {})
    return out.getvalue()


class HFileWriter:
    """Writes an HFile into `out`, which it does not close, block by block. Memory: one block, and the index of one
    level. Keys must be sorted by their bytes; equal ones stay in one block. `codec` is GZ or NONE.
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
        """The bytes written to `out` so far; the whole file's after finish."""
        return self._offset

    def add(self, row: bytes, value: bytes) -> None:
        """Adds a cell; raises ValueError for a key that sorts before the last one, or is longer than 32767 bytes."""
        self.add_encoded(encode_cell(row, value), 1, row, row, len(value))

    @property
    def room(self) -> int:
        """Bytes of cells that end the current block: the cell that reaches this is the last except for equal keys."""
        return self._block_size - (0 if self._is_full else self._cells_size)

    @property
    def _is_full(self) -> bool:
        return self._is_large or self._cells_size >= self._block_size

    def add_encoded(self, cells: bytes | memoryview, count: int, first: bytes, last: bytes, value_bytes: int) -> None:
        """Adds `count` encoded and sorted cells to one block, from row `first` to row `last`. Errors are those of
        `add`. A cell of LARGE_CELL bytes comes alone.
        """
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
        """Writes what follows the data blocks, with `extra_info` in the file info, and meta blocks."""
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
        """HBase's reader fails without the averages, and reads the mvcc byte of cells only at key-value version 1."""
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
