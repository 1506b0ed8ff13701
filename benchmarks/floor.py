"""The least that any compaction on pyarrow must do on these files: read, index, take, write.

`python -m benchmarks.floor TABLE UPDATES`. For every base file of the table: read all columns, look up its keys among
as many updated keys as the logs hold, take the rows in order, and write them at the file's own codec (gzip at level 6
and zstd at 3, as Hudi's Java writer does). One thread, no Hudi: no log decoding, no bloom filter, no footer, no
metadata table.
"""

from __future__ import annotations

import io
import json
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

LEVELS = {"GZIP": 6, "ZSTD": 3}


def main(table: str, updates: int) -> None:
    """Prints CPU seconds per stage, summed over the table's base files."""
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    files = sorted(Path(table).glob("*/*.parquet"))
    stages = {"read": 0.0, "index": 0.0, "take": 0.0, "write": 0.0}
    rows = 0
    for file in files:
        mark = time.process_time()
        data = pq.read_table(file, use_threads=False, partitioning=None)
        mark = _charge(stages, "read", mark)
        keys = data["_hoodie_record_key"].combine_chunks()
        chosen = keys.take(pa.array(np.linspace(0, len(keys) - 1, updates // len(files)).astype(np.int64)))
        mark = _charge(stages, "index", mark, counted=False)
        pc.index_in(keys, value_set=chosen)
        mark = _charge(stages, "index", mark)
        taken = data.take(pa.array(np.arange(len(data), dtype=np.int64)))
        mark = _charge(stages, "take", mark)
        codec = pq.ParquetFile(file).metadata.row_group(0).column(0).compression
        level = LEVELS.get(codec)
        pq.write_table(taken, io.BytesIO(), compression=codec, compression_level=level, row_group_size=len(taken))
        _charge(stages, "write", mark)
        rows += len(data)
    print(
        json.dumps(
            {
                "rows": rows,
                "cpu": sum(stages.values()),
                "stages": {name: round(value, 2) for name, value in stages.items()},
            }
        )
    )


def _charge(stages: dict[str, float], stage: str, since: float, *, counted: bool = True) -> float:
    now = time.process_time()
    if counted:
        stages[stage] += now - since
    return now


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
