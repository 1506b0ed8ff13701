from __future__ import annotations

import pytest

from hudi_core.errors import FormatError, TimelineError
from hudi_core.model.names import FileGroupId
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action
from hudi_core.timeline.naming import timeline_of
from hudi_core.view.file_system_view import PendingWork
from tests.support.memory_storage import MemoryStorage
from tests.support.pending_operations import Operations, compaction_plan
from tests.support.table_configs import VERSION_9, config_of

A, B = FileGroupId("p", "a-0"), FileGroupId("p", "b-0")
FIRST, SECOND = "20260102000000000", "20260103000000000"


@pytest.fixture(params=[1, 2])
def active(request: pytest.FixtureRequest) -> ActiveTimeline:
    return ActiveTimeline(MemoryStorage(), config_of(VERSION_9 if request.param == 2 else None))


def test_the_file_groups_of_pending_plans(active: ActiveTimeline) -> None:
    Operations(active).compact(FIRST, A)
    Operations(active).cluster(SECOND, B)
    pending = PendingWork.read(active, active.load())
    assert {group: instant for group, (instant, _) in pending.compacting.items()} == {A: FIRST}
    assert pending.log_compacting == {}
    assert {instant: tuple(plan.file_groups()) for instant, plan in pending.read_clusterings().items()} == {
        SECOND: (B,)
    }


def test_completed_plans_are_not_pending(active: ActiveTimeline) -> None:
    Operations(active).compact(FIRST, A, completed=SECOND)
    assert PendingWork.read(active, active.load()).compacting == {}


@pytest.mark.parametrize("action", [Action.COMPACTION, Action.LOG_COMPACTION])
def test_a_file_group_in_two_plans(active: ActiveTimeline, action: str) -> None:
    for instant in (FIRST, SECOND):
        active.create_requested(instant, action, compaction_plan(A, B))
    pending = PendingWork.read(active, active.load())
    with pytest.raises(FormatError, match=f"pending {action}s {FIRST} and {SECOND}"):
        assert pending.compacting if action == Action.COMPACTION else pending.log_compacting


def test_slices_need_every_plan_of_a_compaction() -> None:
    timeline = timeline_of([f"{FIRST}.compaction.requested"])
    with pytest.raises(TimelineError, match=FIRST):
        PendingWork().check_complete(timeline)
    PendingWork().check_complete(timeline_of([f"{FIRST}.commit"]))
