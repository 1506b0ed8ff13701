"""Golden merge-on-read tables without pending work: we plan a compaction, and real Hudi runs it; or we run it, and real
Hudi reads the rows and goes on. And tables on which nothing is to be planned, or we say why where real Hudi is silent
(docs/reference/differences.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from hudi_core.config.rows_config import ALLOW_CORRUPT
from hudi_core.config.services.compaction_config import COMPACTION_STRATEGY, Strategy
from hudi_core.engine.local import LocalEngine
from hudi_core.errors import ConfigError, CorruptFileError
from hudi_core.request.results import Result
from hudi_core.table import HudiTable
from hudi_core.verbs.run import RunRequest, ScheduleRequest
from tests.interop.changes import user_columns
from tests.interop.golden_judge import ENDS, LOST, NO_META, NOT_READ, Golden, Judge, golden_tables, is_mor
from tests.interop.judged import JUDGES, QUICK
from tests.interop.real_hudi import RealHudi, RealHudiError
from tests.support.golden_data import GoldenCase
from tests.support.rows import assert_same_rows, read_parquet
from tests.support.table_invariants import read_rows

pytestmark = [pytest.mark.hudi, pytest.mark.slow]

OWN_PLANS_FAIL = {*NOT_READ, ("6", "types_3level_lists_mor")}
"""Tables of which real Hudi runs no compaction plan, its own neither: 0.15 compacts three-level lists only with the
Hadoop option they were written with.
"""
NOTHING = ("no file group has log files", "0 delta commits since the last compaction")
ONE = {"hoodie.compact.inline.max.delta.commits": "1"}
OPTIONS = {**QUICK, **ONE, "spark.sql.session.timeZone": "UTC"}
EAGER, LAZY = ({"hoodie.cleaner.policy.failed.writes": policy} for policy in ("EAGER", "LAZY"))
BY_DAY = (Strategy.DAY_BASED, Strategy.BOUNDED_PARTITION_AWARE, Strategy.UNBOUNDED_PARTITION_AWARE)
CASES = [(version, name) for version, name, info in golden_tables() if is_mor(info) and not name.startswith(NO_META)]


def ours(chosen: GoldenCase, request: ScheduleRequest | RunRequest) -> Result:
    return HudiTable.open(str(chosen.table)).run(request, LocalEngine(2))


def check(hudi: RealHudi, chosen: GoldenCase) -> None:
    """Real Hudi and we read the rows that were there before, from base files alone as well."""
    expected = read_parquet(chosen.expected / "snapshot.parquet")
    assert_same_rows(read_rows(chosen.table), expected)
    for metadata in (True, False):
        for query in ("snapshot", "read_optimized"):
            assert_same_rows(hudi.snapshot(chosen.table, metadata=metadata, query=query), expected)


@pytest.mark.conformance
@pytest.mark.parametrize(("version", "name"), CASES)
def test_real_hudi_runs_what_we_planned(
    golden: Golden, request: pytest.FixtureRequest, version: str, name: str
) -> None:
    judge = Judge.of(golden, request, version, name)
    schedule = ScheduleRequest(str(judge.base), service="compaction", owner="test", options=OPTIONS)
    planned = ours(judge.case, schedule).document or {}
    if planned["instant"] is None:
        assert any(reason in planned["reason"] for reason in NOTHING)
        return

    def compact(base: Path) -> None:
        if base == judge.base:
            judge.hudi.ask("compact", base=str(base), instant=planned["instant"], options=judge.options)
        else:
            judge.service("compaction", **ONE)(base)

    found = judge.step(compact, user_columns(judge.theirs))
    assert (found is None) == ((version, name) in OWN_PLANS_FAIL)
    if found is not None:
        judge.check(meta=True, of_base_files=True)


@pytest.mark.conformance
@pytest.mark.parametrize(("version", "name"), CASES)
def test_real_hudi_goes_on_behind_what_we_planned_and_ran(
    golden: Golden, request: pytest.FixtureRequest, version: str, name: str
) -> None:
    """A run over lost bytes of a commit is refused without an option."""
    judge = Judge.of(golden, request, version, name)
    run = RunRequest(str(judge.base), service="compaction", owner="test", options=OPTIONS, schedule=True)
    if name.startswith(LOST):
        with pytest.raises(CorruptFileError):
            ours(judge.case, run)
        run = replace(run, options={**OPTIONS, ALLOW_CORRUPT.name: "true"}, schedule=False)
    done = ours(judge.case, run)
    if not done.instants:
        assert any(reason in str(done.reason) for reason in NOTHING)
        return
    assert [item.state for item in done.instants] == ["completed"]
    judge.check(meta=True, of_base_files=True)
    assert judge.goes_on() == ENDS.get((version, name))


def planned_by_hudi(hudi: RealHudi, chosen: GoldenCase, options: Mapping[str, str]) -> str | None:
    """The instant of real Hudi's plan, None where it makes none."""
    given = {**chosen.info["write_options"], **ONE, **options}
    instant: str | None = hudi.ask("service", base=str(chosen.table), name="schedule_compaction", options=given)
    return instant


