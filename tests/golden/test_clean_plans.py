"""Our plans against real Hudi's: the golden tables with a clean, restored to the moment before it, planned with the
options of their writer.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.services.clean.planner import CleanService, Planned, make_plan
from hudi_core.timeline.actions.clean import CleanPlan, decode_clean_plan
from hudi_core.timeline.instant import Action, State
from hudi_core.timeline.instant_time import parse_instant
from hudi_core.transaction.owner import Owner
from tests.support.golden_cleans import before_clean, cases, cleans, context_of, data_files
from tests.support.golden_data import GoldenCase
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
CASES = [case for part in ("cleaned", "clean_requested") for case in cases(part)]
ARCHIVED = tiered(cases("archived_timeline"), [("9", "archived_timeline_cow")])
"""Tables with many cleans."""


def comparable(plan: CleanPlan) -> tuple[object, ...]:
    """A plan without the order of its files, which is that of a hash map in Hudi."""
    files = {partition: sorted(names) for partition, names in plan.files.items()}
    return (
        plan.policy,
        files,
        sorted(plan.dropped_partitions),
        plan.earliest,
        plan.last_completed,
        dict(plan.extra_metadata),
    )


@pytest.mark.parametrize(("folder", "name"), [*CASES, *ARCHIVED])
def test_every_golden_clean_is_planned_as_by_real_hudi(folder: str, name: str, golden: Golden) -> None:
    found = cleans(golden(folder, name).table)
    assert found
    for item in found:
        case = golden(folder, name)
        before = before_clean(case, item.requested_time)
        context = context_of(before.table, case.info["write_options"])
        made = make_plan(context, context.active.load())
        assert isinstance(made, Planned), made
        assert comparable(made.plan) == comparable(before.plan)


@pytest.mark.parametrize(("folder", "name"), cases("clean_requested"))
def test_a_requested_plan_is_what_real_hudi_requested(folder: str, name: str, golden: Golden) -> None:
    """Through the service: the file on the timeline, decoded, says the same as real Hudi's, with this table's own
    addresses.
    """
    case = golden(folder, name)
    (item,) = cleans(case.table)
    before = before_clean(case, item.requested_time)
    context = context_of(before.table, case.info["write_options"])
    planned = CleanService().schedule(context, Owner.current("test"), dry_run=False)
    assert planned.instant is not None
    path = context.active.path(planned.instant, Action.CLEAN, State.REQUESTED)
    assert comparable(decode_clean_plan(context.storage.read(path), path=path)) == comparable(before.plan)
    addresses = context.active.read_any(planned.instant, Action.CLEAN, State.REQUESTED)[
        "filePathsToBeDeletedPerPartition"
    ]
    assert all(
        entry["filePath"].startswith(f"{before.table}/{partition}/")
        for partition, entries in addresses.items()
        for entry in entries
    )


@pytest.mark.parametrize(("folder", "name"), cases("clean_requested"))
def test_what_we_plan_and_run_leaves_what_real_hudi_left(folder: str, name: str, golden: Golden) -> None:
    case = golden(folder, name)
    (item,) = cleans(case.table)
    before = before_clean(case, item.requested_time)
    context = context_of(before.table, case.info["write_options"])
    service, owner = CleanService(), Owner.current("test")
    instant = service.schedule(context, owner, dry_run=False).instant
    assert instant is not None
    assert service.run(context, instant, LocalEngine(2), owner, None).state == "completed"
    assert data_files(before.table) == data_files(case.after())


@pytest.mark.parametrize(
    ("folder", "name"), [case for part in ("cleaned_commits", "clean_requested_mor") for case in cases(part)]
)
def test_by_hours_the_same_files_go_as_by_commits(folder: str, name: str, golden: Golden) -> None:
    """One hour after the earliest commit that real Hudi retained by commits, one hour is to be kept."""
    case = golden(folder, name)
    (item,) = cleans(case.table)
    before = before_clean(case, item.requested_time)
    assert before.plan.earliest is not None
    now = parse_instant(before.plan.earliest.timestamp, "UTC") + timedelta(hours=1)
    context = context_of(before.table, {"hoodie.cleaner.hours.retained": "1", "airflow_hudi.timeline.zone": "UTC"})
    made = make_plan(context, context.active.load(), now=now)
    assert isinstance(made, Planned), made
    assert comparable(made.plan)[1:] == comparable(before.plan)[1:]
    assert made.plan.policy == "KEEP_LATEST_BY_HOURS"


def test_a_dry_run_names_files_and_bytes_and_writes_nothing(golden: Golden) -> None:
    case = golden("9", "clean_requested_mor")
    (item,) = cleans(case.table)
    table = before_clean(case, item.requested_time).table
    first = next(
        path
        for path in sorted(table.rglob("*.parquet"))
        if path.stat().st_size == 0 or "20261120222620388" in path.name
    )
    first.write_bytes(b"x" * 1234)
    everything = sorted(path.as_posix() for path in table.rglob("*"))
    context = context_of(table, case.info["write_options"])
    shown = CleanService().schedule(context, Owner.current("test"), dry_run=True)
    assert shown.instant is None
    assert shown.reason is None
    assert shown.plan is not None
    assert shown.plan["files"] == sum(len(entry["files"]) for entry in shown.plan["partitions"].values()) == 18
    named = [
        table / partition / name for partition, entry in shown.plan["partitions"].items() for name in entry["files"]
    ]
    assert first in named
    assert shown.plan["bytes"] == sum(path.stat().st_size for path in named) >= 1234
    assert sorted(path.as_posix() for path in table.rglob("*")) == everything
