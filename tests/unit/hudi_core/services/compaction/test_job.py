"""Running stored plans: against real Hudi's own run of the same plan, and against everything that may come in
between.
"""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.config.table_config import TableConfig, update_properties
from hudi_core.engine.local import LocalEngine
from hudi_core.engine.protocol import Engine, UnitTask
from hudi_core.errors import (
    ConfigError,
    ConflictError,
    CorruptFileError,
    ExecutionError,
    HudiError,
    StorageNotFoundError,
)
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.model.names import CLAIMS
from hudi_core.request.results import InstantResult
from hudi_core.services.compaction.merge_slice import CompactedSlice
from hudi_core.services.compaction.planner import CompactionService
from hudi_core.services.context import TableContext
from hudi_core.storage.local import LocalStorage
from hudi_core.table import HudiTable
from hudi_core.timeline.actions.commit import CommitMetadata, encode_commit
from hudi_core.timeline.actions.rollback import encode_rollback_plan
from hudi_core.timeline.actions.write_stats import WriteStat
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, State
from hudi_core.transaction.claim import claim
from hudi_core.transaction.owner import Owner
from tests.support.golden_compactions import context_of
from tests.support.golden_data import GoldenCase
from tests.support.rows import assert_same_rows
from tests.support.table_files import contents
from tests.support.table_invariants import assert_compacted, assert_readable, pending_instants, read_rows
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
Hook = Callable[[], None]

RUN = (
    "mor_compaction_requested",
    "mor_compaction_requested_only",
    "compaction_inflight",
    "payload_default",
    "payload_event_time",
    "payload_overwrite_latest",
    "payload_overwrite_nondefaults",
    "payload_partial_update",
    "schema_evolution_mor_compaction_requested",
    "bucket_index_mor",
    "bucket_index_consistent_mor",
)
"""Every pending compaction of version 6 by Hudi 0.15."""
KEPT_BY_1_2 = ("mor_compaction_requested", "payload_default", "payload_partial_update")
"""The same of version 6 tables that Hudi 1.2.0 keeps."""
SMALL_BLOOM = {"hoodie.index.bloom.num_entries": "100"}


