"""Real Hudi 0.15.0 runs the pending compaction of a table: `python -m benchmarks.peer TABLE`.

Prints its warm cost as one JSON line.
"""

from __future__ import annotations

import json
import os
import sys
import time

from benchmarks.measure import tree_cpu
from benchmarks.tables import NAME, hudi_session


def main(table: str) -> None:
    """Session first, then plan to commit, timed apart."""
    session = hudi_session(2)
    session.sql(f"CREATE TABLE {NAME} USING hudi LOCATION '{table}'")
    session.sql("SELECT 1").collect()
    started, cpu = time.perf_counter(), tree_cpu(os.getpid())
    done = session.sql(f"CALL run_compaction(op => 'run', table => '{NAME}')").collect()
    warm = {"wall": time.perf_counter() - started, "cpu": tree_cpu(os.getpid()) - cpu}
    session.stop()
    print(json.dumps({"warm": warm, "instants": len(done)}))


if __name__ == "__main__":
    main(sys.argv[1])
