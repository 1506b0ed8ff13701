"""What is said about a pending plan is a command that this release carries out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from hudi_core.errors import TimelineError
from hudi_core.services.context import TableContext
from hudi_core.services.restore.verb import restore
from hudi_core.services.takeover import PendingPlan, advice, find_pending
from hudi_core.services.unschedule import unschedule
from hudi_core.timeline.actions.rollback import RestoredInstant, RestorePlan, encode_restore_plan
from hudi_core.timeline.instant import Instant, State
from hudi_health.doctor.examine import examine
from tests.support.changed_tables import an_owner, open_context
from tests.support.golden_data import GoldenCase

Golden = Callable[[str, str], GoldenCase]
T = "20261120223342658"
AT_ONCE = {"airflow_hudi.doctor.stuck_minutes": "0"}


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("compaction", f"hudictl run compaction TABLE --instant {T}"),
        ("log_compaction", f"hudictl run log_compaction TABLE --instant {T}"),
        ("clustering", f"hudictl run clustering TABLE --instant {T}"),
        ("clean", f"hudictl run clean TABLE --instant {T}"),
        ("rollback", f"hudictl run rollback TABLE --instant {T}"),
        ("restore", "run it with the Hudi that began it"),
        ("savepoint", f"hudictl savepoint create TABLE --instant {T}"),
        ("indexing", f"hudictl run indexing TABLE --instant {T}"),
        ("write", f"hudictl rollback TABLE --instant {T}"),
    ],
)
def test_advice(kind: str, expected: str) -> None:
    said = advice(PendingPlan(Instant(T, "any", State.REQUESTED), kind))
    assert expected in said
    assert ("hudictl run" in said) == expected.startswith("hudictl run")


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_pending_restore_names_the_commit_that_it_goes_back_to(golden: Golden, version: str) -> None:
    """Everywhere, and the command that is named does finish it."""
    table = golden(version, "mor_basic").table
    context = open_context(table)
    target, late = _pending_restore(context, names_target=True)
    context.active.to_inflight(late, "restore")
    command = f"--instant {target}"
    assert advice(find_pending(context, context.active.load(), late)) == f"hudictl restore TABLE {command}"
    with pytest.raises(TimelineError) as refused:
        unschedule(context, late, an_owner())
    assert command in str(refused.value.remedy)
    (finding,) = [
        item
        for item in examine(replace(context, options=AT_ONCE)).findings
        if item.instant == late and item.rule == "stuck_instant"
    ]
    assert f"hudictl restore {context.uri} {command}" in finding.fix
    assert restore(context, target, an_owner()).instant == late
    assert context.active.load().get(late, "restore").is_completed


def test_a_pending_restore_of_an_old_hudi_names_no_commit(golden: Golden) -> None:
    context = open_context(golden("6", "mor_basic").table)
    target, late = _pending_restore(context, names_target=False)
    said = advice(find_pending(context, context.active.load(), late))
    assert "the Hudi that began it" in said
    assert f"hudictl unschedule TABLE {late}" in said
    assert "--instant" not in said
    with pytest.raises(TimelineError) as refused:
        restore(context, target, an_owner())
    assert "the Hudi that began it" in str(refused.value.remedy)


def _pending_restore(context: TableContext, *, names_target: bool) -> tuple[str, str]:
    """The commit before the newest, and a restore to it that has been requested."""
    *_, target, newest = context.active.load().commits()
    plan = RestorePlan(
        target.requested_time if names_target else "", (RestoredInstant(newest.requested_time, newest.action),)
    )
    late = context.new_instant(context.active.load())
    context.active.create_requested(late, "restore", encode_restore_plan(plan))
    return target.requested_time, late
