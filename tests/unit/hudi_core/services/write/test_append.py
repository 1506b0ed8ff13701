"""Log files of a write: their names, what is in their blocks, and what becomes of one that fails."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from hudi_core.codec.avro.schema import add_meta_fields, parse_schema
from hudi_core.codec.log.blocks import BlockType, HeaderKey, LogBlock
from hudi_core.codec.log.content import OrderingValue, decode_delete_block
from hudi_core.engine.local import LocalEngine
from hudi_core.engine.protocol import TaskAttempt
from hudi_core.errors import ConflictError, FormatError
from hudi_core.filegroup.read.log_scan import log_blocks
from hudi_core.filegroup.write import log_file
from hudi_core.filegroup.write.markers import list_markers
from hudi_core.model.names import IS_DELETED, LogFileName, parse_data_file, parse_log_file
from hudi_core.services.compaction.planner import CompactionService
from hudi_core.services.write.append import LogAppend
from hudi_core.services.write.upsert import UpsertTarget
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.actions.write_stats import WriteStat
from hudi_core.transaction.reconcile import OWN_ATTEMPTS
from hudi_core.view.file_group import DataFile, FileSlice
from tests.support.changed_tables import an_owner, open_context
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import BUCKETS, put_source, within
from tests.support.running_attempts import let_run
from tests.support.table_invariants import assert_metadata_true, read_rows
from tests.support.tiers import tiered
from tests.support.writes import Model, SeenEngine, changed, commit_of, like, own_columns, write

Golden = Callable[[str, str], GoldenCase]
VERSIONS = tiered(["6", "8", "9"], ["6", "9"])
DAY = "2024-01-01"


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


def content(table: Path, block: LogBlock) -> bytes:
    data = (table / block.path).read_bytes()
    return data[block.content_offset : block.content_offset + block.content_length]


def records_of(table: Path, block: LogBlock) -> list[dict[str, Any]]:
    """The records of a data block, by fastavro alone."""
    data = content(table, block)
    version, count = struct.unpack(">ii", data[:8])
    assert version == 3
    schema, at, found = fastavro.parse_schema(json.loads(block.schema or "")), 8, []
    for _ in range(count):
        (size,) = struct.unpack(">i", data[at : at + 4])
        found.append(fastavro.schemaless_reader(BytesIO(data[at + 4 : at + 4 + size]), schema, None))
        at += 4 + size
    assert at == len(data)
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_a_log_file_is_named_after_its_slice_in_layout_1_and_after_its_write_in_layout_2(
    golden: Golden, tmp_path: Path, version: str
) -> None:
    """Its version is the next one of the slice, or the first. A second write goes on from there."""
    table = golden(version, "mor_basic").table
    rows = changed(own_columns(read_rows(table)), ts=lambda ts: ts + 99999)
    for number in range(2):
        before = slices(table)
        result = write(table, "upsert", put_source(changed(rows, qty=number), tmp_path, name=str(number)))
        stats = appended(table, result.instant)
        assert len(stats) > 1
        for stat in stats:
            name, old = parse_log_file(stat.name), before[stat.file_id]
            assert old.base_file is not None
            assert name.file_id == stat.file_id
            assert name.token is not None
            assert name.token.attempt_id >= OWN_ATTEMPTS
            logs = [parse_log_file(log.name) for log in old.log_files]
            if version == "6":
                assert (name.instant, name.version) == (old.base_instant, max([0, *(log.version for log in logs)]) + 1)
                assert (stat.prev_commit, stat.base_file) == (old.base_instant, old.base_file.name)
                assert stat.log_files == (*(log.name for log in reversed(old.log_files)), stat.name)
            else:
                assert (name.instant, name.version) == (result.instant, 1)
                assert (stat.prev_commit, stat.base_file, stat.log_files) == (result.instant, "", (stat.name,))
            assert (stat.log_version, stat.log_offset) == (name.version, 0)
            assert (table / stat.path).stat().st_size == stat.file_size_in_bytes == stat.total_write_bytes
    assert_metadata_true(table)


@pytest.mark.parametrize("version", VERSIONS)
def test_rows_are_a_data_block(golden: Golden, tmp_path: Path, version: str) -> None:
    """Those that are marked as deleted stay rows, with their ordering values."""
    table = golden(version, "payload_default").table
    model = Model.of(table, event_time=True)
    rows = own_columns(within(read_rows(table), DAY)).slice(0, 6)
    source = changed(rows, ts=lambda ts: ts + 99999, qty=7)
    source = pa.concat_tables([source.slice(0, 4), changed(source.slice(4), **{IS_DELETED: True})])
    model.upsert(source)
    result = write(table, "upsert", put_source(source, tmp_path, files=2))
    (stat,) = appended(table, result.instant)
    assert (stat.num_writes, stat.num_update_writes, stat.num_deletes, stat.num_inserts) == (4, 4, 2, 0)
    assert (result.updated, result.deleted, result.inserted) == (4, 2, 0)
    (block,) = blocks_of(table, stat)
    assert block.type is BlockType.AVRO_DATA
    assert set(block.headers) == {HeaderKey.INSTANT_TIME, HeaderKey.SCHEMA}
    assert block.instant_time == result.instant
    schema = commit_of(table, result.instant).schema_text
    assert json.loads(block.schema or "") == add_meta_fields(parse_schema(schema or "", path="commit"))
    records = records_of(table, block)
    own = [{name: row[name] for name in rows.schema.names} for row in records]
    assert sorted(own, key=lambda row: str(row["id"])) == sorted(source.to_pylist(), key=lambda row: str(row["id"]))
    for row in records:
        assert (row["_hoodie_commit_time"], row["_hoodie_record_key"]) == (result.instant, row["id"])
        assert (row["_hoodie_partition_path"], row["_hoodie_file_name"]) == (DAY, stat.file_id)
    assert len({row["_hoodie_commit_seqno"] for row in records}) == 6
    model.check(table)


@pytest.mark.parametrize("version", VERSIONS)
def test_deletes_are_a_delete_block(golden: Golden, tmp_path: Path, version: str) -> None:
    """Without ordering values: it deletes rows whatever theirs are."""
    table = golden(version, "payload_default").table
    model, rows = Model.of(table, event_time=True), own_columns(within(read_rows(table), DAY)).slice(0, 6)
    model.delete(rows)
    result = write(table, "delete", put_source(rows.select(["dt", "id"]), tmp_path))
    (stat,) = appended(table, result.instant)
    assert (stat.num_writes, stat.num_update_writes, stat.num_deletes, stat.num_inserts) == (0, 0, 6, 0)
    (block,) = blocks_of(table, stat)
    assert (block.type, block.instant_time) == (BlockType.DELETE, result.instant)
    entries = decode_delete_block(content(table, block), path=block.path)
    assert sorted(str(entry.key) for entry in entries) == sorted(rows.column("id").to_pylist())
    assert {entry.partition for entry in entries} == {DAY}
    assert {entry.ordering for entry in entries} == {OrderingValue("int", 0)}, "Hudi's mark of a natural delete"
    model.check(table)
    assert_metadata_true(table)


def test_many_rows_are_several_blocks(golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that memory does not grow with them."""
    table = golden("9", "payload_default").table
    model, rows = Model.of(table, event_time=True), own_columns(within(read_rows(table), DAY))
    source = changed(rows, ts=lambda ts: ts + 99999, note="x" * 5000)
    model.upsert(source)
    monkeypatch.setattr(log_file, "BLOCK_BYTES", 20_000)
    options = {"airflow_hudi.memory.bytes": str(1 << 20)}
    monkeypatch.setattr("hudi_core.config.rows_config.WriteConfig.piece_bytes", 5_000)
    result = write(table, "upsert", put_source(source, tmp_path), options)
    (stat,) = appended(table, result.instant)
    blocks = blocks_of(table, stat)
    assert len(blocks) > 2
    assert sum(len(records_of(table, block)) for block in blocks) == rows.num_rows == stat.num_writes
    assert max(block.content_length for block in blocks) < 40_000
    model.check(table)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_pending_compaction_does_not_lose_them(golden: Golden, tmp_path: Path, version: str) -> None:
    """In layout 1 they belong to its instant: the slice that it makes."""
    table = golden(version, "mor_compaction_requested").table
    model, rows = Model.of(table, event_time=version != "6"), own_columns(read_rows(table))
    (compaction,) = open_context(table).active.load().pending_compactions()
    source = changed(rows.slice(0, 60), ts=lambda ts: ts + 99999, qty=7)
    model.upsert(source)
    result = write(table, "upsert", put_source(source, tmp_path))
    stats = appended(table, result.instant)
    assert stats
    if version == "6":
        planned = {item.file_id for item in open_context(table).active.read_plan(compaction.requested_time).operations}
        assert {stat.file_id for stat in stats} <= planned
        for stat in stats:
            name = parse_log_file(stat.name)
            assert (name.instant, stat.prev_commit) == (compaction.requested_time, compaction.requested_time)
            assert (stat.base_file, stat.log_files) == ("", (stat.name,))
    model.check(table)
    CompactionService().run(open_context(table), compaction.requested_time, LocalEngine(1), an_owner(), None)
    model.check(table)
    later = changed(source, ts=lambda ts: ts + 1, qty=8)
    model.upsert(later)
    assert write(table, "upsert", put_source(later, tmp_path, name="later")).updated == later.num_rows == 60
    model.check(table)
    assert_metadata_true(table)


