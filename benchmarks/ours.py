"""Our engine on Spark runs the pending compaction of a table in a warm session: `python -m benchmarks.ours TABLE`.

Prints its cost.
"""

from __future__ import annotations

import json
import os
import sys
import time

from benchmarks.measure import import_engine, tree_cpu
from hudi_core.table import HudiTable
from hudi_core.verbs.run import RunRequest
from hudi_spark.engine import SparkEngine
from hudi_spark.session import open_session
from hudi_submit.zip import publish_zip


def main(table: str) -> None:
    """Session and Python workers first, then plan to commit, timed apart."""
    session = open_session("local[2]", publish_zip(), conf={})
    import_engine()
    session.range(0, 2, 1, 2).mapInArrow(_same, "id long").collect()
    started, cpu = time.perf_counter(), tree_cpu(os.getpid())
    result = HudiTable.open(table).run(
        RunRequest(table=table, service="compaction", owner="benchmark"), SparkEngine(session)
    )
    warm = {"wall": time.perf_counter() - started, "cpu": tree_cpu(os.getpid()) - cpu}
    session.stop()
    print(
        json.dumps(
            {"warm": warm, "instants": len(result.instants), "records": sum(done.records for done in result.instants)}
        )
    )


def _same(batches):  # type: ignore[no-untyped-def]
    yield from batches


if __name__ == "__main__":
    main(sys.argv[1])
