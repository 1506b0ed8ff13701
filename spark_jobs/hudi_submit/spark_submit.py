"""What a Spark job is submitted with: its request as JSON that arrives whole however that is done, its name, where to,
and the environments of spark-submit and of the driver.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from hudi_core.errors import ConfigError
from hudi_core.request.java import spark_environment
from hudi_core.request.secrets import is_secret_key, refuse_secrets
from hudi_core.verbs.batch import BatchRequest, JobRequest, requests_of
from hudi_core.verbs.run import RunRequest, ScheduleRequest

LONGEST_ARGUMENT: Final = 128_000
"""Bytes; Linux takes 128 KiB (MAX_ARG_STRLEN)."""

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\}(?=\})')
_UNSAFE = re.compile(r'\\["\\]|`')
_ESCAPES = {'\\"': r"\u0022", "\\\\": r"\u005c", "`": r"\u0060"}


def request_argument(job: JobRequest, *, longest: int = LONGEST_ARGUMENT) -> str:
    """The request as one argument, which hudi_spark.job reads: JSON that YARN leaves as it is. In its cluster mode the
    arguments become a line of a shell script, in which the node manager takes `}}` away, the end of a reference to a
    variable, and Spark's quoting lets the shell see backslashes and backticks. Raises ConfigError over `longest` bytes.
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
    """The batch in parts that fit an argument, by halves; a run that does not fit by itself is a part, too."""
    place = len(batch.requests) // 2
    # With a name of a result, which a driver in the cluster gets.
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
    """The application's name: what is done, and at which instant when that is known; of a batch, on how many tables."""
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
    """Where jobs are sent."""

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
        Every process can read properties: a secret goes by the environment alone, and in cluster mode raises
        ConfigError.
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
    """The environment of spark-submit. The one that pip put beside this Python gets the paths of Java, Python and
    Spark, and raises ConfigError without Java; one from elsewhere on PATH brings its own set-up.
    """
    program = shutil.which("spark-submit", path=environ.get("PATH", os.defpath))
    ours = Path(sys.executable).parent
    if program is not None and Path(program).parent != ours:
        return dict(environ)
    if program is None and not (ours / "spark-submit").is_file():
        return dict(environ)
    result = spark_environment(environ)
    if not target.is_local and "PYSPARK_PYTHON" not in environ:
        # Spark hands it on to executors, and their machines need not have this path.
        del result["PYSPARK_PYTHON"]
    return result
