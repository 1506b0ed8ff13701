"""The task that merges one file group of the metadata table into a base file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from hudi_core.codec.hfile.reader import HFileReader
from hudi_core.codec.hfile.writer import write_hfile
from hudi_core.codec.log.blocks import BlockType, HeaderKey, encode_block
from hudi_core.engine.protocol import TaskAttempt
from hudi_core.engine.serializer import from_text, to_text
from hudi_core.errors import CorruptFileError, FormatError, StorageNotFoundError
from hudi_core.metadata_table.read.file_group import ROOT, BlockFilter
from hudi_core.metadata_table.read.snapshot import MetadataTableSnapshot
from hudi_core.metadata_table.record import RecordEncoder, stored_schema
from hudi_core.metadata_table.services.merge_group import (
    GroupUnit,
    compact_group,
    compact_group_task,
)
from hudi_core.model.names import FileGroupId, WriteToken
from hudi_core.view.file_group import DataFile, FileSlice
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import TOKEN, Table

Golden = Callable[[str, str], GoldenCase]
INSTANT = "29990101000000000"
LOG = ".g-0_20260101000000000.log.1_0-0-0"


@pytest.fixture
def table(golden: Golden) -> Table:
    """With a folder of the metadata table for one file group."""
    table = Table(golden("9", "mor_basic").table)
    (table.path / ROOT / "record_index").mkdir(exist_ok=True)
    return table


def unit_of(table: Table, logs: dict[str, bytes], base: bytes | None = None) -> GroupUnit:
    files = {**logs, **({} if base is None else {"base": base})}
    for name, content in files.items():
        (table.path / ROOT / "record_index" / name).write_bytes(content)
    sized = {name: DataFile("record_index", name, len(content)) for name, content in files.items()}
    group = FileGroupId("record_index", "g-0")
    return GroupUnit(
        str(table.path),
        {},
        FileSlice(group, "1", sized.get("base"), tuple(sized[name] for name in logs)),
        BlockFilter(frozenset({"1", "2"}), "2", stop_at_newer=False),
        INSTANT,
        stored_schema(table.config.features),
        10000,
    )


def block(table: Table, instant: str, **types: int) -> bytes:
    schema = stored_schema(table.config.features)
    cells = RecordEncoder(schema).cells((key, {"type": number}) for key, number in types.items())
    headers = {HeaderKey.INSTANT_TIME: instant, HeaderKey.SCHEMA: schema}
    return encode_block(BlockType.HFILE_DATA, headers, write_hfile(cells, schema=schema))


def keys_of(table: Table, name: str | None) -> list[bytes]:
    path = table.path / ROOT / "record_index" / str(name)
    return [key for key, _ in HFileReader.of_bytes(path.read_bytes(), str(path)).items()]


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_blocks_that_readers_take_cross_as_plain_values(golden: Golden, version: str) -> None:
    table = Table(golden(version, "failed_after_metadata_mor").table)
    data = table.data.load()
    blocks = MetadataTableSnapshot(table.storage, table.config, data).blocks
    assert from_text(BlockFilter, to_text(blocks)) == blocks
    instants = {item.requested_time for timeline in (data, table.metadata_timeline.load()) for item in timeline}
    assert blocks.instants & instants
    assert instants - blocks.instants, "the failed instant does not count"


def test_the_base_file_is_that_of_the_attempt(table: Table) -> None:
    unit = unit_of(table, {LOG: block(table, "1", a=5, c=5)})
    done = compact_group_task(unit, TaskAttempt(3, 4, 5))
    assert done.name == f"g-0_3-4-5_{INSTANT}.hfile"
    assert keys_of(table, done.name) == [b"a", b"c"]
    assert done.size == (table.path / ROOT / "record_index" / done.name).stat().st_size
    assert (done.records, done.counts.inserted, done.counts.in_logs) == (2, 2, 2)


def test_blocks_that_do_not_count_are_passed_over(table: Table) -> None:
    logs = {
        LOG: block(table, "1", a=5) + block(table, "3", b=5),
        LOG.replace(".log.1", ".log.2"): block(table, "2", c=5),
    }
    assert keys_of(table, compact_group(table.storage, unit_of(table, logs), TOKEN).name) == [b"a", b"c"]


def test_a_group_without_a_record_gets_no_file(table: Table) -> None:
    before = {path.name for path in (table.path / ROOT / "record_index").iterdir()}
    done = compact_group(table.storage, unit_of(table, {LOG: block(table, "3", a=5)}), TOKEN)
    assert (done.name, done.size, done.records) == (None, 0, 0)
    assert {path.name for path in (table.path / ROOT / "record_index").iterdir()} == before | {LOG}


@pytest.mark.parametrize("name", ["../files/x", "a/b", ".."])
def test_names_that_leave_the_partition_are_refused(table: Table, name: str) -> None:
    unit = unit_of(table, {LOG: block(table, "1", a=5)})
    for wrong in (
        replace(unit.file_slice, log_files=(DataFile("record_index", name, 1),)),
        replace(unit.file_slice, base_file=DataFile("record_index", name, 1)),
        replace(unit.file_slice, file_group=FileGroupId(name, "g-0"), log_files=()),
        replace(unit.file_slice, file_group=FileGroupId("record_index", name)),
    ):
        with pytest.raises(FormatError):
            compact_group(table.storage, replace(unit, file_slice=wrong), TOKEN)


def test_a_damaged_or_missing_file_leaves_no_base_file(table: Table) -> None:
    unit = unit_of(table, {LOG: block(table, "1", a=5)[:-9]})
    with pytest.raises(CorruptFileError):
        compact_group(table.storage, unit, TOKEN)
    (table.path / ROOT / "record_index" / LOG).unlink()
    with pytest.raises(StorageNotFoundError):
        compact_group(table.storage, unit, WriteToken(0, 8, 0))
    assert not list((table.path / ROOT / "record_index").glob("*.hfile"))
