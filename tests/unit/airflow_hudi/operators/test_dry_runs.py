"""Dry runs of operators, on tables of real Hudi: the XCom is what hudictl says, and the table is as before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from airflow.sdk.exceptions import AirflowFailException
from airflow.sdk.execution_time.context import OutletEventAccessors
from airflow.sdk.execution_time.task_runner import _handle_current_task_success

from airflow_hudi import metrics
from airflow_hudi.assets import table_asset
from airflow_hudi.operators.archive import HudiArchiveOperator
from airflow_hudi.operators.create import HudiCreateTableOperator
from airflow_hudi.operators.overwrite import HudiDeletePartitionOperator, HudiInsertOverwriteOperator
from airflow_hudi.operators.repair import HudiRestoreOperator, HudiUnscheduleOperator
from airflow_hudi.operators.rollback import HudiRollbackOperator
from airflow_hudi.operators.service import (
    HudiCleanOperator,
    HudiClusteringOperator,
    HudiCompactionOperator,
    HudiIndexingOperator,
    HudiLogCompactionOperator,
)
from airflow_hudi.operators.write import HudiWriteOperator
from hudi_core.table import HudiTable
from tests.support.damaged_files import tree
from tests.support.fake_spark_submit import RENDERED, Store, context, requests
from tests.support.golden_archives import TIGHT
from tests.support.golden_data import GoldenCase
from tests.support.hudictl_runner import hudictl
from tests.support.log_compactions import FROM_ONE
from tests.support.tiers import tiered
from tests.unit.airflow_hudi.operators.test_arguments import operators

Golden = Callable[[str, str], GoldenCase]
Given = dict[str, Any]
DUE = {"hoodie.compact.inline.max.delta.commits": "1"}
BLOOM = {"hoodie.metadata.index.bloom.filter.enable": "true"}
EAGER = {"hoodie.cleaner.policy.failed.writes": "EAGER"}
ONE = {"hoodie.clean.commits.retained": "1"}
SCHEDULE = {"mode": "schedule"}


def made(operator: Any, table: Path, **arguments: Any) -> Any:
    fields = {"task_id": "task", "table": str(table), "hudi_conn_id": None, "engine": "local", "dry_run": True}
    return operator(**{**fields, **arguments})


def commits(table: Path) -> list[str]:
    return [item.requested_time for item in HudiTable.open(str(table)).timeline().commits()]


def plan(table: Path) -> str:
    return [item.requested_time for item in HudiTable.open(str(table)).timeline().pending()][-1]


def partition(table: Path) -> str:
    return min(table.glob("20*")).name


def file_of(table: Path) -> str:
    return str(min(table.glob("20*/*.parquet")))


KINDS: list[tuple[str, str, Any, Callable[[Path], Given], Callable[[Path], tuple[str, ...]]]] = [
    *(
        (
            service.replace("_", " "),
            case,
            operator,
            lambda _, options=options: {**SCHEDULE, "options": options},
            lambda _, service=service: ("schedule", service, "TABLE"),
        )
        for service, case, operator, options in (
            ("compaction", "mor_basic", HudiCompactionOperator, DUE),
            ("clustering", "cow_basic", HudiClusteringOperator, {"hoodie.clustering.inline.max.commits": "1"}),
            ("log_compaction", "mor_basic", HudiLogCompactionOperator, FROM_ONE),
            ("clean", "mor_compacted", HudiCleanOperator, ONE),
            ("rollback", "failed_inflight_cow", HudiRollbackOperator, EAGER),
            ("indexing", "mor_basic", HudiIndexingOperator, BLOOM),
            ("archive", "archived_timeline_cow", HudiArchiveOperator, TIGHT),
        )
    ),
    (
        "rollback of a write",
        "mor_basic",
        HudiRollbackOperator,
        lambda table: {"target": commits(table)[-1]},
        lambda table: ("rollback", "TABLE", "--instant", commits(table)[-1]),
    ),
    (
        "restore",
        "mor_basic",
        HudiRestoreOperator,
        lambda table: {"instant": commits(table)[0]},
        lambda table: ("restore", "TABLE", "--instant", commits(table)[0]),
    ),
    ("restore of nothing", "mor_basic", HudiRestoreOperator, lambda _: {}, lambda _: ("restore", "TABLE")),
    (
        "unschedule",
        "clustering_requested_cow",
        HudiUnscheduleOperator,
        lambda table: {"instant": plan(table)},
        lambda table: ("unschedule", "TABLE", plan(table)),
    ),
    (
        "write",
        "cow_basic",
        HudiWriteOperator,
        lambda table: {"operation": "upsert", "source": file_of(table), "token": "a"},
        lambda table: ("write", "TABLE", "--operation", "upsert", "--source", file_of(table), "--engine", "local"),
    ),
    (
        "overwrite",
        "cow_basic",
        HudiInsertOverwriteOperator,
        lambda table: {"source": file_of(table), "token": "a"},
        lambda table: ("insert-overwrite", "TABLE", "--source", file_of(table), "--engine", "local"),
    ),
    (
        "delete",
        "cow_basic",
        HudiDeletePartitionOperator,
        lambda table: {"partitions": partition(table), "token": "a"},
        lambda table: ("delete-partition", "TABLE", "--partition", partition(table), "--engine", "local"),
    ),
]


def test_every_operator_of_a_dry_run_is_tried() -> None:
    """That of HudiCreateTableOperator, which needs no table, is in test_create.py."""
    having = {operator for operator in operators() if "dry_run" in operator.template_fields}
    assert {HudiCreateTableOperator, *(operator for _, _, operator, _, _ in KINDS)} == having


@pytest.mark.parametrize("version", tiered(["6", "9"], ["9"]))
@pytest.mark.parametrize(
    ("name", "case", "operator", "arguments", "command"),
    tiered(
        [pytest.param(*kind, id=kind[0]) for kind in KINDS],
        [name for name, *_ in KINDS if name not in ("clustering", "log compaction", "clean", "indexing")],
    ),
)
def test_a_dry_run_says_what_hudictl_says_and_writes_nothing(
    golden: Golden,
    submitted: Path,
    monkeypatch: pytest.MonkeyPatch,
    version: str,
    name: str,
    case: str,
    operator: Any,
    arguments: Callable[[Path], Given],
    command: Callable[[Path], tuple[str, ...]],
) -> None:
    """Nor has it an asset event or metrics, and what an earlier try left for the next one stays."""
    table, reported = golden(version, case).table, list[Any]()
    monkeypatch.setattr(metrics, "report_work", reported.append)
    given, before, kept = arguments(table), tree(table), {"hudi_done": '{"instant": "1"}', "hudi_after": "2"}
    store, events = Store(dict(kept)), OutletEventAccessors()
    task = made(operator, table, outlets=[table_asset(str(table))], nothing_to_do="skip", **given)
    result = task.execute({**context(store), "outlet_events": events})
    assert (tree(table), store.values, requests(submitted)) == (before, kept, [])
    assert (task.outlets, task.works, reported, list(events)) == ([], [], [], [])
    options = [part for key, value in (given.get("options") or {}).items() for part in ("--option", f"{key}={value}")]
    words = [str(table) if part == "TABLE" else part for part in command(table)]
    said = hudictl(*words, *options, "--dry-run", "--json")
    assert said.code == 0, said.out
    token = {"token": given["token"]} if "token" in given else {}
    assert result == {"table": str(table), "dry_run": True, **token, **said.document}
    assert tree(table) == before
    assert any(result.get(member) for member in ("plan", "removed", "replaced_file_groups", "records"))


@pytest.mark.parametrize("mode", ["schedule", "both"])
def test_nothing_to_plan_is_a_reason_and_no_skip(golden: Golden, submitted: Path, mode: str) -> None:
    table = golden("8", "mor_basic").table
    result = made(HudiCleanOperator, table, mode=mode, dry_run="True").execute(context(Store()))
    assert (result["instant"], result["plan"], "hoodie.clean" in result["reason"]) == (None, None, True)


@pytest.mark.parametrize("mode", ["both", "execute"])
def test_a_plan_that_would_be_run_is_named(golden: Golden, submitted: Path, mode: str) -> None:
    table = golden("8", "mor_compaction_requested").table
    expected = {
        "table": str(table),
        "instant": plan(table),
        "action": "compaction",
        "state": "requested",
        "plan": None,
        "reason": None,
        "dry_run": True,
    }
    for instant in ("", plan(table)) if mode == "execute" else ("",):
        task = made(HudiCompactionOperator, table, mode=mode, instant=instant)
        assert task.execute(context(Store())) == expected
    nothing = made(HudiCleanOperator, table, mode="execute").execute(context(Store()))
    assert (nothing["instant"], "no clean is pending" in nothing["reason"]) == (None, True)


def test_the_job_of_a_dry_run_is_submitted_as_one(golden: Golden, submitted: Path) -> None:
    """Where the engine is Spark, the look finds work, and the job reports it."""
    table = golden("8", "mor_compacted").table
    result = made(HudiCleanOperator, table, mode="schedule", engine="spark", options=ONE).execute(context(Store()))
    assert [(request.verb, request.dry_run) for request in requests(submitted)] == [("schedule", True)]  # type: ignore[attr-defined]
    assert (result["instant"], bool(result["plan"])) == (None, True)
    assert not [item for item in HudiTable.open(str(table)).timeline() if item.action == "clean"]


def test_a_dry_run_does_not_do_the_work_of_its_token(golden: Golden, submitted: Path) -> None:
    """Of a mapped task, whose token names its arguments: those of the work."""
    table, found = golden("9", "cow_basic").table, context(Store())
    found["ti"].map_index = 0
    given = {"partitions": partition(table)}
    would = made(HudiDeletePartitionOperator, table, **given).execute(found)
    done = made(HudiDeletePartitionOperator, table, dry_run="false", **given).execute(found)
    again = made(HudiDeletePartitionOperator, table, **given).execute(found)
    assert would["token"] == done["token"] == again["token"]
    assert (would["instant"], would["repeated"], done["repeated"]) == (None, False, False)
    assert (again["instant"], again["repeated"], again["dry_run"]) == (done["instant"], True, True)


def test_what_reads_the_table_is_not_started_by_a_dry_run(golden: Golden, submitted: Path) -> None:
    """Airflow makes an event of each outlet that a task has at its end."""
    table = golden("9", "cow_basic").table

    def outlets(dry_run: bool) -> list[str | None]:
        task = made(
            HudiDeletePartitionOperator,
            table,
            dry_run=dry_run,
            partitions=partition(table),
            outlets=[table_asset(str(table))],
        )
        found = {**context(Store()), "outlet_events": OutletEventAccessors()}
        task.execute(found)
        message, _ = _handle_current_task_success(found, Mock(task=task, stats_tags={}, rendered_map_index=None))
        return [outlet.uri for outlet in message.task_outlets or ()]

    assert [outlets(dry_run) for dry_run in (True, False)] == [[], [table_asset(str(table)).uri]]


def test_an_archival_that_is_only_planned_is_no_work(golden: Golden, submitted: Path) -> None:
    table, store = golden("8", "archived_timeline_cow").table, Store()
    task = made(HudiArchiveOperator, table, dry_run=False, options=TIGHT, **SCHEDULE, outlets=[table_asset(str(table))])
    result = task.execute(context(store))
    assert (result["dry_run"], result["instants"] > 0) == (True, True)
    assert (task.works, task.outlets, store.values) == ([], [], {})


def test_what_is_neither_true_nor_false_is_refused(golden: Golden, submitted: Path) -> None:
    table = golden("9", "cow_basic").table
    before = tree(table)
    for operator, arguments in (
        (HudiCleanOperator, {}),
        (HudiRestoreOperator, {"instant": commits(table)[0]}),
        (HudiDeletePartitionOperator, {"partitions": partition(table)}),
    ):
        with pytest.raises(AirflowFailException, match="dry_run is 'maybe'"):
            made(operator, table, dry_run="maybe", **arguments, **RENDERED).execute(context(Store()))
    assert tree(table) == before
