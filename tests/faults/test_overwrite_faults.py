"""Overwrites and deletes of partitions are killed after every operation that changes the storage; the same token again
must bring them to the same end, once.

`make test` kills two runs after some operations of each class, `make conformance` some more, `make soak` each before
every change: the driver makes the records of the metadata table, or executors stage them.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_core.config.concurrency_config import FAILED_WRITES_POLICY
from hudi_core.errors import ConflictError
from hudi_core.services.overwrite import job
from hudi_core.services.rollback.verb import RollbackService, request_rollback, rollback
from hudi_core.services.write.new_rows import write_rows
from hudi_core.services.write.work import WriteResult
from hudi_core.timeline.instant import Action
from hudi_core.transaction.owner import Owner
from hudi_core.verbs.instants import RollbackRequest
from tests.support.changed_tables import an_owner, open_context
from tests.support.fault_storage import MUTATIONS, FaultPlan, InjectedCrash, Operation
from tests.support.golden_data import PARTITIONED, open_table
from tests.support.kill_points import executors_make_records, kill_at, stages_statistics
from tests.support.overwrites import commit_of, delete, overwrite, own_rows, put_source, within
from tests.support.rows import assert_same_rows
from tests.support.service_calls import Timing, dead_process, one_of_each_class
from tests.support.table_files import contents
from tests.support.table_invariants import assert_metadata_true, leftovers, read_rows
from tests.support.table_requests import nothing_to_do
from tests.support.tiers import tiered

EAGER = {FAILED_WRITES_POLICY.name: "EAGER"}
TOKEN = "the day's work"
STEPS = 4
"""The sweep of one table in `make soak` is cut into so many tests."""
NO_STATISTICS = "multilevel_plain_mor"
CASES = ("mdt_all_mor", "mdt_all_cow", NO_STATISTICS)
TABLES = [*((version, case) for version in ("6", "8", "9") for case in CASES), ("9", PARTITIONED)]
KINDS = ["overwrite", "overwrite table", "delete"]
STAGED = ["overwrite, staged", "overwrite table, staged"]
"""Executors make the records of the new files; of deletes there are none."""
SWEPT = [
    (*table, kind)
    for table in TABLES
    for kind in [*KINDS, *STAGED]
    if not (kind in STAGED and table[1] == NO_STATISTICS)
]
Run = Callable[..., WriteResult]
"""Of a table's folder, a plan of faults and an owner, both or None; with `dry_run` it only looks."""
DIED = {
    "requested": (".replacecommit.requested", "would be rolled back first"),
    "inflight": (".replacecommit.inflight", "would be rolled back first"),
    "decided": (".decision", "would be completed instead"),
    "completed": (".replacecommit", None),
}
"""The last file that a killed run made, and what a dry run says of that, None where the work is done."""


@dataclass(frozen=True)
class Work:
    """A table, what is done to it, and the table's own columns of what its readers see before and after. `stages`:
    executors make the records of the new files.
    """

    source: Path
    does: Run
    before: pa.Table
    after: pa.Table
    stages: bool = False

    def run(
        self, table: Path, plan: FaultPlan | None = None, owner: Owner | None = None, *, dry_run: bool = False
    ) -> WriteResult:
        with executors_make_records(self.stages):
            return self.does(table, plan, owner, dry_run=dry_run)

    def copy(self, target: Path) -> Path:
        return Path(shutil.copytree(self.source, target, symlinks=True))


def work_of(version: str, case: str, kind: str, scratch: Path) -> Work:
    path = open_table(version, case, scratch)
    what, _, staged = kind.partition(", ")
    rows = read_rows(path)
    first = min(rows.column("_hoodie_partition_path").to_pylist())
    others = own_rows(path, within(rows, first, outside=True))
    if what == "delete":
        return Work(
            path,
            lambda table, plan, owner, **more: delete(table, first, plan=plan, owner=owner, token=TOKEN, **more),
            own_rows(path, rows),
            others,
        )
    kept = own_rows(path, within(rows, first).slice(0, 5))
    given, whole = put_source(kept, scratch, files=2), what == "overwrite table"
    return Work(
        path,
        lambda table, plan, owner, **more: overwrite(
            table, given, plan=plan, owner=owner, token=TOKEN, whole_table=whole, **more
        ),
        own_rows(path, rows),
        kept if whole else pa.concat_tables([others, kept]),
        bool(staged),
    )


def changes_of(work: Work, scratch: Path) -> list[Operation]:
    """All changes of an undisturbed run, in order."""
    plan = FaultPlan(counts=MUTATIONS)
    path = work.copy(scratch / "undisturbed")
    assert not work.run(path, plan, dead_process()).repeated
    assert_done(path, work)
    assert any(map(stages_statistics, plan.mutations())) is work.stages
    return plan.mutations()


def seen(path: Path, listing: str) -> pa.Table:
    return own_rows(path, read_rows(path, listing))


