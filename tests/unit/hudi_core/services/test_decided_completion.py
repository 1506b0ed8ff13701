"""A run is killed between its decision to complete and its put, and something comes between that and the next owner."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.errors import ConflictError, StorageError, TimelineError
from hudi_core.model.names import FileGroupId
from hudi_core.services import lifecycle
from hudi_core.services.clean.planner import CleanService
from hudi_core.services.decided_completion import why_not_completed
from hudi_core.services.restore.candidates import restorable_instants
from hudi_core.services.restore.savepoint import savepoint_create
from hudi_core.services.restore.verb import restore
from hudi_core.services.rollback.verb import rollback
from hudi_core.services.takeover import takeover
from hudi_core.services.unschedule import unschedule
from hudi_core.timeline.instant import Action, State
from hudi_core.timeline.pending_plans import read_clustering_plan
from hudi_core.transaction import commit as commits
from hudi_core.transaction.claim_file import Decision
from hudi_core.transaction.commit import Completer
from hudi_core.verbs.metadata import MetadataCreateRequest, MetadataDropRequest
from hudi_core.verbs.request import Request
from tests.support.changed_tables import an_owner, open_context
from tests.support.decided_runs import decided, foreign_upsert, foreign_write
from tests.support.golden_cleans import run_clean, without_metadata_table
from tests.support.golden_clusterings import cluster, new_files, planned
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import overwrite, own_rows, put_source, within
from tests.support.pending_operations import Operations, commit
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import assert_metadata_true, has_metadata_table, read_rows
from tests.support.table_requests import perform
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ["6", "8", "9"]


@pytest.fixture(autouse=True)
def no_wait_for_late_puts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The put of the killed run cannot arrive any more."""
    monkeypatch.setattr(commits, "LATE_SECONDS", 0)


def clustering_decided(table: Path) -> tuple[str, str, str]:
    """The instant of the table's clustering, and the partition and base file of a slice that it replaces."""
    instant, active = planned(table), open_context(table).active
    decided(lambda: cluster(table, instant))
    (pending,) = active.load().pending()
    assert pending.state is State.INFLIGHT
    plan = read_clustering_plan(active, pending)
    assert plan is not None
    item = plan.slices[0]
    assert item.base_file is not None
    return instant, item.partition, item.base_file


ACTS: dict[str, Callable[[Path, str], object]] = {
    "takeover": lambda table, instant: takeover(open_context(table), instant, an_owner()),
    "unschedule": lambda table, instant: unschedule(open_context(table), instant, an_owner()),
    "rollback": lambda table, instant: rollback(open_context(table), instant, an_owner()),
}


@pytest.mark.parametrize("requested", ["before", "after"])
@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
def test_a_clustering_is_not_completed_over_a_write_to_what_it_replaces(
    golden: Golden, version: str, act: str, requested: str
) -> None:
    table = without_metadata_table(golden(version, "clustering_requested_cow").table)
    instant, partition, base_file = clustering_decided(table)
    foreign_upsert(table, partition, base_file, str(int(instant) - 1) if requested == "before" else None)
    rows = read_rows(table)
    ACTS[act](table, instant)
    timeline = open_context(table).active.load()
    states = [item.state for item in timeline if item.requested_time == instant]
    assert states == ([] if act == "unschedule" else [State.REQUESTED])
    assert new_files(table, instant) == []
    assert_same_rows(read_rows(table), rows)


