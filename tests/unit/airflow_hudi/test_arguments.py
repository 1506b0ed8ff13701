"""Mistakes in a DAG file are errors of its import; what is rendered or mapped is checked when the task runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowFailException

from airflow_hudi.arguments import as_texts
from airflow_hudi.assets import hudi_asset
from airflow_hudi.maintenance_dag import hudi_maintenance_dag
from airflow_hudi.operators.alert import HudiAlertOperator
from airflow_hudi.operators.archive import HudiArchiveOperator
from airflow_hudi.operators.doctor import HudiDoctorOperator, HudiProbeStoreOperator
from airflow_hudi.operators.metadata import HudiMetadataOperator
from airflow_hudi.operators.overwrite import HudiDeletePartitionOperator, HudiInsertOverwriteOperator
from airflow_hudi.operators.repair import HudiSavepointOperator
from airflow_hudi.operators.rollback import HudiRollbackOperator
from airflow_hudi.operators.service import HudiCompactionOperator
from airflow_hudi.operators.table_services import HudiTableServicesOperator
from airflow_hudi.operators.write import HudiWriteOperator
from airflow_hudi.sensors import HudiInstantSensor, HudiNoPendingSensor, HudiPartitionSensor
from airflow_hudi.triggers.timeline_events import HudiTimelineEventTrigger
from hudi_core.errors import ConfigError, HudiError
from tests.support.fake_spark_submit import RENDERED, Store, context

T = "20260102000000000"
COMPACT: dict[str, Any] = {"task_id": "t", "table": "a"}
LITERALS: list[tuple[Any, Mapping[str, Any], str]] = [
    (HudiCompactionOperator, {"mode": "exec"}, "mode is 'exec' .did you mean execute"),
    (HudiCompactionOperator, {"engine": "sprak"}, "engine is 'sprak' .did you mean spark"),
    (HudiCompactionOperator, {"nothing_to_do": "skp"}, "nothing_to_do is 'skp' .did you mean skip"),
    (HudiCompactionOperator, {"options": {"fs.s3a.secret.key": "x"}}, "options must not hold secrets"),
    (HudiCompactionOperator, {"storage_options": {"key": "x", "a": "{{ b }}"}}, "storage_options must not hold"),
    (HudiCompactionOperator, {"conf": {"spark.hadoop.fs.s3a.secret.key": "x"}}, "conf must not hold secrets"),
    (HudiCompactionOperator, {"table": "s3://user:password@bucket/a"}, "the address of the table must not hold"),
    (HudiCompactionOperator, {"options": {"airflow_hudi.engin": "x"}}, "unknown options"),
    (HudiCompactionOperator, {"options": {"hoodie.clean.commits.retained": "many"}}, "hoodie.clean.commits.retained"),
    (HudiCompactionOperator, {"env_vars": {"A": None}}, "in env_vars are no texts"),
    (HudiCompactionOperator, {"submit_kwargs": {"conf": {}}}, "submit_kwargs may not set conf"),
    (HudiCompactionOperator, {"mode": "schedule", "instant": T}, "chooses the instant itself"),
    (HudiCompactionOperator, {"dry_run": "maybe"}, "dry_run is 'maybe'"),
    (HudiArchiveOperator, {"mode": "excute"}, "did you mean execute"),
    (HudiRollbackOperator, {"target": T, "mode": "execute"}, "target goes with mode 'both'"),
    (HudiSavepointOperator, {"action": "remove"}, "action is 'remove' .one of create, delete"),
    (HudiDoctorOperator, {"fail_on": "warn"}, "did you mean warning"),
    (HudiProbeStoreOperator, {"must_carry": "leases"}, "did you mean lease"),
    (HudiMetadataOperator, {"verb": "updat"}, "did you mean update"),
    (HudiMetadataOperator, {"verb": "update", "columns": "a"}, "takes no columns"),
    (HudiInsertOverwriteOperator, {"source": "/a", "query": "select 1"}, "exclude each other"),
    (HudiInsertOverwriteOperator, {"source": "/a", "whole_table": "all"}, "whole_table is 'all'"),
    (HudiDeletePartitionOperator, {"partitions": ["a", "a"]}, "named twice"),
    (HudiWriteOperator, {"operation": "upsrt"}, "operation is 'upsrt' .did you mean upsert"),
    (HudiWriteOperator, {"source": "/a"}, "is no operation of write"),
    (HudiWriteOperator, {"operation": "delete", "source": "/a", "token": "a\nb"}, "is no token"),
    (HudiTableServicesOperator, {"mode": "execut"}, "did you mean execute"),
    (HudiTableServicesOperator, {"services": "complaction"}, "did you mean compaction"),
    (HudiTableServicesOperator, {"max_minutes": "soon"}, "max_minutes is 'soon'"),
    (HudiTableServicesOperator, {"max_bytes": "many"}, "max_bytes 'many'"),
    (HudiTableServicesOperator, {"policy": {"services": {"clean": {"commit": 1}}}}, "clean has no condition 'commit'"),
    (HudiTableServicesOperator, {"policy": "/a.yaml", "services": "clean"}, "leave out services"),
    (HudiAlertOperator, {"policy": {"alert": {"pending_age": "1h"}}}, "did you mean alerts"),
    (HudiInstantSensor, {"state": "complete", "instant": "{{ a }}"}, "did you mean completed"),
    (HudiInstantSensor, {"action": "compact"}, "did you mean compaction"),
    (HudiInstantSensor, {"instant": "yesterday"}, "instant='yesterday' is no instant time"),
    (HudiNoPendingSensor, {"pending_age": "soon"}, "'soon' is no duration"),
    (HudiPartitionSensor, {"partitions": "{{ a }}", "match": "some"}, "match is 'some'"),
    (HudiPartitionSensor, {"partitions": "../other"}, "path '../other'"),
]


def made(kind: Any, given: Mapping[str, Any], **more: Any) -> Any:
    named = {"tables": "a"} if kind in (HudiTableServicesOperator, HudiAlertOperator) else {"table": "a"}
    return kind(**{"task_id": "t", **named, **given, **more})


@pytest.mark.parametrize(("kind", "given", "message"), LITERALS)
def test_a_mistake_in_a_literal_is_refused_when_the_task_is_made(
    kind: Any, given: Mapping[str, Any], message: str
) -> None:
    with pytest.raises(HudiError, match=message) as error:
        made(kind, given)
    assert error.value.exit_code == 2


@pytest.mark.parametrize(("kind", "given", "message"), LITERALS)
def test_what_is_mapped_is_not_judged_where_a_mistake_would_be_tried_again(
    kind: Any, given: Mapping[str, Any], message: str
) -> None:
    if "nothing_to_do" not in given:
        made(kind, given, **RENDERED)


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (
            HudiCompactionOperator,
            {"mode": "{{ params.mode }}", "engine": "{% if a %}auto{% endif %}", "options": "{{ a }}"},
        ),
        (HudiCompactionOperator, {"mode": "both", "instant": "{{ params.instant }}"}),
        (
            HudiCompactionOperator,
            {"options": {"hoodie.clean.commits.retained": "{{ params.n }}"}, "dry_run": "{{ a }}"},
        ),
        (HudiCompactionOperator, {"engine": None, "options": None, "conf": None}),
        (HudiInsertOverwriteOperator, {"source": "{{ a }}", "query": "{{ b }}", "whole_table": "{{ c }}"}),
        (HudiInsertOverwriteOperator, {}),
        (HudiWriteOperator, {"operation": "{{ a }}", "source": "/a", "wait_for_source": "{{ b }}"}),
        (HudiWriteOperator, {}),
        (HudiDeletePartitionOperator, {"partitions": "day={{ ds }}"}),
        (
            HudiTableServicesOperator,
            {"services": "{{ a }}", "max_minutes": "{{ b }}", "max_bytes": "", "policy": "{{ c }}"},
        ),
        (HudiTableServicesOperator, {"policy": "/not/on/this/machine.yaml"}),
        (HudiInstantSensor, {"state": "{{ a }}", "action": "{{ b }}", "completed_after": "{{ c }}"}),
        (HudiPartitionSensor, {"partitions": ["day={{ ds }}"], "match": ""}),
    ],
)
def test_what_is_rendered_or_empty_is_left_to_the_run(kind: Any, given: Mapping[str, Any]) -> None:
    made(kind, given)


def test_what_another_task_returns_is_left_to_the_run() -> None:
    with DAG("d", schedule=None):
        first = HudiSavepointOperator(task_id="first", table="a")
        second = HudiCompactionOperator(task_id="second", table="a", mode=first.output["mode"], options=first.output)
    assert second.upstream_task_ids == {"first"}


def test_a_mapped_mistake_fails_the_task_for_good(tmp_path: Path) -> None:
    with pytest.raises(AirflowFailException, match="did you mean execute"):
        HudiCompactionOperator(task_id="t", table=str(tmp_path), hudi_conn_id=None, mode="exec", **RENDERED).execute(
            context(Store())
        )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: HudiCompactionOperator(task_id="t", tabel="a"),
            "HudiCompactionOperator has no argument 'tabel'.*'table'",
        ),
        (lambda: HudiCompactionOperator(**COMPACT, optons={}), "no argument 'optons' .did you mean 'options'"),
        (lambda: HudiCompactionOperator(**COMPACT, retrys=3), "no argument 'retrys' .did you mean 'retries'"),
        (lambda: HudiCompactionOperator(**COMPACT, xyzzy=3), "no argument 'xyzzy'$"),
        (lambda: HudiInstantSensor(**COMPACT, acton="clean"), "no argument 'acton' .did you mean 'action'"),
        (lambda: HudiAlertOperator(task_id="t", polcy={}), "no argument 'polcy' .did you mean 'policy'"),
        (lambda: hudi_asset("s3://b/t", stat="completed"), "hudi_asset has no argument 'stat' .did you mean 'state'"),
        (lambda: HudiTimelineEventTrigger(tabel="a"), "HudiTimelineEventTrigger has no argument 'tabel'.*'table'"),
        (
            lambda: hudi_maintenance_dag("d", policy={}, tables=["a"], one_task_per_tabel=True),
            "hudi_maintenance_dag has no argument 'one_task_per_tabel' .did you mean 'one_task_per_table'",
        ),
        (
            lambda: hudi_maintenance_dag("d", policy={}, tables=["a"], operator_args={"engin": "auto"}),
            "HudiTableServicesOperator has no argument 'engin' .did you mean 'engine'",
        ),
    ],
)
def test_an_argument_that_does_not_exist_is_refused_with_the_nearest_one(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        make()


class TakesOut(HudiCompactionOperator):
    """As users write one; what is left over is Airflow's to refuse."""

    def __init__(self, **kwargs: Any) -> None:
        self.env_name = kwargs.pop("env_name")
        super().__init__(**kwargs)


