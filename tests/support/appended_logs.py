"""The log files of our writes: their blocks, and the rows of base files that these name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq

from hudi_core.codec.avro.arrow import arrow_schema
from hudi_core.codec.avro.schema import parse_schema
from hudi_core.codec.log.blocks import BlockType, LogBlock
from hudi_core.codec.log.content import decode_delete_block
from hudi_core.codec.log.positions import decode_positions
from hudi_core.filegroup.read.log_records import block_batches
from hudi_core.filegroup.read.log_scan import log_blocks
from hudi_core.model.names import RECORD_KEY, parse_base_file
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.actions.write_stats import WriteStat
from hudi_core.view.file_group import DataFile, FileSlice
from tests.support.changed_tables import open_context
from tests.support.writes import commit_of


def slices(table: Path) -> dict[str, FileSlice]:
    """The latest file slices, by file id."""
    context = open_context(table)
    view = context.view(context.active.load())
    found = (item for name in view.partitions() for item in view.latest_merged_slices(name))
    return {item.file_group.file_id: item for item in found}


def appended(table: Path, instant: str | None) -> list[WriteStat]:
    """The log files of a commit."""
    return [stat for stat in commit_of(table, instant).write_stats() if stat.log_version is not None]


def blocks_of(table: Path, stat: WriteStat) -> list[LogBlock]:
    file = DataFile(stat.partition_path, stat.name, stat.file_size_in_bytes)
    found = [*log_blocks(LocalStorage(table), [file])]
    assert all(isinstance(block, LogBlock) for block in found)
    return [block for block in found if isinstance(block, LogBlock)]


def blocks_of_commit(table: Path, instant: str | None) -> Iterator[tuple[str, LogBlock]]:
    """The blocks of a commit, each with its file id."""
    for stat in appended(table, instant):
        for block in blocks_of(table, stat):
            yield stat.file_id, block


def content(table: Path, block: LogBlock) -> bytes:
    data = (table / block.path).read_bytes()
    return data[block.content_offset : block.content_offset + block.content_length]


def keys_in(table: Path, block: LogBlock) -> list[str]:
    """The keys of a block's records or deletes, in their order."""
    if block.type is BlockType.DELETE:
        return [str(entry.key) for entry in decode_delete_block(content(table, block), path=block.path)]
    schema = arrow_schema(parse_schema(block.schema or "", path=block.path), path=block.path)
    batches = block_batches(LocalStorage(table), block, schema)
    return [str(key) for batch in batches for key in batch.column(RECORD_KEY).to_pylist()]


def named_rows(table: Path, instant: str | None) -> list[int]:
    """How many rows of its base file each block of a commit names, 0 for none. These rows have the keys of the block's
    records, in their order.
    """
    counts = []
    for file_id, block in blocks_of_commit(table, instant):
        assert (block.record_positions is None) == (block.positions_instant is None)
        counts.append(0)
        if block.record_positions is not None:
            base = slices(table)[file_id].base_file
            assert base is not None
            assert block.positions_instant == parse_base_file(base.name).instant
            keys = keys_in(table, block)
            rows = decode_positions(block.record_positions, path=block.path).rows(len(keys))
            stored = pq.ParquetFile(table / base.path).read([RECORD_KEY]).column(RECORD_KEY)
            assert stored.take(rows).to_pylist() == keys
            counts[-1] = len(rows)
    return counts
