"""Our compaction on Spark against real Hudi 0.15.0's, on copies of one table that real Hudi made.

`make bench` stores benchmarks/results/compaction.json: for each size, whole process and plan to commit in a warm
session, wall seconds, CPU seconds with every child counted, peak memory, the ratios, and the share of the pyarrow floor
measured in the same run.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.measure import Cost, machine, middle, run_whole_process
from benchmarks.table_copies import cache, on_a_copy
from hudi_core.table import HudiTable

SIZES = {"1m": (1_000_000, 300_000), "4m": (4_000_000, 1_200_000)}
RESULTS = Path(__file__).parent / "results" / "compaction.json"


def table_of(size: str) -> Path:
    """The benchmark's table of a size, made on first use."""
    rows, updates = SIZES[size]
    folder = cache() / f"compaction-{size}"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, "-m", "benchmarks.tables", str(rows), str(updates), str(folder)], check=True)
    return folder


def contents(table: Path) -> dict[str, Any]:
    """Row count and sums over the read-optimized query, on which both engines must agree; and the new files' bytes."""
    import pyarrow.compute as pc

    rows, total, check = 0, 0, 0
    answer = HudiTable.open(str(table)).read("read_optimized", columns=["ts", "a"])
    for batch in answer.batches:
        rows += batch.num_rows
        total += pc.sum(batch["ts"]).as_py() or 0
        check = (check + (pc.sum(pc.bit_wise_and(batch["a"], 0xFFFFFFFF)).as_py() or 0)) % 2**64
    newest = max(path.name.rsplit("_", 1)[1] for path in table.glob("*/*.parquet"))
    return {
        "rows": rows,
        "ts": total,
        "a": check,
        "new_base_mib": round(sum(path.stat().st_size for path in table.glob(f"*/*_{newest}")) / 2**20, 1),
    }


def module(name: str, table: Path, *arguments: str) -> tuple[Cost, dict[str, Any]]:
    """Runs one of this package's programs as a process of its own."""
    cost, output = run_whole_process([sys.executable, "-m", f"benchmarks.{name}", str(table), *arguments])
    return cost, json.loads(output.strip().splitlines()[-1])


def hudictl(table: Path) -> tuple[Cost, dict[str, Any]]:
    """Our whole process: the shell verb as a user calls it."""
    program = Path(sys.executable).parent / "hudictl"
    cost, output = run_whole_process([str(program), "run", "compaction", str(table), "--master", "local[2]", "--json"])
    return cost, json.loads(output)


def compare(size: str, runs: int) -> dict[str, Any]:
    """All figures of one size; the engines take turns, so that both see the machine in the same state."""
    table = table_of(size)
    _, updates = SIZES[size]
    whole: dict[str, list[Cost]] = {"ours": [], "hudi": []}
    warm: dict[str, list[dict[str, float]]] = {"ours": [], "hudi": []}
    seen: dict[str, dict[str, Any]] = {}
    floors = []
    for _ in range(runs):
        (cost, _), seen["ours"] = on_a_copy(table, hudictl, contents)
        whole["ours"].append(cost)
        (cost, answer), seen["hudi"] = on_a_copy(table, lambda copy: module("peer", copy), contents)
        whole["hudi"].append(cost)
        warm["hudi"].append(answer["warm"])
        (_, answer), _ = on_a_copy(table, lambda copy: module("ours", copy), contents)
        warm["ours"].append(answer["warm"])
        floors.append(module("floor", table, str(updates))[1])
    rows_agree = all(seen["ours"][key] == seen["hudi"][key] for key in ("rows", "ts", "a"))
    if not rows_agree:
        raise RuntimeError(f"the two engines do not hold the same rows: {seen}")
    floor = sorted(floors, key=lambda found: found["cpu"])[len(floors) // 2]
    ours, hudi = middle(whole["ours"]), middle(whole["hudi"])
    warm_cpu = {name: statistics.median(one["cpu"] for one in found) for name, found in warm.items()}
    warm_wall = {name: statistics.median(one["wall"] for one in found) for name, found in warm.items()}
    return {
        "rows": SIZES[size][0],
        "updates": updates,
        "runs": runs,
        "whole_process": {
            "ours": ours.as_json(),
            "hudi_0_15_0": hudi.as_json(),
            "cpu_ratio": round(hudi.cpu / ours.cpu, 2),
            "wall_ratio": round(hudi.wall / ours.wall, 2),
        },
        "plan_to_commit": {
            "ours": {"wall": round(warm_wall["ours"], 2), "cpu": round(warm_cpu["ours"], 2)},
            "hudi_0_15_0": {"wall": round(warm_wall["hudi"], 2), "cpu": round(warm_cpu["hudi"], 2)},
            "cpu_ratio": round(warm_cpu["hudi"] / warm_cpu["ours"], 2),
            "wall_ratio": round(warm_wall["hudi"] / warm_wall["ours"], 2),
        },
        "floor": {
            "cpu": round(floor["cpu"], 2),
            "stages": floor["stages"],
            "share": round(floor["cpu"] / warm_cpu["ours"], 3),
        },
        "after": seen,
        "rows_agree": rows_agree,
    }


def main() -> None:
    """Measures the given sizes and stores the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="1m,4m")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--output", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    found = {"machine": machine(), "sizes": {size: compare(size, chosen.runs) for size in chosen.sizes.split(",")}}
    chosen.output.parent.mkdir(parents=True, exist_ok=True)
    chosen.output.write_text(json.dumps(found, indent=2) + "\n")
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