def test_a_class_of_a_user_may_take_arguments_that_it_does_not_name() -> None:
    assert TakesOut(**COMPACT, env_name="test").env_name == "test"
    with pytest.raises(TypeError, match="optons"):
        TakesOut(**COMPACT, env_name="test", optons={})


@pytest.mark.parametrize("one_task_per_table", [False, True])
def test_the_arguments_of_a_maintenance_dag_are_checked(one_task_per_table: bool) -> None:
    with pytest.raises(ConfigError, match="did you mean auto"):
        hudi_maintenance_dag(
            "d", policy={}, tables=["a"], operator_args={"engine": "atuo"}, one_task_per_table=one_task_per_table
        )
    with pytest.raises(ConfigError, match="did you mean compaction"):
        hudi_maintenance_dag("d", policy={"services": {"compacton": None}}, tables=["a"])
    dag = hudi_maintenance_dag("d", policy={}, tables=["a"], one_task_per_table=one_task_per_table, fail_fast=True)
    assert [task.task_id for task in dag.tasks] == ["services"]


@pytest.mark.parametrize("given", [{"state": "complete"}, {"actions": ["compact"]}])
def test_a_stored_watcher_with_a_mistake_ends_no_triggerer(given: dict[str, Any]) -> None:
    """Airflow's triggerer fails a trigger that it cannot make with a TypeError; any other error ends all triggers."""
    with pytest.raises(TypeError, match="did you mean comp"):
        HudiTimelineEventTrigger(table="a", **given)


