"""The change logs of writes: which entries they have, and that each commit's changes lead to the next snapshot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.codec.log.blocks import BlockType, HeaderKey, LogBlock
from hudi_core.config.table_config import CHANGE_LOG_MODE, CHANGE_LOGS, KEYS_ONLY, ROWS_BEFORE, update_properties
from hudi_core.errors import ExecutionError
from hudi_core.filegroup.read.log_scan import log_blocks
from hudi_core.filegroup.write.change_log import ChangeLog
from hudi_core.model.names import IS_DELETED, parse_base_file, parse_log_file
from hudi_core.query.cdc_read import cdc_batches
from hudi_core.storage.local import LocalStorage
from hudi_core.table import HudiTable
from hudi_core.timeline.actions.write_stats import WriteStat
from hudi_core.view.file_group import DataFile
from tests.golden.test_cdc import State, apply, snapshot, table_of, texts
from tests.support.changed_tables import choose_payload, data_files, open_context
from tests.support.fault_storage import MUTATIONS, FaultPlan, InjectedCrash, Operation
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import BUCKETS, put_source
from tests.support.service_calls import dead_process
from tests.support.table_invariants import assert_metadata_true, pending_instants, read_rows
from tests.support.tiers import tiered
from tests.support.writes import Model, SeenEngine, changed, commit_of, like, own_columns, write

Golden = Callable[[str, str], GoldenCase]
MODES = (KEYS_ONLY, ROWS_BEFORE, "DATA_BEFORE_AFTER")
VERSIONS = ("6", "8", "9")
DEFAULT_PAYLOAD = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"


def logged_table(golden: Golden, version: str, mode: str, case: str = "payload_default_cow") -> Path:
    """A table with change logs whose rows are compared by `ts`."""
    table = golden(version, case).table
    if version == "6":
        choose_payload(table, DEFAULT_PAYLOAD)
    update_properties(LocalStorage(table), {CHANGE_LOGS.name: "true", CHANGE_LOG_MODE.name: mode})
    return table


def stats_of(table: Path, instant: str | None) -> list[WriteStat]:
    return [*commit_of(table, instant).write_stats()]


def entries(table: Path, stat: WriteStat) -> Iterator[dict[str, Any]]:
    """The entries of a stat's change logs."""
    for path, size in stat.cdc_stats:
        assert (table / path).stat().st_size == size
        for batch in cdc_batches(LocalStorage(table), DataFile(stat.partition_path, path.rpartition("/")[2], size)):
            yield from batch.to_pylist()


def state_of(table: Path) -> State:
    return snapshot(HudiTable.open(str(table)), None)


def changes_of(table: Path, instant: str | None) -> pa.Table:
    """The changes of the newest commit."""
    *_, before, last = open_context(table).active.load().commits()
    assert last.requested_time == instant
    return table_of(HudiTable.open(str(table)), query="cdc", begin=before.completed_at)


def check_logged(table: Path, instant: str | None) -> None:
    """Each merged file group has one change log, with an entry for each row that the stat counts."""
    for stat in stats_of(table, instant):
        is_new = stat.prev_commit == "null"
        assert len(stat.cdc_stats) == (0 if is_new else 1)
        ops = Counter(entry["op"] for entry in entries(table, stat))
        counted = {"u": stat.num_update_writes, "d": stat.num_deletes, "i": 0 if is_new else stat.num_inserts}
        assert ops == {op: count for op, count in counted.items() if count}


def all_kinds(rows: pa.Table) -> pa.Table:
    """Rows that win, that lose, that delete, that are new, and a delete of a key that is not there."""
    return pa.concat_tables(
        [
            changed(rows.slice(0, 5), ts=lambda ts: ts + 1, name="changed"),
            changed(rows.slice(5, 3), ts=1, name="late"),
            changed(rows.slice(8, 3), ts=lambda ts: ts + 1, **{IS_DELETED: True}),
            changed(rows.slice(11, 1), ts=1, **{IS_DELETED: True}),
            like(rows, {"id": "new"}, {"id": "absent", IS_DELETED: True}),
        ]
    )


