"""One engine reads a table in one process: `python -m benchmarks.read_process ours|wheel TABLE`.

Prints wall and CPU seconds as one JSON line. Every column of the snapshot is materialised batch by batch; the wheel is
Apache Hudi-rs (`hudi`), whose stream is used for the same reason.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from typing import Any

import pyarrow.compute as pc


def batches_of(engine: str, table: str) -> Iterator[Any]:
    """The snapshot's record batches."""
    if engine == "wheel":
        from hudi import HudiReadOptions
        from hudi import HudiTable as Wheel

        return iter(Wheel(table).read_stream(HudiReadOptions()))
    from hudi_core.table import HudiTable

    return HudiTable.open(table).read().batches


def main(engine: str, table: str) -> None:
    """Reads once; the sums prove that both engines hold the same rows."""
    started, cpu = time.perf_counter(), time.process_time()
    rows = stamps = check = 0
    for batch in batches_of(engine, table):
        rows += batch.num_rows
        stamps += pc.sum(batch["ts"]).as_py() or 0
        check = (check + (pc.sum(pc.bit_wise_and(batch["a"], 0xFFFFFFFF)).as_py() or 0)) % 2**64
    print(
        json.dumps(
            {
                "wall": time.perf_counter() - started,
                "cpu": time.process_time() - cpu,
                "rows": {"n": rows, "ts": stamps, "a": check},
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