def log_append(table: Path, tmp_path: Path, epoch: int = 1) -> tuple[LogAppend, UpsertTarget]:
    """A log file that is begun under the instant of a write that is done."""
    engine = SeenEngine()
    rows = own_columns(within(read_rows(table), DAY)).slice(0, 3)
    result = write(table, "upsert", put_source(rows, tmp_path), engine=engine)
    target: UpsertTarget = engine.consumers[-1].args[0]
    (number,) = target.routes.appended
    storage = LocalStorage(table)
    let_run(storage, str(result.instant), 1)
    item, instant = target.slices[number], target.log_instants[number]
    attempt = TaskAttempt(0, epoch, 77)
    made = LogAppend(storage, target.new.files, item, instant, attempt, target.policy, by_name=target.by_name)
    return made, target


@pytest.mark.parametrize("version", VERSIONS)
def test_a_marker_comes_before_the_file(golden: Golden, tmp_path: Path, version: str) -> None:
    table = golden(version, "payload_default").table
    log, target = log_append(table, tmp_path)
    (marker,) = list_markers(LocalStorage(table), target.new.files.instant)
    assert (marker.data_path, marker.kind) == (log.path, "APPEND" if version == "6" else "CREATE")
    with log:
        pass
    assert isinstance(parse_data_file(log.path.rpartition("/")[2]), LogFileName)


