"""Which blocks of the metadata table's log files count, and how their records merge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from hudi_core.codec.hfile.writer import write_hfile
from hudi_core.codec.log.blocks import BlockType, HeaderKey, encode_block
from hudi_core.codec.log.content import DeleteRecord
from hudi_core.config.versions import V6
from hudi_core.errors import CorruptFileError, UnsupportedError
from hudi_core.metadata_table.read.file_group import BlockFilter, MergedSlice
from hudi_core.metadata_table.read.group_reader import GroupReader
from hudi_core.metadata_table.record import FileEntry, FilesRecord, RecordType, stored_schema
from hudi_core.metadata_table.records.files import FilesRules
from tests.support.delete_records import encode_delete_block
from tests.support.memory_storage import MemoryStorage
from tests.support.metadata_cells import encode_items

FILTER = BlockFilter(frozenset({"1", "2", "3"}), latest="8")


def data_block(
    instant: str, schema: str | None = None, headers: Mapping[HeaderKey, str] | None = None, **sizes: int
) -> bytes:
    entries = {name: FileEntry(size, is_deleted=size == 0) for name, size in sizes.items()}
    content = write_hfile(encode_items([FilesRecord("p", RecordType.FILES, entries)]), schema=stored_schema(V6))
    every = {
        HeaderKey.INSTANT_TIME: instant,
        HeaderKey.SCHEMA: stored_schema(V6) if schema is None else schema,
        **(headers or {}),
    }
    return encode_block(BlockType.HFILE_DATA, every, content)


def rollback(instant: str, target: str) -> bytes:
    headers = {
        HeaderKey.INSTANT_TIME: instant,
        HeaderKey.TARGET_INSTANT_TIME: target,
        HeaderKey.COMMAND_BLOCK_TYPE: "0",
    }
    return encode_block(BlockType.COMMAND, headers, b"")


def compacted(instant: str, *merged: str, **sizes: int) -> bytes:
    return data_block(instant, headers={HeaderKey.COMPACTED_BLOCK_TIMES: ",".join(merged)}, **sizes)


def delete_block(*keys: str) -> bytes:
    return encode_block(
        BlockType.DELETE,
        {HeaderKey.INSTANT_TIME: "1"},
        encode_delete_block([DeleteRecord(key, "files", None) for key in keys]),
    )


def scan(*logs: bytes, blocks: BlockFilter = FILTER) -> dict[str, int]:
    storage = MemoryStorage()
    for index, data in enumerate(logs):
        storage.write(f".files-0000-0_0.log.{index + 1}_0-0-0", data)
    merged = MergedSlice("files-0000-0", None, tuple(storage.list_files("")))
    records = GroupReader(storage, merged, blocks, FilesRules()).all()
    return {name: entry.size for record in records.values() for name, entry in record.entries.items()}


def test_blocks_of_several_files_and_of_one_file_merge_in_order() -> None:
    assert scan(data_block("1", a=5) + data_block("2", b=6), data_block("3", a=0, c=7)) == {"b": 6, "c": 7}


def test_blocks_of_other_instants_do_not_count() -> None:
    assert scan(data_block("1", a=5), data_block("4", b=6), data_block("5", c=7)) == {"a": 5}


def test_the_scan_ends_at_the_first_block_after_the_last_instant() -> None:
    assert scan(data_block("1", a=5), data_block("9", b=6), data_block("2", c=7)) == {"a": 5}


def test_from_hudi_1_on_a_block_after_the_last_instant_is_passed_over() -> None:
    passing = replace(FILTER, instants=FILTER.instants | {"9"}, stop_at_newer=False)
    assert scan(data_block("1", a=5), data_block("9", b=6), data_block("2", c=7), blocks=passing) == {"a": 5, "c": 7}


def test_a_rollback_command_removes_the_blocks_of_its_target_wherever_they_are() -> None:
    assert scan(data_block("1", a=5), data_block("2", b=6), rollback("3", "2"), data_block("2", c=7)) == {
        "a": 5,
        "c": 7,
    }
    assert scan(data_block("1", a=5), rollback("3", "2")) == {"a": 5}


def test_a_block_of_a_log_compaction_replaces_its_inputs_at_their_place() -> None:
    """It comes after blocks that are newer than what it merged."""
    assert scan(data_block("1", a=5, b=6), data_block("2", a=0), compacted("3", "1", a=5, b=6)) == {"b": 6}


def test_a_damaged_block_is_an_error_unless_it_is_rolled_back() -> None:
    torn = data_block("2", b=6)[:300]
    with pytest.raises(CorruptFileError, match="damaged block at byte 0") as caught:
        scan(data_block("1", a=5), torn)
    assert caught.value.path == ".files-0000-0_0.log.2_0-0-0"
    assert scan(data_block("1", a=5), torn, rollback("3", "2")) == {"a": 5}


def test_the_empty_delete_block_of_a_new_file_group_is_passed_over() -> None:
    assert scan(delete_block(), data_block("1", a=5)) == {"a": 5}


def test_a_delete_drops_what_came_before_it() -> None:
    assert scan(data_block("1", a=5), delete_block("p"), data_block("1", b=6)) == {"b": 6}
    assert scan(data_block("1", a=5), delete_block("q", "p")) == {}


def test_blocks_that_do_not_belong_here_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="AVRO_DATA"):
        scan(encode_block(BlockType.AVRO_DATA, {HeaderKey.INSTANT_TIME: "1"}, b""))
    with pytest.raises(CorruptFileError, match="names no instant"):
        scan(encode_block(BlockType.HFILE_DATA, {}, b""))
    with pytest.raises(CorruptFileError, match="no schema"):
        scan(encode_block(BlockType.HFILE_DATA, {HeaderKey.INSTANT_TIME: "1"}, write_hfile([(b"p", b"")], schema="{}")))
    with pytest.raises(CorruptFileError, match="not an Avro schema"):
        scan(data_block("1", schema="{}", a=5))


def test_no_log_files_hold_nothing() -> None:
    assert scan() == scan(b"") == {}
