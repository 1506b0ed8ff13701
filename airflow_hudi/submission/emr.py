"""The job on Amazon EMR: as a step of a cluster, and on EMR Serverless."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from airflow_hudi.jobs.job_arguments import application_name
from airflow_hudi.submission.job_call import job_arguments, job_properties
from airflow_hudi.submission.job_files import JobFiles
from hudi_core.verbs.batch import JobRequest

LONGEST_ARGUMENT: Final = 10_280
"""Characters of an argument of a step (XmlString in the service's API)."""
_DELAY_SECONDS = 30


def emr_arguments(
    job: JobRequest,
    files: JobFiles,
    *,
    job_flow_id: str,
    conf: Mapping[str, str] | None = None,
    deploy_mode: str = "cluster",
    action_on_failure: str = "CONTINUE",
    wait_minutes: int = 1440,
) -> dict[str, Any]:
    """Arguments of EmrAddStepsOperator (`apache-airflow-providers-amazon`): one step that runs spark-submit.

    `job_flow_id` is the id of the cluster, or a template of it. After `wait_minutes` the operator stops waiting and
    fails; its own default is half an hour.

    Raises ConfigError as emr_step.
    """
    return {
        "job_flow_id": job_flow_id,
        "steps": [emr_step(job, files, conf=conf, deploy_mode=deploy_mode, action_on_failure=action_on_failure)],
        "wait_for_completion": True,
        **_waiter(wait_minutes),
    }


def emr_step(
    job: JobRequest,
    files: JobFiles,
    *,
    conf: Mapping[str, str] | None = None,
    deploy_mode: str = "cluster",
    action_on_failure: str = "CONTINUE",
) -> dict[str, Any]:
    """A step as boto3 takes it, also among the steps of a cluster that EmrCreateJobFlowOperator creates.

    Raises ConfigError for a secret in `conf`, for a request that is longer than EMR takes, and for a template that
    cannot be rendered.
    """
    name = application_name(job)
    options = ["--deploy-mode", deploy_mode, "--name", name, "--py-files", files.zip]
    for key, value in job_properties(conf).items():
        options += ["--conf", f"{key}={value}"]
    return {
        "Name": name,
        "ActionOnFailure": action_on_failure,
        "HadoopJarStep": {
            "Jar": "command-runner.jar",
            "Args": ["spark-submit", *options, files.entry, *job_arguments(job, longest=LONGEST_ARGUMENT)],
        },
    }


def emr_serverless_arguments(
    job: JobRequest,
    files: JobFiles,
    *,
    application_id: str,
    execution_role_arn: str,
    conf: Mapping[str, str] | None = None,
    log_uri: str | None = None,
    wait_minutes: int = 1440,
) -> dict[str, Any]:
    """Arguments of EmrServerlessStartJobOperator (`apache-airflow-providers-amazon`).

    The role reads `files` and the table. Logs go to the folder `log_uri` on S3 where it is given. After `wait_minutes`
    the operator cancels the job and fails; its own default is 25 minutes.

    Raises ConfigError for a secret in `conf`, for a request that is longer than an argument can be, and for a template
    that cannot be rendered.
    """
    overrides: dict[str, Any] = {}
    if properties := job_properties(conf):
        # And not as `--conf`: sparkSubmitParameters is one text, with rules of its own for spaces and quotes.
        overrides["applicationConfiguration"] = [{"classification": "spark-defaults", "properties": properties}]
    if log_uri is not None:
        overrides["monitoringConfiguration"] = {"s3MonitoringConfiguration": {"logUri": log_uri}}
    return {
        "application_id": application_id,
        "execution_role_arn": execution_role_arn,
        "job_driver": {
            "sparkSubmit": {
                "entryPoint": files.entry,
                "entryPointArguments": job_arguments(job),
                "sparkSubmitParameters": f"--py-files {files.zip}",
            }
        },
        "configuration_overrides": overrides,
        "name": application_name(job),
        **_waiter(wait_minutes),
    }


def _waiter(minutes: int) -> dict[str, int]:
    return {"waiter_delay": _DELAY_SECONDS, "waiter_max_attempts": minutes * 60 // _DELAY_SECONDS}
