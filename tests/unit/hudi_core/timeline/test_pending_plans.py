from __future__ import annotations

import pytest

from hudi_core.errors import CorruptFileError
from hudi_core.model.names import FileGroupId
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.pending_plans import is_clustering, pending_rollback_of, read_clustering_plans, rollback_target
from tests.support.memory_storage import MemoryStorage
from tests.support.pending_operations import clustering_plan
from tests.support.table_configs import VERSION_9, config_of

GROUP = FileGroupId("p", "f-0")


def timeline(layout: int) -> tuple[MemoryStorage, ActiveTimeline]:
    storage = MemoryStorage()
    return storage, ActiveTimeline(storage, config_of(VERSION_9 if layout == 2 else None))


@pytest.mark.parametrize("layout", [1, 2])
def test_a_clustering_is_known_by_its_plan_or_by_its_name(layout: int) -> None:
    _, active = timeline(layout)
    action = Action.REPLACE_COMMIT if layout == 1 else Action.CLUSTERING
    active.create_requested("001", action, clustering_plan(GROUP))
    active.create_requested("002", Action.REPLACE_COMMIT)
    assert [is_clustering(active, instant) for instant in active.load().pending()] == [True, False]
    plans = read_clustering_plans(active, active.load())
    assert {instant: set(plan.file_groups()) for instant, plan in plans.items()} == {"001": {GROUP}}


def test_an_instant_that_is_gone_meanwhile_is_passed_over() -> None:
    _, active = timeline(1)
    active.create_requested("001", Action.REPLACE_COMMIT, clustering_plan(GROUP))
    listed = active.load()
    active.remove("001", Action.REPLACE_COMMIT, State.REQUESTED)
    assert read_clustering_plans(active, listed) == {}
    assert not is_clustering(active, Instant("001", Action.REPLACE_COMMIT, State.REQUESTED))


def test_a_rollback_plan_without_an_instant_is_named() -> None:
    storage, active = timeline(1)
    active.create_requested("003", Action.ROLLBACK, clustering_plan(GROUP))
    with pytest.raises(CorruptFileError, match="names no instant") as caught:
        rollback_target(active, "003")
    assert storage.exists(str(caught.value.path))


def test_no_rollback_is_pending() -> None:
    _, active = timeline(1)
    active.create_requested("001", Action.COMMIT)
    assert pending_rollback_of(active, active.load(), "001") is None
