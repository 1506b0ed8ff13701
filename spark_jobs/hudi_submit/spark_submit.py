"""The arguments of a submitted Spark job: its request as JSON that arrives unchanged by every way of submission, its
name, its target, and the environments of spark-submit and of the driver.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from hudi_core.errors import ConfigError
from hudi_core.frozen import dataclass
from hudi_core.request.java import spark_environment
from hudi_core.request.secrets import is_secret_key, refuse_secrets
from hudi_core.verbs.batch import BatchRequest, JobRequest, requests_of
from hudi_core.verbs.run import RunRequest, ScheduleRequest

LONGEST_ARGUMENT: Final = 128_000
"""The most bytes of an argument. Linux takes 128 KiB (MAX_ARG_STRLEN)."""

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\}(?=\})')
_UNSAFE = re.compile(r'\\["\\]|`')
_ESCAPES = {'\\"': r"\u0022", "\\\\": r"\u005c", "`": r"\u0060"}


def request_argument(job: JobRequest, *, longest: int = LONGEST_ARGUMENT) -> str:
    """Returns the request as one argument, which hudi_spark.job reads: JSON that YARN does not change. In YARN's
    cluster mode the arguments become a line of a shell script. There the node manager removes `}}`, which ends a
    reference to a variable, and Spark's quoting lets the shell interpret backslashes and backticks. Raises ConfigError
    for more than `longest` bytes.
    """
    text = _argument(job)
    size = len(text.encode())
    if size > longest:
        raise ConfigError(
            f"the request of {len(requests_of(job))} runs is longer than an argument can be: {size} bytes, "
            f"{longest} at most",
            remedy="name fewer tables in one task",
        )
    return text


def parts_of(batch: BatchRequest) -> Iterator[BatchRequest]:
    """Yields the batch in parts that fit into an argument, by halving it. A single run is always a part."""
    place = len(batch.requests) // 2
    # The size includes the name of a result, which a driver in the cluster gets.
    if place == 0 or len(_argument(replace(batch, result_name="f" * 32)).encode()) <= LONGEST_ARGUMENT:
        yield batch
        return
    for requests in (batch.requests[:place], batch.requests[place:]):
        yield from parts_of(replace(batch, requests=requests))


def _argument(job: JobRequest) -> str:
    return _TOKEN.sub(_as_yarn_leaves_it, job.to_json())


def _as_yarn_leaves_it(token: re.Match[str]) -> str:
    return "} " if token[0] == "}" else _UNSAFE.sub(lambda unsafe: _ESCAPES[unsafe[0]], token[0])


def application_name(job: JobRequest) -> str:
    """Returns the application's name: the verb or service and the instant, or the number of tables of a batch."""
    match job:
        case BatchRequest(requests=requests):
            what = f"{len({item.table for item in requests})}-tables"
        case RunRequest(service=service):
            what = service
        case ScheduleRequest(verb=verb, service=service):
            what = f"{verb}-{service}"
        case _:
            what = job.verb
    return "-".join(filter(None, ("hudi", what, getattr(job, "instant", None))))


@dataclass(frozen=True, slots=True)
class SparkTarget:
    """The master and the deploy mode of jobs."""

    master: str
    deploy_mode: str | None

    @property
    def is_local(self) -> bool:
        return self.master.startswith("local")

    @property
    def is_cluster_mode(self) -> bool:
        """Whether the driver runs in the cluster, and spark-submit only watches it."""
        return self.deploy_mode == "cluster"

    def driver_environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Returns the properties that give these variables to a driver that the cluster starts. A driver that is a
        child of spark-submit needs none. Every process can read properties, so a secret is passed only by the
        environment, and raises ConfigError in cluster mode.
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


def job_environment(target: SparkTarget, environ: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment of spark-submit. The spark-submit that pip installed beside this Python gets the paths of
    Java, Python and Spark; raises ConfigError without Java. Another spark-submit on PATH has its own set-up.
    """
    program = shutil.which("spark-submit", path=environ.get("PATH", os.defpath))
    ours = Path(sys.executable).parent
    if program is not None and Path(program).parent != ours:
        return dict(environ)
    if program is None and not (ours / "spark-submit").is_file():
        return dict(environ)
    result = spark_environment(environ)
    if not target.is_local and "PYSPARK_PYTHON" not in environ:
        # Spark passes the variable to executors, and their machines may not have this path.
        del result["PYSPARK_PYTHON"]
    return result