def test_a_file_that_fails_is_removed(golden: Golden, tmp_path: Path) -> None:
    """Its marker stays for the rollback."""
    table = golden("9", "payload_default").table
    log, target = log_append(table, tmp_path)
    rows = read_rows(table).drop_columns(["_hoodie_file_name"])
    at = rows.schema.get_field_index("qty")
    (bad, *_) = rows.set_column(at, "qty", rows.column("name")).to_batches()

    def fail() -> None:
        with log:
            log.delete([pa.array(["a"])])
            log.write(bad)

    with pytest.raises(FormatError, match="qty"):
        fail()
    assert not (table / log.path).exists()
    assert [marker.data_path for marker in list_markers(LocalStorage(table), target.new.files.instant)] == [log.path]


def test_a_file_of_an_attempt_that_is_over_is_removed(golden: Golden, tmp_path: Path) -> None:
    """When it is begun, and when it is complete."""
    table = golden("9", "payload_default").table
    log, target = log_append(table, tmp_path)
    log.delete([pa.array(["a"])])
    for claim in (table / ".hoodie/.airflow_hudi/claims" / target.new.files.instant).iterdir():
        claim.unlink()
    with pytest.raises(ConflictError, match="the file was deleted"):
        log.close()
    assert not (table / log.path).exists()
    with pytest.raises(ConflictError, match="the file was deleted"):
        log_append(table, tmp_path / "again", epoch=5)
    assert list_markers(LocalStorage(table), target.new.files.instant) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_buckets_get_new_rows_in_their_logs(golden: Golden, tmp_path: Path, version: str) -> None:
    """Also such as no base file has: readers find them all the same."""
    table = golden(version, "bucket_index_mor").table
    model, rows = Model.of(table, event_time=version != "6"), own_columns(read_rows(table))
    source = like(rows, *({"id": f"new {number}"} for number in range(12)))
    model.upsert(source)
    result = write(table, "upsert", put_source(source, tmp_path), BUCKETS)
    assert sum(stat.num_writes for stat in appended(table, result.instant)) == 12
    assert appended(table, result.instant) == [*commit_of(table, result.instant).write_stats()]
    model.check(table)
    model.delete(source.slice(4))
    write(table, "delete", put_source(source.slice(4), tmp_path, name="gone"), BUCKETS)
    model.check(table)
    assert_metadata_true(table)
