"""Rollbacks that a crash left without a plan that could be read: they hold nothing up, and leave the timeline. A
completed one whose metadata a crash emptied is known by its plan.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_core.errors import CorruptFileError
from hudi_core.request.results import REMOVED
from hudi_core.services.rollback.verb import RollbackService, clean_failed_writes, rollback
from hudi_core.timeline.actions.rollback import encode_rollback_plan
from hudi_core.timeline.instant import Action, State
from hudi_core.transaction.claim_file import current_claim
from tests.support.changed_tables import METADATA, an_owner, leftovers, open_context
from tests.support.crash_leftovers import LATE, aged, left_file
from tests.support.golden_compactions import compact
from tests.support.golden_data import GoldenCase
from tests.support.hudictl_runner import hudictl
from tests.support.rows import assert_same_rows
from tests.support.service_calls import eager
from tests.support.table_invariants import read_rows
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ["6", "8", "9"]
CUT = encode_rollback_plan("20200101000000000", Action.DELTA_COMMIT, [])[:-9]
KINDS = ["empty", "cut", "inflight", "without plan"]


def leave(table: Path, kind: str) -> None:
    active = open_context(table).active
    if kind != "without plan":
        left_file(table, active, content=CUT if kind == "cut" else b"")
    if kind in ("inflight", "without plan"):
        left_file(table, active, state=State.INFLIGHT)


@pytest.mark.parametrize("version", tiered(VERSIONS, ["9"]))
@pytest.mark.parametrize("kind", KINDS)
def test_the_services_go_on(golden: Golden, version: str, kind: str) -> None:
    table = golden(version, "mor_compaction_requested").table
    rows = read_rows(table)
    leave(table, kind)
    for command in (
        ["schedule", "compaction", table],
        ["schedule", "clean", table, "--option", "hoodie.clean.commits.retained=1"],
        ["run", "archive", table],
    ):
        done = hudictl(*command, "--json")
        assert done.code == 0, (command, done.out, done.err)
        assert LATE not in done.out
    planned = hudictl("plan", table, "--json")
    assert (planned.code, planned.document["due"][0]["service"]) == (0, "rollback"), planned.out
    compact(table)
    assert_same_rows(read_rows(table), rows)


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "command", [["rollback"], ["rollback", "--instant", LATE], ["run", "rollback"], ["unschedule", LATE]], ids=" ".join
)
def test_it_leaves_the_timeline(golden: Golden, version: str, kind: str, command: list[str]) -> None:
    table = golden(version, "mor_basic").table
    before = open_context(table).active.names()
    leave(table, kind)
    split = 2 if command[0] == "run" else 1
    words = [*command[:split], table, *command[split:], "--json"]
    if command[0] != "run":
        dry = hudictl(*words, "--dry-run")
        assert (dry.code, dry.document["instant"]) == (0, LATE)
        assert open_context(table).active.load().contains(LATE)
    done = hudictl(*words)
    assert done.code == 0, (done.out, done.err)
    if command[0] == "run":
        assert [(item["instant"], item["state"]) for item in done.document["instants"]] == [(LATE, REMOVED)]
    else:
        assert done.document["removed"] == {"files": 0, "bytes": 0, "instants": [LATE]}
    assert open_context(table).active.names() == before
    assert leftovers(table, LATE) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_a_failed_write_beside_it_is_rolled_back(golden: Golden, version: str) -> None:
    case = golden(version, "failed_inflight_mor")
    (failed,) = open_context(case.table).active.load().pending().requested_times
    leave(case.table, "inflight")
    results = clean_failed_writes(eager(open_context(case.table)), an_owner())
    assert [result.target for result in results] == [None, failed]
    assert "cannot be read" in str(results[0].reason)
    assert leftovers(case.table, failed, LATE) == []


def test_a_young_one_is_left_alone_unless_it_is_named(golden: Golden) -> None:
    """A writer of Hudi may be at it, and has not written its plan yet."""
    table = golden("8", "mor_basic").table
    path = left_file(table, open_context(table).active)
    aged(path, 60)
    context = open_context(table)
    assert RollbackService().pending(context, context.active.load()) == []
    assert f"rollback {LATE} is pending" in str(rollback(context, None, an_owner()).reason)
    aged(path, 0)
    with pytest.raises(CorruptFileError):
        rollback(context, LATE, an_owner())
    aged(path, 60)
    assert rollback(context, LATE, an_owner()).removed.instants == (LATE,)
    assert current_claim(context.storage, LATE) is None


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
@pytest.mark.parametrize("kind", ["empty", "inflight"])
def test_one_of_the_metadata_table_stops_nothing_and_goes_with_an_update(
    golden: Golden, version: str, kind: str
) -> None:
    table = golden(version, "mor_compaction_requested").table
    leave(table / METADATA, kind)
    compact(table)
    done = hudictl("metadata", "update", table, "--engine", "local", "--json")
    assert done.code == 0, (done.out, done.err)
    assert not open_context(table / METADATA).active.load().contains(LATE)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("content", [b"", CUT])
def test_a_completed_one_without_its_metadata_is_known_by_its_plan(
    golden: Golden, version: str, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    table = golden(version, "rolled_back_mor").table
    context = open_context(table)
    done = context.active.load().completed().of_actions(Action.ROLLBACK).instants[0]
    target = context.active.read_of(done)["commitsRollback"][0]
    path = table / context.active.path_of(done)
    path.write_bytes(content)
    aged(path)
    for named in (target, done.requested_time):
        result = rollback(context, named, an_owner())
        assert (result.instant, result.target) == (done.requested_time, target)
    with caplog.at_level(logging.WARNING):
        assert hudictl("run", "rollback", table, "--instant", done.requested_time, "--json").code == 0
    assert "cannot be read" in caplog.text
    gone = hudictl("rollback", table, "--instant", "20250101000000000", "--json")
    assert (gone.code, gone.error["type"]) == (2, "ConfigError")
