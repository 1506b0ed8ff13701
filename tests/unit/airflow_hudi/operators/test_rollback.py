"""The rollback operator on tables of real Hudi; the job's own code runs without Spark."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from airflow_hudi.operators.rollback import HudiRollbackOperator
from airflow_hudi.task_fate import HudiJobFailed
from hudi_core.table import HudiTable
from tests.support.changed_tables import open_context
from tests.support.fake_spark_submit import RENDERED, Store, context, real_job, requests
from tests.support.golden_data import GoldenCase
from tests.support.table_invariants import read_rows
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ["6", "8", "9"]
EAGER = {"hoodie.cleaner.policy.failed.writes": "EAGER"}


def operator_on(table: Path, **arguments: Any) -> HudiRollbackOperator:
    return HudiRollbackOperator(
        **{
            "task_id": "rollback",
            "table": str(table),
            "hudi_conn_id": None,
            "conflict_poll_interval": 0.1,
            **arguments,
        }
    )


def pending(table: Path, action: str) -> list[str]:
    return [
        item.requested_time for item in HudiTable.open(str(table)).timeline().pending() if item.pending_action == action
    ]


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6"]))
def test_every_failed_write_is_rolled_back_in_one_job(golden: Golden, submitted: Path, version: str) -> None:
    table = golden(version, "failed_inflight_mor").table
    failed = pending(table, "deltacommit")
    store = Store()
    result = operator_on(table, options=EAGER).execute(context(store))
    assert (result["action"], result["state"]) == ("rollback", "completed")
    assert [item["target"] for item in result["instants"]] == failed
    assert result["files_deleted"] == sum(item["files_deleted"] for item in result["instants"])
    assert result["instant"] == result["instants"][-1]["instant"]
    assert pending(table, "deltacommit") == pending(table, "rollback") == []
    assert len(requests(submitted)) == 1
    assert set(store.values) == {"hudi_done"}
    again = operator_on(table, options=EAGER).execute(context(store))  # cleared: green, with what it had done
    assert {**again, "reason": None} == {**result, "seconds": 0.0, "already_completed": True, "engine": None}
    assert "no rollback is pending" in again["reason"]
    other = operator_on(table, options=EAGER, nothing_to_do="succeed").execute(context(Store()))
    assert (other["instant"], "no rollback is pending" in other["reason"]) == (None, True)
    with pytest.raises(AirflowSkipException, match="no rollback is pending"):
        operator_on(table, options=EAGER).execute(context(Store()))
    assert len(requests(submitted)) == 1


@pytest.mark.parametrize("version", tiered(VERSIONS, ["8"]))
def test_a_rollback_is_planned_by_one_task_and_run_by_the_next(golden: Golden, submitted: Path, version: str) -> None:
    table = golden(version, "failed_inflight_mor").table
    planned = operator_on(table, mode="schedule", options=EAGER).execute(context(Store()))
    assert (planned["state"], pending(table, "rollback")) == ("requested", [planned["instant"]])
    named = operator_on(table, mode="execute", instant=planned["instant"]).execute(context(Store()))
    assert (named["instant"], named["state"]) == (planned["instant"], "completed")
    assert pending(table, "deltacommit") == []


def test_a_pending_rollback_is_finished(golden: Golden, submitted: Path) -> None:
    table = golden("8", "failed_inflight_mor").table
    planned = operator_on(table, mode="schedule", options=EAGER).execute(context())
    done = operator_on(table, mode="execute").execute(context())
    assert [item["instant"] for item in done["instants"]] == [planned["instant"]]
    count = len(requests(submitted))
    nothing = operator_on(table, mode="execute", nothing_to_do="succeed").execute(context())
    assert "no rollback is pending on" in nothing["reason"]
    assert len(requests(submitted)) == count


@pytest.mark.parametrize("version", tiered(VERSIONS, ["9"]))
def test_one_write_by_name(golden: Golden, submitted: Path, version: str) -> None:
    table = golden(version, "mor_basic").table
    newest = [item.requested_time for item in HudiTable.open(str(table)).timeline().commits()][-1]
    result = operator_on(table, target=newest).execute(context())
    assert (result["target"], result["removed"]["instants"], result["reason"]) == (newest, [newest], None)
    assert not HudiTable.open(str(table)).timeline().commits().contains(newest)
    again = operator_on(table, target=newest).execute(context())
    assert again["target"] == newest
    with pytest.raises(AirflowFailException):
        operator_on(table, target="20200101000000000").execute(context())


def test_a_target_goes_with_nothing_else(golden: Golden, submitted: Path) -> None:
    table = golden("6", "mor_basic").table
    for wrong in ({"mode": "schedule"}, {"instant": "20260101000000000"}):
        with pytest.raises(AirflowFailException, match="target"):
            operator_on(table, target="20260102000000000", **wrong, **RENDERED).execute(context())
    assert requests(submitted) == []


class SlowWriter:
    """A writer whose newest commit has not completed yet; `completes` is the shell command by which it does."""

    def __init__(self, golden: Golden, version: str, folder: Path) -> None:
        self.table = golden(version, "mor_basic").table
        self.rows = read_rows(self.table)
        active = open_context(self.table).active
        last = active.load().commits().last()
        assert last is not None
        self.instant = last.requested_time
        file = self.table / active.path_of(last)
        file.rename(folder / file.name)
        self.completes = f"cp {folder / file.name} {file}"

    def complete(self) -> None:
        subprocess.run(["/bin/sh", "-c", self.completes], check=True)

    def roll_back(self, store: Store) -> dict[str, Any]:
        return operator_on(self.table, target=self.instant, nothing_to_do="succeed").execute(context(store))

    def assert_kept(self, result: dict[str, Any]) -> None:
        assert "completed" in result["reason"]
        assert (result["instant"], result["target"]) == (None, None)
        assert HudiTable.open(str(self.table)).timeline().commits().contains(self.instant)
        assert pending(self.table, "rollback") == []
        assert read_rows(self.table).equals(self.rows)


@pytest.mark.parametrize("version", tiered(["6", "8"], ["6"]))
def test_a_write_that_completes_between_two_tries_is_kept(
    golden: Golden, submitted: Path, version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first try was to roll back a write that had failed, as it seemed; what its writer acknowledged since is not
    the retry's to roll back.
    """
    writer, store = SlowWriter(golden, version, tmp_path), Store()
    real_job(monkeypatch, before="exit 9")
    with pytest.raises(HudiJobFailed):
        writer.roll_back(store)
    writer.complete()
    real_job(monkeypatch)
    writer.assert_kept(writer.roll_back(store))
    assert store.values == {}