@pytest.mark.parametrize(
    ("version", "mode"),
    tiered([(version, mode) for version in VERSIONS for mode in MODES], [("6", ROWS_BEFORE), ("9", KEYS_ONLY)]),
)
def test_the_changes_of_each_write_lead_to_the_next_snapshot(
    golden: Golden, tmp_path: Path, version: str, mode: str
) -> None:
    """Of rows that change, lose, go, come back and fill small files."""
    table = logged_table(golden, version, mode)
    model, rows = Model.of(table, event_time=True), own_columns(read_rows(table)).sort_by("id")
    before = state_of(table)
    for number, (operation, source) in enumerate(
        [
            ("upsert", all_kinds(rows)),
            ("delete", rows.slice(0, 4)),
            ("upsert", changed(rows.slice(2, 4), ts=lambda ts: ts + 9, name="back")),
            ("insert", like(rows, *({"id": f"more {at}"} for at in range(5)))),
            ("upsert", changed(rows.slice(5, 3), ts=0)),
        ]
    ):
        getattr(model, operation)(source)
        result = write(table, operation, put_source(source, tmp_path, name=str(number)))
        check_logged(table, result.instant)
        after = state_of(table)
        assert apply(before, changes_of(table, result.instant)) == texts(after)
        before = after
        model.check(table)
        assert_metadata_true(table)
    assert result.updated == 0
    assert [[*entries(table, stat)] for stat in stats_of(table, result.instant)] == [[]] * result.files_written


def test_a_log_is_named_after_its_write_and_has_whole_images(golden: Golden, tmp_path: Path) -> None:
    table = golden("9", "cdc_cow").table
    rows = own_columns(read_rows(table)).sort_by("id")
    source = pa.concat_tables([changed(rows.slice(0, 1), ts=lambda ts: ts + 1, name="x"), like(rows, {"id": "new"})])
    result = write(table, "upsert", put_source(source, tmp_path))
    (stat,) = stats_of(table, result.instant)
    ((path, size),) = stat.cdc_stats
    name, base = parse_log_file(path.rpartition("/")[2]), parse_base_file(stat.name)
    assert (name.file_id, name.instant, name.version, name.cdc) == (base.file_id, result.instant, 1, True)
    assert name.token == base.token
    (block,) = log_blocks(LocalStorage(table), [DataFile(stat.partition_path, str(name), size)])
    assert isinstance(block, LogBlock)
    assert (block.type, block.instant_time) == (BlockType.CDC_DATA, result.instant)
    assert set(block.headers) == {HeaderKey.INSTANT_TIME, HeaderKey.SCHEMA}
    old = rows.slice(0, 1).to_pylist()[0]
    assert [*entries(table, stat)] == [
        {"op": "u", "ts_ms": result.instant, "before": old, "after": {**old, "ts": old["ts"] + 1, "name": "x"}},
        {"op": "i", "ts_ms": result.instant, "before": None, "after": {**old, "id": "new"}},
    ]


@pytest.mark.parametrize("case", ["types_cow", "no_meta_fields_cow"])
def test_images_of_all_types_and_keys_without_meta_columns(golden: Golden, tmp_path: Path, case: str) -> None:
    table = golden("9", case).table
    update_properties(LocalStorage(table), {CHANGE_LOGS.name: "true"})
    rows = own_columns(read_rows(table)).slice(0, 3)
    due = {str(row) for row in rows.to_pylist()}
    for operation, op in (("insert", "i"), ("upsert", "u"), ("delete", "d")):
        result = write(table, operation, put_source(rows, tmp_path, name=operation))
        found = [entry for stat in stats_of(table, result.instant) for entry in entries(table, stat)]
        assert {entry["op"] for entry in found} == {op}
        assert {str(entry["before"]) for entry in found} == ({"None"} if op == "i" else due)
        assert {str(entry["after"]) for entry in found} == ({"None"} if op == "d" else due)
    update_properties(LocalStorage(table), {CHANGE_LOG_MODE.name: KEYS_ONLY})
    result = write(table, "insert", put_source(rows, tmp_path, name="keys"))
    found = [entry for stat in stats_of(table, result.instant) for entry in entries(table, stat)]
    keys = rows["id"].cast(pa.string()).to_pylist()
    assert sorted((entry["op"], entry["record_key"]) for entry in found) == [("i", key) for key in sorted(keys)]


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
def test_rows_of_a_merge_on_read_table(golden: Golden, tmp_path: Path, version: str) -> None:
    """Those in log files have no change log; the stat names the slice, for Hudi's queries. A file group that is filled
    has one, and counts as no small file then, as in Hudi.
    """
    table = golden(version, "cdc_mor").table
    model, rows = Model.of(table, event_time=version != "6"), own_columns(read_rows(table))
    before, day = state_of(table), "2031-01-01"
    made = like(rows, *({"id": f"made {at}", "dt": day} for at in range(4)))
    named = {name: changed(made, id=lambda key, name=name: f"{name} {key}") for name in ("second", "third")}
    stats: list[WriteStat] = []
    for number, (operation, source) in enumerate(
        [
            ("insert", made),
            ("insert", named["second"]),
            ("insert", named["third"]),
            ("upsert", changed(made, ts=lambda ts: ts + 1)),
        ]
    ):
        getattr(model, operation)(source)
        result = write(table, operation, put_source(source, tmp_path, name=str(number)))
        stats += stats_of(table, result.instant)
        after = state_of(table)
        assert apply(before, changes_of(table, result.instant)) == texts(after)
        before = after
    first, filled, second, log = stats
    assert [bool(stat.cdc_stats) for stat in stats] == [False, True, False, False]
    assert first.file_id == filled.file_id == log.file_id
    assert first.prev_commit == second.prev_commit == "null"
    assert (log.base_file, log.prev_commit) == (filled.name, parse_base_file(filled.name).instant)
    assert log.log_files == (filled.cdc_stats[0][0].rpartition("/")[2], log.name)
    model.check(table)
    assert_metadata_true(table)


