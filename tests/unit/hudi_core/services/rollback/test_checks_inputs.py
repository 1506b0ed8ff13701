"""What `guard` reads of a table, and a live writer on the instant."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hudi_core.errors import ConflictError
from hudi_core.services.rollback.checks import read_inputs, refuse_live_writer
from hudi_core.timeline.instant import Action, State
from tests.support.changed_tables import an_owner, open_context, pending_write
from tests.support.crash_leftovers import HOUR, LATE, aged, left_file
from tests.support.golden_data import GoldenCase
from tests.support.hudictl_runner import hudictl

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ["6", "8", "9"]
POLICY = "hoodie.cleaner.policy.failed.writes"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_pending_write(golden: Golden, version: str) -> None:
    table = golden(version, "failed_inflight_mor").table
    for policy in ("LAZY", "EAGER"):
        context = open_context(table, {POLICY: policy})
        timeline = context.active.load()
        (failed,) = timeline.pending()
        beat = table / ".hoodie" / ".heartbeat" / failed.requested_time
        beat.unlink(missing_ok=True)
        inputs = read_inputs(context, timeline, failed)
        assert (inputs.eager, inputs.heartbeat, inputs.cleaned) == (policy == "EAGER", False, ())
        beat.parent.mkdir(exist_ok=True)
        beat.touch()
        assert read_inputs(context, timeline, failed).heartbeat


def test_a_clustering_of_layout_1_is_known_by_its_plan(golden: Golden) -> None:
    context = open_context(golden("6", "clustering_requested_cow").table)
    timeline = context.active.load()
    (plan,) = timeline.pending()
    assert read_inputs(context, timeline, plan).clusterings == {plan.requested_time}


@pytest.mark.parametrize("version", VERSIONS)
def test_the_cleans_that_removed_what_a_commit_replaced(golden: Golden, version: str) -> None:
    context = open_context(golden(version, "cleaned_commits_cow").table)
    timeline = context.active.load()
    commits, cleans = timeline.commits(), timeline.of_actions("clean")
    cleaned = {item.requested_time: read_inputs(context, timeline, item).cleaned for item in commits}
    assert any(cleaned.values())
    assert all(set(times) <= cleans.after(commit).requested_times for commit, times in cleaned.items())
    newest = commits.instants[-1].requested_time
    assert cleaned[newest] == ()


@pytest.mark.parametrize("version", VERSIONS)
def test_a_clean_that_a_crash_left_without_its_plan_has_deleted_nothing(golden: Golden, version: str) -> None:
    """While its writer may be at it, and where it has begun, it is not known which files go."""
    table = golden(version, "mor_basic").table
    context = open_context(table)
    newest = context.active.load().commits().instants[-1].requested_time
    requested = left_file(table, context.active, Action.CLEAN)
    inflight = table / context.active.path(LATE, Action.CLEAN, State.INFLIGHT)
    for unknown in ("young", "begun"):
        aged(requested, 0 if unknown == "young" else HOUR)
        if unknown == "begun":
            inflight.touch()
        refused = hudictl("rollback", table, "--instant", newest, "--json")
        assert (refused.code, refused.error["type"]) == (2, "CorruptFileError")
        assert f"hudictl run clean TABLE --instant {LATE}" in refused.error["remedy"]
    inflight.unlink()
    done = hudictl("rollback", table, "--instant", newest, "--json")
    assert (done.code, done.document["target"]) == (0, newest), done.err


def test_a_live_writer_is_refused(golden: Golden) -> None:
    table = golden("9", "failed_inflight_mor").table
    context, failed = open_context(table), pending_write(table)
    beat = table / ".hoodie" / ".heartbeat" / failed
    beat.unlink(missing_ok=True)
    refuse_live_writer(context, failed)
    beat.parent.mkdir(exist_ok=True)
    beat.touch()
    for dry_run in (False, True):
        with pytest.raises(ConflictError, match=f"a writer is at work on instant {failed}"):
            refuse_live_writer(context, failed, dry_run=dry_run)
    with context.claim("20300101000000000", an_owner()):
        refuse_live_writer(context, "20300101000000000")
