"""Bugs of real Hudi's compactions, clusterings and overwrites that lost or doubled rows, or never ended (ids are
Hudi's).

Each test holds with the guard in place, and shows what happens when the named guard is taken away.
"""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.codec.avro.datum import DatumCodec
from hudi_core.codec.log.blocks import ROLLBACK_COMMAND, BlockType, CorruptBlock, HeaderKey, LogBlock, encode_block
from hudi_core.codec.log.content import encode_avro_block
from hudi_core.engine.local import LocalEngine
from hudi_core.errors import ConflictError, HudiError
from hudi_core.filegroup.read import log_scan
from hudi_core.filegroup.read.log_scan import log_blocks
from hudi_core.metadata_table.write.lifetime import drop_metadata_table
from hudi_core.model.names import parse_log_file
from hudi_core.services.clustering.strategies import ClusteredAlike
from hudi_core.services.overwrite import job, plan
from hudi_core.services.source import count
from hudi_core.services.write import verb
from hudi_core.storage.base import Storage
from hudi_core.table import HudiTable
from hudi_core.transaction import conflict
from hudi_core.transaction.owner import Owner
from hudi_core.verbs.run import RunRequest
from hudi_core.view.file_group import DataFile
from tests.support import golden_clusterings
from tests.support.changed_tables import open_context
from tests.support.golden_data import GoldenCase
from tests.support.log_compactions import compact_all, merge_logs, schedule
from tests.support.overwrites import delete, overwrite, own_rows, places, put_source, within
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import assert_metadata_true, read_rows
from tests.support.table_requests import perform
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ["6", "8", "9"]
BY_ONE_KEY = [("6", "complex_keygen_single"), ("8", "complex_keygen_single"), ("9", "complex_keygen_single")]


def cluster(table: Path) -> Any:
    """Plans and runs clusterings until nothing is due, three at most."""
    request = RunRequest(table=str(table), service="clustering", schedule=True)
    context, owner = open_context(table), Owner.current("test")
    return [perform(context, request, LocalEngine(1), owner).instants for _ in range(3)]


def cluster_all(table: Path) -> None:
    """Clusters every file slice."""
    golden_clusterings.cluster(table, golden_clusterings.plan_of_all(table, {}))


