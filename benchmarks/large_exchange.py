"""One group of file slices, larger than what any process may hold, sorted by an exchange over Spark.

The table is of version 6, copy on write: its base files hold `id`, random letters, in no order. Its clustering by `id`
runs as a user calls it, with a small heap and a small budget. large_rewrites stores what it took.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.measure import POLL_SECONDS, descendants, run_whole_process
from benchmarks.service_tables import SCHEMA, single_slices
from hudi_core.codec.avro.arrow import arrow_schema
from hudi_core.codec.avro.schema import add_meta_fields
from tests.support.large_file_group import digits, letters, texts
from tests.support.peak_memory import anonymous_of

FILES: Final = 20
OUTPUT_BYTES: Final = 256 << 20
HEAP_MIB: Final = 1024
"""Of the JVM, which is driver and executor in one."""
_PLAN: Final = "hoodie.clustering.plan.strategy"
_MIB: Final = 1 << 20


def make_table(folder: Path, rows: int) -> int:
    """The table; the bytes of its rows in memory. `ts` numbers them."""
    rng = np.random.default_rng(0)
    schema = arrow_schema(add_meta_fields(SCHEMA))
    each, size = rows // FILES, 0

    def base_file(partition: str, name: str, number: int) -> tuple[bytes, int]:
        nonlocal size
        ids = texts(letters(each, rng))
        numbers = np.arange(number * each, (number + 1) * each)
        columns = [
            pa.repeat("20260101000000000", each),
            texts(digits(numbers, 10)),
            ids,
            pa.repeat(partition, each),
            pa.repeat(name, each),
            ids,
            pa.repeat(partition, each),
            pa.array(numbers, pa.int64()),
        ]
        table = pa.table(columns, schema=schema)
        size += table.nbytes
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, row_group_size=131_072, use_dictionary=[schema.names[0], *schema.names[3:5]])
        return sink.getvalue().to_pybytes(), each

    single_slices(FILES, 1, folder, base_file)
    return size


def sort(folder: Path, budget: int) -> dict[str, Any]:
    """Makes one group of the table and sorts it; its cost, and the peak of anonymous memory of each kind of process.

    Raises RuntimeError unless the new files hold the same rows in order.
    """
    options = {
        f"{_PLAN}.sort.columns": "id",
        f"{_PLAN}.target.file.max.bytes": str(OUTPUT_BYTES),
        f"{_PLAN}.max.bytes.per.group": str(1 << 40),
        "airflow_hudi.memory.bytes": str(budget),
    }
    local = folder.with_name("spark")
    conf = {"spark.driver.memory": f"{HEAP_MIB}m", "spark.local.dir": str(local)}
    program = str(Path(sys.executable).parent / "hudictl")
    words = [program, "run", "clustering", str(folder), "--schedule", "--engine", "spark", "--master", "local[2]"]
    words += [word for pair in options.items() for word in ("--option", "=".join(pair))]
    words += [word for pair in conf.items() for word in ("--spark-conf", "=".join(pair))]
    before = set(folder.glob("*/*.parquet"))
    with peaks() as found:
        cost, output = run_whole_process([*words, "--json"])
    print(output, flush=True)
    new = set(folder.glob("*/*.parquet")) - before
    check(sorted(new), sum(pq.read_metadata(path).num_rows for path in before))
    return {
        "new_files": len(new),
        "heap_mib": HEAP_MIB,
        **{f"{kind}_peak_mib": round(size / _MIB) for kind, size in found.items()},
        "wall": round(cost.wall, 1),
        "cpu": round(cost.cpu, 1),
    }


@contextmanager
def peaks() -> Iterator[dict[str, int]]:
    """The most anonymous memory, in bytes, of the JVM, of any one Python worker, and of the driver's Python process,
    among the processes below this one while the block runs.
    """
    found = {"driver": 0, "jvm": 0, "worker": 0}
    done = threading.Event()

    def watch() -> None:
        mine = os.getpid()
        while not done.wait(POLL_SECONDS):
            for pid in descendants(mine):
                kind = _kind(pid)
                if kind is not None:
                    found[kind] = max(found[kind], anonymous_of(pid) or 0)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield found
    finally:
        done.set()
        watcher.join()


def _kind(pid: int) -> str | None:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
    except OSError:
        return None
    if Path(words[0]).name == "java":
        return "jvm"
    if "pyspark.daemon" in words:
        return "worker"
    return "driver" if any(Path(word).name == "hudictl" for word in words) else None


def check(files: Sequence[Path], rows: int) -> None:
    """Raises RuntimeError unless the files hold each of so many rows once, by `ts`, are sorted by `id` within, and none
    begins before another one ends.
    """
    seen = np.zeros(rows, dtype=bool)
    ends: list[tuple[str, str]] = []
    written = 0
    for path in files:
        found = pq.read_table(path, columns=["id", "ts"])
        ids = found.column("id").combine_chunks()
        if pc.any(pc.greater(ids[:-1], ids[1:])).as_py():
            raise RuntimeError(f"{path} is not sorted")
        ends.append((ids[0].as_py(), ids[-1].as_py()))
        seen[found.column("ts").to_numpy()] = True
        written += found.num_rows
    ends.sort()
    if written != rows or not seen.all():
        raise RuntimeError(f"{written} rows were written, {seen.sum()} of {rows} are there")
    if any(last > first for (_, last), (first, _) in pairwise(ends)):
        raise RuntimeError(f"the ranges of the files overlap: {ends}")
