"""20 million rows, compacted and sorted with a small budget of memory.

`python -m benchmarks.large_rewrites` stores benchmarks/results/large_rewrites.json. `compaction` and `sort` are of one
file group: rows, MiB of the files, the budget, the peak of anonymous memory of the one task in a process of its own,
the bound that the engine counts with (engine_choice.task_memory), wall and CPU seconds. `sort on Spark` is of one group
of 20 file groups in a table (benchmarks.large_exchange): MiB of its rows in memory, too, and the peaks of the driver's
Python process, of the JVM, and of the largest Python worker. With --works the other figures are kept.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.compaction import code
from benchmarks.large_exchange import FILES, make_table, sort
from benchmarks.measure import machine, run_whole_process, store
from benchmarks.table_copies import cache
from hudi_core.codec.avro.schema import add_meta_fields
from hudi_core.config.engine_config import Extent
from hudi_core.config.rows_config import WriteConfig
from hudi_core.engine.serializer import to_text
from hudi_core.filegroup.merge.table_policy import MergePolicy
from hudi_core.filegroup.read.log_scan import CommittedInstants
from hudi_core.metadata_table.extract.data_file import StatisticsRequirements
from hudi_core.services.compaction.merge_slice import CompactionUnit
from hudi_core.services.engine_choice import task_memory
from hudi_core.services.rewriting.new_file_groups import NewFiles
from hudi_core.services.rewriting.slice_rows import SliceTarget
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.actions.compaction import CompactionOperation
from tests.support.large_file_group import BASE, FILE_ID, SCHEMA, make_group
from tests.support.running_attempts import let_run

RESULTS = Path(__file__).parent / "results" / "large_rewrites.json"
ON_SPARK = "sort on Spark"
PROBES = {"compaction": "tests.memory.compaction_probe", "sort": "tests.memory.clustering_probe"}
ROWS = 20_000_000
BUDGET_MIB = 64
INSTANT = "20260201000000000"
_MIB = 1 << 20


def make_unit(folder: Path, rows: int, config: WriteConfig) -> int:
    """The file group, and the unit that the probes read beside it; the bytes of its files."""
    made = make_group(folder, rows)
    stored = list((folder / "p").iterdir())
    base = next(path.name for path in stored if path.suffix == ".parquet")
    logs = sorted(path.name for path in stored if ".log." in path.name)
    schema = add_meta_fields(SCHEMA)
    requirements = StatisticsRequirements(schema, ("_hoodie_record_key", "ts"), bloom=True)
    config = replace(config, parquet_codec="GZIP")
    files = NewFiles(INSTANT, SCHEMA, config, sys.maxsize, as_hudi_1=False, requirements=requirements)
    committed = CommittedInstants(frozenset(), frozenset(), "20270101000000000")
    target = SliceTarget(str(folder), {}, files, committed, MergePolicy(("_hoodie_record_key",), ("ts",)))
    unit = CompactionUnit(target, CompactionOperation("p", FILE_ID, BASE, base, tuple(logs)))
    (folder / "unit.json").write_text(to_text(unit))
    print(json.dumps(made), flush=True)
    return sum(path.stat().st_size for path in stored)


def measure(rows: int, budget: int, works: Sequence[str]) -> dict[str, Any]:
    """Some of PROBES on one file group."""
    config = WriteConfig(memory_bytes=budget)
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(dir=cache()) as folder:
        size = make_unit(Path(folder), rows, config)
        bound = task_memory(Extent(1, size, size), config)
        for work in works:
            probe = PROBES[work]
            let_run(LocalStorage(folder), INSTANT, 0, 1)
            cost, output = run_whole_process([sys.executable, "-m", probe, folder, str(budget)])
            peak = json.loads(output.strip().splitlines()[-1])["peak"]
            found[work] = {
                "commit": code(),
                "rows": rows,
                "files_mib": round(size / _MIB),
                "budget_mib": budget // _MIB,
                "bound_mib": round(bound / _MIB),
                "peak_mib": round(peak / _MIB),
                "wall": round(cost.wall, 1),
                "cpu": round(cost.cpu, 1),
            }
            print(json.dumps({work: found[work]}), flush=True)
            for path in (Path(folder) / "p").glob(f"*_{INSTANT}.parquet"):
                path.unlink()
            shutil.rmtree(Path(folder) / ".hoodie", ignore_errors=True)
    return found


def measure_on_spark(rows: int, budget: int) -> dict[str, Any]:
    """ON_SPARK. The bound is that of a Python worker."""
    with tempfile.TemporaryDirectory(dir=cache()) as folder:
        table = Path(folder) / "table"
        in_memory = make_table(table, rows)
        size = sum(path.stat().st_size for path in table.glob("*/*.parquet"))
        found = {
            "commit": code(),
            "rows": rows,
            "files": FILES,
            "files_mib": round(size / _MIB),
            "rows_mib": round(in_memory / _MIB),
            "budget_mib": budget // _MIB,
            "bound_mib": round(task_memory(Extent(1, size, size), WriteConfig(memory_bytes=budget)) / _MIB),
            **sort(table, budget),
        }
    print(json.dumps({ON_SPARK: found}), flush=True)
    return found


def main() -> int:
    """Measures, stores the result, and ends with 1 where a work took more than the bound."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--budget-mib", type=int, default=BUDGET_MIB)
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--works", default=",".join([*PROBES, ON_SPARK]))
    chosen = parser.parse_args()
    works, budget = chosen.works.split(","), chosen.budget_mib * _MIB
    cache().mkdir(parents=True, exist_ok=True)
    stored = json.loads(chosen.output.read_text())["works"] if chosen.output.is_file() else {}
    if probed := [work for work in works if work != ON_SPARK]:
        stored |= measure(chosen.rows, budget, probed)
    if ON_SPARK in works:
        stored[ON_SPARK] = measure_on_spark(chosen.rows, budget)
    store(chosen.output, {"machine": machine(), "works": stored})
    peaks = ("peak_mib", "worker_peak_mib", "driver_peak_mib")
    return int(any(stored[work].get(name, 0) > stored[work]["bound_mib"] for work in works for name in peaks))


if __name__ == "__main__":
    sys.exit(main())
