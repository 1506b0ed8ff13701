"""What Spark's failures become. The texts are those of Spark 3.5.9, shortened where lines only repeat."""

from __future__ import annotations

import pytest

from hudi_core.errors import ConfigError, CorruptFileError, ExecutionError
from hudi_spark.failure import REMEDY_LOGS, REMEDY_MEMORY, REMEDY_WHEEL, REMEDY_ZIP, translate
from hudi_spark.tasks import TaskFailure

WORKER = """
  An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "/spark/python/lib/pyspark.zip/pyspark/serializers.py", line 192, in _read_with_length
    raise SerializationError("Caused by " + traceback.format_exc())
pyspark.serializers.SerializationError: Caused by Traceback (most recent call last):
  File "/spark/python/lib/pyspark.zip/pyspark/serializers.py", line 471, in loads
    return cloudpickle.loads(obj, encoding=encoding)
{line}
"""
CRASH = """An error occurred while calling o152.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 1 in stage 4.0 failed 1 times, most \
recent failure: Lost task 1.0 in stage 4.0 (TID 11) (localhost executor driver): \
org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)
\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator$$anonfun$1.applyOrElse(PythonRunner.scala:612)
"""


@pytest.mark.parametrize(
    ("line", "module", "remedy"),
    [
        ("ModuleNotFoundError: No module named 'hudi_spark'", "hudi_spark", REMEDY_ZIP),
        ("ModuleNotFoundError: No module named 'hudi_core.codec'", "hudi_core", REMEDY_ZIP),
        ("ModuleNotFoundError: No module named 'pyarrow'", "pyarrow", REMEDY_WHEEL),
        ("ModuleNotFoundError: No module named 'numpy'", "numpy", REMEDY_WHEEL),
        ("ImportError: PyArrow >= 4.0.0 must be installed; however, it was not found.", "pyarrow", REMEDY_WHEEL),
    ],
)
def test_a_module_that_executors_lack_is_named_with_the_remedy(line: str, module: str, remedy: str) -> None:
    found = translate(RuntimeError(WORKER.format(line=line)))
    assert type(found) is ConfigError
    assert found.message == f"Spark's executors have no Python module {module}"
    assert found.remedy == remedy


def test_the_error_of_a_task_is_returned_itself() -> None:
    error = CorruptFileError("cut short", path="city=a/f.parquet", remedy="restore it")
    found = translate(RuntimeError(WORKER.format(line=f"hudi_spark.tasks.TaskFailure: {TaskFailure(error)}")))
    assert type(found) is CorruptFileError
    assert (found.message, found.path, found.remedy) == ("cut short", "city=a/f.parquet", "restore it")


def test_a_worker_that_died_points_to_memory() -> None:
    found = translate(RuntimeError(CRASH))
    assert type(found) is ExecutionError
    assert "Python worker exited unexpectedly (crashed)" in found.message
    assert "PythonRunner.scala" not in found.message
    assert found.remedy == REMEDY_MEMORY


def test_another_python_release_is_named() -> None:
    text = (
        "PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has different version (3.9) than that in "
        "driver 3.11"
    )
    found = translate(RuntimeError(text))
    assert type(found) is ConfigError
    assert "spark.pyspark.python" in str(found.remedy)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no reason given"),
        ("\n\n", "no reason given"),
        ("something odd\nmore", "something odd"),
        (
            "An error occurred\n: org.apache.spark.SparkException: no executors\n\tat org.apache",
            "org.apache.spark.SparkException: no executors",
        ),
        ("x" * 5000, "x" * 500),
    ],
)
def test_anything_else_is_an_execution_error_in_one_line(text: str, message: str) -> None:
    found = translate(RuntimeError(text))
    assert type(found) is ExecutionError
    assert found.message == f"Spark could not run the job: {message}"
    assert found.remedy == REMEDY_LOGS
