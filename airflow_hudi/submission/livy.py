"""The job as a batch of Apache Livy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_hudi.jobs.job_arguments import application_name
from airflow_hudi.submission.job_call import APP_NAME, job_arguments, job_properties
from airflow_hudi.submission.job_files import JobFiles
from hudi_core.verbs.batch import JobRequest


def livy_arguments(
    job: JobRequest, files: JobFiles, *, conf: Mapping[str, str] | None = None, polling_interval: int = 30
) -> dict[str, Any]:
    """Arguments of LivyOperator (`apache-airflow-providers-apache-livy`).

    `files` are on storage that Livy may read. Every `polling_interval` seconds the operator looks at the batch until
    it has ended; the operator's own default does not wait for its end.

    Raises ConfigError for a secret in `conf`, for a request that is longer than an argument can be, and for a template
    that cannot be rendered.
    """
    return {
        "file": files.entry,
        "py_files": [files.zip],
        "args": job_arguments(job),
        # Not as the name of the batch: Livy takes a name once as long as the batch runs.
        "conf": {APP_NAME: application_name(job), **job_properties(conf)},
        "polling_interval": polling_interval,
    }