@pytest.mark.parametrize("case", ["bucket_index_cow", "bucket_index_mor"])
def test_buckets(golden: Golden, tmp_path: Path, case: str) -> None:
    """Inserts go to buckets that are there, too."""
    table = golden("9", case).table
    update_properties(LocalStorage(table), {CHANGE_LOGS.name: "true"})
    before, rows = state_of(table), own_columns(read_rows(table))
    source = changed(rows.slice(0, 9), ts=lambda ts: ts + 1, qty=1)
    for operation, given in ("upsert", source), ("insert", changed(rows.slice(0, 9), id=lambda key: f"{key} new")):
        result = write(table, operation, put_source(given, tmp_path, name=operation), BUCKETS)
        stats = stats_of(table, result.instant)
        assert {bool(stat.cdc_stats) for stat in stats if stat.prev_commit != "null"} == {case == "bucket_index_cow"}
        after = state_of(table)
        assert apply(before, changes_of(table, result.instant)) == texts(after)
        before = after
    assert_metadata_true(table)


def is_closed_log(change: Operation) -> bool:
    return change.path.endswith(".cdc") and change.kind == "output.close"


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
@pytest.mark.parametrize("case", ["cdc_cow", "cdc_mor"])
def test_a_rollback_deletes_the_change_logs_of_a_write_that_died(
    golden: Golden, tmp_path: Path, version: str, case: str
) -> None:
    """As it completes the log, or behind that."""
    table = golden(version, case).table
    rows = own_columns(read_rows(table))
    given = changed(rows, ts=lambda ts: ts + 1, id=lambda key: f"{key} new", dt="2031-01-01")
    write(table, "insert", put_source(like(given, {"id": "first"}), tmp_path, name="first"))
    files, model, source = data_files(table), Model.of(table, event_time=version != "6"), put_source(given, tmp_path)
    for timing in ("before", "after"):
        plan = FaultPlan(when=is_closed_log, timing=timing, counts=MUTATIONS)
        with pytest.raises(InjectedCrash):
            write(table, "insert", source, plan=plan, owner=dead_process())
        assert len(pending_instants(table)) == 1
        assert len(set(data_files(table)) - set(files)) == 2
    result = write(table, "upsert", source)
    model.upsert(given)
    named = {path for stat in stats_of(table, result.instant) for path in stat.sizes}
    assert set(data_files(table)) - set(files) == named
    assert pending_instants(table) == set()
    model.check(table)
    assert_metadata_true(table)


def test_a_log_that_is_gone_or_lacks_an_entry_is_not_published(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = golden("9", "cdc_cow").table
    rows, files = own_columns(read_rows(table)), data_files(table)
    source = put_source(changed(rows, ts=lambda ts: ts + 1), tmp_path)

    def without_logs(results: list[Any]) -> list[Any]:
        for log in set(table.rglob("*.cdc")) - {table / path for path in files}:
            log.unlink()
        return results

    with pytest.raises(ExecutionError, match="no such file"):
        write(table, "upsert", source, engine=SeenEngine(without_logs))
    monkeypatch.setattr(ChangeLog, "add", lambda *_: None)
    with pytest.raises(ExecutionError, match="the change log has 0 entries"):
        write(table, "upsert", source)
    assert set(data_files(table)) == set(files)