def assert_done(path: Path, work: Work) -> None:
    for listing in ("off", "auto"):
        assert_same_rows(seen(path, listing), work.after, ignore=())
    assert_metadata_true(path)
    timeline = open_context(path).active.load()
    (done,) = (
        item
        for item in timeline.completed().of_actions(Action.REPLACE_COMMIT)
        if commit_of(path, item.requested_time).extra_metadata.get("airflow_hudi.token") == TOKEN
    )
    assert not timeline.pending().of_actions(Action.REPLACE_COMMIT).instants
    stats = commit_of(path, done.requested_time).write_stats()
    assert sorted(file.name for file in path.rglob(f"*_{done.requested_time}.parquet")) == sorted(
        stat.name for stat in stats
    )
    assert leftovers(path, done.requested_time) == []


def assert_survives(work: Work, number: int, timing: Timing, scratch: Path) -> None:
    path = work.copy(scratch / f"killed-{number}")
    kill_at(number, timing, lambda plan: work.run(path, plan, dead_process()))
    is_done = seen(path, "off").num_rows == work.after.num_rows
    for listing in ("off", "auto"):
        assert_same_rows(seen(path, listing), work.after if is_done else work.before, ignore=())
    result = work.run(path, None, None)
    assert result.repeated or not is_done
    assert_done(path, work)
    assert work.run(path, None, None).repeated
    assert_done(path, work)
    shutil.rmtree(path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "case", "kind"),
    tiered(
        [
            ("6", "mdt_all_mor", "overwrite, staged"),
            ("8", "mdt_all_cow", "delete"),
            ("8", "mdt_all_mor", "overwrite table, staged"),
            ("9", "mdt_all_mor", "overwrite"),
            ("9", PARTITIONED, "overwrite table"),
        ],
        [("6", "mdt_all_mor", "overwrite, staged"), ("9", PARTITIONED, "overwrite table")],
    ),
)
def test_killed_after_one_operation_of_each_class(version: str, case: str, kind: str, tmp_path: Path) -> None:
    work = work_of(version, case, kind, tmp_path)
    points = one_of_each_class(changes_of(work, tmp_path))
    assert len(points) > 20
    for number in list(points.values())[::8]:
        assert_survives(work, number, "after", tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize("part", range(STEPS))
@pytest.mark.parametrize(("version", "case", "kind"), SWEPT)
def test_killed_at_every_change(version: str, case: str, kind: str, part: int, tmp_path: Path) -> None:
    """Before each, which is what a kill after the one before it leaves, and after the last."""
    work = work_of(version, case, kind, tmp_path)
    points = range(len(changes_of(work, tmp_path)))
    for number in points[part::STEPS]:
        assert_survives(work, number, "before", tmp_path)
    if part == 0:
        assert_survives(work, points[-1], "after", tmp_path)


@pytest.mark.parametrize("version", tiered(["6", "9"], ["9"]))
@pytest.mark.parametrize("kind", tiered(["overwrite", "delete"], ["overwrite"]))
@pytest.mark.parametrize("died", DIED)
def test_a_dry_run_leaves_what_died_as_it_is(version: str, kind: str, died: str, tmp_path: Path) -> None:
    work = work_of(version, "mor_basic", kind, tmp_path)
    name, says = DIED[died]
    plan = FaultPlan(when=lambda operation: operation.path.endswith(name), timing="after", counts=MUTATIONS)
    with pytest.raises(InjectedCrash):
        work.run(work.source, plan, dead_process())
    before = contents(work.source)
    looked = work.run(work.source, None, None, dry_run=True)
    assert contents(work.source) == before
    assert looked.repeated == (says is None)
    if says is not None:
        assert looked.instant is None
        assert says in str(looked.reason)
    done = work.run(work.source, None, None)
    assert done.repeated == (died in ("decided", "completed"))
    assert (done.partitions, done.replaced_file_groups) == (looked.partitions, looked.replaced_file_groups)
    assert_done(work.source, work)


@pytest.mark.parametrize("version", tiered(["6", "9"], ["6"]))
@pytest.mark.parametrize("died", DIED)
def test_other_work_ends_what_died(version: str, died: str, tmp_path: Path) -> None:
    """With the EAGER policy, which takes every pending write for failed: one that had decided to complete is completed.
    No rollback of it may be requested: Hudi would carry it out.
    """
    work = work_of(version, "mor_basic", "overwrite", tmp_path)
    name, _ = DIED[died]
    plan = FaultPlan(when=lambda operation: operation.path.endswith(name), timing="after", counts=MUTATIONS)
    with pytest.raises(InjectedCrash):
        work.run(work.source, plan, dead_process())
    keys = read_rows(work.source).column("_hoodie_partition_path").to_pylist()
    overwrite(work.source, put_source(work.before.slice(0, 0), tmp_path, name="none"), EAGER, partitions=(max(keys),))
    left = work.after if died in ("decided", "completed") else work.before
    due = left.filter(pc.not_equal(left["dt"], max(keys)))
    assert_same_rows(seen(work.source, "auto"), due, ignore=())
    assert_metadata_true(work.source)
    timeline = open_context(work.source).active.load()
    assert timeline.pending().instants == ()
    assert len(timeline.of_actions(Action.ROLLBACK).instants) == (died in ("requested", "inflight"))


@pytest.mark.parametrize("unless_completed", [True, False])
def test_what_had_decided_to_complete_is_not_rolled_back(unless_completed: bool, tmp_path: Path) -> None:
    """By its name, as it was not completed when it was looked at; once more, it is."""
    work = work_of("9", "mor_basic", "overwrite", tmp_path)
    plan = FaultPlan(when=lambda operation: operation.path.endswith(".decision"), timing="after", counts=MUTATIONS)
    with pytest.raises(InjectedCrash):
        work.run(work.source, plan, dead_process())
    context = open_context(work.source)
    (decided,) = (item.requested_time for item in context.active.load().pending())
    if unless_completed:
        result = rollback(context, decided, an_owner(), unless_completed=True)
        assert (result.instant, result.target, "its rows stay" in str(result.reason)) == (None, None, True)
    else:
        with pytest.raises(ConflictError, match="completed now"):
            rollback(context, decided, an_owner())
    assert context.active.load().of_actions(Action.ROLLBACK).instants == ()
    assert work.run(work.source).repeated
    assert_done(work.source, work)
    if not unless_completed:
        rollback(context, decided, an_owner())
        assert_same_rows(seen(work.source, "auto"), work.before, ignore=())


@pytest.mark.parametrize("version", ["6", "9"])
def test_the_rollback_service_completes_what_had_decided_to(version: str, tmp_path: Path) -> None:
    """And requests no rollback of it, which a writer of Hudi would carry out. Dry runs say so."""
    work = work_of(version, "mor_basic", "overwrite", tmp_path)
    plan = FaultPlan(when=lambda operation: operation.path.endswith(".decision"), timing="after", counts=MUTATIONS)
    with pytest.raises(InjectedCrash):
        work.run(work.source, plan, dead_process())
    context = open_context(work.source, EAGER)
    (decided,) = (item.requested_time for item in context.active.load().pending())
    before = contents(work.source)
    says = f"an earlier run had decided to complete replacecommit {decided}: a run completes it, and its rows stay"
    named = rollback(context, decided, an_owner(), dry_run=True)
    assert (named.target, named.reason, named.removed.instants) == (decided, says, ())
    other = put_source(work.before.slice(0, 0), tmp_path, name="none")
    partition = min(read_rows(work.source).column("_hoodie_partition_path").to_pylist())
    looked = overwrite(work.source, other, EAGER, partitions=(partition,), dry_run=True)
    assert looked.reason == f"a dry run; {says}"
    service, request = RollbackService(), RollbackRequest(table=str(work.source), instant=decided)
    assert service.schedule(context, an_owner(), dry_run=True).reason == says
    assert nothing_to_do(context, request) is None
    assert contents(work.source) == before
    planned = service.schedule(context, an_owner(), dry_run=False)
    assert (planned.instant, planned.reason) == (None, "no rollback is pending, and no write is pending")
    assert context.active.load().of_actions(Action.ROLLBACK).instants == ()
    assert work.run(work.source).repeated
    assert_done(work.source, work)


def test_a_rollback_requested_of_what_had_decided_to_complete_is_dropped(tmp_path: Path) -> None:
    """By another process, in the moment before the decision."""
    work = work_of("9", "mor_basic", "overwrite", tmp_path)
    plan = FaultPlan(when=lambda operation: operation.path.endswith(".decision"), timing="after", counts=MUTATIONS)
    with pytest.raises(InjectedCrash):
        work.run(work.source, plan, dead_process())
    context = open_context(work.source)
    (decided,) = context.active.load().pending()
    planned = request_rollback(context, decided, an_owner())
    with pytest.raises(ConflictError, match="the plan was dropped"):
        rollback(context, planned, an_owner())
    assert context.active.load().pending().instants == ()
    assert work.run(work.source).repeated
    assert_done(work.source, work)


@pytest.mark.parametrize("version", ["6", "9"])
def test_the_work_of_a_live_run_is_not_taken_over(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = work_of(version, "mor_basic", "overwrite", tmp_path)
    refused: list[str] = []

    def meanwhile(*given: Any) -> Any:
        with pytest.raises(ConflictError) as error:
            work.run(work.source, None, Owner.current("another task"))
        refused.append(error.value.message)
        before = contents(work.source)
        with pytest.raises(ConflictError, match="which has the token, is run by"):
            work.run(work.source, None, Owner.current("another task"), dry_run=True)
        assert contents(work.source) == before
        return write_rows(*given)

    monkeypatch.setattr(job, "write_rows", meanwhile)
    assert not work.run(work.source, None, None).repeated
    assert len(refused) == 1
    assert_done(work.source, work)
