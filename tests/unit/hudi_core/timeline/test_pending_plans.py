from __future__ import annotations

import logging
import time
from dataclasses import replace

import pytest

from hudi_core.errors import CorruptFileError
from hudi_core.model.names import FileGroupId
from hudi_core.timeline.actions.rollback import RestoredInstant, RestorePlan, encode_restore_plan, encode_rollback_plan
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.pending_plans import (
    is_clustering,
    pending_rollback_of,
    read_clustering_plans,
    read_restore_plan,
    restored_instants,
    rollback_target,
    without_rolled_back,
)
from tests.support.memory_storage import MemoryStorage
from tests.support.pending_operations import clustering_plan
from tests.support.table_configs import VERSION_9, config_of

GROUP = FileGroupId("p", "f-0")


ROLLBACK = encode_rollback_plan("001", Action.COMMIT, [])
RESTORE = encode_restore_plan(RestorePlan("000", (RestoredInstant("001", Action.COMMIT),)))


def timeline(layout: int, age: float = 0.0) -> tuple[MemoryStorage, ActiveTimeline]:
    """All files were last changed `age` seconds ago."""
    storage = MemoryStorage(clock=lambda: time.time() - age)
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


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.parametrize("content", [b"", ROLLBACK[:-20], bytes(600), clustering_plan(GROUP), None])
def test_a_rollback_whose_plan_a_crash_left_unreadable_rolls_nothing_back(
    layout: int, content: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    storage, active = timeline(layout, age=3600)
    storage.write(active.path("001", Action.COMMIT, State.COMPLETED, "0015"), b"{}")
    for rollback in ("003", "004"):
        storage.write(active.path(rollback, Action.ROLLBACK, State.REQUESTED), ROLLBACK)
        storage.write(active.path(rollback, Action.ROLLBACK, State.INFLIGHT), b"")
    path = active.path("004", Action.ROLLBACK, State.REQUESTED)
    if content is None:
        storage.delete(path)
    else:
        storage.write(path, content)
    with caplog.at_level(logging.WARNING):
        assert rollback_target(active, "004") is None
    assert f"{path}: a rollback whose plan cannot be read is passed over" in caplog.text
    assert pending_rollback_of(active, active.load(), "001") == "003"
    assert without_rolled_back(active, active.load()).commits().requested_times == set()
    active.delete_instant("003", Action.ROLLBACK)
    assert without_rolled_back(active, active.load()).commits().requested_times == {"001"}


@pytest.mark.parametrize("content", [b"", ROLLBACK[:-20]])
def test_a_rollback_that_may_still_be_written_is_not_passed_over(content: bytes) -> None:
    _, active = timeline(1)
    active.create_requested("003", Action.ROLLBACK, content)
    with pytest.raises(CorruptFileError) as caught:
        pending_rollback_of(active, active.load(), "001")
    assert caught.value.path == active.path("003", Action.ROLLBACK, State.REQUESTED)


@pytest.mark.parametrize("layout", [1, 2])
def test_a_restore_whose_plan_cannot_be_read_is_passed_over_unless_it_is_inflight(layout: int) -> None:
    storage, active = timeline(layout, age=3600)
    storage.write(active.path("001", Action.COMMIT, State.COMPLETED, "0015"), b"{}")
    path = active.path("003", Action.RESTORE, State.REQUESTED)
    storage.write(path, RESTORE)
    assert without_rolled_back(active, active.load()).commits().requested_times == set()
    storage.write(path, b"")
    with pytest.raises(CorruptFileError, match="unschedule TABLE 003") as caught:
        read_restore_plan(active, "003")
    assert caught.value.path == path
    assert without_rolled_back(active, active.load()).commits().requested_times == {"001"}
    storage.write(active.path("003", Action.RESTORE, State.INFLIGHT), b"")
    with pytest.raises(CorruptFileError):
        without_rolled_back(active, active.load())
    (restore,) = active.load().of_actions(Action.RESTORE)
    done = replace(restore, state=State.COMPLETED, completion_time="005")
    assert restored_instants(active, done) == frozenset()
