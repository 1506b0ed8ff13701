"""Jobs and batches of Dataproc, as the real operators send them, and the API's own types take them."""

from __future__ import annotations

import pytest

from airflow_hudi.submission.platforms import dataproc_batch_arguments, dataproc_job_arguments
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

FILES_SENT = {"main_python_file_uri": FILES.entry, "python_file_uris": [FILES.zip]}
NETWORK = {"execution_config": {"service_account": "hudi@project.iam.gserviceaccount.com", "subnetwork_uri": "main"}}


@pytest.mark.slow
@pytest.mark.parametrize(("job", "rendered"), [(REQUEST, RENDERED), (BATCH, RENDERED_BATCH)])
def test_the_operator_submits_the_job(operators: SubmissionOperators, job: JobRequest, rendered: JobRequest) -> None:
    given = dataproc_job_arguments(
        job,
        FILES_OF_TASK,
        region="europe-north1",
        cluster_name="lake",
        project_id="project",
        conf={"spark.executor.cores": "4"},
    )
    call = operators.sent("dataproc_job", given, CONTEXT)
    pyspark = call["job"].pop("pyspark_job")
    assert read_request(pyspark.pop("args")) == rendered
    assert pyspark.pop("properties").pop("spark.executor.cores") == "4"
    assert pyspark == FILES_SENT
    assert call == {"project_id": "project", "region": "europe-north1", "job": {"placement": {"cluster_name": "lake"}}}


@pytest.mark.slow
@pytest.mark.parametrize(("job", "rendered"), [(REQUEST, RENDERED), (BATCH, RENDERED_BATCH)])
def test_the_operator_creates_the_batch(operators: SubmissionOperators, job: JobRequest, rendered: JobRequest) -> None:
    given = dataproc_batch_arguments(
        job,
        FILES_OF_TASK,
        region="europe-north1",
        conf={"spark.executor.cores": "4"},
        container_image="europe-docker.pkg.dev/project/spark/hudi:1",
        environment_config=NETWORK,
    )
    call = operators.sent("dataproc_batch", given, CONTEXT)
    pyspark = call["batch"].pop("pyspark_batch")
    assert read_request(pyspark.pop("args")) == rendered
    assert pyspark == FILES_SENT
    assert call["batch"] == {
        "runtime_config": {
            "properties": {"spark.executor.cores": "4"},
            "container_image": "europe-docker.pkg.dev/project/spark/hudi:1",
        },
        "environment_config": NETWORK,
    }
    # Dataproc makes the id: the operator would take a batch that is there already for its own.
    assert call["batch_id"] is None


@pytest.mark.slow
def test_the_project_is_the_connections_without_one(operators: SubmissionOperators) -> None:
    given = dataproc_job_arguments(REQUEST, FILES, region="r", cluster_name="c")
    assert "project_id" not in given
    assert operators.sent("dataproc_job", given, CONTEXT)["job"]["placement"] == {"cluster_name": "c"}


@pytest.mark.slow
@pytest.mark.parametrize(("operator", "field"), [("dataproc_job", "job"), ("dataproc_batch", "batch")])
def test_the_operators_render_the_field_of_the_request(
    operators: SubmissionOperators, operator: str, field: str
) -> None:
    assert {field, "region", "project_id"} <= set(operators.template_fields(operator))


@pytest.mark.slow
def test_the_api_refuses_other_members(operators: SubmissionOperators) -> None:
    given = dataproc_job_arguments(REQUEST, FILES, region="r", cluster_name="c")
    given["job"]["pyspark_job"]["py_files"] = [FILES.zip]
    with pytest.raises(OperatorError, match="py_files"):
        operators.sent("dataproc_job", given, CONTEXT)
    given = dataproc_batch_arguments(REQUEST, FILES, region="r", environment_config={"service_account": "x"})
    with pytest.raises(OperatorError, match="service_account"):
        operators.sent("dataproc_batch", given, CONTEXT)


def test_what_does_not_fit_an_argument_is_refused() -> None:
    with pytest.raises(ConfigError, match="longer than an argument"):
        dataproc_job_arguments(long_request(400_000), FILES, region="r", cluster_name="c")


def test_a_secret_in_conf_is_refused() -> None:
    conf = {"spark.hadoop.fs.gs.auth.client.secret": "hunter2"}
    with pytest.raises(ConfigError, match="conf must not hold secrets"):
        dataproc_job_arguments(REQUEST, FILES, region="r", cluster_name="c", conf=conf)
    with pytest.raises(ConfigError, match="conf must not hold secrets"):
        dataproc_batch_arguments(REQUEST, FILES, region="r", conf=conf)
