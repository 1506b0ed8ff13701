"""One engine runs one service in a warm process: `python -m benchmarks.service_process ours|hudi clean|archive TABLE`.

Prints its cost.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.measure import import_engine, tree_cpu
from benchmarks.service_tables import NAME

RETAINED = 2
KEEP_MIN, KEEP_MAX, CLEANER_RETAINED = 20, 30, 10
OPTIONS = {
    "clean": {"hoodie.clean.commits.retained": str(RETAINED)},
    "archive": {
        "hoodie.keep.min.commits": str(KEEP_MIN),
        "hoodie.keep.max.commits": str(KEEP_MAX),
        "hoodie.clean.commits.retained": str(CLEANER_RETAINED),
    },
}
_CALLS = {
    "clean": (
        f"CALL run_clean(table => '{NAME}', retain_commits => {RETAINED}, options => 'hoodie.metadata.enable=false')"
    ),
    "archive": f"CALL archive_commits(table => '{NAME}', min_commits => {KEEP_MIN}, max_commits => {KEEP_MAX}, "
    f"retain_commits => {CLEANER_RETAINED}, enable_metadata => false)",
}


def ours(service: str, table: str) -> dict[str, Any]:
    """In this process, with its threads."""
    from hudi_core.engine.local import LocalEngine
    from hudi_core.table import HudiTable
    from hudi_core.verbs.run import RunRequest, ScheduleRequest

    import_engine()
    opened = HudiTable.open(table, options=OPTIONS[service])

    def timed(verb: type[RunRequest | ScheduleRequest]) -> dict[str, float]:
        request = verb(table, service, owner="benchmark", options=OPTIONS[service])
        return _timed(lambda: opened.run(request, LocalEngine(2)))

    if service == "archive":
        return {"warm": timed(RunRequest)}
    planning, running = timed(ScheduleRequest), timed(RunRequest)
    return {"warm": {key: planning[key] + running[key] for key in planning}, "planning_wall": planning["wall"]}


def hudi(service: str, table: str) -> dict[str, Any]:
    """On Spark; the session starts before the clock does.

    The plan was made at the time of the requested file.
    """
    from benchmarks.tables import hudi_session

    session = hudi_session(2)
    session.sql("SET hoodie.metadata.enable=false")
    session.sql(f"CREATE TABLE {NAME} USING hudi LOCATION '{table}'")
    session.sql("SELECT 1").collect()
    started = time.time()
    warm = _timed(lambda: session.sql(_CALLS[service]).collect())
    session.stop()
    found: dict[str, Any] = {"warm": warm}
    for plan in Path(table).glob(".hoodie/*.clean.requested"):
        found["planning_wall"] = plan.stat().st_mtime - started
    return found


def _timed(work: Callable[[], Any]) -> dict[str, float]:
    started, cpu = time.perf_counter(), tree_cpu(os.getpid())
    work()
    return {"wall": time.perf_counter() - started, "cpu": tree_cpu(os.getpid()) - cpu}


if __name__ == "__main__":
    print(json.dumps({"ours": ours, "hudi": hudi}[sys.argv[1]](sys.argv[2], sys.argv[3])))
