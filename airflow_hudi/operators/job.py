"""A run request as a spark-submit: what is sent, where to, in which environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow_hudi.jobs.zip import entry_file, publish_zip
from airflow_hudi.operators.job_log import JobLog
from airflow_hudi.operators.submit import SparkSubmission, SparkTarget, job_environment
from hudi_core.errors import ConfigError
from hudi_core.request.model import RunRequest

if TYPE_CHECKING:
    from airflow.sdk import Connection

_OURS = frozenset({"conn_id", "conf", "env_vars", "application_args"})
"""Arguments of SparkSubmitHook that `submit_kwargs` may not set."""


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """How to reach Spark: a connection, properties, the driver's environment, further SparkSubmitHook arguments, seconds to end in."""

    conn_id: str
    conf: Mapping[str, str]
    env_vars: Mapping[str, str]
    submit_kwargs: Mapping[str, Any]
    grace_seconds: int


def spark_target(connection: Connection, deploy_mode: str | None = None) -> SparkTarget:
    """Where a `spark` connection points, by SparkSubmitHook's rules; `deploy_mode` goes before the connection's."""
    host = connection.host or ""
    # From a form the host holds the master with its scheme; from a URI the scheme became the connection's type.
    is_whole = connection.conn_type == "spark" and host and ("://" in host or not connection.port)
    master = host if is_whole else f"{connection.conn_type}://{host}"
    if connection.port:
        master = f"{master}:{connection.port}"
    return SparkTarget(master, deploy_mode or connection.extra_dejson.get("deploy-mode"))


class SparkJob:
    """Runs the request of one instant on Spark, any number of times. See operators.attempts.Job."""

    def __init__(self, request: RunRequest, settings: SparkSettings, environ: Mapping[str, str]) -> None:
        clash = sorted(_OURS & set(settings.submit_kwargs))
        if clash:
            raise ConfigError(f"submit_kwargs may not set {', '.join(clash)}", remedy="use the operator's own arguments for them")
        self._request = request
        self._settings = settings
        self._environ = environ
        self._submission: SparkSubmission | None = None
        self._stopped = False
        self._log: JobLog | None = None

    @property
    def stopped(self) -> bool:
        """Whether stop was called."""
        return self._stopped

    @property
    def failure(self) -> str | None:
        """Why the last run failed, in the job's own words; None when it did not say."""
        return self._log.failure if self._log is not None else None

    def run(self) -> int:
        """Submits the job and waits for its end. Raises ConfigError when it cannot be started."""
        if self._stopped:
            return 1
        hook = self._make_hook()
        environment = {**job_environment(self._target, self._environ), **self._settings.env_vars}
        self._submission = SparkSubmission(hook, self._target, grace_seconds=self._settings.grace_seconds)
        return self._submission.run(str(entry_file()), environment)

    def stop(self) -> None:
        """Ends the job and keeps another from being started."""
        self._stopped = True
        if self._submission is not None:
            self._submission.stop()

    @cached_property
    def _target(self) -> SparkTarget:
        from airflow.sdk import BaseHook

        # An unknown connection is an error here; SparkSubmitHook alone would go to YARN.
        return spark_target(BaseHook.get_connection(self._settings.conn_id), self._settings.submit_kwargs.get("deploy_mode"))

    def _make_hook(self) -> Any:
        try:
            from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
        except ImportError as error:
            raise ConfigError("the Spark provider is not installed", remedy="pip install apache-airflow-providers-apache-spark") from error
        extra = dict(self._settings.submit_kwargs)
        py_files = [str(publish_zip()), *filter(None, [extra.pop("py_files", None)])]
        extra.setdefault("name", f"hudi-{self._request.service}-{self._request.instant}")
        hook = SparkSubmitHook(
            conn_id=self._settings.conn_id,
            conf={**self._target.driver_environment(self._settings.env_vars), **self._settings.conf},
            py_files=",".join(py_files),
            application_args=["--request", self._request.to_json()],
            **extra,
        )
        self._log = JobLog(hook.log)
        # Where LoggingMixin keeps its logger. A provider version that looks elsewhere costs the words of progress and failure, no more.
        hook._log = self._log
        return hook
