"""Writes a log file of records and delete entries of other log files, byte for byte.

So a copy has every column, with the value and the schema that its writer gave it. When records and entries have
positions in the base file, those of a block are in the order of their positions, as readers expect it.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from hudi_core.codec.log.blocks import BlockType, HeaderKey, LogBlock, encode_block
from hudi_core.codec.log.content import avro_block, delete_record_spans, encode_delete_block
from hudi_core.codec.log.positions import position_headers
from hudi_core.errors import CorruptFileError
from hudi_core.filegroup.read.log_records import avro_pieces, block_content
from hudi_core.filegroup.write.log_file import BLOCK_BYTES, LogFile
from hudi_core.storage.base import Storage

_LENGTH = struct.Struct(">i")


class LogCopy(LogFile):
    """The new log file. A data block has the schema of the records in it; the delete block comes last. Memory: twice
    BLOCK_BYTES, one piece of a block that is read, and the entries of the delete block.
    """

    def __init__(
        self, storage: Storage, path: str, headers: Mapping[HeaderKey, str], *, positions_instant: str | None = None
    ) -> None:
        """`headers` are those of every block, without the schema. `positions_instant` is the instant of the base file
        in which the copied rows have positions; None when they have none.
        """
        self.records = 0
        self.deletes = 0
        super().__init__(storage, path)
        self._headers = dict(headers)
        self._positions_instant = positions_instant
        self._schema: str | None = None
        self._waiting: list[bytes] = []
        self._waiting_positions: list[NDArray[np.int64]] = []
        self._waiting_records = 0
        self._waiting_bytes = 0
        self._entries: list[bytes] = []
        self._entry_positions: list[NDArray[np.int64]] = []
        self._deletes_schema: str | None = None

    def copy_records(
        self, block: LogBlock, kept: NDArray[np.int64], *, piece_bytes: int, positions: NDArray[np.int64] | None = None
    ) -> int:
        """Copies the records of an Avro data block with the numbers `kept`, ascending. Returns how many records the
        block has. `positions` are those of all its records. A large block is read in pieces of about `piece_bytes`.
        Raises CorruptFileError naming the block's file.
        """
        if block.schema != self._schema:
            self._flush()
            self._schema = block.schema
        first = 0
        for count, records, _ in avro_pieces(self._storage, block, piece_bytes):
            ends = _ends(records, count, block)
            here = kept[np.searchsorted(kept, first) : np.searchsorted(kept, first + count)] - first
            if len(here):
                # With positions, each record is a part of its own, since the parts of a block are sorted.
                breaks = np.flatnonzero(np.diff(here) != (1 if positions is None else 0))
                for low, high in zip(here[np.r_[0, breaks + 1]], here[np.r_[breaks, len(here) - 1]], strict=True):
                    if positions is not None:
                        self._waiting_positions.append(positions[first + low : first + low + 1])
                    self._add(bytes(records[ends[low] : ends[high + 1]]), int(high - low + 1))
            first += count
        return first

    def _add(self, records: bytes, count: int) -> None:
        self._waiting.append(records)
        self._waiting_records += count
        self._waiting_bytes += len(records)
        self.records += count
        if self._waiting_bytes >= BLOCK_BYTES:
            self._flush()

    def copy_deletes(
        self, block: LogBlock, kept: NDArray[np.int64], positions: NDArray[np.int64] | None = None
    ) -> None:
        """Copies the entries `kept` of a delete block. `positions` are of all its entries. Raises CorruptFileError."""
        data, spans = delete_record_spans(block_content(self._storage, block), path=block.path)
        self._entries += (bytes(data[slice(*spans[number])]) for number in kept)
        if positions is not None:
            self._entry_positions.append(positions[kept])
        self._deletes_schema = block.schema or self._deletes_schema

    def close(self) -> int:
        """Completes the file and returns its size in bytes."""
        self._flush()
        if self._entries:
            entries, positions = _sorted(self._entries, self._entry_positions)
            self._write(BlockType.DELETE, self._deletes_schema, encode_delete_block(entries), positions)
            self.deletes = len(entries)
        return self.end()

    def _flush(self) -> None:
        if self._waiting:
            count, (records, positions) = self._waiting_records, _sorted(self._waiting, self._waiting_positions)
            self._write(BlockType.AVRO_DATA, self._schema, avro_block(count, records), positions)
        self._waiting, self._waiting_records, self._waiting_bytes = [], 0, 0
        self._waiting_positions = []

    def _write(self, kind: BlockType, schema: str | None, content: bytes, positions: NDArray[np.int64] | None) -> None:
        headers = self._headers if schema is None else {**self._headers, HeaderKey.SCHEMA: schema}
        if positions is not None and self._positions_instant is not None:
            headers = {**headers, **position_headers(positions, self._positions_instant)}
        named = self._positions_instant is not None
        self._file.write(encode_block(kind, headers, content, hudi_1_headers=named))


def _sorted(parts: list[bytes], positions: list[NDArray[np.int64]]) -> tuple[list[bytes], NDArray[np.int64] | None]:
    """Returns the parts in the order of their positions; as they are when there are no positions."""
    if not positions:
        return parts, None
    places = np.concatenate(positions)
    order = np.argsort(places)
    return [parts[number] for number in order], places[order]


def _ends(records: memoryview, count: int, block: LogBlock) -> NDArray[np.int64]:
    """Returns where each record begins, at its length, and where the last one ends."""
    ends = np.empty(count + 1, dtype=np.int64)
    end, size, unpack = 0, len(records), _LENGTH.unpack_from
    for number in range(count):
        ends[number] = end
        length = unpack(records, end)[0] if end + _LENGTH.size <= size else -1
        end += _LENGTH.size + length
        if length < 0 or end > size:
            message = f"log block at byte {block.offset} has no record {number} of {length} bytes"
            raise CorruptFileError(message, path=block.path)
    ends[count] = end
    if end != size:
        raise CorruptFileError(f"log block at byte {block.offset} has {size - end} bytes too many", path=block.path)
    return ends
