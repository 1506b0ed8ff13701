"""Real Hudi runs the pending compaction of a table: `python -m benchmarks.peer TABLE VERSION CODEC`.

VERSION is of the bundle, CODEC of the base files. Prints its warm cost as one JSON line.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from benchmarks.measure import tree_cpu
from benchmarks.tables import NAME, call_compaction, check_metadata, hudi_session, service_options


def main(table: str, version: str, codec: str) -> None:
    """Session first, then plan to commit, timed apart."""
    session = hudi_session(2, version)
    session.sql(f"CREATE TABLE {NAME} USING hudi LOCATION '{table}'")
    session.sql("SELECT 1").collect()
    started, cpu = time.perf_counter(), tree_cpu(os.getpid())
    done = call_compaction(session, "run", service_options(codec))
    warm = {"wall": time.perf_counter() - started, "cpu": tree_cpu(os.getpid()) - cpu}
    session.stop()
    check_metadata(Path(table))
    print(json.dumps({"warm": warm, "instants": len(done)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
