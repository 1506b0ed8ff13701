"""The process of spark-submit: started, awaited, stopped gently, and outlived by nothing."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any, Final

from airflow.sdk.exceptions import AirflowException

from hudi_core.errors import EXIT_FAILED, ConfigError
from hudi_core.request.java import spark_environment
from hudi_core.request.secrets import is_secret_key, refuse_secrets

_LOOK_SECONDS: Final = 0.05
# Waits until the process group $1 has ended and kills its remaining processes after $2 seconds. It is a process of its
# own: Airflow's supervisor gives a killed task 5 s before SIGKILL, which is less than Spark's shutdown may take.
_REAPER = (
    'n=0; while kill -0 "-$1" 2>/dev/null; do [ "$n" -ge "$2" ] && { kill -KILL "-$1"; exit; }; sleep 1; '
    "n=$((n+1)); done"
)


@dataclass(frozen=True, slots=True)
class SparkTarget:
    """Where a `spark` connection sends jobs, read as SparkSubmitHook reads it."""

    master: str
    deploy_mode: str | None

    @property
    def is_local(self) -> bool:
        return self.master.startswith("local")

    @property
    def is_cluster_mode(self) -> bool:
        """Whether the driver runs elsewhere and spark-submit only watches it."""
        return self.deploy_mode == "cluster"

    def driver_environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Properties that give these variables to a driver that the cluster starts; none for a child of spark-submit.
        SparkSubmitHook's env_vars would replace the rest of its environment. Every process can read properties: a
        secret goes by the environment alone, and in cluster mode raises ConfigError.
        """
        prefix = (
            "spark.yarn.appMasterEnv"
            if "yarn" in self.master
            else "spark.kubernetes.driverEnv"
            if "k8s" in self.master
            else None
        )
        if prefix is None:
            return {}
        if self.is_cluster_mode:
            refuse_secrets(
                variables,
                where="env_vars of a driver in cluster mode",
                remedy="on Kubernetes set spark.kubernetes.driver.secretKeyRef.NAME=secret:key in conf, or mount the "
                "secret and name it with storage_options_file; on YARN use a keytab, a role, or a Hadoop credential "
                "provider",
            )
        return {f"{prefix}.{name}": value for name, value in variables.items() if not is_secret_key(name)}


class SparkSubmission:
    """The job as a process group of its own, by SparkSubmitHook. `stop` ends it: SIGTERM, `grace_seconds`, SIGKILL."""

    def __init__(self, hook: Any, target: SparkTarget, *, grace_seconds: int = 20) -> None:
        self._hook = hook
        self._target = target
        self._grace_seconds = grace_seconds
        self._running = False
        self.stopped = False
        self._signalled = False

    def run(self, application: str, environment: Mapping[str, str]) -> int:
        """The exit code of spark-submit. An interruption stops the job. Raises ConfigError."""
        finished, self._running = False, True
        try:
            if self.stopped:
                return EXIT_FAILED
            self._hook.submit(application, start_new_session=True, env=dict(environment))
            finished = True
        except FileNotFoundError as error:
            remedy = "install pyspark beside Airflow, or put the cluster's spark-submit on the worker's PATH"
            raise ConfigError(f"cannot start {error.filename}", remedy=remedy) from error
        except (AirflowException, RuntimeError):
            process = self._process()
            if process is None or process.poll() is None:
                raise
            finished = True
            return process.returncode or EXIT_FAILED
        finally:
            self._running = False
            if not finished:
                self.stop()
        return 0

    def stop(self) -> None:
        """Does not wait: called from a signal handler. Idempotent. In cluster mode the hook can stop the driver."""
        first, self.stopped = not self.stopped, True
        process = self._process()
        if process is None:
            if first and self._running:
                Thread(target=self._stop_when_started, daemon=True).start()
            return
        if self._signalled:
            return
        self._signalled = True
        if self._target.is_cluster_mode:
            self._hook.on_kill()
        end_group(process.pid, grace_seconds=self._grace_seconds)

    def _stop_when_started(self) -> None:
        """Ends the process that the hook was starting when `stop` was called: nothing else looks for it later."""
        while self._running:
            if self._process() is not None:
                self.stop()
                return
            time.sleep(_LOOK_SECONDS)

    def _process(self) -> subprocess.Popen[str] | None:
        # The hook's only handle on its process; not public, the same in versions 5.6 to 6.3 of the Spark provider.
        process: subprocess.Popen[str] | None = getattr(self._hook, "_submit_sp", None)
        return process


def job_environment(target: SparkTarget, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of spark-submit. The one that pip put beside this Python gets the paths of Java, Python and
    Spark, and raises ConfigError without Java; one from elsewhere on PATH brings its own set-up.
    """
    found = shutil.which("spark-submit", path=environ.get("PATH", os.defpath))
    ours = Path(sys.executable).parent
    if found is not None and Path(found).parent != ours:
        return dict(environ)
    if found is None and not (ours / "spark-submit").is_file():
        return dict(environ)
    result = spark_environment(environ)
    if not target.is_local and "PYSPARK_PYTHON" not in environ:
        # Spark hands it on to executors, and their machines need not have this path.
        del result["PYSPARK_PYTHON"]
    return result


def end_group(group: int, *, grace_seconds: int) -> None:
    """Ends a process group: SIGTERM, and SIGKILL after `grace_seconds`. Does not wait: called from a signal handler."""
    try:
        os.killpg(group, signal.SIGTERM)
    except ProcessLookupError:
        return  # it has ended
    subprocess.Popen(
        ["/bin/sh", "-c", _REAPER, "reaper", str(group), str(grace_seconds)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
