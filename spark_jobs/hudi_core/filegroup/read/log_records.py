"""Reads the contents of scanned log blocks and passes them to a merge, block by block."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.codec.avro.arrow import decode_records, with_defaults
from hudi_core.codec.avro.schema import field_names, parse_schema
from hudi_core.codec.hfile.reader import HFileReader
from hudi_core.codec.log.blocks import BlockType, LogBlock
from hudi_core.codec.log.content import AVRO_BLOCK_VERSIONS, avro_block_records, encode_avro_records
from hudi_core.codec.log.delete_columns import delete_columns
from hudi_core.codec.log.positions import RecordPositions
from hudi_core.codec.parquet.file import BATCH_ROWS, ParquetBaseFile
from hudi_core.errors import CorruptFileError, UnsupportedError
from hudi_core.filegroup.merge.log_merge import LogMerger, LogRecords
from hudi_core.filegroup.merge.ordering_values import Ordering
from hudi_core.filegroup.merge.table_policy import MergePolicy
from hudi_core.filegroup.read.base_file import History, base_batches, rename_fields
from hudi_core.filegroup.read.log_scan import ScanResult
from hudi_core.model.names import OPERATION, RECORD_KEY, spelled
from hudi_core.model.size_limits import Limit
from hudi_core.storage.base import Storage
from hudi_core.timeline.schemas import ColumnSource, sources_at

PIECE_BYTES = 4 << 20
"""The least bytes of an Avro block that are decoded at a time, so that memory does not depend on the block's size."""
_PIECE_SHARE = 32
"""With a large budget, pieces are this part of it: finding the ends of records is the costliest part of decoding."""
_LENGTH = struct.Struct(">i")
_BLOCK_HEAD = struct.Struct(">ii")
"""Version and record count before an Avro block's records."""


