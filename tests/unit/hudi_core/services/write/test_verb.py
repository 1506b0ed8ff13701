"""insert_overwrite and delete_partition as requests: empty inputs, dry runs, live writers, looks before them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_core.config.concurrency_config import FAILED_WRITES_POLICY
from hudi_core.config.engine_config import LOCAL_MAX_UNITS
from hudi_core.engine.local import LocalEngine
from hudi_core.errors import ConfigError, ConflictError, StorageNotFoundError
from hudi_core.services.lifecycle import run_instant
from hudi_core.services.write import verb
from hudi_core.table import HudiTable
from hudi_core.timeline.instant import Action
from hudi_core.verbs.write import DeletePartitionRequest, InsertOverwriteRequest
from tests.support.changed_tables import open_context
from tests.support.fault_storage import MUTATIONS, FaultPlan, InjectedCrash
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import commit_of, delete, overwrite, own_rows, put_source, within
from tests.support.service_calls import dead_process, perform, restore_act
from tests.support.table_invariants import assert_metadata_true, assert_readable, read_rows
from tests.support.table_requests import choose_engine, nothing_to_do
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]


@pytest.fixture(params=["6", "9"])
def table(request: pytest.FixtureRequest, golden: Golden) -> Path:
    return golden(request.param, "mor_basic").table


def partitions(table: Path) -> list[str]:
    return sorted(set(read_rows(table).column("_hoodie_partition_path").to_pylist()))


def empty_source(table: Path, tmp_path: Path) -> Path:
    return put_source(own_rows(table, read_rows(table)).slice(0, 0), tmp_path)


def test_no_rows_replace_nothing(table: Path, tmp_path: Path) -> None:
    rows = read_rows(table)
    result = overwrite(table, empty_source(table, tmp_path), token="a")
    assert result.instant is None
    assert "--whole-table" in str(result.reason)
    assert_readable(table, rows)


def test_hudi_6828_no_rows_empty_the_partitions_that_are_named(table: Path, tmp_path: Path) -> None:
    rows, (first, *_) = read_rows(table), partitions(table)
    result = overwrite(table, empty_source(table, tmp_path), partitions=(first,))
    assert (result.records, result.files_written, result.partitions) == (0, 0, 1)
    assert_readable(table, within(rows, first, outside=True))
    assert_metadata_true(table)
    assert commit_of(table, result.instant).operation_type == "INSERT_OVERWRITE"


def test_hudi_6828_no_rows_empty_the_whole_table(table: Path, tmp_path: Path) -> None:
    result = overwrite(table, empty_source(table, tmp_path), whole_table=True)
    assert result.replaced_file_groups > 0
    assert read_rows(table).num_rows == 0
    assert_metadata_true(table)
    assert commit_of(table, result.instant).operation_type == "INSERT_OVERWRITE_TABLE"


def test_hudi_19771_the_timeline_keeps_what_was_on_it(table: Path, tmp_path: Path) -> None:
    def instants() -> list[str]:
        return sorted(open_context(table).active.load().requested_times)

    before, rows = instants(), read_rows(table)
    result = overwrite(table, put_source(own_rows(table, rows), tmp_path), whole_table=True)
    assert instants() == [*before, result.instant]
    assert open_context(table).active.load().pending().requested_times == frozenset()


def test_a_dry_run_says_what_would_come(table: Path, tmp_path: Path) -> None:
    rows = read_rows(table)
    given = put_source(own_rows(table, rows), tmp_path)
    looked = overwrite(table, given, whole_table=True, dry_run=True)
    assert (looked.instant, looked.records, looked.files_written) == (None, rows.num_rows, 0)
    assert_readable(table, rows)
    done = overwrite(table, given, whole_table=True)
    assert (done.replaced_file_groups, done.partitions) == (looked.replaced_file_groups, looked.partitions)


def test_a_live_writer_is_waited_for(golden: Golden) -> None:
    """A write that began before may change file groups that go: its rows would be lost."""
    table = golden("6", "failed_inflight_mor").table
    for path in (table / ".hoodie").glob("*.inflight"):
        path.touch()
    rows = read_rows(table)
    with pytest.raises(ConflictError, match="would be lost"):
        delete(table, partitions(table)[0])
    assert_readable(table, rows)


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
@pytest.mark.parametrize("name", ["failed_inflight_cow", "failed_inflight_mor"])
def test_a_failed_write_is_rolled_back_first(golden: Golden, version: str, name: str) -> None:
    """As by a writer of Hudi: an EAGER one could not roll it back behind a later commit."""
    table = golden(version, name).table
    rows, first = read_rows(table), partitions(golden(version, name).table)[0]
    (failed,) = (item.requested_time for item in open_context(table).active.load().pending())
    looked = delete(table, first, dry_run=True)
    assert looked.reason == f"a dry run; the failed write {failed} would be rolled back first"
    assert [item.requested_time for item in open_context(table).active.load().pending()] == [failed]
    result = delete(table, first)
    timeline = open_context(table).active.load()
    assert timeline.pending().instants == ()
    assert not timeline.contains(failed)
    (rollback,) = timeline.of_actions(Action.ROLLBACK)
    assert rollback.requested_time < str(result.instant)
    assert_readable(table, within(rows, first, outside=True))
    assert_metadata_true(table)


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
@pytest.mark.parametrize("name", ["failed_inflight_cow", "failed_inflight_mor"])
def test_a_failed_write_whose_inflight_file_is_cut_is_rolled_back(golden: Golden, version: str, name: str) -> None:
    """Its writer died as it wrote that file, on a storage that shows half of one."""
    table = golden(version, name).table
    (failed,) = open_context(table).active.load().pending()
    path = table / open_context(table).active.path_of(failed)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    os.utime(path, (1e9, 1e9))
    rows, (first, *_) = read_rows(table), partitions(table)
    assert delete(table, first).instant is not None
    assert_readable(table, within(rows, first, outside=True))
    assert_metadata_true(table)
    assert open_context(table).active.load().pending().instants == ()


@pytest.mark.parametrize("version", ["6", "9"])
def test_beside_a_pending_restore_nothing_is_requested(golden: Golden, version: str) -> None:
    """Nor a rollback of the write that failed: the restore finishes its own."""
    table = golden(version, "failed_inflight_mor").table
    (target, *_) = open_context(table).active.load().commits()
    plan = FaultPlan(when=lambda change: change.path.endswith(".restore.inflight"), counts=MUTATIONS, timing="after")
    with pytest.raises(InjectedCrash):
        perform(table, restore_act(target.requested_time), dead_process(), plan)
    before = open_context(table).active.load().instants  # not the names: the dead process's lock is beside them
    with pytest.raises(ConflictError, match=r"restore .* is pending"):
        delete(table, partitions(table)[0])
    assert open_context(table).active.load().instants == before


def test_a_failed_write_of_a_lazy_writer_stays(golden: Golden, tmp_path: Path) -> None:
    """A clean rolls it back, as in Hudi."""
    table = golden("9", "failed_inflight_mor").table
    pending = open_context(table).active.load().pending()
    given = put_source(own_rows(table, read_rows(table)), tmp_path)
    overwrite(table, given, {FAILED_WRITES_POLICY.name: "LAZY"}, whole_table=True)
    assert open_context(table).active.load().pending() == pending


def test_a_pending_rollback_is_finished_first(golden: Golden) -> None:
    table = golden("9", "cow_basic").table
    context = open_context(table)
    instant = context.new_instant(context.active.load())
    context.active.create_requested(instant, Action.ROLLBACK, b"")
    with pytest.raises(ConflictError, match="may roll back"):
        delete(table, partitions(table)[0])


def test_a_look_finds_what_was_done(table: Path, tmp_path: Path) -> None:
    first = partitions(table)[0]
    context = open_context(table)
    request = DeletePartitionRequest(str(table), partitions=(first,), token="x")
    assert nothing_to_do(context, request) is None
    result = delete(table, first, token="x")
    looked = nothing_to_do(context, request)
    assert looked is not None
    assert looked.document is not None
    assert (looked.document["instant"], looked.document["repeated"]) == (result.instant, True)
    assert looked.document["reason"] == f"an earlier run with the same token did it, as instant {result.instant}"
    with pytest.raises(ConfigError, match="no partition 'nowhere'"):
        nothing_to_do(context, DeletePartitionRequest(str(table), partitions=("nowhere",)))
    with pytest.raises(StorageNotFoundError):
        nothing_to_do(context, InsertOverwriteRequest(str(table), source=str(tmp_path / "gone")))


def test_the_engine_follows_from_the_source(table: Path, tmp_path: Path) -> None:
    given = put_source(own_rows(table, read_rows(table)), tmp_path, files=2)
    request = InsertOverwriteRequest(str(table), source=str(given))
    small = {LOCAL_MAX_UNITS.name: "1"}
    assert choose_engine(open_context(table), request).local
    assert not choose_engine(open_context(table, small), request).local


def test_requests_run_as_any_other(table: Path) -> None:
    request = DeletePartitionRequest(str(table), partitions=(partitions(table)[0],), owner="me")
    result = HudiTable.open(str(table)).run(request, LocalEngine(1))
    assert result.document is not None
    assert result.document["operation"] == "DELETE_PARTITION"
    assert result.document["engine"] == "local"


def test_what_was_decided_is_completed(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error behind the decision to complete: the roll back that follows completes the instant."""
    from hudi_core.errors import StorageError

    first = partitions(table)[0]

    def fails_late(job: object) -> object:
        run_instant(job)  # type: ignore[arg-type]
        raise StorageError("the answer was lost")

    monkeypatch.setattr(verb, "run_instant", fails_late)
    result = delete(table, first)
    assert result.instant is not None
    assert within(read_rows(table), first).num_rows == 0