@pytest.mark.parametrize("version", VERSIONS)
def test_hudi_13475_hudi_14086_what_was_clustered_is_not_clustered_for_ever(
    golden: Golden, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guard: groups that an earlier clustering left as the next one would are passed over."""
    assert [len(done) for done in cluster(golden(version, "cow_basic").table)] == [1, 0, 0]
    monkeypatch.setattr(ClusteredAlike, "holds", lambda *_: False)
    assert [len(done) for done in cluster(golden(version, "cow_basic").table)] == [1, 1, 1]


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6"]))
@pytest.mark.parametrize("attempts", [(0, 1), (1, 0)])
def test_hudi_6758_hudi_10803_hudi_7549_hudi_10922_log_files_of_two_attempts_count(
    golden: Golden, version: str, attempts: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0.14.1 dropped blocks of a retried task as spurious, which were the only ones with their rows: a compaction, log
    compaction or clustering wrote none of them (#10922 removed that again). Guard: which attempt a block's header names
    says nothing of whether it counts.
    """
    table = golden(version, "mor_basic").table
    drop_metadata_table(open_context(table).storage)  # it does not know the second file
    rows = read_rows(table)
    written_by_attempts(table, attempts)
    assert_same_rows(read_rows(table), rows)
    compacted, clustered, *unguarded = (Path(shutil.copytree(table, tmp_path / name)) for name in "abcd")
    compact_all(compacted)
    assert_same_rows(read_rows(compacted), rows)
    cluster_all(clustered)
    assert_same_rows(read_rows(clustered), rows, ignore=("_hoodie_file_name",))
    assert schedule(table).instant is not None
    merge_logs(table)
    assert_same_rows(read_rows(table), rows)
    compact_all(table)
    assert_same_rows(read_rows(table), rows)
    with monkeypatch.context() as patch:
        patch.setattr(log_scan, "log_blocks", _of_one_attempt)
        compact_all(unguarded[0])
        cluster_all(unguarded[1])
    for path in unguarded:
        with pytest.raises(AssertionError):
            assert_same_rows(read_rows(path), rows, ignore=("_hoodie_file_name",))


def written_by_attempts(table: Path, attempts: tuple[int, int]) -> None:
    """Makes two log files of one that has a data block and a delete block: each is of one of the attempts at its write,
    and has half of the rows. In the first of them is also a row that was written and rolled back before.
    """
    context = open_context(table)
    view = context.view(context.active.load())
    logs = [log for name in view.partitions() for item in view.latest_merged_slices(name) for log in item.log_files]
    ((first, (data, deletes)),) = [
        (log, blocks) for log in logs if len(blocks := _whole_blocks(log_blocks(context.storage, [log]))) == 2
    ]
    content = (table / first.path).read_bytes()
    records = records_of(content[data.content_offset :][: data.content_length])
    codec = DatumCodec(json.loads(str(data.schema)))
    rolled_back = {**codec.decode(records[0]), "_hoodie_record_key": "rolled back", "id": "rolled back"}
    half = len(records) // 2
    assert half
    name = parse_log_file(first.name)
    assert name.token is not None
    second = replace(name, token=replace(name.token, attempt_id=name.token.attempt_id + 1))
    command = {
        HeaderKey.INSTANT_TIME: f"{int(str(data.instant_time)) + 1}",
        HeaderKey.TARGET_INSTANT_TIME: str(data.instant_time),
        HeaderKey.COMMAND_BLOCK_TYPE: ROLLBACK_COMMAND,
    }
    (table / first.path).write_bytes(
        _attempted(data, [codec.encode(rolled_back)], 0)
        + encode_block(BlockType.COMMAND, command)
        + _attempted(data, records[:half], attempts[0])
    )
    (table / first.partition / str(second)).write_bytes(
        _attempted(data, records[half:], attempts[1]) + content[deletes.offset :][: deletes.length]
    )


def _whole_blocks(blocks: Iterable[LogBlock | CorruptBlock]) -> list[LogBlock]:
    return [block for block in blocks if isinstance(block, LogBlock)]


def records_of(content: bytes) -> list[bytes]:
    """The Avro data of a block's records, which are behind its version and their number."""
    records: list[bytes] = []
    at = 8
    while at < len(content):
        (length,) = struct.unpack_from(">i", content, at)
        records.append(content[at + 4 : at + 4 + length])
        at += 4 + length
    return records


def _attempted(block: LogBlock, records: list[bytes], attempt: int) -> bytes:
    headers = {
        HeaderKey.INSTANT_TIME: str(block.instant_time),
        HeaderKey.SCHEMA: str(block.schema),
        HeaderKey.BLOCK_IDENTIFIER: f"{attempt},0",
    }
    return encode_block(BlockType.AVRO_DATA, headers, encode_avro_block(records))


def _of_one_attempt(storage: Storage, log_files: Iterable[DataFile], *, most_kept: int) -> list[LogBlock]:
    """Of each instant the blocks of the last attempt, as far as they name it."""
    blocks = _whole_blocks(log_blocks(storage, log_files, most_kept=most_kept))
    last: dict[str | None, str] = {}
    for block in blocks:
        attempt = block.headers.get(HeaderKey.BLOCK_IDENTIFIER, "")
        last[block.instant_time] = max(last.get(block.instant_time, ""), attempt)
    return [
        block for block in blocks if block.headers.get(HeaderKey.BLOCK_IDENTIFIER) in (None, last[block.instant_time])
    ]


@pytest.mark.parametrize("what", tiered(["delete", "overwrite", "overwrite table"], ["delete", "overwrite"]))
@pytest.mark.parametrize("case", ["mor_compaction_requested", "clustering_requested_cow"])
@pytest.mark.parametrize("version", tiered(VERSIONS, ["9"]))
def test_hudi_18830_rows_that_were_replaced_stay_so_behind_a_pending_plan(
    golden: Golden, version: str, case: str, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards: plans on what is replaced are a conflict, when the overwrite begins and when it commits; a clustering is,
    too, among the operations that the commit is compared with.
    """
    table = golden(version, case).table
    rows = read_rows(table)
    name = min(rows.column("_hoodie_partition_path").to_pylist())
    few = within(rows, name).slice(0, 3)
    source = put_source(own_rows(table, few), tmp_path)

    def replace_rows() -> None:
        if what == "delete":
            delete(table, name)
        else:
            overwrite(table, source, whole_table=what == "overwrite table")

    with pytest.raises(ConflictError, match="is pending on file groups"):
        replace_rows()
    assert places(read_rows(table)) == places(rows)
    for module in (plan, job):
        monkeypatch.setattr(module, "check_no_plans", lambda *_, **__: None)
    monkeypatch.setattr(conflict, "_shared", lambda *_: frozenset())
    replace_rows()
    assert len(open_context(table).active.load().pending()) == 1, "the plan, whose run would bring the rows back"
    assert within(read_rows(table), name).num_rows == (0 if what == "delete" else few.num_rows)


@pytest.mark.parametrize("version", tiered(VERSIONS, ["8"]))
def test_hudi_19771_an_overwrite_of_the_table_keeps_its_history(
    golden: Golden, version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hudi's row writer deletes the table, its timeline and metadata table too, and makes it anew. Guard: the overwrite
    adds an instant, and what it replaces goes by what its commit says. Without: the same, on a table that is emptied.
    """

    def overwritten(table: Path) -> None:
        before, rows = open_context(table).active.load(), read_rows(table)
        kept = {path: path.stat().st_ino for path in table.rglob("*") if path.is_file() and path.name[:1].isalnum()}
        few = own_rows(table, rows.slice(0, 3))
        result = overwrite(table, put_source(few, tmp_path, name=f"{table.parent.name}-source"), whole_table=True)
        after = open_context(table).active.load()
        assert [item.requested_time for item in after] == [*(item.requested_time for item in before), result.instant]
        newest = before.commits().last()
        assert newest is not None
        assert read_rows(table).num_rows == 3
        assert places(rows_as_of(table, newest.requested_time)) == places(rows)
        changed = {path for path, inode in kept.items() if not path.exists() or path.stat().st_ino != inode}
        assert not {path.relative_to(table) for path in changed} - {Path(".hoodie/hoodie.properties")}
        assert_metadata_true(table)

    overwritten(golden(version, "mor_basic").table)
    request = verb._request

    def emptied_first(context: Any, *given: Any) -> str | None:
        for item in context.active.load().completed():
            context.storage.delete(context.active.path_of(item))
        return request(context, *given)

    monkeypatch.setattr(verb, "_request", emptied_first)
    with pytest.raises((AssertionError, HudiError)):
        overwritten(golden(version, "mor_basic").table)


def rows_as_of(table: Path, instant: str) -> pa.Table:
    result = HudiTable.open(str(table)).read(as_of=instant)
    return pa.Table.from_batches(list(result.batches), result.schema)


@pytest.mark.parametrize("version", tiered(VERSIONS, ["9"]))
def test_hudi_6828_no_rows_replace_the_partitions_that_are_named(golden: Golden, version: str, tmp_path: Path) -> None:
    """Guard: an overwrite without rows replaces what it names, instead of what its rows belong to."""

    def left(table: Path, folder: Path, *, named: bool) -> int:
        rows = read_rows(table)
        name = min(rows.column("_hoodie_partition_path").to_pylist())
        overwrite(table, put_source(own_rows(table, rows.slice(0, 0)), folder), partitions=(name,) if named else ())
        return int(within(read_rows(table), name).num_rows)

    assert left(golden(version, "cow_basic").table, tmp_path / "guarded", named=True) == 0
    assert left(golden(version, "cow_basic").table, tmp_path / "unguarded", named=False) > 0


@pytest.mark.parametrize(("version", "case"), BY_ONE_KEY)
def test_complex_keys_of_one_field_are_as_the_table_has_them(
    golden: Golden, version: str, case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Release 1.1.0: `value` instead of `field:value` doubled rows at the next upsert. Guard: the table's own keys."""

    def keys(table: Path) -> tuple[pa.Table, pa.Table]:
        rows = read_rows(table)
        source = put_source(own_rows(table, rows), tmp_path, name=f"source{len(list(tmp_path.iterdir()))}")
        overwrite(table, source, whole_table=True)
        return rows, read_rows(table)

    before, after = keys(golden(version, case).table)
    assert places(after) == places(before)
    knows = count._labels_one
    monkeypatch.setattr(count, "_labels_one", lambda *given: not knows(*given))
    before, after = keys(golden(version, case).table)
    assert places(after) != places(before)
