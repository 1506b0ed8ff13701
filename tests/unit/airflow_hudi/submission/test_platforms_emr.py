"""Steps of EMR and jobs of EMR Serverless, as the real operators send them, and the services' own models take them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_hudi.submission.platforms import LONGEST_STEP_ARGUMENT, emr_arguments, emr_serverless_arguments, emr_step
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

ROLE = "arn:aws:iam::123456789012:role/hudi"
SERVERLESS = {"application_id": "00f1r2a3n4s5", "execution_role_arn": ROLE}


@pytest.mark.slow
@pytest.mark.parametrize(("job", "rendered"), [(REQUEST, RENDERED), (BATCH, RENDERED_BATCH)])
def test_the_operator_adds_the_step(operators: SubmissionOperators, job: JobRequest, rendered: JobRequest) -> None:
    given = emr_arguments(
        job, FILES_OF_TASK, job_flow_id="{{ results['cluster'] }}", conf={"spark.executor.memory": "4g"}
    )
    call = operators.sent("emr", given, {**CONTEXT, "results": {**CONTEXT["results"], "cluster": "j-2AXXXXXXGAPLF"}})
    (step,) = call["Steps"]
    arguments = step["HadoopJarStep"]["Args"]
    assert call["JobFlowId"] == "j-2AXXXXXXGAPLF"
    assert step["HadoopJarStep"]["Jar"] == "command-runner.jar"
    assert arguments[:-2] == [
        "spark-submit",
        "--deploy-mode",
        "cluster",
        "--name",
        step["Name"],
        "--py-files",
        FILES.zip,
        "--conf",
        "spark.executor.memory=4g",
        FILES.entry,
    ]
    assert read_request(arguments[-2:]) == rendered
    assert call["wait_seconds"] == 86_400


@pytest.mark.slow
@pytest.mark.parametrize(("job", "rendered"), [(REQUEST, RENDERED), (BATCH, RENDERED_BATCH)])
def test_the_operator_starts_the_job(operators: SubmissionOperators, job: JobRequest, rendered: JobRequest) -> None:
    given = emr_serverless_arguments(
        job,
        FILES_OF_TASK,
        **SERVERLESS,
        conf={"spark.executor.extraJavaOptions": "-Da='b c' -Dd"},
        log_uri="s3://logs/hudi",
        wait_minutes=90,
    )
    call = operators.sent("emr_serverless", given, CONTEXT)
    submit = call["jobDriver"]["sparkSubmit"]
    assert read_request(submit.pop("entryPointArguments")) == rendered
    assert submit == {"entryPoint": FILES.entry, "sparkSubmitParameters": f"--py-files {FILES.zip}"}
    assert (call["applicationId"], call["executionRoleArn"]) == (SERVERLESS["application_id"], ROLE)
    assert call["configurationOverrides"] == {
        "applicationConfiguration": [
            {"classification": "spark-defaults", "properties": {"spark.executor.extraJavaOptions": "-Da='b c' -Dd"}}
        ],
        "monitoringConfiguration": {"s3MonitoringConfiguration": {"logUri": "s3://logs/hudi"}},
    }
    assert call["wait_seconds"] == 5_400


@pytest.mark.slow
def test_a_job_needs_no_more_than_it_must(operators: SubmissionOperators) -> None:
    call = operators.sent("emr_serverless", emr_serverless_arguments(REQUEST, FILES, **SERVERLESS), CONTEXT)
    assert call["configurationOverrides"] == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("operator", "fields"),
    [
        ("emr", {"steps", "job_flow_id"}),
        ("emr_serverless", {"job_driver", "configuration_overrides", "application_id"}),
    ],
)
def test_the_operators_render_the_fields_of_the_request(
    operators: SubmissionOperators, operator: str, fields: set[str]
) -> None:
    assert fields <= set(operators.template_fields(operator))


@pytest.mark.slow
def test_an_argument_of_a_step_may_be_as_long_as_the_service_takes(operators: SubmissionOperators) -> None:
    """By the service's own model."""
    step = emr_step(REQUEST, FILES)
    step["HadoopJarStep"]["Args"][-1] = "x" * LONGEST_STEP_ARGUMENT
    assert operators.sent("emr", {"job_flow_id": "j", "steps": [step]}, CONTEXT)
    step["HadoopJarStep"]["Args"][-1] += "x"
    with pytest.raises(OperatorError, match=f"XmlString takes {LONGEST_STEP_ARGUMENT}"):
        operators.sent("emr", {"job_flow_id": "j", "steps": [step]}, CONTEXT)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"Arguments": []}, r"Unknown parameter.*Arguments"),
        ({"ActionOnFailure": "STOP"}, "ActionOnFailure is one of"),
        ({"Name": None}, "Invalid type for parameter"),
    ],
)
def test_the_service_refuses_other_steps(operators: SubmissionOperators, change: dict[str, object], error: str) -> None:
    step = {**emr_step(REQUEST, FILES), **change}
    with pytest.raises(OperatorError, match=error):
        operators.sent("emr", {"job_flow_id": "j", "steps": [step]}, CONTEXT)


def test_what_does_not_fit_an_argument_is_refused() -> None:
    job = long_request(LONGEST_STEP_ARGUMENT)
    with pytest.raises(ConfigError, match=f"{LONGEST_STEP_ARGUMENT} at most"):
        emr_step(job, FILES)
    assert emr_serverless_arguments(job, FILES, **SERVERLESS)
    with pytest.raises(ConfigError, match="longer than an argument"):
        emr_serverless_arguments(long_request(400_000), FILES, **SERVERLESS)


@pytest.mark.slow
def test_a_step_may_run_in_client_mode_and_end_the_cluster(operators: SubmissionOperators) -> None:
    given = emr_arguments(
        replace(REQUEST, instant="20260102000000000", when={}),
        FILES,
        job_flow_id="j",
        deploy_mode="client",
        action_on_failure="TERMINATE_CLUSTER",
    )
    (step,) = operators.sent("emr", given, CONTEXT)["Steps"]
    assert step["HadoopJarStep"]["Args"][1:3] == ["--deploy-mode", "client"]
    assert (step["Name"], step["ActionOnFailure"]) == ("hudi-compaction-20260102000000000", "TERMINATE_CLUSTER")


def test_a_secret_in_conf_is_refused_and_not_shown() -> None:
    conf = {"spark.hadoop.fs.s3a.secret.key": "hunter2"}
    with pytest.raises(ConfigError, match="conf must not hold secrets") as caught:
        emr_arguments(REQUEST, FILES, job_flow_id="j", conf=conf)
    assert "hunter2" not in str(caught.value)
    with pytest.raises(ConfigError, match="conf must not hold secrets"):
        emr_serverless_arguments(REQUEST, FILES, **SERVERLESS, conf=conf)