@pytest.mark.parametrize(
    ("made", "shown"),
    [
        (HudiPartitionSensor, "partitions: 'Sequence[str] | str', match: 'str' = 'all', completed_after: 'str | "),
        (HudiCompactionOperator, "metadata: 'str' = 'auto', allow_corrupt_log_blocks: 'bool' = False"),
        (HudiDoctorOperator, "timeline_only: 'bool' = False"),
    ],
)
def test_help_shows_the_types_of_arguments(made: Any, shown: str) -> None:
    assert shown in str(inspect.signature(made.__init__))


def test_numbers_and_booleans_become_texts() -> None:
    given = {"a": 24, "b": True, "c": False, "d": 0.5, "e": "2g", "f": ""}
    assert as_texts(given, where="conf") == {"a": "24", "b": "true", "c": "false", "d": "0.5", "e": "2g", "f": ""}
    assert as_texts(None, where="conf") == as_texts({}, where="conf") == {}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"b": None, "a": ["hunter2"], "c": "x"}, "the values of a, b in conf are no texts"),
        ({1: "a"}, "the values of 1 in conf are no texts"),
        ("a=hunter2", "conf is a str"),
    ],
)
def test_what_cannot_be_a_text_is_refused_by_name(given: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        as_texts(given, where="conf")
    assert "hunter2" not in str(caught.value)
