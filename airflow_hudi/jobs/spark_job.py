"""What a Spark job is started with: a run request as a spark-submit, where to, in which environment. In cluster mode
the result is a file at the table (`_delivered`); else job_log.py reads it. The form of the result:
hudi_core/request/results.py. Other ways to submit: airflow_hudi/submission/platforms.py.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow_hudi.hooks import asking_for
from airflow_hudi.jobs.job_arguments import application_name, refuse_secret_properties, request_argument
from airflow_hudi.jobs.job_log import JobLog, result_from
from airflow_hudi.jobs.submit_process import SparkSubmission, SparkTarget, job_environment
from airflow_hudi.jobs.zip import entry_file, publish_zip
from hudi_core.errors import EXIT_FAILED, ConfigError, CorruptFileError, HudiError, StorageNotFoundError
from hudi_core.request.results import JobResult
from hudi_core.storage.base import Storage
from hudi_core.verbs.batch import JobRequest, places_of_result

if TYPE_CHECKING:
    from airflow.sdk import Connection

log = logging.getLogger(__name__)

_OURS = frozenset({"conn_id", "conf", "env_vars", "application_args"})
_CONF_REMEDY = (
    "conf becomes arguments, which every process can read: put it into spark-defaults.conf or core-site.xml of "
    "spark-submit, or give it by env_vars"
)


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """How to reach Spark: connection, properties, the driver's environment, SparkSubmitHook arguments, seconds."""

    conn_id: str
    conf: Mapping[str, str]
    env_vars: Mapping[str, str]
    submit_kwargs: Mapping[str, Any]
    grace_seconds: int
    spark_log: bool = False


def spark_target(connection: Connection, deploy_mode: str | None = None) -> SparkTarget:
    """The address of a `spark` connection, by SparkSubmitHook's rules; `deploy_mode` overrides the connection's."""
    host = connection.host or ""
    # From a form the host holds the master with its scheme; from a URI the scheme became the connection's type.
    is_whole = connection.conn_type == "spark" and host and ("://" in host or not connection.port)
    master = host if is_whole else f"{connection.conn_type}://{host}"
    if connection.port:
        master = f"{master}:{connection.port}"
    return SparkTarget(master, deploy_mode or connection.extra_dejson.get("deploy-mode"))


def check_spark_arguments(conf: Mapping[str, str], submit_kwargs: Iterable[str]) -> None:
    """Raises ConfigError for a secret in `conf`, and for arguments of SparkSubmitHook that are not the user's."""
    clash = sorted(_OURS & set(submit_kwargs))
    if clash:
        raise ConfigError(
            f"submit_kwargs may not set {', '.join(clash)}", remedy="use the operator's own arguments for them"
        )
    refuse_secret_properties(conf, remedy=_CONF_REMEDY)


class SparkJob:
    """Runs a request on Spark, any number of times. In cluster mode the driver's output is not visible, and
    spark-submit has exit codes of its own: the job writes its result to a file in a table, which is read from there
    (`storage_of` its address).
    """

    def __init__(
        self,
        request: JobRequest,
        settings: SparkSettings,
        environ: Mapping[str, str],
        storage_of: Callable[[str], Storage],
    ) -> None:
        check_spark_arguments(settings.conf, settings.submit_kwargs)
        self._request = request
        self._settings = settings
        self._environ = environ
        self._storage_of = storage_of
        self._submission: SparkSubmission | None = None
        self._stopped = False
        self.result: JobResult | None = None
        self.tracking_url: str | None = None

    @property
    def stopped(self) -> bool:
        return self._stopped

    def run(self) -> int:
        """Submits the job and waits for its end. Raises ConfigError when it cannot be started."""
        self.result = None
        if self._stopped:
            return EXIT_FAILED
        elsewhere = self._target.is_cluster_mode
        request = replace(self._request, result_name=uuid.uuid4().hex) if elsewhere else self._request
        hook, output = self._make_hook(request)
        environment = {**job_environment(self._target, self._environ), **self._settings.env_vars}
        self._submission = SparkSubmission(hook, self._target, grace_seconds=self._settings.grace_seconds)
        if self.stopped:  # meanwhile: connections were looked up, and the zip was built
            return EXIT_FAILED
        code = self._submission.run(str(entry_file()), environment)
        self.tracking_url = output.tracking_url
        if notes := _where_logs_are(output, self._target):
            log.info("%s", notes)
        if not elsewhere:
            self.result = output.result(code)
            return code
        delivered = self._delivered(request)
        if delivered is None:
            return code
        reported = delivered.get("exit_code")
        if code != 0 and isinstance(reported, int) and reported != 0:
            code = reported
        self.result = result_from(delivered, code)
        return code

    def stop(self) -> None:
        self._stopped = True
        if self._submission is not None:
            self._submission.stop()

    def _delivered(self, job: JobRequest) -> dict[str, Any] | None:
        """None where the job left no result. Raises what kept a table from being looked at where no other has it."""
        failure: HudiError | None = None
        for request in places_of_result(job):
            path = f"{request.results_folder}/{job.result_name}.json"
            try:
                found = json.loads(self._storage_of(request.table).read(path))
            except StorageNotFoundError:
                continue
            except HudiError as error:
                failure = failure or error
            except ValueError as error:
                raise CorruptFileError(
                    "the job's result is not JSON", path=path, remedy="see the driver's log for what it did"
                ) from error
            else:
                return found if isinstance(found, dict) else None
        if failure is not None:
            raise failure
        log.info("The job left no result in %s; the timeline shows whether it succeeded", request.results_folder)
        return None

    @cached_property
    def _target(self) -> SparkTarget:
        from airflow.sdk import BaseHook

        # An unknown connection is an error here; SparkSubmitHook alone would go to YARN.
        with asking_for(self._settings.conn_id):
            connection = BaseHook.get_connection(self._settings.conn_id)
        return spark_target(connection, self._settings.submit_kwargs.get("deploy_mode"))

    def _make_hook(self, request: JobRequest) -> tuple[Any, JobLog]:
        try:
            from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
        except ImportError as error:
            raise ConfigError(
                "the Spark provider is not installed", remedy="pip install apache-airflow-providers-apache-spark"
            ) from error
        text = request_argument(request)
        extra = dict(self._settings.submit_kwargs)
        py_files = [str(publish_zip()), *filter(None, [extra.pop("py_files", None)])]
        extra.setdefault("name", application_name(request))
        hook = SparkSubmitHook(
            conn_id=self._settings.conn_id,
            conf={**self._target.driver_environment(self._settings.env_vars), **self._settings.conf},
            py_files=",".join(py_files),
            application_args=["--request", text],
            **extra,
        )
        output = JobLog(hook.log, spark_log=self._settings.spark_log)
        # Where LoggingMixin keeps its logger. In a provider version that keeps it elsewhere, progress and failure are
        # not logged.
        hook._log = output
        return hook, output


def _where_logs_are(output: JobLog, target: SparkTarget) -> str:
    """Where the lines are that the task's log lacks; empty when it lacks none."""
    notes = []
    if output.omitted:
        notes.append(
            f"{output.omitted} lines of Spark's own log at INFO are left out of this log; spark_log=True, or "
            "[hudi] spark_log = True in Airflow's configuration, shows them"
        )
    if not target.is_local:
        whose = "the driver's and the executors' logs" if target.is_cluster_mode else "the executors' logs"
        known = ", ".join(filter(None, (output.application, output.tracking_url)))
        notes.append(f"the cluster manager keeps {whose}" + (f" ({known})" if known else ""))
    return "; ".join(notes)
