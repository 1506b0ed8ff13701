"""Real Hudi judges our log compactions on tables of versions 6, 8 and 9: it plans what we run, runs what we plan, reads
what we wrote with and without its metadata table, and goes on with the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.errors import UnsupportedError
from hudi_core.timeline.actions.compaction import CompactionOperation
from hudi_core.timeline.instant import Action
from tests.faults.test_log_compaction_faults import run_killed
from tests.interop.changes import user_columns, write_parquet
from tests.interop.judged import EVERY_JUDGE, JUDGES, MOR, Judged
from tests.interop.real_hudi import RealHudi, RealHudiError
from tests.support.fault_storage import FaultPlan, InjectedCrash
from tests.support.golden_compactions import context_of
from tests.support.log_compactions import FROM_ONE
from tests.support.rows import assert_same_rows, read_parquet
from tests.support.table_invariants import read_rows

pytestmark = [pytest.mark.hudi, pytest.mark.slow, pytest.mark.conformance]

SERVICE = "log_compaction"
PLACES = {"hoodie.optimized.log.blocks.scan.enable": "true"}
THRESHOLDS = ("1", "2", "3", "5")
Sources = dict[str, Judged]


@pytest.fixture(scope="module")
def sources() -> Sources:
    """The tables that tests copy, by label: made by the test that is first to need one."""
    return {}


@pytest.fixture
def table(
    request: pytest.FixtureRequest, sources: Sources, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> Judged:
    """An insert, three upserts and a delete in log files, written by the Hudi of the label."""
    label: str = request.param
    if label not in sources:
        hudi: RealHudi = request.getfixturevalue(EVERY_JUDGE[label])
        made = Judged.create(hudi, tmp_path_factory.mktemp("source") / "table", MOR, label[0])
        for _ in range(3):
            made.upsert(fresh=False)
        delete(made, 3)
        made.upsert(fresh=False)
        sources[label] = made
    return sources[label].copy(tmp_path / "table")


def delete(table: Judged, count: int) -> None:
    """Real Hudi deletes the first rows."""
    gone = table.rows.sort_by("id").slice(0, count)
    parquet = write_parquet(gone, table.base.parent, f"{table.base.name}-delete")
    table.hudi.ask("write", base=str(table.base), operation="delete", parquet=parquet, options=table.options)
    keys = set(gone["id"].to_pylist())
    table.rows = table.rows.filter(pa.array([key not in keys for key in table.rows["id"].to_pylist()]))


def plan_by_real(table: Judged, options: Mapping[str, str] = FROM_ONE) -> str | None:
    answer = table.hudi.ask(
        "service", base=str(table.base), name="schedule_log_compaction", options={**table.options, **options}
    )
    return None if answer is None else str(answer)


def run_by_real(table: Judged, instant: str) -> None:
    table.hudi.ask("service", base=str(table.base), name="log_compact", instant=instant, options=table.options)


def operations(table: Judged, instant: str) -> dict[Any, tuple[CompactionOperation, Mapping[str, float]]]:
    plan = context_of(table.base).active.read_plan(instant, Action.LOG_COMPACTION)
    return {item.file_group: (item, item.metrics) for item in plan.operations}


def incremental(table: Judged, begin: str) -> pa.Table:
    """What real Hudi answers since `begin`."""
    output = str(table.base.parent / "incremental.parquet")
    options = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": begin}
    table.hudi.ask("read", base=str(table.base), output=output, metadata=False, options=options)
    return read_parquet(output)


@pytest.mark.parametrize("table", EVERY_JUDGE, indirect=True)
def test_we_run_what_real_hudi_planned(table: Judged) -> None:
    """Twice, so that the second one merges the file of the first; then real Hudi goes on."""
    before, commits = table.hudi.snapshot(table.base, metadata=True), table.instants(Action.DELTA_COMMIT)
    ranges = {item.completed_at: incremental(table, item.completed_at) for item in commits}
    for _ in range(2):
        instant = plan_by_real(table)
        assert instant is not None
        (done,) = table.run(service=SERVICE).instants
        assert (done.instant, done.action, done.state, done.files_written) == (instant, "logcompaction", "completed", 2)
        table.check()
        after = table.hudi.snapshot(table.base, metadata=True)
        assert_same_rows(after, before, ignore=())
        for begin, rows in ranges.items():
            assert_same_rows(incremental(table, begin), rows)
        table.upsert(fresh=False)
        before = table.hudi.snapshot(table.base, metadata=True)
        ranges = {}
    table.goes_on()


@pytest.mark.parametrize("table", EVERY_JUDGE, indirect=True)
def test_real_hudi_runs_what_we_plan(table: Judged) -> None:
    """By each threshold it plans the same."""
    for threshold in THRESHOLDS:
        options = {**FROM_ONE, "hoodie.log.compaction.blocks.threshold": threshold}
        theirs, ours = table.base.parent / f"theirs-{threshold}", table.base.parent / f"ours-{threshold}"
        real, mine = table.copy(theirs), table.copy(ours)
        found, done = plan_by_real(real, options), mine.run("schedule", service=SERVICE, options=options)
        planned = done.document["instant"] if done.document is not None else None
        assert (found is None) == (planned is None), (threshold, found, done.document)
        if found is None:
            continue
        assert operations(mine, planned) == operations(real, found)
        if threshold == "1":
            run_by_real(mine, planned)
            mine.check()
            mine.goes_on()


@pytest.mark.parametrize("table", EVERY_JUDGE, indirect=True)
def test_real_hudi_goes_on_behind_a_half_done_one(table: Judged) -> None:
    """Killed with a log file written, and right before the completion. It finds nothing of it; its own attempt at the
    plan rolls ours back, and the plan with it.
    """
    instant = plan_by_real(table)
    assert instant is not None
    deaths = {"written": lambda operation: operation.kind == "output.close", "decided": _is_decision}
    for name, when in deaths.items():
        dead = table.copy(table.base.parent / name)
        with pytest.raises(InjectedCrash):
            run_killed(dead.base, instant, FaultPlan(when=when, timing="after"))
        for metadata in (True, False):
            assert_same_rows(user_columns(dead.hudi.snapshot(dead.base, metadata=metadata)), dead.rows)
        theirs = dead.copy(table.base.parent / f"{name}-theirs")
        with pytest.raises(RealHudiError, match="Inflight logcompaction"):
            run_by_real(theirs, instant)
        for _ in range(2):
            for metadata in (True, False):
                assert_same_rows(user_columns(theirs.hudi.snapshot(theirs.base, metadata=metadata)), theirs.rows)
            theirs.upsert(fresh=False)
        dead.run(service=SERVICE, instant=instant)
        dead.check()
        dead.goes_on()


def _is_decision(operation: Any) -> bool:
    return bool(operation.path.endswith(".decision"))


@pytest.mark.parametrize("table", JUDGES, indirect=True)
def test_a_write_between_plan_and_run(table: Judged) -> None:
    """Its rows come behind by the names of log files from version 8 on. In version 6 we refuse to run the plan: behind
    real Hudi's run its own queries return the merged rows, older ones, whatever the option.
    """
    instant = plan_by_real(table)
    assert instant is not None
    names = pa.array([f"between {row}" for row in range(table.rows.num_rows)])
    table.rows = table.rows.set_column(table.rows.column_names.index("name"), "name", names)
    table.write(table.rows)  # with the ordering values that the rows have already: the later one wins
    table.check()
    if table.config.features.number != 6:
        table.run(service=SERVICE, instant=instant)
        table.check()
        table.goes_on()
        return
    with pytest.raises(UnsupportedError, match="completed beside the plan"):
        table.run(service=SERVICE, instant=instant)
    table.check()
    run_by_real(table, instant)
    assert_same_rows(user_columns(read_rows(table.base)), table.rows)
    for options in ({}, PLACES):
        with pytest.raises(AssertionError, match="rows missing"):
            assert_same_rows(user_columns(read_by_real(table, options)), table.rows)


def read_by_real(table: Judged, options: Mapping[str, str]) -> pa.Table:
    output = str(table.base.parent / "answer.parquet")
    table.hudi.ask("read", base=str(table.base), output=output, metadata=True, options=dict(options))
    return read_parquet(output)
