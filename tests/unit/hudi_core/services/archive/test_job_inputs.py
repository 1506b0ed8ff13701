"""The inputs of golden tables with a metadata table, savepoints, pending rollbacks: what they hold back, and what is
said about it.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hudi_core.config.services.retention_config import ArchiveConfig
from hudi_core.services.archive.job import ArchiveService, read_inputs
from hudi_core.timeline.actions.rollback import encode_rollback_plan
from hudi_core.timeline.instant import COMMIT_ACTIONS, Action
from hudi_core.transaction.owner import Owner
from tests.support.crash_leftovers import left_by_a_restore, left_file
from tests.support.golden_archives import TIGHT, archive, history_of
from tests.support.golden_cleans import context_of, without_metadata_table
from tests.support.golden_data import GoldenCase
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import read_rows

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ("6", "8", "9")
TIGHTEST = {
    **TIGHT,
    "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS",
    "hoodie.keep.min.commits": "1",
    "hoodie.keep.max.commits": "2",
}


def reason(case: GoldenCase, options: dict[str, str] = TIGHTEST) -> str:
    planned = ArchiveService().schedule(context_of(case.table, options), Owner.current("test"), dry_run=True)
    assert planned.plan is None
    return str(planned.reason)


@pytest.mark.parametrize("folder", VERSIONS)
def test_nothing_while_the_metadata_table_was_never_compacted(golden: Golden, folder: str) -> None:
    case = golden(folder, "mor_basic")
    assert "the metadata table was never compacted" in reason(case)
    assert archive(case.table, TIGHTEST) == []


@pytest.mark.parametrize("folder", VERSIONS)
def test_up_to_the_metadata_tables_compaction(golden: Golden, folder: str) -> None:
    """The rows are the same by the metadata table and by the storage, before and after."""
    table = golden(folder, "mdt_all_cow_compacted").table
    rows = read_rows(table, "on")
    compacted = max(
        path.name.split("_")[0].split(".")[0]
        for path in (table / ".hoodie" / "metadata" / context_of(table).active.folder).iterdir()
        if path.name.endswith(".commit")
    )
    commits = context_of(table).active.load().commits()
    late = next(item for item in commits if (item.completion_time or item.requested_time) > compacted)
    archive(table, TIGHTEST)
    gone = [time for time, action in history_of(table) if action in COMMIT_ACTIONS]
    assert gone == [item.requested_time for item in commits.before(late.requested_time)]
    assert gone
    for metadata in ("on", "off"):
        assert_same_rows(read_rows(table, metadata), rows)


@pytest.mark.parametrize("folder", VERSIONS)
def test_a_savepoint_is_named(golden: Golden, folder: str) -> None:
    case = golden(folder, "savepoint_cow")
    without_metadata_table(case.table)
    timeline = context_of(case.table).active.load()
    (saved,) = timeline.completed().of_actions(Action.SAVEPOINT)
    went = archive(case.table, TIGHTEST)
    assert went == [(item.requested_time, item.action) for item in timeline.commits().before(saved.requested_time)]
    assert f"commit {saved.requested_time} is savepointed: delete the savepoint" in reason(case)


@pytest.mark.parametrize("folder", VERSIONS)
def test_the_target_of_a_pending_rollback_stays(golden: Golden, folder: str) -> None:
    case = golden(folder, "archived_timeline_cow")
    context = context_of(case.table)
    first, *_, last = context.active.load().commits().instants
    plan = encode_rollback_plan(first.requested_time, first.action, ())
    context.active.create_requested(f"{int(last.requested_time) + 10_000}", Action.ROLLBACK, plan)
    planned = ArchiveService().schedule(context_of(case.table, TIGHTEST), Owner.current("test"), dry_run=True)
    said = (
        planned.reason if planned.plan is None else planned.plan["held_by"]
    )  # version 6 archives cleans by their own number
    assert said == f"a rollback of {first.requested_time} is pending: run it to its end first"
    assert "commit" not in {action for _, action in archive(case.table, TIGHTEST)}


@pytest.mark.parametrize("folder", VERSIONS)
def test_rollbacks_of_nothing_hold_nothing_back(golden: Golden, folder: str) -> None:
    """One that a restore left behind, and one without a plan that could be read."""
    case = golden(folder, "restored_then_written")
    context = context_of(case.table, TIGHT)

    def rolling_back() -> frozenset[str]:
        return read_inputs(context, context.active.load(), ArchiveConfig.of(context.options)).rolling_back

    left_by_a_restore(case.table)
    left_file(case.table, context.active)
    assert rolling_back() == frozenset()
    first = context.active.load().commits().instants[0]
    plan = encode_rollback_plan(first.requested_time, first.action, ())
    context.active.create_requested("20990102000000000", Action.ROLLBACK, plan)
    assert rolling_back() == {first.requested_time}


@pytest.mark.parametrize("folder", VERSIONS)
def test_by_hours_the_cleaner_keeps_from_the_last_commit_on(golden: Golden, folder: str) -> None:
    """All commits of a golden table are of one hour: the cleaner keeps them all, and so does archival."""
    case = golden(folder, "archived_timeline_cow")
    first = context_of(case.table).active.load().commits().instants[0]
    options = {**TIGHT, "hoodie.clean.policy": "KEEP_LATEST_BY_HOURS", "hoodie.clean.hours.retained": "1"}
    assert f"the commits that the cleaner keeps since {first.requested_time}" in reason(case, options)


@pytest.mark.parametrize("folder", VERSIONS)
@pytest.mark.parametrize("action", [Action.COMPACTION, Action.DELTA_COMMIT])
def test_what_the_cleaner_keeps_is_held_back_by_a_pending_write_and_not_by_a_compaction(
    golden: Golden, folder: str, action: Action
) -> None:
    """ArchivalUtils asks for the earliest commit of getCommitsTimeline, CleanPlanner of
    getCommitsAndCompactionTimeline.
    """
    case = golden(folder, "archived_timeline_mor")
    without_metadata_table(case.table)
    context = context_of(case.table, TIGHT)
    _, second, *rest = context.active.load().commits().instants
    assert len(rest) > 1
    pending = f"{int(second.requested_time) + 1}"
    context.active.create_requested(pending, action, b"")
    kept = read_inputs(context, context.active.load(), ArchiveConfig.of(context.options)).cleaner_keeps
    assert kept == (rest[-1] if action == Action.COMPACTION else second).requested_time
