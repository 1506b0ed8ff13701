"""What planning of compactions and clusterings has in common: one state of the timeline, and how much a plan is."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from hudi_core.config.engine_config import EngineConfig
from hudi_core.engine.protocol import Json
from hudi_core.errors import CorruptFileError
from hudi_core.services.compaction.strategies import last_request
from hudi_core.services.context import TableContext
from hudi_core.services.rewriting.planning import (
    CUT_KEY,
    Planned,
    RewriteService,
    cut_to,
    extent_of,
    was_cut,
    within_budget,
)
from hudi_core.services.service import Nothing
from hudi_core.storage.base import FileInfo
from hudi_core.timeline.actions.replacecommit import ClusteringSlice
from hudi_core.timeline.actions.rollback import RestorePlan, encode_restore_plan, encode_rollback_plan
from hudi_core.timeline.instant import Action, State
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.owner import Owner
from tests.support.crash_leftovers import aged, left_by_a_restore, left_file
from tests.support.golden_compactions import context_of
from tests.support.golden_data import GoldenCase
from tests.support.memory_storage import MemoryStorage

Golden = Callable[[str, str], GoldenCase]
OWNER = Owner.current("test")
LATER = "20990101000000000"


class Listed(MemoryStorage):
    """Counts listings."""

    def __init__(self) -> None:
        super().__init__()
        self.listed: list[str] = []

    def list_files(self, folder: str) -> list[FileInfo]:
        self.listed.append(folder)
        return super().list_files(folder)


def slice_of(partition: str, base_file: str, *logs: str) -> ClusteringSlice:
    return ClusteringSlice(partition, "f", base_file, logs)


def test_the_extent_is_the_bytes_of_the_files_and_each_partition_is_listed_once() -> None:
    storage = Listed()
    for path, size in (("p/a", 3), ("p/b", 4), ("q/c", 9)):
        storage.write(path, b"x" * size)
    units = [[slice_of("p", "a", "b")], [slice_of("q", "c"), slice_of("p", "a", "gone")]]
    extent = extent_of(storage, units, EngineConfig.of({}))
    assert (extent.units, extent.size, extent.largest) == (2, 19, 12)
    assert sorted(storage.listed) == ["p", "q"]


def test_too_many_units_are_not_looked_at() -> None:
    storage = Listed()
    config = EngineConfig.of({"airflow_hudi.engine.local.max.units": "1"})
    assert extent_of(storage, [[slice_of("p", "a")], [slice_of("p", "b")]], config).units == 2
    assert storage.listed == []


@pytest.mark.parametrize(
    ("most", "expected"),
    [
        (None, [0, 1, 2, 3]),
        ("100", [0, 1, 2, 3]),
        ("99", [1, 2, 3]),
        ("45", [1, 3]),
        ("35", [2, 3]),
        ("14", [3]),
        ("1", [3]),
    ],
)
def test_a_budget_takes_the_best_gains(most: str | None, expected: list[int]) -> None:
    """Gains for their bytes: 0.2, 0.5, 0.4, 1; what does not fit is passed over, one is taken in any case."""
    options = {} if most is None else {"airflow_hudi.plan.max.bytes": most}
    sizes, gains = [40, 30, 20, 10], [8, 15, 8, 10]
    taken, others = within_budget(options, range(4), sizes.__getitem__, gains.__getitem__)
    assert (taken, others) == (expected, [number for number in range(4) if number not in expected])


BUDGET = "airflow_hudi.plan.max.bytes"


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ((None, 1.0), None),
        ((10, None), 80 << 20),
        ((10, 2.5), 25),
        ((0.001, 1.0), 1),
        ((-5, None), 1),
        ((1e12, 1e9), 2**53),
        ((None, None, 20), 20),
        ((10, 2.5, 20), 20),
        ((10, 1.5, 20), 15),
    ],
)
def test_times_and_bytes_are_a_budget(golden: Golden, limits: tuple[Any, ...], expected: int | None) -> None:
    """The smallest counts, with that of the options."""
    table = golden("9", "cow_basic").table
    assert cut_to(context_of(table), *limits).options.get(BUDGET) == (expected and str(expected))
    assert cut_to(context_of(table, {BUDGET: "7"}), *limits).options[BUDGET] == str(min(7, expected or 7))
    large = cut_to(context_of(table, {BUDGET: str(2 << 40)}), 60.0)
    assert large.options[BUDGET] == str(60 * (8 << 20))


class Rewrites(RewriteService[int]):
    """Plans what is there, by the state of the table that it is made of; while it plans, `meanwhile` happens once."""

    name = "rewrites"
    action = Action.CLUSTERING
    rewritten = "rewritten"

    def __init__(self, meanwhile: Callable[[TableContext], None], *, due: bool = True) -> None:
        self.meanwhile = [meanwhile]
        self.due = due
        self.drawn: list[str] = []

    def job(self, run: Any) -> Any:
        pytest.fail("nothing is run here")

    def check(self, context: TableContext, timeline: Timeline) -> None:
        pass

    def make(self, context: TableContext, timeline: Timeline, instant: str) -> Planned[int] | Nothing:
        self.drawn.append(instant)
        if self.meanwhile:
            self.meanwhile.pop()(context)
        seen = len(timeline)
        return Planned(seen, {"seen": seen}) if self.due else Nothing("nothing is due")

    def encode(self, context: TableContext, plan: int, extra_metadata: Mapping[str, str]) -> bytes:
        return str(plan).encode()


def complete_a_clean(context: TableContext) -> None:
    context.storage.write(context.active.path(LATER, Action.CLEAN, State.REQUESTED), b"")


@pytest.mark.parametrize("changed", [False, True])
@pytest.mark.parametrize("folder", ["6", "9"])
def test_the_table_is_read_again_where_its_timeline_changed(golden: Golden, folder: str, changed: bool) -> None:
    context = context_of(golden(folder, "cow_basic").table)
    before = len(context.active.load())
    service = Rewrites(complete_a_clean if changed else lambda context: None)
    done = service.schedule(context, OWNER, dry_run=False)
    assert done.instant is not None
    assert len(service.drawn) == (2 if changed else 1)
    # The instant is drawn again under the lock, maybe in the same millisecond.
    assert service.drawn[-1] == done.instant if changed else service.drawn[-1] <= done.instant
    assert done.plan == {"seen": before + changed}
    path = context.active.path(done.instant, Action.CLUSTERING, State.REQUESTED)
    assert context.storage.read(path) == str(before + changed).encode()


@pytest.mark.parametrize("due", [True, False])
def test_a_dry_run_and_nothing_leave_nothing(golden: Golden, due: bool) -> None:
    context = context_of(golden("9", "cow_basic").table)
    timeline = context.active.load()
    done = Rewrites(lambda context: None, due=due).schedule(context, OWNER, dry_run=due)
    assert done.instant is None
    assert (done.plan is None, done.reason) == (not due, None if due else "nothing is due")
    assert context.active.load() == timeline


@pytest.mark.parametrize("folder", ["6", "8", "9"])
@pytest.mark.parametrize(
    ("action", "plan", "way_out"),
    [
        (Action.ROLLBACK, encode_rollback_plan("20200101000000000", Action.COMMIT, []), "hudictl rollback TABLE"),
        (Action.RESTORE, encode_restore_plan(RestorePlan("20200101000000000", ())), "hudictl restore TABLE --instant"),
        (Action.RESTORE, b"", f"hudictl unschedule TABLE {LATER}"),
    ],
)
@pytest.mark.parametrize("age", [0, 3600])
def test_what_may_be_rolled_back_is_not_planned(
    golden: Golden, folder: str, action: str, plan: bytes, way_out: str, age: int
) -> None:
    """A rollback also before its plan is written, which takes a writer of Hudi a moment on a local disk."""
    table = golden(folder, "cow_basic").table
    context = context_of(table)
    aged(left_file(table, context.active, action, content=plan if age or action != Action.ROLLBACK else b""), age)
    service = Rewrites(lambda context: None)
    reason = str(service.schedule(context, OWNER, dry_run=True).reason)
    assert reason.startswith(f"{action} {LATER} is pending, and may roll back what would be rewritten: finish it: ")
    assert way_out in reason
    assert service.drawn == []


@pytest.mark.parametrize("folder", ["6", "8", "9"])
def test_a_rollback_that_a_restore_left_behind_holds_nothing_up(golden: Golden, folder: str) -> None:
    """Hudi completes a restore and deletes its rollbacks after that (BaseRestoreActionExecutor.finishRestore)."""
    table = golden(folder, "restored_then_written").table
    left_by_a_restore(table)
    service = Rewrites(lambda context: None)
    assert service.schedule(context_of(table), OWNER, dry_run=False).instant is not None


@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("content", [{"extraMetadata": "x"}, {"clusteringPlan": "x"}])
def test_an_earlier_plan_that_is_none_is_named(golden: Golden, version: str, content: Json) -> None:
    table = golden(version, "mor_compacted").table
    path = max(table.glob(".hoodie/**/*.compaction.requested"))
    path.write_text(json.dumps(content))
    context = context_of(table)
    with pytest.raises(CorruptFileError) as caught:
        was_cut(context, last_request(context.active.load()))
    assert caught.value.path == path.relative_to(table).as_posix()
    path.write_text(json.dumps({"extraMetadata": {CUT_KEY: "true"}}))
    assert was_cut(context, last_request(context.active.load()))
