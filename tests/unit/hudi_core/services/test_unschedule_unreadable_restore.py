"""A restore that is half done and whose plan is lost: the remedy that the errors name ends it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_core.services.restore.candidates import restorable_instants
from hudi_core.timeline.actions.rollback import RestorePlan, encode_restore_plan
from hudi_core.timeline.instant import Action, State
from tests.support.changed_tables import leftovers, open_context
from tests.support.crash_leftovers import aged
from tests.support.fault_storage import Operation
from tests.support.golden_data import GoldenCase
from tests.support.hudictl_runner import hudictl
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import assert_metadata_true, has_metadata_table, read_rows
from tests.support.tiers import tiered
from tests.unit.hudi_core.services.restore.test_job import killed_restore, time_travel

Golden = Callable[[str, str], GoldenCase]
MOMENTS = {
    "begun": lambda made: made.path.endswith(".restore.inflight"),
    "first rollback requested": lambda made: made.path.endswith(".rollback.requested"),
    "first rollback begun": lambda made: made.path.endswith(".rollback.inflight"),
    "metadata restore requested": lambda made: made.path.endswith(".restore.requested") and "metadata" in made.path,
    "metadata restored": lambda made: ".restore" in made.path and "metadata" in made.path and _completes(made),
}
DAMAGE = {
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(encode_restore_plan(RestorePlan("20200101000000000", ()))[:-9]),
    "missing": Path.unlink,
}


def _completes(made: Operation) -> bool:
    return not made.path.endswith((".requested", ".inflight"))


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
@pytest.mark.parametrize("moment", tiered(MOMENTS, ["begun", "metadata restored"]))
@pytest.mark.parametrize("name", tiered(["mor_basic", "mdt_all_cow"], ["mdt_all_cow"]))
def test_it_is_dropped_and_the_restore_is_run_again(golden: Golden, version: str, name: str, moment: str) -> None:
    table = golden(version, name).table
    *_, target, _ = (item.instant for item in restorable_instants(open_context(table)) if item.reason is None)
    before = time_travel(table, target)
    assert before is not None
    killed_restore(table, target, lambda made: made.kind == "create_exclusive" and MOMENTS[moment](made))
    (pending,) = open_context(table).active.load().pending().of_actions(Action.RESTORE)
    assert pending.state is State.INFLIGHT
    restore = pending.requested_time
    path = table / open_context(table).active.path(restore, Action.RESTORE, State.REQUESTED)
    path.write_bytes(b"")
    aged(path)
    refused = hudictl("restore", table, "--instant", target, "--json")
    assert (refused.code, refused.error["type"]) == (2, "CorruptFileError")
    assert f"hudictl unschedule TABLE {restore}" in refused.error["remedy"]
    dropped = hudictl("unschedule", table, restore, "--json")
    assert (dropped.code, dropped.document["removed"]["instants"]) == (0, [restore]), dropped.err
    again = hudictl("restore", table, "--instant", target, "--json")
    assert again.code == 0, again.err
    assert_same_rows(read_rows(table, "off"), before)
    if has_metadata_table(table):
        assert_same_rows(read_rows(table, "on"), before)
        assert_metadata_true(table)
    assert open_context(table).active.load().pending().instants == ()
    assert leftovers(table, restore) == []


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["8"]))
@pytest.mark.parametrize("damage", DAMAGE)
def test_doctor_and_the_services_name_the_remedy(golden: Golden, version: str, damage: str) -> None:
    """What the restore had begun is finished by a rollback: the rows are those of a commit on the way."""
    table = golden(version, "mor_basic").table
    items = [item.instant for item in restorable_instants(open_context(table)) if item.reason is None]
    before = time_travel(table, items[-2])
    assert before is not None
    killed_restore(
        table, items[0], lambda made: made.kind == "create_exclusive" and MOMENTS["first rollback begun"](made)
    )
    (pending,) = open_context(table).active.load().pending().of_actions(Action.RESTORE)
    path = table / open_context(table).active.path(pending.requested_time, Action.RESTORE, State.REQUESTED)
    DAMAGE[damage](path)
    if path.exists():
        aged(path)
    doctor = hudictl("doctor", table, "--json").document["findings"]
    (finding,) = [item for item in doctor if item["instant"] == pending.requested_time]
    assert finding["rule"] == "unreadable_plan"
    assert f"hudictl unschedule {table} {pending.requested_time}" in finding["fix"]
    for command in (
        ["schedule", "clean", table, "--option", "hoodie.clean.commits.retained=1"],
        ["rollback", table],
    ):
        if damage == "missing":
            continue
        refused = hudictl(*command, "--json")
        assert refused.code != 0
        assert f"unschedule TABLE {pending.requested_time}" in refused.error["remedy"], (command, refused.error)
    assert hudictl("unschedule", table, pending.requested_time).code == 0
    assert hudictl("rollback", table, "--json").code == 0
    assert_same_rows(read_rows(table, "off"), before)
    assert open_context(table).active.load().pending().instants == ()
