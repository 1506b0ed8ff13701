"""Translates Spark's errors into the engine's own errors, with a remedy if the cause is known."""

from __future__ import annotations

import re
from importlib import import_module
from importlib.util import find_spec

from pyspark.errors import PySparkException

from hudi_core.errors import ConfigError, ExecutionError, HudiError
from hudi_spark.tasks import error_in_text


def _failures() -> tuple[type[Exception], ...]:
    """Returns the exceptions that a Spark call may raise. pyspark-client, for Spark Connect, has no py4j."""
    if find_spec("py4j") is None:
        return (PySparkException,)
    return (PySparkException, import_module("py4j.protocol").Py4JError)


SPARK_FAILURES = _failures()

_MISSING = re.compile(r"(?:No module named '([\w.]+)'|(PyArrow|pyarrow) >= \S+ must be installed)")
_ABORTED = re.compile(r"most recent failure: (.+)")
_EXCEPTION = re.compile(r"^[\w.$]+(Error|Exception)\b")
_ENGINE_ERRORS = {"hudi_core", "hudi_spark"}
_LONGEST = 500

REMEDY_ZIP = "give the job zip to spark-submit with --py-files (python -m hudi_submit.zip OUT builds it)"
REMEDY_WHEEL = "install it on every executor, or ship an environment with --archives (spark.archives)"

REMEDY_MEMORY = (
    "the machine most likely ran out of memory: run fewer tasks at a time (--master 'local[1]', "
    "spark.executor.cores), or add memory"
)
REMEDY_LOGS = "see the log of the Spark driver and of its executors"


def translate(error: Exception) -> HudiError:
    """Returns the typed error of a failed Spark action: the task's own error, ConfigError for a missing wheel or
    another Python release, or ExecutionError.
    """
    text = str(error)
    typed = error_in_text(text)
    if typed is not None:
        return typed
    missing = _MISSING.search(text)
    if missing is not None:
        module = (missing.group(1) or "pyarrow").split(".")[0]
        what = f"Spark's executors have no Python module {module}"
        return ConfigError(what, remedy=REMEDY_ZIP if module in _ENGINE_ERRORS else REMEDY_WHEEL)
    if "PYTHON_VERSION_MISMATCH" in text or "different version than that in driver" in text:
        remedy = "set PYSPARK_PYTHON (spark.pyspark.python) to the driver's Python release on the executors"
        return ConfigError("Spark's executors run another Python release than the driver", remedy=remedy)
    remedy = REMEDY_MEMORY if "Python worker exited unexpectedly" in text else REMEDY_LOGS
    return ExecutionError(f"Spark could not run the job: {_essence(text)}", remedy=remedy)


def _essence(text: str) -> str:
    """Returns the line with the cause: a task's most recent failure, else an exception's line, else the first line."""
    aborted = _ABORTED.search(text)
    if aborted is not None:
        return aborted.group(1).strip()[:_LONGEST]
    lines = [line.strip(" :") for line in text.splitlines() if line.strip(" :")]
    exceptions = [line for line in lines if _EXCEPTION.match(line)]
    return next(iter(exceptions + lines), "no reason given")[:_LONGEST]