class HookedEngine:
    """A local engine that calls `before` and `after` around the units and lets `change` alter the results."""

    name = "hooked"

    def __init__(
        self,
        before: Hook | None = None,
        after: Hook | None = None,
        change: Callable[[list[CompactedSlice]], list[CompactedSlice]] | None = None,
    ) -> None:
        self._before, self._after, self._change = before, after, change

    def run(
        self,
        task: UnitTask[Any, Any],
        units: Any,
        *,
        run_epoch: int,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[Any]:
        if self._before:
            self._before()
        results = LocalEngine(2).run(task, units, run_epoch=run_epoch, progress=progress)
        if self._after:
            self._after()
        return self._change(results) if self._change else results


def pending_instant(table: Path) -> str:
    (found,) = HudiTable.open(str(table)).timeline().pending_compactions()
    return found.requested_time


def compact(
    table: Path,
    engine: Engine | None = None,
    instant: str | None = None,
    owner: str = "tester",
    options: dict[str, str] | None = None,
) -> InstantResult:
    storage = LocalStorage(table)
    config = TableConfig.load(storage)
    context = TableContext(
        str(table), storage, config, ActiveTimeline(storage, config), {**SMALL_BLOOM, **(options or {})}, {}
    )
    return CompactionService().run(
        context, instant or pending_instant(table), engine or LocalEngine(2), Owner.current(owner), None
    )


def assert_refused(table: Path, error: type[HudiError], match: str, instant: str | None = None) -> HudiError:
    before = contents(table)
    with pytest.raises(error, match=match) as caught:
        compact(table, instant=instant or pending_instant(table))
    assert caught.value.exit_code == (3 if error is ConflictError else 2)
    assert contents(table) == before
    return caught.value


def commit_of(table: Path, instant: str) -> CommitMetadata:
    storage = LocalStorage(table)
    active = ActiveTimeline(storage, TableConfig.load(storage))
    return active.read_commit(active.load().get(instant, Action.COMPACTION))


COUNTED = (
    "prev_commit",
    "num_writes",
    "num_deletes",
    "num_update_writes",
    "num_inserts",
    "total_log_records",
    "total_log_files_compacted",
)
COUNTED += (
    "total_log_size_compacted",
    "total_updated_records_compacted",
    "total_log_blocks",
    "total_corrupt_log_block",
    "total_rollback_blocks",
)


def counts_of(metadata: CommitMetadata) -> dict[tuple[str, str], dict[str, Any]]:
    return {
        (stat.partition_path, stat.file_id): {name: getattr(stat, name) for name in COUNTED}
        for stat in metadata.write_stats()
    }


@pytest.mark.parametrize(
    "case",
    tiered(
        RUN,
        [
            "mor_compaction_requested_only",
            "compaction_inflight",
            "payload_event_time",
            "payload_partial_update",
            "schema_evolution_mor_compaction_requested",
            "bucket_index_mor",
        ],
    ),
)
def test_the_commit_is_that_of_real_hudi(golden: Golden, case: str) -> None:
    found = golden("6", case)
    instant, rows, pending = pending_instant(found.table), read_rows(found.table), pending_instants(found.table)
    result = compact(found.table)
    assert (result.instant, result.action, result.state) == (instant, "compaction", "completed")
    assert_compacted(found.table, instant, rows, pending)
    ours, theirs = commit_of(found.table, instant), commit_of(found.after(), instant)
    assert counts_of(ours) == counts_of(theirs)
    assert (ours.compacted, ours.operation_type) == (theirs.compacted, theirs.operation_type)
    assert json.loads(ours.schema_text or "") == json.loads(theirs.schema_text or "")
    assert result.files_written == len(list(theirs.write_stats()))
    assert result.records == sum(stat.num_writes for stat in theirs.write_stats())


def test_input_that_proves_bad_only_when_it_is_read_leaves_the_instant_requested(golden: Golden) -> None:
    """A corrupt block inside a log: the files of the other units, the markers and the inflight file go; a later run
    with leave completes.
    """
    table = golden("6", "mor_compaction_requested").table
    instant, before = pending_instant(table), contents(table)
    log = sorted(path for path in table.glob("*/.*.log.2_*") if instant not in path.name)[-1]
    log.write_bytes(log.read_bytes()[:-40])
    damaged = contents(table)
    with pytest.raises(CorruptFileError, match="corrupt log block") as caught:
        compact(table)
    assert log.name in str(caught.value)
    assert caught.value.exit_code == 2
    after = {path: content for path, content in contents(table).items() if not path.startswith(CLAIMS)}
    assert after == damaged != before
    assert compact(table, options={"airflow_hudi.allow_corrupt_log_blocks": "true"}).state == "completed"


@pytest.mark.parametrize("case", KEPT_BY_1_2)
def test_a_table_that_hudi_1_keeps_is_compacted_by_its_rules(golden: Golden, case: str) -> None:
    found = golden("6-by-1.2.0", case)
    instant, rows, pending = pending_instant(found.table), read_rows(found.table), pending_instants(found.table)
    compact(found.table)
    assert_compacted(found.table, instant, rows, pending)
    result = HudiTable.open(str(found.table)).read(query="read_optimized")
    theirs = HudiTable.open(str(found.after())).read(query="read_optimized")
    assert_same_rows(
        pa.Table.from_batches(result.batches, result.schema),
        pa.Table.from_batches(theirs.batches, theirs.schema),
        ignore=("_hoodie_file_name",),
    )


def test_real_hudis_failed_attempt_is_rolled_back_as_real_hudi_does(golden: Golden) -> None:
    case = golden("6", "compaction_inflight")
    instant = pending_instant(case.table)
    compact(case.table)
    real = case.after()
    for folder, suffix in (("", ""), (ROOT, "006")):
        ours, theirs = (rollback_of(table, folder) for table in (case.table, real))
        assert ours[0] == ours[1]["startRollbackTime"]
        assert ours[0].endswith(suffix)
        assert without_addresses(ours[1], case.table) == without_addresses(
            theirs[1], Path(case.info["generated_base_path"])
        )
    assert pending_instant_state(case.table, instant) is State.COMPLETED


def pending_instant_state(table: Path, instant: str) -> State:
    return HudiTable.open(str(table)).timeline().get(instant, Action.COMPACTION).state


def rollback_of(table: Path, base: str) -> tuple[str, dict[str, Any]]:
    storage = LocalStorage(table)
    active = ActiveTimeline(storage, TableConfig.load(storage), base)
    (rollback,) = active.load().of_actions(Action.ROLLBACK)
    return rollback.requested_time, active.read_any(rollback.requested_time, Action.ROLLBACK, State.COMPLETED)


def without_addresses(metadata: dict[str, Any], table: Path) -> dict[str, Any]:
    """Rollback metadata without times and with paths relative to the table."""
    text = json.dumps(metadata, sort_keys=True).replace(f"{table}/", "")
    value: dict[str, Any] = json.loads(text)
    return {name: item for name, item in value.items() if name not in ("startRollbackTime", "timeTakenInMillis")}


def test_a_completed_instant_is_success_without_work(golden: Golden) -> None:
    table = golden("6", "mor_compaction_requested").table
    instant = pending_instant(table)
    compact(table)
    before = contents(table)
    result = compact(table, instant=instant)
    assert (result.state, result.files_written, result.bytes_written, result.records) == ("completed", 0, 0, 0)
    assert contents(table) == before


def test_an_instant_that_is_not_on_the_timeline(golden: Golden) -> None:
    assert_refused(
        golden("6", "mor_compaction_requested").table, ConfigError, "20000101000000000", instant="20000101000000000"
    )


def test_an_instant_of_another_action(golden: Golden) -> None:
    case = golden("6", "cow_basic")
    write = HudiTable.open(str(case.table)).timeline().commits().last()
    assert write is not None
    assert_refused(case.table, ConfigError, "no compaction", instant=write.requested_time)


@pytest.mark.parametrize("which", ["base", "log"])
def test_a_missing_file_of_the_plan_is_named(golden: Golden, which: str) -> None:
    table = golden("6", "mor_compaction_requested").table
    storage = LocalStorage(table)
    operation = ActiveTimeline(storage, TableConfig.load(storage)).read_plan(pending_instant(table)).operations[0]
    name = operation.base_file if which == "base" else operation.log_files[0]
    assert name is not None
    (table / operation.partition / name).unlink()
    error = assert_refused(table, StorageNotFoundError, "plan names this file")
    assert error.path == f"{operation.partition}/{name}"


def test_two_concurrent_runs(golden: Golden) -> None:
    """One completes; the other's error names the owner, and after the end there is nothing to do."""
    table = golden("6", "mor_compaction_requested").table
    instant, rows, pending = pending_instant(table), read_rows(table), pending_instants(table)
    running, go_on, done = threading.Event(), threading.Event(), []

    def hold() -> None:
        running.set()
        assert go_on.wait(30)

    first = threading.Thread(
        target=lambda: done.append(compact(table, HookedEngine(before=hold), instant, "the first"))
    )
    first.start()
    assert running.wait(30)
    with pytest.raises(ConflictError, match="the first") as caught:
        compact(table, instant=instant)
    assert caught.value.exit_code == 3
    go_on.set()
    first.join()
    assert [result.state for result in done] == ["completed"]
    assert compact(table, instant=instant).files_written == 0
    assert_compacted(table, instant, rows, pending)


def test_a_run_that_was_taken_over_publishes_nothing_and_removes_its_files(golden: Golden) -> None:
    table = golden("6", "mor_compaction_requested").table
    instant, rows, pending = pending_instant(table), read_rows(table), pending_instants(table)

    def take_over() -> None:
        """While our tasks ran, our heartbeat counted as expired, and the other owner was done before our last file."""
        held = claim(LocalStorage(table), instant, Owner.current("the second"), now=lambda: 2**40)
        held.release()
        compact(table, instant=instant, owner="the second")

    before = contents(table)
    with pytest.raises(ConflictError, match=r"taken over|was removed"):
        compact(table, HookedEngine(after=take_over), instant, "the first")
    assert_compacted(table, instant, rows, pending)
    assert before.items() <= contents(table).items()


def test_an_instant_that_another_writer_completed_meanwhile(golden: Golden) -> None:
    """Real Hudi knows no claims; its commit does not name our files, so they must not stay visible beside it."""
    table = golden("6", "mor_compaction_requested").table
    instant = pending_instant(table)
    storage = LocalStorage(table)
    active = ActiveTimeline(storage, TableConfig.load(storage))

    def complete() -> None:
        assert len(list(table.glob(f"*/*_{instant}.parquet"))) == 3
        active.complete(instant, Action.COMPACTION, encode_commit(CommitMetadata({}, True, "COMPACT", {})))

    with pytest.raises(ConflictError, match="completed on the timeline"):
        compact(table, HookedEngine(after=complete))
    assert list(table.glob(f"*/*_{instant}.parquet")) == []


def test_files_of_losing_attempts_are_deleted(golden: Golden) -> None:
    """A retried task and a speculative one leave files beside the winner's; only the returned results are committed."""
    table = golden("6", "mor_compaction_requested").table
    instant, rows, pending = pending_instant(table), read_rows(table), pending_instants(table)

    def stray() -> None:
        (winner, *_) = sorted(table.glob(f"*/*_{instant}.parquet"))
        file_id = winner.name.split("_")[0]
        shutil.copy(winner, winner.with_name(f"{file_id}_9-1-9_{instant}.parquet"))
        shutil.copy(winner, winner.with_name(f"00000000-0000-0000-0000-000000000000-0_9-1-9_{instant}.parquet"))

    compact(table, HookedEngine(after=stray))
    assert_compacted(table, instant, rows, pending)


def stat_of(result: CompactedSlice) -> WriteStat:
    assert result.stat is not None
    return result.stat


def with_stat(results: list[CompactedSlice], **changed: Any) -> list[CompactedSlice]:
    return [replace(results[0], stat=replace(stat_of(results[0]), **changed)), *results[1:]]


def drop_one(results: list[CompactedSlice]) -> list[CompactedSlice]:
    return results[1:]


def lose_a_row(results: list[CompactedSlice]) -> list[CompactedSlice]:
    counts = replace(results[0].records, base=results[0].records.base + 1)
    return [replace(results[0], records=counts), *results[1:]]


def lose_a_key(results: list[CompactedSlice]) -> list[CompactedSlice]:
    return with_stat(results, total_updated_records_compacted=stat_of(results[0]).total_updated_records_compacted + 1)


def foreign_file(results: list[CompactedSlice]) -> list[CompactedSlice]:
    return with_stat(results, path=stat_of(results[1]).path)


def wrong_size(results: list[CompactedSlice]) -> list[CompactedSlice]:
    return with_stat(results, file_size_in_bytes=stat_of(results[0]).file_size_in_bytes + 1)


def no_result(results: list[CompactedSlice]) -> list[CompactedSlice]:
    return [replace(results[0], stat=None), *results[1:]]


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    tiered(
        [drop_one, lose_a_row, lose_a_key, foreign_file, wrong_size, no_result],
        [drop_one, lose_a_key, foreign_file, no_result],
    ),
)
def test_results_that_prove_nothing_are_not_published(
    golden: Golden, change: Callable[[list[CompactedSlice]], list[CompactedSlice]]
) -> None:
    table = golden("6", "mor_compaction_requested").table
    instant, rows, pending = pending_instant(table), read_rows(table), pending_instants(table)
    with pytest.raises(ExecutionError):
        compact(table, HookedEngine(change=change))
    assert pending_instant_state(table, instant) is State.INFLIGHT
    assert_readable(table, rows)
    compact(table)
    assert_compacted(table, instant, rows, pending)


