"""One engine rewrites a table in a warm session: `python -m benchmarks.rewrite_process ours|hudi WORK TABLE VERSION`.

WORK is a name of WORKS; VERSION is of Hudi's bundle, and not used by ours. The rows that overwrite are below
`TABLE.source`. Prints its warm cost, from planning to commit, as one JSON line.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.measure import import_engine, tree_cpu
from benchmarks.tables import METADATA, NAME, OPTIONS

CODEC: Final = {"hoodie.parquet.compression.codec": "gzip"}
_PLAN: Final = "hoodie.clustering.plan.strategy"
TARGET_BYTES: Final = str(128 << 20)
SIZES: Final = {f"{_PLAN}.small.file.limit": TARGET_BYTES, f"{_PLAN}.target.file.max.bytes": TARGET_BYTES}
OVERWRITE: Final = "insert_overwrite"


@dataclass(frozen=True)
class Order:
    """How a clustering orders rows: columns separated by commas, and the layout by several."""

    columns: str = ""
    layout: str = "linear"

    def options(self) -> dict[str, str]:
        """For our planner."""
        sorted_by = {f"{_PLAN}.sort.columns": self.columns, "hoodie.layout.optimize.strategy": self.layout}
        return {**SIZES, **CODEC, **(sorted_by if self.columns else {})}

    def call(self) -> str:
        """Hudi's procedure. Its options may hold no commas."""
        listed = ",".join(f"{key}={value}" for key, value in {**SIZES, **CODEC, **METADATA}.items())
        order = f", order => '{self.columns}', order_strategy => '{self.layout}'" if self.columns else ""
        return f"CALL run_clustering(table => '{NAME}', options => '{listed}'{order})"


WORKS: Final = {
    "clustering, unsorted": Order(),
    "clustering, sorted": Order("c,e"),
    "clustering, z-order": Order("e,a", "z-order"),
    OVERWRITE: None,
}
"""By name; None is an overwrite of all partitions."""


def source_of(table: Path) -> Path:
    """Where the rows are that overwrite a table."""
    return table.with_name(table.name + ".source")


def ours(work: str, table: Path) -> dict[str, float]:
    """Our engine on Spark."""
    from hudi_core.table import HudiTable
    from hudi_core.verbs.request import Request
    from hudi_core.verbs.run import RunRequest
    from hudi_core.verbs.write import InsertOverwriteRequest
    from hudi_spark.engine import SparkEngine
    from hudi_spark.session import open_session
    from hudi_submit.zip import publish_zip

    session = open_session("local[2]", publish_zip(), conf={})
    import_engine()
    session.range(0, 2, 1, 2).mapInArrow(_same, "id long").collect()
    order = WORKS[work]
    options = CODEC if order is None else order.options()
    request: Request
    if order is None:
        request = InsertOverwriteRequest(str(table), source=str(source_of(table)), owner="benchmark", options=options)
    else:
        request = RunRequest(str(table), "clustering", owner="benchmark", schedule=True, options=options)
    opened = HudiTable.open(str(table), options=options)
    warm = timed(lambda: opened.run(request, SparkEngine(session)))
    session.stop()
    return warm


def hudi(work: str, table: Path, version: str) -> dict[str, float]:
    """Real Hudi."""
    from benchmarks.tables import hudi_session

    session = hudi_session(2, version)
    session.sql(f"CREATE TABLE {NAME} USING hudi LOCATION '{table}'")
    session.sql("SELECT 1").collect()
    order = WORKS[work]
    if order is None:
        frame = session.read.parquet(str(source_of(table)))
        options = {**OPTIONS, **METADATA, **CODEC, "hoodie.datasource.write.table.type": "COPY_ON_WRITE"}
        writer = frame.write.format("hudi").options(**{**options, "hoodie.datasource.write.operation": OVERWRITE})
        warm = timed(lambda: writer.mode("append").save(str(table)))
    else:
        call = order.call()
        warm = timed(lambda: session.sql(call).collect())
    session.stop()
    return warm


def timed(work: Callable[[], Any]) -> dict[str, float]:
    """Returns the wall seconds of the work, and the CPU seconds of this process and its children meanwhile."""
    started, cpu = time.perf_counter(), tree_cpu(os.getpid())
    work()
    return {"wall": time.perf_counter() - started, "cpu": tree_cpu(os.getpid()) - cpu}


def _same(batches: Any) -> Any:
    yield from batches


if __name__ == "__main__":
    engine, chosen, place, bundle = sys.argv[1:]
    found = ours(chosen, Path(place)) if engine == "ours" else hudi(chosen, Path(place), bundle)
    print(json.dumps({"warm": found}))
