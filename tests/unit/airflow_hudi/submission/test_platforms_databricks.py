"""A run on Databricks, as the real operator submits it, and Databricks' own types take it."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_hudi.submission.job_files import JobFiles
from airflow_hudi.submission.platforms import LONGEST_PARAMETERS, databricks_arguments
from hudi_core.errors import ConfigError
from hudi_core.verbs.batch import JobRequest
from hudi_spark.job import read_request
from tests.support.submission_operators import OperatorError, SubmissionOperators
from tests.support.submissions import (
    BATCH,
    CONTEXT,
    FILES,
    FILES_OF_TASK,
    RENDERED,
    RENDERED_BATCH,
    REQUEST,
    long_request,
)

CLUSTER: dict[str, Any] = {
    "spark_version": "15.4.x-scala2.12",
    "node_type_id": "i3.xlarge",
    "num_workers": 2,
    "spark_conf": {"spark.sql.shuffle.partitions": "8"},
}


@pytest.mark.slow
@pytest.mark.parametrize(("job", "rendered"), [(REQUEST, RENDERED), (BATCH, RENDERED_BATCH)])
def test_the_operator_submits_the_run_on_a_new_cluster(
    operators: SubmissionOperators, job: JobRequest, rendered: JobRequest
) -> None:
    given = databricks_arguments(
        job,
        FILES_OF_TASK,
        new_cluster=CLUSTER,
        conf={"spark.executor.cores": "4"},
        libraries=[{"pypi": {"package": "s3fs"}}],
    )
    call = operators.sent("databricks", given, CONTEXT)
    (task,) = call.pop("tasks")
    assert read_request(task["spark_python_task"].pop("parameters")) == rendered
    assert task.pop("spark_python_task") == {"python_file": FILES.entry}
    assert task.pop("libraries") == [{"whl": FILES.wheel}, {"pypi": {"package": "s3fs"}}]
    assert task.pop("new_cluster") == {
        **CLUSTER,
        "num_workers": "2",
        "spark_conf": {"spark.sql.shuffle.partitions": "8", "spark.executor.cores": "4"},
    }
    assert call == {"run_name": task["task_key"]}


@pytest.mark.slow
def test_the_operator_submits_the_run_on_an_existing_cluster(operators: SubmissionOperators) -> None:
    given = databricks_arguments(REQUEST, FILES, existing_cluster_id="1126-031415-abcdefgh")
    (task,) = operators.sent("databricks", given, CONTEXT)["tasks"]
    assert task["existing_cluster_id"] == "1126-031415-abcdefgh"
    assert "new_cluster" not in task


@pytest.mark.slow
def test_the_operator_renders_the_field_of_the_request(operators: SubmissionOperators) -> None:
    assert {"tasks", "run_name"} <= set(operators.template_fields("databricks"))


@pytest.mark.slow
def test_the_api_refuses_other_members(operators: SubmissionOperators) -> None:
    given = databricks_arguments(REQUEST, FILES, existing_cluster_id="c")
    given["tasks"][0]["spark_python_task"]["py_files"] = [FILES.zip]
    with pytest.raises(OperatorError, match="py_files"):
        operators.sent("databricks", given, CONTEXT)


def test_the_specification_of_the_cluster_is_left_as_it_was() -> None:
    databricks_arguments(REQUEST, FILES, new_cluster=CLUSTER, conf={"spark.executor.cores": "4"})
    assert CLUSTER["spark_conf"] == {"spark.sql.shuffle.partitions": "8"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "has one cluster"),
        ({"new_cluster": CLUSTER, "existing_cluster_id": "c"}, "has one cluster"),
        ({"existing_cluster_id": "c", "conf": {"spark.executor.cores": "4"}}, "has its Spark properties already"),
        ({"new_cluster": CLUSTER, "conf": {"spark.hadoop.fs.s3a.secret.key": "hunter2"}}, "must not hold secrets"),
    ],
)
def test_what_means_nothing_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        databricks_arguments(REQUEST, FILES, **changes)
    assert "hunter2" not in str(caught.value)


def test_the_wheel_is_needed() -> None:
    with pytest.raises(ConfigError, match="as a wheel"):
        databricks_arguments(REQUEST, JobFiles(FILES.entry, FILES.zip), existing_cluster_id="c")


def test_what_the_api_would_refuse_is_refused() -> None:
    with pytest.raises(ConfigError, match=f"Databricks takes {LONGEST_PARAMETERS}"):
        databricks_arguments(long_request(LONGEST_PARAMETERS), FILES, existing_cluster_id="c")
