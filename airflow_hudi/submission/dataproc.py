"""The job on Google Dataproc: on a cluster, and as a batch of Dataproc Serverless."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_hudi.jobs.job_arguments import application_name
from airflow_hudi.submission.job_call import APP_NAME, job_arguments, job_properties
from airflow_hudi.submission.job_files import JobFiles
from hudi_core.verbs.batch import JobRequest


def dataproc_job_arguments(
    job: JobRequest,
    files: JobFiles,
    *,
    region: str,
    cluster_name: str,
    project_id: str | None = None,
    conf: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Arguments of DataprocSubmitJobOperator (`apache-airflow-providers-google`). Without a `project_id` the project is
    that of the connection.

    Raises ConfigError for a secret in `conf`, for a request that is longer than an argument can be, and for a template
    that cannot be rendered.
    """
    properties = {APP_NAME: application_name(job), **job_properties(conf)}
    return {
        "region": region,
        **_project(project_id),
        "job": {
            "placement": {"cluster_name": cluster_name},
            "pyspark_job": {**_pyspark(job, files), "properties": properties},
        },
    }


def dataproc_batch_arguments(
    job: JobRequest,
    files: JobFiles,
    *,
    region: str,
    project_id: str | None = None,
    conf: Mapping[str, str] | None = None,
    container_image: str | None = None,
    environment_config: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Arguments of DataprocCreateBatchOperator (`apache-airflow-providers-google`).

    `container_image` has what the job needs and the runtime lacks, `environment_config` the service account and the
    network (an EnvironmentConfig of the API). The batch has no id, so that Dataproc makes one: the operator takes a
    batch of the same id for its own, and a later run would do nothing.

    Raises ConfigError for a secret in `conf`, for a request that is longer than an argument can be, and for a template
    that cannot be rendered.
    """
    runtime: dict[str, Any] = {"properties": job_properties(conf)}
    if container_image is not None:
        runtime["container_image"] = container_image
    batch: dict[str, Any] = {"pyspark_batch": _pyspark(job, files), "runtime_config": runtime}
    if environment_config is not None:
        batch["environment_config"] = dict(environment_config)
    return {"region": region, **_project(project_id), "batch": batch}


def _pyspark(job: JobRequest, files: JobFiles) -> dict[str, Any]:
    """The members that a PySparkJob and a PySparkBatch share."""
    return {"main_python_file_uri": files.entry, "python_file_uris": [files.zip], "args": job_arguments(job)}


def _project(project_id: str | None) -> dict[str, str]:
    return {} if project_id is None else {"project_id": project_id}
