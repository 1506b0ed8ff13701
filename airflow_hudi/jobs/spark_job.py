"""The Spark job of a task: a process that SparkSubmitHook starts, by the connection and the operator's arguments. In
hudi_submit, spark_submit.py makes the arguments, job_log.py reads the result, and local_process.py stops the job.
"""

from __future__ import annotations

import logging
import os
import subprocess
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

from airflow.sdk.exceptions import AirflowException

from airflow_hudi.hooks import asking_for
from hudi_core.errors import EXIT_FAILED, ConfigError
from hudi_core.frozen import dataclass
from hudi_core.request.secrets import refuse_secrets
from hudi_core.verbs.batch import JobRequest
from hudi_submit.job_log import JobLog, delivered_result, result_from
from hudi_submit.local_process import ProcessSettings, StartedJob
from hudi_submit.spark_submit import SparkTarget, application_name, job_environment, request_argument
from hudi_submit.zip import entry_file, publish_zip

if TYPE_CHECKING:
    from airflow.sdk import Connection

    from hudi_core.storage.base import Storage

log = logging.getLogger(__name__)

_LOOK_SECONDS: Final = 0.05
_OURS = frozenset({"conn_id", "conf", "env_vars", "application_args"})
_CONF_REMEDY = (
    "conf becomes arguments, which every process can read: put it into spark-defaults.conf or core-site.xml of "
    "spark-submit, or give it by env_vars"
)


@dataclass(frozen=True, slots=True)
class JobSettings(ProcessSettings):
    """The settings of a task's jobs. With `spark_log` the log has Spark's own lines. `storage_of` opens a table."""

    engine: str
    conn_id: str
    conf: Mapping[str, str]
    submit_kwargs: Mapping[str, Any]
    spark_log: bool
    storage_of: Callable[[str], Storage]


def spark_target(connection: Connection, deploy_mode: str | None = None) -> SparkTarget:
    """Returns the target of a `spark` connection by SparkSubmitHook's rules; `deploy_mode` overrides its own."""
    host = connection.host or ""
    # In a connection from the form, the host holds the master with its scheme. In one from a URI, the scheme is the
    # connection's type.
    is_whole = connection.conn_type == "spark" and host and ("://" in host or not connection.port)
    master = host if is_whole else f"{connection.conn_type}://{host}"
    if connection.port:
        master = f"{master}:{connection.port}"
    return SparkTarget(master, deploy_mode or connection.extra_dejson.get("deploy-mode"))


def check_spark_arguments(conf: Mapping[str, str], submit_kwargs: Iterable[str]) -> None:
    """Raises ConfigError for a secret in `conf`, and for arguments of SparkSubmitHook that users may not set."""
    clash = sorted(_OURS & set(submit_kwargs))
    if clash:
        raise ConfigError(
            f"submit_kwargs may not set {', '.join(clash)}", remedy="use the operator's own arguments for them"
        )
    refuse_secrets(conf, where="conf", remedy=_CONF_REMEDY)


class SparkJob(StartedJob):
    """A job that SparkSubmitHook submits. In cluster mode the driver's output is not visible, and spark-submit has its
    own exit codes. So the job writes its result to a file in a table, and this class reads the file.
    """

    _settings: JobSettings

    def __init__(self, job: JobRequest, settings: JobSettings) -> None:
        check_spark_arguments(settings.conf, settings.submit_kwargs)
        super().__init__(job, settings)
        self._hook: Any = None
        self._submitting = False

    @property
    def process(self) -> subprocess.Popen[str] | None:
        # The hook's only reference to its process. It is not public, and the same in Spark provider 5.6 to 6.3.
        return getattr(self._hook, "_submit_sp", None)

    def start(self) -> int:
        elsewhere = self._target.is_cluster_mode
        job = replace(self._job, result_name=uuid.uuid4().hex) if elsewhere else self._job
        self._hook, output = self._make_hook(job)
        environment = {**job_environment(self._target, os.environ), **self._settings.env_vars}
        if self.stopped:  # Stop was called while connections were looked up or the zip was built.
            return EXIT_FAILED
        code = self._submit(environment)
        self.tracking_url = output.tracking_url
        if notes := _where_logs_are(output, self._target):
            log.info("%s", notes)
        if not elsewhere:
            self.result = output.result(code)
            return code
        delivered = delivered_result(job, self._settings.storage_of)
        if delivered is None:
            return code
        reported = delivered.get("exit_code")
        if code != 0 and isinstance(reported, int) and reported != 0:
            code = reported
        self.result = result_from(delivered, code)
        return code

    def _submit(self, environment: Mapping[str, str]) -> int:
        """Runs spark-submit and returns its exit code. An interruption stops the job. Raises ConfigError."""
        finished, self._submitting = False, True
        try:
            if self.stopped:
                return EXIT_FAILED
            self._hook.submit(str(entry_file()), start_new_session=True, env=environment)
            finished = True
        except FileNotFoundError as error:
            remedy = "install pyspark beside Airflow, or put the cluster's spark-submit on the worker's PATH"
            raise ConfigError(f"cannot start {error.filename}", remedy=remedy) from error
        except (AirflowException, RuntimeError):
            process = self.process
            if process is None or process.poll() is None:
                raise
            finished = True
            return process.returncode or EXIT_FAILED
        finally:
            self._submitting = False
            if not finished:
                self.stop()
        return 0

    def stop(self) -> None:
        first = not self.stopped
        super().stop()
        if first and self._submitting and self.process is None:
            Thread(target=self._stop_when_started, daemon=True).start()

    def end_group(self, group: int) -> None:
        if self._target.is_cluster_mode:  # In this mode the hook can stop the driver.
            self._hook.on_kill()
        super().end_group(group)

    def _stop_when_started(self) -> None:
        """Stops the process that the hook was starting when `stop` was called. Nothing else stops it later."""
        while self._submitting:
            if self.process is not None:
                self.stop()
                return
            time.sleep(_LOOK_SECONDS)

    @cached_property
    def _target(self) -> SparkTarget:
        from airflow.sdk import BaseHook

        # An unknown connection is an error here; SparkSubmitHook alone would submit to YARN.
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
            # Not the hook's env_vars: they would replace the rest of a child's environment.
            conf={**self._target.driver_environment(self._settings.env_vars), **self._settings.conf},
            py_files=",".join(py_files),
            application_args=["--request", text],
            **extra,
        )
        output = JobLog(hook.log, spark_log=self._settings.spark_log)
        # LoggingMixin keeps its logger in this attribute. If a provider version keeps it elsewhere, progress and
        # failure are not logged.
        hook._log = output
        return hook, output


def _where_logs_are(output: JobLog, target: SparkTarget) -> str:
    """Returns where to find the lines that the task's log lacks; empty if it lacks none."""
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
