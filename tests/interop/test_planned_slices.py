"""Our compaction of plans that real Hudi made beside a write that never completed, whose log files are in the slices:
a lawful plan is run, whatever became of the write, and a plan without a log file is refused.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from hudi_core.errors import FormatError
from hudi_core.timeline.actions.compaction import encode_compaction_plan
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, State
from tests.interop.dying_writers import LAZY, PUBLISHED, left_by_a_killed_writer
from tests.interop.judged import JUDGES, MOR, QUICK, Judged
from tests.interop.real_hudi import RealHudi
from tests.support.changed_tables import data_files
from tests.support.golden_compactions import context_of

pytestmark = [pytest.mark.hudi, pytest.mark.slow, pytest.mark.conformance]

LOGS_OUTSIDE = {"6": True, "8": False, "9": False}
"""Whether the rollback of a write puts further log files into the slice that the plan names."""


@pytest.mark.parametrize("rolled_back", ["before", "after"])
@pytest.mark.parametrize("version", JUDGES)
def test_plans_beside_a_failed_write(
    request: pytest.FixtureRequest, tmp_path: Path, version: str, rolled_back: str
) -> None:
    hudi: RealHudi = request.getfixturevalue(JUDGES[version])
    table = Judged.create(hudi, tmp_path / "table", MOR, version, LAZY)
    table.upsert(fresh=False)
    table.upsert(fresh=False)
    table, failed = left_by_a_killed_writer(table, tmp_path / "failed", PUBLISHED, LAZY)
    time.sleep(2.5)  # its heartbeat expires
    if rolled_back == "before":
        table.run("rollback", instant=failed, options=LAZY)
    instant = table.schedule_compaction()
    if rolled_back == "after":
        planned = data_files(table.base)
        table.run("rollback", instant=failed, options=LAZY)
        assert bool(data_files(table.base).keys() - planned.keys()) == LOGS_OUTSIDE[version]
    without_a_log(table, instant, tmp_path / "crafted")
    table.upsert(fresh=False, options=LAZY)
    table.run(service="compaction", instant=instant)
    assert instant in table.times(Action.COMMIT)
    table.check()
    table.goes_on()


def without_a_log(table: Judged, instant: str, base: Path) -> None:
    """The plan without the first log file of its first operation is refused, and nothing is written."""
    crafted = table.copy(base)
    context = context_of(crafted.base, QUICK)
    active: ActiveTimeline = context.active
    plan = active.read_plan(instant)
    first = plan.operations[0]
    path = crafted.base / active.path(instant, Action.COMPACTION, State.REQUESTED)
    operations = (replace(first, log_files=first.log_files[1:]), *plan.operations[1:])
    path.write_bytes(encode_compaction_plan(replace(plan, operations=operations)))
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    before = {path: path.stat().st_mtime_ns for path in crafted.base.rglob("*")}
    with pytest.raises(FormatError, match=first.log_files[0]):
        crafted.run(service="compaction", instant=instant)
    assert {path: path.stat().st_mtime_ns for path in crafted.base.rglob("*")} == before