@pytest.mark.parametrize("act", tiered(ACTS, ["takeover", "rollback"]))
@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
def test_a_clustering_is_not_completed_without_its_files(golden: Golden, version: str, act: str) -> None:
    """A rollback of another engine deleted one, and died before it said so."""
    table = without_metadata_table(golden(version, "clustering_requested_cow").table)
    rows = read_rows(table)
    instant, *_ = clustering_decided(table)
    (table / new_files(table, instant)[0]).unlink()
    ACTS[act](table, instant)
    states = [item.state for item in open_context(table).active.load() if item.requested_time == instant]
    assert states == ([] if act == "unschedule" else [State.REQUESTED])
    assert_same_rows(read_rows(table), rows)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_write_to_something_else_keeps_no_decision_from_its_completion(golden: Golden, version: str) -> None:
    table = without_metadata_table(golden(version, "clustering_requested_cow").table)
    instant, partition, _ = clustering_decided(table)
    files = new_files(table, instant)
    foreign_write(table, FileGroupId(partition, "another-0"))
    assert takeover(open_context(table), instant, an_owner()).state == "completed"
    assert new_files(table, instant) == files


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
def test_an_overwrite_is_made_again_where_a_write_came_between(golden: Golden, version: str, tmp_path: Path) -> None:
    table = without_metadata_table(golden(version, "cow_basic").table)
    rows = read_rows(table)
    partition = min(rows.column("_hoodie_partition_path").to_pylist())
    given = put_source(own_rows(table, within(rows, partition).slice(0, 5)), tmp_path)
    decided(lambda: overwrite(table, given, token="t"))
    context = open_context(table)
    (pending,) = context.active.load().pending()
    foreign_upsert(table, partition, context.view(context.active.load()).latest_base_files(partition)[0].name)
    again = overwrite(table, given, token="t")
    assert not again.repeated
    assert again.instant != pending.requested_time
    assert not open_context(table).active.load().contains(pending.requested_time)
    assert within(read_rows(table), partition).num_rows == 5


@pytest.mark.parametrize("version", ["8", "9"])
def test_an_overwrite_does_not_complete_below_what_incremental_queries_have_seen(
    golden: Golden, version: str, tmp_path: Path
) -> None:
    table = without_metadata_table(golden(version, "cow_basic").table)
    first, *_, last = sorted(set(read_rows(table).column("_hoodie_partition_path").to_pylist()))
    given = put_source(own_rows(table, within(read_rows(table), first).slice(0, 5)), tmp_path)
    decided(lambda: overwrite(table, given, token="t"))
    foreign_write(table, FileGroupId(last, "another-0"))
    (seen,) = open_context(table).active.load().commits().instants[-1:]
    done = overwrite(table, given, token="t")
    assert not done.repeated
    completed = {item.requested_time: item.completed_at for item in open_context(table).active.load().commits()}
    assert completed[str(done.instant)] > seen.completed_at


@pytest.mark.parametrize("column", ["added", None])
@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
def test_an_overwrite_does_not_lose_a_change_of_the_schema(
    golden: Golden, version: str, tmp_path: Path, column: str | None
) -> None:
    """Of a writer with an earlier instant, in another partition: the schema of the later instant would be the table's.
    Version 6 alone completes over a commit that changes none.
    """
    table = without_metadata_table(golden(version, "cow_basic").table)
    first, *_, last = sorted(set(read_rows(table).column("_hoodie_partition_path").to_pylist()))
    given = put_source(own_rows(table, within(read_rows(table), first).slice(0, 5)), tmp_path)
    decided(lambda: overwrite(table, given, token="t"))
    (pending,) = open_context(table).active.load().pending()
    foreign_write(table, FileGroupId(last, "another-0"), str(int(pending.requested_time) - 1), column)
    again = overwrite(table, given, token="t")
    assert again.repeated == (version == "6" and column is None)
    assert ("added" in read_rows(table).column_names) == (column is not None)
    assert within(read_rows(table), first).num_rows == 5


