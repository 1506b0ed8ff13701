"""Writers that may not see a plan: which hold it up, and until when a run of it waits for them."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from hudi_core.errors import ConflictError
from hudi_core.model.names import ClaimFolder
from hudi_core.services.context import TableContext
from hudi_core.services.rewriting.other_writers import check_plan_seen, failed_eager_write, live_writer
from hudi_core.timeline.actions.replacecommit import ClusteringPlan, encode_clustering_plan
from hudi_core.timeline.instant import Action, State
from tests.support.golden_compactions import context_of
from tests.support.golden_data import GoldenCase

Golden = Callable[[str, str], GoldenCase]
OPTIMISTIC = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}
POLICY = "hoodie.cleaner.policy.failed.writes"
PLANNED, WRITTEN = "20990101000000000", "20990101000000001"


def with_write(golden: Golden, folder: str, options: dict[str, str] | None = None) -> TableContext:
    """A table with a pending write that has just begun."""
    context = context_of(golden(folder, "mor_basic").table, options)
    for state in (State.REQUESTED, State.INFLIGHT):
        context.storage.write(context.active.path(WRITTEN, Action.DELTA_COMMIT, state), b"")
    return context


@pytest.mark.parametrize("folder", ["6", "8", "9"])
def test_a_compaction_of_layout_2_opens_a_slice_for_them_and_a_clustering_does_not(golden: Golden, folder: str) -> None:
    context = with_write(golden, folder)
    timeline = context.active.load()
    found = live_writer(context, timeline, Action.CLUSTERING)
    assert found is not None
    assert found.requested_time == WRITTEN
    assert (live_writer(context, timeline, Action.COMPACTION) is None) == (folder != "6")


@pytest.mark.parametrize("action", [Action.COMPACTION, Action.CLUSTERING])
def test_writers_that_find_conflicts_hold_nothing_up(golden: Golden, action: str) -> None:
    context = with_write(golden, "6", OPTIMISTIC)
    assert live_writer(context, context.active.load(), action) is None


@pytest.mark.parametrize("action", [Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING, Action.REPLACE_COMMIT])
def test_writers_that_never_block_hold_up_what_replaces_their_file_groups(golden: Golden, action: str) -> None:
    """They compare nothing with the commit that replaced what they append to, so that their rows would be lost."""
    context = with_write(golden, "9", {"hoodie.write.concurrency.mode": "non_blocking_concurrency_control"})
    found = live_writer(context, context.active.load(), action)
    assert (found is not None) == (action in (Action.CLUSTERING, Action.REPLACE_COMMIT))


@pytest.mark.parametrize("action", [Action.COMPACTION, Action.CLUSTERING])
def test_dead_writers_hold_nothing_up(golden: Golden, action: str) -> None:
    context = context_of(golden("6", "failed_inflight_mor").table)
    assert [item.action for item in context.active.load().pending()] == [Action.DELTA_COMMIT]
    assert live_writer(context, context.active.load(), action) is None


@pytest.mark.parametrize(
    ("options", "beats", "waits"),
    [
        ({}, False, True),
        ({}, True, False),
        ({POLICY: "EAGER"}, True, True),
        ({POLICY: "LAZY"}, False, False),
        ({POLICY: "NEVER"}, False, False),
        (OPTIMISTIC, False, False),
    ],
)
def test_a_write_that_an_eager_writer_is_to_roll_back_holds_compactions_of_layout_1_up(
    golden: Golden, options: dict[str, str], beats: bool, waits: bool
) -> None:
    for folder in ("6", "8", "9"):
        context = context_of(golden(folder, "failed_inflight_mor").table, options)
        timeline = context.active.load()
        (failed,) = timeline.pending()
        if beats:
            context.storage.write(ClaimFolder(failed.requested_time).hudi_heartbeat, b"")
        for action in (Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING, Action.REPLACE_COMMIT):
            is_held = waits and folder == "6" and action in (Action.COMPACTION, Action.LOG_COMPACTION)
            assert failed_eager_write(context, timeline, action) == (failed if is_held else None)


def test_without_a_pending_write_nothing_is_held_up(golden: Golden) -> None:
    context = context_of(golden("6", "mor_compaction_requested").table, {POLICY: "EAGER"})
    assert failed_eager_write(context, context.active.load(), Action.COMPACTION) is None


@pytest.mark.parametrize(
    ("folder", "action"),
    [("6", Action.COMPACTION), ("6", Action.REPLACE_COMMIT), ("8", Action.CLUSTERING), ("9", Action.CLUSTERING)],
)
@pytest.mark.parametrize("seconds", [-5, 0, 5])
def test_a_run_waits_for_those_that_began_before_its_plan(
    golden: Golden, folder: str, action: str, seconds: int
) -> None:
    context = with_write(golden, folder)
    plan = context.active.path(PLANNED, action, State.REQUESTED)
    context.storage.write(plan, encode_clustering_plan(ClusteringPlan(()), str))
    planned = context.storage.stat(plan).modified
    began = f"{context.uri}/{context.active.path(WRITTEN, Action.DELTA_COMMIT, State.REQUESTED)}"
    os.utime(began, (planned + seconds, planned + seconds))
    timeline = context.active.load()
    if seconds > 0:
        check_plan_seen(context, timeline, PLANNED, action)
        return
    with pytest.raises(ConflictError, match=f"deltacommit {WRITTEN} began before {action} {PLANNED} was planned"):
        check_plan_seen(context, timeline, PLANNED, action)


def test_a_compaction_of_layout_2_waits_for_none(golden: Golden) -> None:
    context = with_write(golden, "8")
    check_plan_seen(context, context.active.load(), PLANNED)
