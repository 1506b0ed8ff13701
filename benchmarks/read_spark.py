"""One engine reads a table on Spark: `python -m benchmarks.read_spark ours|hudi TABLE RUNS`.

Prints the cost of warm reads as one JSON line. Every column of the snapshot goes to Spark's noop sink; the first read
is not counted, as it starts Python workers and compiles.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from typing import Any

from benchmarks.measure import tree_cpu


def session_of(engine: str) -> Any:
    """A session on two cores with what the engine needs; both get the same memory."""
    if engine == "hudi":
        from benchmarks.tables import hudi_session

        return hudi_session(2)
    from hudi_spark.session import open_session
    from hudi_submit.zip import publish_zip

    return open_session(
        "local[2]", publish_zip(), conf={"spark.driver.memory": "8g", "spark.sql.session.timeZone": "UTC"}
    )


def frame_of(engine: str, session: Any, table: str) -> Any:
    """The table's snapshot."""
    if engine == "hudi":
        return session.read.format("hudi").option("hoodie.metadata.enable", "true").load(table)
    from hudi_spark.table import HudiTable

    return HudiTable(table).to_spark(session)


def main(engine: str, table: str, runs: int) -> None:
    """Session first, then reads from plan to last row, timed apart."""
    session = session_of(engine)
    session.sparkContext.setLogLevel("ERROR")
    walls, cpus = [], []
    for turn in range(runs + 1):
        started, cpu = time.perf_counter(), tree_cpu(os.getpid())
        frame_of(engine, session, table).write.format("noop").mode("overwrite").save()
        if turn:
            walls.append(time.perf_counter() - started)
            cpus.append(tree_cpu(os.getpid()) - cpu)
    sums = frame_of(engine, session, table).selectExpr("count(*) n", "sum(ts) ts", "sum(a) a").collect()[0].asDict()
    session.stop()
    print(
        json.dumps(
            {
                "wall": round(statistics.median(walls), 2),
                "cpu": round(statistics.median(cpus), 2),
                "rows": {k: int(v) for k, v in sums.items()},
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