@pytest.mark.parametrize("arrives", [True, False])
@pytest.mark.parametrize("version", tiered(["8", "9"], ["9"]))
def test_a_put_that_arrives_late_finds_its_overwrite_as_it_was(
    golden: Golden, version: str, arrives: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its sender abandons the request and rolls the overwrite back at once, while another commit completes."""
    table = without_metadata_table(golden(version, "cow_basic").table)
    rows = read_rows(table)
    first, *_, last = sorted(set(rows.column("_hoodie_partition_path").to_pylist()))
    given = put_source(own_rows(table, within(rows, first).slice(0, 5)), tmp_path)
    put, sent = Completer._put, []

    def lost(self: Completer, instant: str, decision: Decision) -> None:
        sent.append((self, instant, decision))
        foreign_write(table, FileGroupId(last, "another-0"))
        raise StorageError("no answer")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(commits, "LATE_SECONDS", 900)
        patch.setattr(Completer, "_put", lost)
        with pytest.raises(StorageError, match="no answer"):
            overwrite(table, given, token="t")
        patch.setattr(Completer, "_put", put)
        with pytest.raises(ConflictError, match="may still arrive"):  # a retry waits
            overwrite(table, given, token="t")
        ((completer, instant, decision),) = sent
        assert open_context(table).active.load().get(instant, Action.REPLACE_COMMIT).state is State.INFLIGHT
        if arrives:
            put(completer, instant, decision)
        again = overwrite(table, given, token="t") if arrives else None
    if again is None:
        again = overwrite(table, given, token="t")
    assert (again.repeated, again.instant == instant) == (arrives, arrives)
    assert within(read_rows(table), first).num_rows == 5
    assert_same_rows(within(read_rows(table), first, outside=True), within(rows, first, outside=True))


SINGLE = {"hoodie.clean.commits.retained": "1"}


def savepoint_decided(table: Path, number: int) -> str:
    """The commit, of those of the timeline, whose savepoint was decided."""
    instant = open_context(table).active.load().commits().instants[number].requested_time
    decided(lambda: savepoint_create(open_context(table), instant, an_owner()))
    return instant


def savepoint_state(table: Path, instant: str) -> State | None:
    found = open_context(table).active.load().find(instant, Action.SAVEPOINT)
    return None if found is None else found.state


@pytest.mark.parametrize("runs", [True, False])
@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
def test_a_savepoint_is_not_completed_once_a_clean_takes_its_files(golden: Golden, version: str, runs: bool) -> None:
    """Else the table could be restored to a commit whose files are gone."""
    table = golden(version, "cow_basic").table
    instant = savepoint_decided(table, 0)
    clean = CleanService().schedule(open_context(table, SINGLE), an_owner(), dry_run=False).instant
    assert clean is not None
    if runs:
        assert run_clean(table, clean) == "completed"
    assert takeover(open_context(table), instant, an_owner()).state == "inflight"
    assert savepoint_state(table, instant) is State.INFLIGHT
    assert restorable_instants(open_context(table))[0].reason is not None
    with pytest.raises(TimelineError, match="cannot be kept"):
        savepoint_create(open_context(table), instant, an_owner())
    assert savepoint_state(table, instant) is None


@pytest.mark.parametrize("version", VERSIONS)
def test_a_savepoint_whose_files_are_there_is_completed_by_any_owner(golden: Golden, version: str) -> None:
    table = golden(version, "cow_basic").table
    instant = savepoint_decided(table, 0)
    assert takeover(open_context(table), instant, an_owner()).state == "completed"
    assert savepoint_state(table, instant) is State.COMPLETED


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
def test_a_savepoint_is_not_completed_by_the_restore_that_takes_its_commit_away(
    golden: Golden, version: str, waits: bool
) -> None:
    """It would stop the restore half done."""
    table = golden(version, "cow_basic").table
    oldest = open_context(table).active.load().commits().instants[0].requested_time
    instant = savepoint_decided(table, -1)
    with pytest.MonkeyPatch.context() as patch:
        if waits:
            patch.setattr(commits, "LATE_SECONDS", 900)
            with pytest.raises(ConflictError, match="may still arrive"):
                restore(open_context(table), oldest, an_owner())
    assert restore(open_context(table), oldest, an_owner()).target == oldest
    assert [item.requested_time for item in open_context(table).active.load().commits()] == [oldest]
    assert savepoint_state(table, instant) is not State.COMPLETED


def do(table: Path, request: Request) -> None:
    perform(open_context(table), request, LocalEngine(1), an_owner())


@pytest.mark.parametrize("guarded", [True, False])
@pytest.mark.parametrize("version", tiered(["8", "9"], ["9"]))
def test_a_metadata_table_that_began_since_has_the_new_files(
    golden: Golden, version: str, guarded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not of version 6, where none begins while an instant is pending."""
    table = golden(version, "clustering_requested_cow").table
    do(table, MetadataDropRequest(str(table)))
    instant, *_ = clustering_decided(table)
    rows = read_rows(table)
    do(table, MetadataCreateRequest(str(table)))
    assert has_metadata_table(table)
    if not guarded:
        monkeypatch.setattr(lifecycle, "why_not_completed", lambda *_: None)
    assert cluster(table, instant).state == "completed"
    assert_same_rows(read_rows(table, "off"), rows, ignore=("_hoodie_file_name",))
    if guarded:
        assert_metadata_true(table)
    else:
        with pytest.raises(AssertionError):
            assert_metadata_true(table)


@pytest.mark.parametrize("version", VERSIONS)
def test_what_a_decision_knew(golden: Golden, version: str) -> None:
    context = open_context(without_metadata_table(golden(version, "cow_basic").table))
    timeline = context.active.load()
    *_, before, newest = timeline.commits()
    stat = next(iter(context.active.read_commit(newest).write_stats()))
    layout, known = context.active.layout, timeline.commits().requested_times
    content = commit(layout, "CLUSTER", replaced=(FileGroupId(stat.partition_path, stat.file_id),))
    action = Action.REPLACE_COMMIT if layout == 1 else Action.CLUSTERING

    def reason(known: frozenset[str], time: str) -> str | None:
        decision = Decision(action, None if layout == 1 else time, content, known)
        return why_not_completed(context, time, decision, timeline)

    assert reason(known, before.completed_at) is None
    assert "commit 20200101000000000, whose rows" in str(reason(known | {"20200101000000000"}, newest.completed_at))
    assert newest.requested_time in str(reason(known - {newest.requested_time}, newest.completed_at))
    assert why_not_completed(context, "1", Decision(Action.CLEAN, None, b"x", frozenset()), timeline) is None


def test_a_change_log_that_is_gone(golden: Golden) -> None:
    """Change-data queries of the commit would fail."""
    table = golden("9", "cdc_cow").table
    context = open_context(table)
    timeline = context.active.load()
    instant = next(iter(timeline.commits().instants[1:]))
    content = (table / context.active.path_of(instant)).read_bytes()
    decision = Decision(instant.action, None, content, timeline.commits().requested_times)
    assert why_not_completed(context, instant.requested_time, decision, timeline) is None
    next(table.rglob(f".*_{instant.requested_time}.log.1_*.cdc")).unlink()
    reason = why_not_completed(open_context(table), instant.requested_time, decision, timeline)
    assert reason is not None
    assert ".cdc was deleted or changed since" in reason


@pytest.mark.parametrize("version", VERSIONS)
def test_a_plan_on_what_is_overwritten(golden: Golden, version: str) -> None:
    """A run of it would bring the rows back (hudi#18830)."""
    context = open_context(without_metadata_table(golden(version, "mor_basic").table))
    group = context.view(context.active.load()).latest_slices("2024-01-01")[0].file_group
    planned_at = context.new_instant(context.active.load())
    Operations(context.active).compact(planned_at, group, started=False)
    timeline = context.active.load()
    for operation, is_refused in (("INSERT_OVERWRITE", True), ("CLUSTER", False)):
        content = commit(context.active.layout, operation, replaced=(group,))
        decision = Decision(Action.REPLACE_COMMIT, None, content, timeline.commits().requested_times)
        reason = why_not_completed(context, "20990101000000000", decision, timeline)
        assert (reason is not None and planned_at in reason) == is_refused