def merge_logs(
    storage: Storage,
    scan: ScanResult,
    schema: pa.Schema,
    policy: MergePolicy,
    ordering: Ordering,
    *,
    budget: int,
    history: History | None = None,
    positions: Sequence[RecordPositions] | None = None,
) -> LogRecords:
    """Reads the scan's blocks in order and folds them; rows get the columns and types of `schema`. Close the result's
    store. `history` is that of read_base_file. With `positions` (block_positions), versions of a row have one position,
    else one key. Memory: `budget` bytes of rows, the keys of all records, and a piece of a block, decoded: a sixteenth
    of the budget, or half of that when the block is larger.
    """
    piece_bytes = max(PIECE_BYTES, budget // _PIECE_SHARE)
    merger = LogMerger(schema, policy, ordering, budget=budget)
    try:
        for number, block in enumerate(scan.blocks):
            before = merger.events
            if block.type is BlockType.DELETE:
                entries = delete_columns(block_content(storage, block), path=block.path)
                natural, values = ordering.of_deletes(entries)
                merger.add_deletes(entries.column("key").combine_chunks(), natural, values, path=block.path)
            else:
                sources = () if history is None else sources_at(history, block.instant_time or "")
                partial = partial_columns(block, schema, sources)
                for batch in block_batches(storage, block, schema, piece_bytes=piece_bytes, sources=sources):
                    merger.add_records(batch, path=block.path, partial=partial)
            if positions is not None:
                merger.add_positions(positions[number].rows(merger.events - before))
        return merger.finish()
    except BaseException:
        merger.store.close()
        raise


def block_batches(
    storage: Storage,
    block: LogBlock,
    schema: pa.Schema,
    *,
    piece_bytes: int | None = None,
    sources: Sequence[ColumnSource] = (),
) -> Iterator[pa.RecordBatch]:
    """Yields the records of a data block with the columns and types of `schema`. Columns that Avro records lack have
    their defaults (with_defaults), as in Hudi's readers of log files, but not of base files. An Avro block of more than
    twice `piece_bytes` is read piece by piece. Raises CorruptFileError or UnsupportedError naming the log file.
    """
    if block.type is BlockType.PARQUET_DATA:
        with ParquetBaseFile(io.BytesIO(block_content(storage, block)), block.path, storage.limits) as file:
            _check_operation(file.schema.names, schema, block)
            yield from base_batches(file, schema, batch_rows=BATCH_ROWS, sources=sources)
        return
    writer = rename_fields(parse_schema(block.schema or "", path=block.path), sources)
    names = frozenset(spelled(field_names(writer), schema.names))
    _check_operation(names, schema, block)
    is_hfile = block.type is BlockType.HFILE_DATA
    pieces = _hfile_pieces(storage, block) if is_hfile else avro_pieces(storage, block, piece_bytes or PIECE_BYTES)
    for count, records, keys in pieces:
        for batch in decode_records(records, count, writer, schema, path=block.path).combine_chunks().to_batches():
            whole = batch if block.is_partial else with_defaults(batch, names, schema)
            yield whole if keys is None else _with_keys(whole, keys, block.path)


def has_operations(blocks: Iterable[LogBlock]) -> bool:
    """Whether any block holds change operations (`_hoodie_operation`), which a merge must see."""
    return any(f'"{OPERATION}"' in (block.schema or "") for block in blocks)


def _check_operation(names: Iterable[str], schema: pa.Schema, block: LogBlock) -> None:
    if OPERATION in names and OPERATION not in schema.names:
        remedy = "compact tables of change operations with Hudi"
        raise UnsupportedError(f"log records with the column {OPERATION}", path=block.path, remedy=remedy)


def partial_columns(block: LogBlock, schema: pa.Schema, sources: Sequence[ColumnSource]) -> frozenset[str] | None:
    """Returns the columns of `schema` that the records of a partial update have; None for whole records."""
    if not block.is_partial:
        return None
    return block_columns(block, schema, sources)


def block_columns(block: LogBlock, schema: pa.Schema, sources: Sequence[ColumnSource] = ()) -> frozenset[str]:
    """Returns the columns that a data block's records have, by their names in `schema`."""
    writer = rename_fields(parse_schema(block.schema or "", path=block.path), sources)
    return frozenset(spelled(field_names(writer), schema.names))


def avro_pieces(storage: Storage, block: LogBlock, piece_bytes: int) -> Iterator[tuple[int, memoryview, None]]:
    """Yields number and bytes of an Avro block's records, in pieces of whole records. Each follows its length."""
    if block.content_length <= 2 * piece_bytes:
        count, records = avro_block_records(block_content(storage, block), path=block.path)
        yield count, records, None
        return
    version, count = _BLOCK_HEAD.unpack(_read(block, 0, _BLOCK_HEAD.size))
    if version not in AVRO_BLOCK_VERSIONS:
        raise UnsupportedError(f"Avro data block of version {version} at byte {block.offset}", path=block.path)
    position, rest = _BLOCK_HEAD.size, b""
    while count > 0:
        missing = _missing(rest)
        storage.limits.check(Limit.LOG_BLOCK, missing, block.path, what="a record of a log block")
        requested = min(max(piece_bytes, missing), block.content_length - position)
        if requested <= 0:
            raise CorruptFileError(f"log block at byte {block.offset} ends {count} records early", path=block.path)
        rest += _read(block, position, requested)
        position += requested
        whole, end = _whole_records(rest, count, block)
        if whole:
            yield whole, memoryview(rest)[:end], None
            count, rest = count - whole, rest[end:]


def _missing(rest: bytes) -> int:
    return _LENGTH.size + int(_LENGTH.unpack_from(rest)[0]) - len(rest) if len(rest) >= _LENGTH.size else 0


def _whole_records(data: bytes, limit: int, block: LogBlock) -> tuple[int, int]:
    """Returns how many whole records `data` starts with, up to `limit`, and their end. It takes 1.1 µs a record."""
    count = end = 0
    stop, unpack, head = len(data), _LENGTH.unpack_from, _LENGTH.size
    while count < limit and end + head <= stop:
        (length,) = unpack(data, end)
        if length < 0 or length > block.content_length:
            raise CorruptFileError(f"log block at byte {block.offset} has a record of {length} bytes", path=block.path)
        if end + head + length > stop:
            break
        end += head + length
        count += 1
    return count, end


def _hfile_pieces(storage: Storage, block: LogBlock) -> Iterator[tuple[int, memoryview, list[bytes]]]:
    cells = list(HFileReader.of_bytes(block_content(storage, block), block.path, storage.limits).items())
    records = encode_avro_records(value for _, value in cells)
    yield len(cells), memoryview(records), [key for key, _ in cells]


def _with_keys(batch: pa.RecordBatch, keys: list[bytes], path: str) -> pa.RecordBatch:
    """Gives records their cells' keys when a writer left the key out of the record. Otherwise the cell's key may be a
    running number (HoodieHFileDataBlock.serializeRecords, `useIntegerKey`).
    """
    index = batch.schema.get_field_index(RECORD_KEY)
    if index < 0:
        return batch
    stored = batch.column(index)
    missing = pc.fill_null(pc.equal(stored, ""), True)
    if not missing.true_count:
        return batch
    try:
        column = pc.if_else(missing, pa.array(keys, pa.binary()).cast(pa.string()), stored)
    except pa.ArrowInvalid as error:
        raise CorruptFileError(f"a record key is not UTF-8: {error}", path=path) from error
    return batch.set_column(index, batch.schema.field(index), column)


def block_content(storage: Storage, block: LogBlock) -> bytes:
    """Returns a block's whole content. Raises SizeLimitError before reading it, CorruptFileError when it is cut."""
    storage.limits.check(Limit.LOG_BLOCK, block.content_length, block.path, what="a log block")
    return _read(block, 0, block.content_length)


def _read(block: LogBlock, start: int, length: int) -> bytes:
    data = block.read_at(block.content_offset + start, length)
    if len(data) != length:
        raise CorruptFileError(f"log block at byte {block.offset}: read {len(data)} of {length} bytes", path=block.path)
    return data
