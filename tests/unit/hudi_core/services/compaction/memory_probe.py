"""Compacts a synthetic file group in a process of its own and prints its peak of anonymous memory as JSON.

Arguments: folder, memory budget in bytes. The pages of memory-mapped files are not counted: the system drops them when it needs room.
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

import polars
import pyarrow.compute
import pyarrow.parquet

from hudi_core.model.engine import TaskAttempt
from hudi_core.services.compaction.execute import compact_operation

LIBRARIES = (polars, pyarrow.compute, pyarrow.parquet)
"""Imported before the first measurement: the engine imports polars late, and what libraries take up is no data."""


def anonymous() -> int:
    """Bytes of anonymous memory now."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("the kernel does not report RssAnon")


def main(folder: str, budget: int) -> None:
    """Runs the unit stored in the folder."""
    unit = json.loads(Path(folder, "unit.json").read_text())
    unit["write"]["memory_bytes"] = budget
    done = threading.Event()
    peak = [anonymous()]

    def watch() -> None:
        while not done.wait(0.004):
            peak[0] = max(peak[0], anonymous())

    before = anonymous()
    watcher = threading.Thread(target=watch)
    watcher.start()
    result = compact_operation(unit, TaskAttempt(0, 0, budget % 1000))
    done.set()
    watcher.join()
    print(json.dumps({"peak": peak[0] - before, "records": result["records"], "stat": result["stat"]}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
