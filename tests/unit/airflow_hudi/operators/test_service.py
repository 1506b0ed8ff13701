"""Plans that one task makes and another runs, or one task does both, on tables of real Hudi; no Spark is started."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowSkipException

from airflow_hudi.operators.service import HudiClusteringOperator, HudiCompactionOperator
from hudi_core.table import HudiTable
from tests.support.damaged_files import tree
from tests.support.fake_spark_submit import Store, context, requests
from tests.support.golden_data import GoldenCase
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import read_rows
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
KINDS: list[tuple[Any, str, dict[str, str]]] = [
    (HudiCompactionOperator, "mor_basic", {"hoodie.compact.inline.max.delta.commits": "1"}),
    (HudiClusteringOperator, "cow_basic", {"hoodie.clustering.plan.strategy.sort.columns": "name"}),
]
SERVICES = [pytest.param(*kind, id=name) for name, kind in zip(("compaction", "clustering"), KINDS, strict=True)]
VERSIONS = ["6", "9"]


def states(table: Path, done: dict[str, Any]) -> dict[str, str]:
    """The instants that were not on the table when it was made, by the state that a task reports."""
    timeline = HudiTable.open(str(table)).timeline()
    return {item.requested_time: item.state.value for item in timeline if item.requested_time >= done["instant"]}


@pytest.mark.parametrize("version", tiered(VERSIONS, ["9"]))
@pytest.mark.parametrize(("operator", "case", "options"), SERVICES)
def test_planned_by_one_task_and_run_by_the_next(
    golden: Golden, submitted: Path, version: str, operator: Any, case: str, options: dict[str, str]
) -> None:
    table = golden(version, case).table
    rows, store = read_rows(table), Store()

    def task(**arguments: Any) -> Any:
        return operator(task_id="task", table=str(table), hudi_conn_id=None, engine="local", **arguments)

    planned = task(mode="schedule", options=options).execute(context(store))
    assert (planned["state"], planned["files_written"], planned["engine"]) == ("requested", 0, "local")
    assert states(table, planned) == {planned["instant"]: "requested"}
    files = tree(table)
    again = task(mode="schedule", options=options).execute(context(store))
    assert (again["instant"], tree(table)) == (planned["instant"], files)
    done = task(mode="execute", instant=planned["instant"]).execute(context(Store()))
    assert (done["instant"], done["state"], done["already_completed"]) == (planned["instant"], "completed", False)
    assert done["files_written"] > 0
    assert states(table, planned) == {planned["instant"]: "completed"}
    assert_same_rows(read_rows(table), rows)
    assert task(mode="execute", instant=planned["instant"]).execute(context(Store()))["already_completed"] is True
    assert requests(submitted) == []


@pytest.mark.slow
@pytest.mark.parametrize("version", tiered(VERSIONS, ["6"]))
@pytest.mark.parametrize(("operator", "case", "options"), tiered(SERVICES, ["clustering"]))
def test_planned_and_run_by_one_task(
    golden: Golden, submitted: Path, version: str, operator: Any, case: str, options: dict[str, str]
) -> None:
    """What another task planned is run, not planned once more; then there is nothing to do."""
    rows = read_rows(golden(version, case).table)
    for planned_before in (False, True):
        table = golden(version, case).table

        def task(mode: str, table: Path = table) -> Any:
            return operator(
                task_id="task", table=str(table), hudi_conn_id=None, engine="local", mode=mode, options=options
            )

        planned = task("schedule").execute(context(Store())) if planned_before else None
        done = task("both").execute(context(Store()))
        assert (done["state"], done["already_completed"], done["files_written"] > 0) == ("completed", False, True)
        assert planned is None or planned["instant"] == done["instant"]
        assert states(table, done) == {done["instant"]: "completed"}
        assert_same_rows(read_rows(table), rows)
        for mode in ("both", "schedule"):
            with pytest.raises(AirflowSkipException):
                task(mode).execute(context(Store()))
    assert requests(submitted) == []


def test_who_runs_a_plan_of_others_says_which_options_were_not_used(
    golden: Golden, submitted: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    columns, size = (f"hoodie.clustering.plan.strategy.{name}" for name in ("sort.columns", "target.file.max.bytes"))
    table = golden("9", "cow_basic").table

    def done(mode: str, **options: str) -> Any:
        task = HudiClusteringOperator(
            task_id="t", table=str(table), hudi_conn_id=None, engine="local", mode=mode, options=options
        )
        return task.execute(context(Store()))

    planned = done("schedule", **{columns: "name"})
    adopted = done("both", **{columns: "id", size: "1000000", "hoodie.write.lock.client.num_retries": "1"})
    said = f"clustering {planned['instant']} was planned before, and is run by its plan, not by this run's {columns}"
    assert (adopted["state"], adopted["already_completed"], adopted["reason"]) == ("completed", False, said)
    assert capsys.readouterr().out.count(f"[warning  ] {said} ") == 1
    own = done("both", **{columns: "id"})
    assert (own["state"], own["reason"]) == ("completed", None)