def test_an_instant_that_another_writer_rolled_back_meanwhile(golden: Golden) -> None:
    table = golden("6", "mor_compaction_requested").table
    instant = pending_instant(table)
    with pytest.raises(ConflictError, match="expected inflight"):
        compact(table, HookedEngine(after=lambda: (table / ".hoodie" / f"{instant}.compaction.inflight").unlink()))
    assert not (table / ".hoodie" / f"{instant}.commit").exists()


def test_an_instant_that_another_writer_is_rolling_back(golden: Golden) -> None:
    table = golden("6", "mor_compaction_requested").table
    instant = pending_instant(table)
    storage = LocalStorage(table)
    active = ActiveTimeline(storage, TableConfig.load(storage))

    def roll_back() -> None:
        active.create_requested(
            "20991231000000000", Action.ROLLBACK, encode_rollback_plan(instant, Action.COMPACTION, [])
        )

    with pytest.raises(ConflictError, match="20991231000000000"):
        compact(table, HookedEngine(after=roll_back))
    assert not (table / ".hoodie" / f"{instant}.commit").exists()


def test_another_attempts_metadata_deltacommit_is_not_joined(golden: Golden) -> None:
    """Another process published the instant in the metadata table while our tasks ran: retry, and the retry rolls it
    back.
    """
    table = golden("6", "mor_compaction_requested").table
    instant, rows, pending = pending_instant(table), read_rows(table), pending_instants(table)
    storage = LocalStorage(table)
    metadata_timeline = ActiveTimeline(storage, TableConfig.load(storage), ROOT)
    with pytest.raises(ConflictError, match="another attempt"):
        compact(
            table, HookedEngine(after=lambda: metadata_timeline.create_requested(instant, Action.DELTA_COMMIT) and None)
        )
    compact(table)
    assert_compacted(table, instant, rows, pending)


def test_a_dead_owner_is_followed_at_once(golden: Golden) -> None:
    table = golden("6", "mor_compaction_requested").table
    instant, rows, pending = pending_instant(table), read_rows(table), pending_instants(table)
    dead = claim(LocalStorage(table), instant, replace(Owner.current("dead"), process_start="1"))
    dead.heartbeat.stop()
    compact(table)
    assert_compacted(table, instant, rows, pending)


@pytest.mark.parametrize("enabled", ["true", "false"])
def test_a_table_with_change_logs_gets_a_warning(
    golden: Golden, caplog: pytest.LogCaptureFixture, enabled: str
) -> None:
    """Hudi's compaction writes change logs for buckets, and for slices that began as logs; ours does not."""
    table = golden("9", "bucket_index_mor").table
    update_properties(LocalStorage(table), {"hoodie.table.cdc.enabled": enabled})
    context = context_of(table, {"hoodie.compact.inline.max.delta.commits": "1"})
    done = CompactionService().schedule(context, Owner.current("test"), dry_run=False)
    assert compact(table, instant=done.instant).state == "completed"
    warnings = [record.message for record in caplog.records if "read.cdc.from.changelog" in record.message]
    assert len(warnings) == (enabled == "true")
