"""The job as a run on Databricks: main.py as a Python task, and the job's packages as a wheel.

A Python task has no `--py-files`. A library is installed on the driver and on all workers before the task begins.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from airflow_hudi.jobs.job_arguments import application_name
from airflow_hudi.submission.job_call import job_arguments, job_properties
from airflow_hudi.submission.job_files import JobFiles
from hudi_core.errors import ConfigError
from hudi_core.verbs.batch import JobRequest

LONGEST_PARAMETERS: Final = 10_000
"""Bytes of the parameters of a Python task as JSON, by the Jobs API."""


def databricks_arguments(
    job: JobRequest,
    files: JobFiles,
    *,
    new_cluster: Mapping[str, Any] | None = None,
    existing_cluster_id: str | None = None,
    conf: Mapping[str, str] | None = None,
    libraries: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Arguments of DatabricksSubmitRunOperator (`apache-airflow-providers-databricks`): a run of one task.

    It runs on a `new_cluster` (a specification of the Jobs API), to whose Spark properties `conf` is added, or on the
    cluster of the id `existing_cluster_id`, which has its properties already. `libraries` are further ones, such as
    `{"pypi": {"package": "s3fs"}}`.

    Raises ConfigError without a wheel among `files`, for two clusters or none, for `conf` of an existing cluster, for a
    secret in `conf`, for a request that is longer than Databricks takes, and for a template that cannot be rendered.
    """
    if not files.wheel:
        raise ConfigError("Databricks needs the job as a wheel", remedy="publish the job's files: publish_job_files")
    if (new_cluster is None) == (existing_cluster_id is None):
        raise ConfigError("a run on Databricks has one cluster", remedy="give new_cluster or existing_cluster_id")
    properties = job_properties(conf)
    if existing_cluster_id is not None and properties:
        raise ConfigError(
            "an existing cluster has its Spark properties already", remedy="set conf there, or give new_cluster"
        )
    name = application_name(job)
    task: dict[str, Any] = {
        "task_key": name,
        "spark_python_task": {"python_file": files.entry, "parameters": _parameters(job)},
        "libraries": [{"whl": files.wheel}, *map(dict, libraries)],
    }
    if new_cluster is None:
        task["existing_cluster_id"] = existing_cluster_id
    else:
        spark_conf = {**new_cluster.get("spark_conf", {}), **properties}
        task["new_cluster"] = {**new_cluster, **({"spark_conf": spark_conf} if spark_conf else {})}
    return {"run_name": name, "tasks": [task]}


def _parameters(job: JobRequest) -> list[str]:
    found = job_arguments(job)
    size = len(json.dumps(found).encode())
    if size > LONGEST_PARAMETERS:
        raise ConfigError(
            f"the parameters are {size} bytes as JSON, Databricks takes {LONGEST_PARAMETERS}",
            remedy="name fewer tables in one task",
        )
    return found