@pytest.mark.conformance
def test_behind_a_failed_write_of_an_eager_writer_nothing_is_planned(golden: Golden, hudi_0_15: RealHudi) -> None:
    """It could not roll the write back any more. No row of it is ever read, whether it is rolled back before or
    after.
    """

    def roll_back(chosen: GoldenCase, policy: Mapping[str, str]) -> None:
        options = {**chosen.info["write_options"], **policy}
        hudi_0_15.ask("service", base=str(chosen.table), name="rollback", instant=failed, options=options)

    def run(chosen: GoldenCase, policy: Mapping[str, str]) -> Result:
        base = str(chosen.table)
        options = {**OPTIONS, **policy}
        return ours(chosen, RunRequest(base, service="compaction", owner="test", options=options, schedule=True))

    chosen, forced = golden("6", "failed_inflight_mor"), golden("6", "failed_inflight_mor")
    (failed,) = (item.requested_time for item in HudiTable.open(str(chosen.table)).timeline().pending())
    for policy in ({}, EAGER):
        assert planned_by_hudi(hudi_0_15, chosen, policy) is None
        held = run(chosen, policy)
        assert (held.instants, failed in str(held.reason)) == ((), True)
    assert [item.state for item in run(forced, LAZY).instants] == ["completed"]
    check(hudi_0_15, forced)
    with pytest.raises(RealHudiError, match="Found commits after time"):
        roll_back(forced, EAGER)
    roll_back(forced, LAZY)
    check(hudi_0_15, forced)
    roll_back(chosen, EAGER)
    assert [item.state for item in run(chosen, EAGER).instants] == ["completed"]
    check(hudi_0_15, chosen)


@pytest.mark.conformance
@pytest.mark.parametrize("version", ["6", "9"])
def test_partitions_that_are_no_days_are_refused_where_hudi_is_silent_or_fails(
    golden: Golden, request: pytest.FixtureRequest, version: str
) -> None:
    """Hudi makes `2024/01/01` of the partition `2024-01-01`, where no files are."""
    hudi: RealHudi = request.getfixturevalue(JUDGES[version])
    chosen = golden(version, "mor_basic")
    for strategy in BY_DAY:
        given = {COMPACTION_STRATEGY.name: f"org.apache.hudi.table.action.compact.strategy.{strategy.value}"}
        schedule = ScheduleRequest(str(chosen.table), service="compaction", owner="test", options={**OPTIONS, **given})
        with pytest.raises(ConfigError, match=r"'2024-01-0\d' is no day") as caught:
            ours(chosen, schedule)
        assert COMPACTION_STRATEGY.name in str(caught.value.remedy)
        if (version, strategy) == ("9", Strategy.DAY_BASED):
            with pytest.raises(RealHudiError, match="Invalid Partition Date Format"):
                planned_by_hudi(hudi, chosen, given)
        else:
            assert planned_by_hudi(hudi, chosen, given) is None
    assert planned_by_hudi(hudi, chosen, {}) is not None
