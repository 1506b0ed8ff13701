"""Spark's engine for tasks that a test module defines."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark import cloudpickle

from hudi_spark.engine import SparkEngine


@contextmanager
def engine_for_tasks_of(module_name: str, spark: Any) -> Iterator[SparkEngine]:
    """Executors cannot import the tests, so this module's tasks travel by value; the engine's own code travels by
    reference.
    """
    module = sys.modules[module_name]
    cloudpickle.register_pickle_by_value(module)
    yield SparkEngine(spark)
    cloudpickle.unregister_pickle_by_value(module)