def test_a_write_that_completes_while_the_job_starts_is_kept(
    golden: Golden, submitted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = SlowWriter(golden, "8", tmp_path)
    real_job(monkeypatch, before=writer.completes)
    writer.assert_kept(writer.roll_back(Store()))


def test_a_write_that_completes_after_its_rollback_was_requested_is_kept(
    golden: Golden, submitted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job drops the plan and gives way; what it is run again for must not be the completed write."""
    writer = SlowWriter(golden, "9", tmp_path)
    operator_on(writer.table, mode="schedule", options=EAGER).execute(context(Store()))
    real_job(monkeypatch, before=writer.completes)
    writer.assert_kept(writer.roll_back(Store()))
    assert len(requests(submitted)) == 2


def test_a_retry_finishes_what_the_first_try_requested(golden: Golden, submitted: Path, tmp_path: Path) -> None:
    writer, store = SlowWriter(golden, "9", tmp_path), Store()
    store.values["hudi_unless_completed"] = writer.instant
    planned = operator_on(writer.table, mode="schedule", options=EAGER).execute(context(Store()))
    result = writer.roll_back(store)
    assert (result["instant"], result["target"], result["reason"]) == (planned["instant"], writer.instant, None)


def test_a_task_that_is_cleared_rolls_back_what_it_had_kept(golden: Golden, submitted: Path, tmp_path: Path) -> None:
    """Who clears it has seen the reason, and asks for the completed write."""
    writer, store = SlowWriter(golden, "8", tmp_path), Store()
    store.values["hudi_unless_completed"] = writer.instant
    writer.complete()
    writer.assert_kept(writer.roll_back(store))
    assert writer.roll_back(store)["target"] == writer.instant


def test_the_seconds_of_all_rollbacks_are_the_jobs(
    golden: Golden, submitted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = golden("8", "failed_inflight_mor").table
    real_job(monkeypatch, before="sleep 2")  # as long as Spark's start
    result = operator_on(table, options=EAGER).execute(context())
    assert 0 < result["seconds"] < 2
