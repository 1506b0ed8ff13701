"""What files cost Spark's vectorised reader: CPU seconds of the JVM, in a session on one core that is warm."""

from __future__ import annotations

import os
import statistics
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from benchmarks.measure import tree_cpu
from hudi_core.request.java import spark_environment

_ROUNDS: Final = 4
"""Reads of each file; the first is not counted."""


class SparkReader:
    """A session of Spark as of a machine of one core, with the optimising compiler. One at a time."""

    def __init__(self) -> None:
        from pyspark.sql import SparkSession

        os.environ.update(spark_environment())
        options = {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.driver.memory": "2g",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.extraJavaOptions": "-XX:ActiveProcessorCount=1 -Duser.timezone=UTC",
            "spark.sql.session.timeZone": "UTC",
            # One task reads a file, as it does a small file of a table.
            "spark.sql.files.maxPartitionBytes": "4g",
        }
        self._session: Any = SparkSession.builder.master("local[1]").config(map=options).getOrCreate()
        self._session.sparkContext.setLogLevel("ERROR")
        self._java: Any = self._session.sparkContext._jvm
        self._pid = int(self._java.java.lang.ProcessHandle.current().pid())

    def __enter__(self) -> SparkReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._session.stop()

    def costs(self, paths: Sequence[Path]) -> list[float]:
        """CPU seconds of reading each file, all columns: the median of the rounds after the first.

        Each round reads all files, so that a machine whose speed drifts changes all alike. Raises RuntimeError when
        the files do not hold the same rows.
        """
        if len({self._contents(path) for path in paths}) > 1:
            raise RuntimeError("to Spark, the files do not hold the same rows")
        rounds = [[self._cost(path) for path in paths] for _ in range(_ROUNDS)]
        return [statistics.median(costs) for costs in zip(*rounds[1:], strict=True)]

    def _contents(self, path: Path) -> tuple[int, int]:
        """Row count and checksum."""
        frame = self._session.read.parquet(str(path))
        row = frame.selectExpr("count(*) n", "bit_xor(xxhash64(*)) hash").collect()[0]
        return int(row["n"]), int(row["hash"])

    def _cost(self, path: Path) -> float:
        self._java.java.lang.System.gc()
        frame = self._session.read.parquet(str(path))
        before = tree_cpu(self._pid)
        frame.write.format("noop").mode("overwrite").save()
        return tree_cpu(self._pid) - before
