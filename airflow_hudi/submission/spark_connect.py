"""Runs the job over Spark Connect: the driver is a process beside the task, and the executors get the job zip. As a
program, this module builds the zip where the task runs, for the same release on both sides, and becomes main.py.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from typing import Any, Final, NoReturn

from airflow_hudi.submission.platforms import job_arguments
from hudi_core.errors import EXIT_BAD_INPUT, ConfigError
from hudi_core.request.secrets import refuse_secret_address
from hudi_core.verbs.batch import JobRequest
from hudi_submit.zip import entry_file, publish_zip

REQUEST: Final = "AIRFLOW_HUDI_REQUEST"
"""The environment variable of the request, which a shell does not read as a command, whatever a template renders to."""
_TOKEN = re.compile(r";\s*token=(?!\{\{)", re.IGNORECASE)


def spark_connect_arguments(job: JobRequest, *, remote: str, python: str = sys.executable) -> dict[str, Any]:
    """Returns arguments of BashOperator (`apache-airflow-providers-standard`). `remote` is the server's address
    (`sc://host:15002`). A token in it must be a template: `sc://host:443/;use_ssl=true;token={{
    conn.spark_connect_default.password }}`. `python` is the worker's Python, with this package, pandas and
    `pyspark[connect]`. Raises ConfigError for a secret in `remote`, for an address of another scheme, for a request
    that is longer than an argument can be, and for a template that cannot be rendered.
    """
    refuse_secret_address(remote, what="the address of the Spark Connect server")
    if _TOKEN.search(remote):
        raise ConfigError(
            "the address of the Spark Connect server holds a token",
            remedy="write a template of it: token={{ conn.spark_connect_default.password }}",
        )
    if not remote.startswith(("sc://", "{{")):
        raise ConfigError(f"{remote!r} is no address of a Spark Connect server", remedy="write sc://host:15002")
    _, request = job_arguments(job)
    return {
        "bash_command": f"exec {shlex.quote(python)} -m airflow_hudi.submission.spark_connect",
        "env": {"SPARK_REMOTE": remote, REQUEST: request},
        "append_env": True,
    }


def main() -> NoReturn:
    """Replaces this process by the job's driver. Exits with 2 if the driver cannot be started."""
    try:
        request = os.environ[REQUEST]
        command = [sys.executable, str(entry_file()), "--py-files", str(publish_zip()), "--request", request]
    except KeyError:
        sys.stderr.write(f"the environment has no {REQUEST}\n")
        sys.exit(EXIT_BAD_INPUT)
    except ConfigError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(EXIT_BAD_INPUT)
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
