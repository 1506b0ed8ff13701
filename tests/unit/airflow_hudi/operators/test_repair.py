"""Restore, savepoint, unschedule and takeover as operators, on tables of real Hudi; the job's own code runs without
Spark.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from airflow_hudi.operators.overwrite import HudiDeletePartitionOperator
from airflow_hudi.operators.repair import (
    BaseHudiVerbOperator,
    HudiRestoreOperator,
    HudiSavepointOperator,
    HudiTakeoverOperator,
    HudiUnscheduleOperator,
)
from airflow_hudi.task_fate import HudiJobFailed
from hudi_core.table import HudiTable
from tests.support.fake_spark_submit import Store, context, real_job, requests
from tests.support.golden_data import GoldenCase
from tests.support.table_invariants import read_rows
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ["6", "8", "9"]
DIES = "kill -KILL $PPID"


def made(operator: type[BaseHudiVerbOperator], table: Path, **arguments: Any) -> BaseHudiVerbOperator:
    return operator(
        **{"task_id": "verb", "table": str(table), "hudi_conn_id": None, "conflict_poll_interval": 0.1, **arguments}
    )


def commits(table: Path) -> list[str]:
    return [item.requested_time for item in HudiTable.open(str(table)).timeline().commits()]


def pending(table: Path) -> list[tuple[str, str]]:
    return [(item.requested_time, item.state.value) for item in HudiTable.open(str(table)).timeline().pending()]


@pytest.mark.slow
@pytest.mark.parametrize("version", tiered(VERSIONS, ["9"]))
def test_a_table_goes_back(golden: Golden, submitted: Path, version: str) -> None:
    table = golden(version, "mor_basic").table
    *_, target, newest = commits(table)
    result = made(HudiRestoreOperator, table, instant=target).execute(context(Store()))
    assert (result["target"], result["removed"]["instants"], result["reason"]) == (target, [newest], None)
    assert commits(table)[-1] == target
    again = made(HudiRestoreOperator, table, instant=target).execute(context())
    assert again["reason"] == "nothing was written after it"
    with pytest.raises(AirflowSkipException, match="nothing was written"):
        made(HudiRestoreOperator, table, instant=target, nothing_to_do="skip").execute(context())


@pytest.mark.slow
@pytest.mark.parametrize("version", tiered(VERSIONS, ["6"]))
def test_a_retry_of_a_completed_restore_keeps_what_was_written_since(
    golden: Golden, submitted: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    """The worker was lost when the restore was completed, and writers were started again."""
    table = golden(version, "mor_basic").table
    target, store = commits(table)[-2], Store()
    real_job(monkeypatch, after=DIES)
    with pytest.raises(HudiJobFailed):
        made(HudiRestoreOperator, table, instant=target).execute(context(store))
    assert commits(table)[-1] == target
    real_job(monkeypatch)
    partition = min(read_rows(table).column("_hoodie_partition_path").to_pylist())
    given = {"task_id": "write", "table": str(table), "hudi_conn_id": None, "partitions": partition}
    written = HudiDeletePartitionOperator(**given).execute(context(Store()))["instant"]
    done = made(HudiRestoreOperator, table, instant=target, nothing_to_do="skip").execute(context(store))
    restores = HudiTable.open(str(table)).timeline().of_actions("restore")
    assert [item.requested_time for item in restores] == [done["instant"]]
    assert (done["target"], "earlier try" in done["reason"], store.values) == (target, True, {})
    assert commits(table)[-1] == written
    # Cleared, or in another run, it is other work.
    assert made(HudiRestoreOperator, table, instant=target).execute(context(store))["removed"]["instants"] == [written]


@pytest.mark.parametrize("version", tiered(VERSIONS, ["8"]))
def test_a_savepoint_comes_and_goes(golden: Golden, submitted: Path, version: str) -> None:
    table = golden(version, "mor_basic").table
    kept = made(HudiSavepointOperator, table, comment="a release").execute(context(Store()))
    assert (kept["instant"], kept["comment"], kept["existed"], kept["deleted"]) == (
        commits(table)[-1],
        "a release",
        False,
        False,
    )
    assert kept["files"] > 0
    assert [item.instant for item in HudiTable.open(str(table)).savepoints()] == [kept["instant"]]
    gone = made(HudiSavepointOperator, table, action="delete", instant=kept["instant"]).execute(context(Store()))
    assert (gone["instant"], gone["deleted"]) == (kept["instant"], True)
    assert HudiTable.open(str(table)).savepoints() == []
    with pytest.raises(AirflowFailException, match="no savepoint"):
        made(HudiSavepointOperator, table, action="delete", instant=kept["instant"]).execute(context(Store()))


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6"]))
def test_a_plan_is_dropped(golden: Golden, submitted: Path, version: str) -> None:
    table = golden(version, "clustering_requested_cow").table
    ((instant, _),) = pending(table)
    result = made(HudiUnscheduleOperator, table, instant=instant).execute(context(Store()))
    assert (result["instant"], result["action"], result["removed"]["instants"]) == (instant, "clustering", [instant])
    assert "writes to its file groups" in result["unblocks"]["work"]
    assert pending(table) == []


@pytest.mark.parametrize("version", tiered(VERSIONS, ["9"]))
def test_an_attempt_is_taken_over(golden: Golden, submitted: Path, version: str) -> None:
    table = golden(version, "compaction_inflight").table
    ((instant, state),) = pending(table)
    result = made(HudiTakeoverOperator, table, instant=instant).execute(context(Store()))
    assert (state, result["state"], pending(table)) == ("inflight", "requested", [(instant, "requested")])
    assert result["next"].endswith(instant)


def test_a_retry_of_what_is_done_succeeds(golden: Golden, submitted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked, kept = golden("8", "clustering_requested_cow").table, golden("8", "savepoint_mor").table
    ((plan, _),) = pending(blocked)
    saved = HudiTable.open(str(kept)).savepoints()[0].instant
    for table, arguments in (
        (blocked, {"operator": HudiUnscheduleOperator, "instant": plan}),
        (kept, {"operator": HudiSavepointOperator, "action": "delete", "instant": saved}),
    ):
        store = Store()
        real_job(monkeypatch, after=DIES)
        with pytest.raises(HudiJobFailed):
            made(table=table, **arguments).execute(context(store))
        real_job(monkeypatch)
        assert made(table=table, **arguments).execute(context(store))["instant"] == arguments["instant"]
        assert store.values == {}
    again = made(HudiUnscheduleOperator, blocked, instant=plan).execute(context(Store()))  # another task
    assert (again["removed"]["instants"], "dropped before" in again["reason"]) == ([], True)
    with pytest.raises(AirflowFailException):
        made(HudiSavepointOperator, kept, action="delete", instant=saved).execute(context(Store()))


def test_a_retry_keeps_to_the_commit_that_it_chose(
    golden: Golden, submitted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = golden("6", "mor_basic").table
    newest = commits(table)[-1]
    store = Store()
    monkeypatch.setenv("FAKE_ACTION", "exit 1")
    with pytest.raises(HudiJobFailed):
        made(HudiSavepointOperator, table).execute(context(store))
    later = str(int(newest) + 1000)
    for path in (table / ".hoodie").glob(f"{newest}.*"):
        (path.parent / path.name.replace(newest, later)).write_bytes(path.read_bytes())
    assert commits(table)[-1] == later
    real_job(monkeypatch)
    assert made(HudiSavepointOperator, table).execute(context(store))["instant"] == newest


def test_a_restore_names_the_indexes_that_it_dropped(golden: Golden, submitted: Path) -> None:
    """Behind a compaction of the metadata table it cannot go back."""
    table = golden("8", "mdt_all_mor_compacted").table
    before = HudiTable.open(str(table)).config.metadata_partitions
    target = commits(table)[0]
    result = made(HudiRestoreOperator, table, instant=target).execute(context(Store()))
    left = HudiTable.open(str(table)).config.metadata_partitions
    assert result["dropped_indexes"] == sorted(before - left)
    assert "record_index" in result["dropped_indexes"]


@pytest.mark.parametrize("operator", [HudiRestoreOperator, HudiUnscheduleOperator, HudiTakeoverOperator])
def test_an_instant_is_needed(golden: Golden, submitted: Path, operator: type[BaseHudiVerbOperator]) -> None:
    with pytest.raises(AirflowFailException, match="no instant"):
        made(operator, golden("6", "mor_basic").table, instant="").execute(context())


def test_what_is_done_already_needs_no_job(golden: Golden, submitted: Path) -> None:
    kept = golden("8", "savepoint_mor").table
    saved = HudiTable.open(str(kept)).savepoints()[0].instant
    existing = made(HudiSavepointOperator, kept, instant=saved).execute(context(Store()))
    assert (existing["instant"], existing["existed"]) == (saved, True)
    planned = golden("8", "mor_compaction_requested").table
    ((free, _),) = pending(planned)
    freed = made(HudiTakeoverOperator, planned, instant=free).execute(context(Store()))
    assert (freed["instant"], bool(freed["reason"])) == (free, True)
    blocked = golden("8", "clustering_requested_cow").table
    ((plan, _),) = pending(blocked)
    made(HudiUnscheduleOperator, blocked, instant=plan).execute(context(Store()))
    dropped = made(HudiUnscheduleOperator, blocked, instant=plan).execute(context(Store()))
    assert "dropped before" in dropped["reason"]
    assert [request.verb for request in requests(submitted)] == ["unschedule"]
