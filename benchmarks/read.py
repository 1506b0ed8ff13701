"""Reading, side by side: `python -m benchmarks.read` stores benchmarks/results/read.json.

One run measures the snapshot of a merge-on-read table of which 30 % of the rows were updated against real Hudi 0.15.0,
both on Spark, and in one process against the wheel `hudi` (Hudi-rs); queries with a predicate; lookups in an HFile of a
million entries; log decoding; long timelines.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.compaction_cases import SIZES, table_of
from benchmarks.measure import Cost, machine, run_whole_process, store
from benchmarks.read_parts import log_decode, lookups, openings, pruned
from benchmarks.table_copies import cache
from tests.support.golden_data import open_case

RESULTS = Path(__file__).parent / "results" / "read.json"
WHEEL = "hudi==0.5.0"


def module(name: str, *arguments: str) -> tuple[Cost, dict[str, Any]]:
    """Runs one of this package's programs as a process of its own."""
    cost, output = run_whole_process([sys.executable, "-m", f"benchmarks.{name}", *arguments])
    return cost, json.loads(output.strip().splitlines()[-1])


def on_spark(table: Path, runs: int) -> dict[str, Any]:
    """Warm snapshot reads of both engines, each in a session of its own; and the whole processes."""
    found: dict[str, Any] = {}
    rows = {}
    for engine in ("ours", "hudi"):
        cost, answer = module("read_spark", engine, str(table), str(runs))
        rows[engine] = answer.pop("rows")
        found[engine] = {**answer, "peak_mib_of_process": round(cost.peak_mib)}
    _agree(rows)
    return {**found, "rows": rows["ours"]["n"], **_ratios(found["hudi"], found["ours"])}


def in_process(table: Path, runs: int) -> dict[str, Any]:
    """Snapshot reads of both engines, each time in a fresh process; peak memory is the process's."""
    found: dict[str, list[dict[str, float]]] = {"ours": [], "wheel": []}
    rows = {}
    for _ in range(runs):
        for engine, taken in found.items():
            cost, answer = module("read_process", engine, str(table))
            rows[engine] = answer.pop("rows")
            taken.append({**answer, "peak_mib": cost.peak_mib})
    _agree(rows)
    middle = {
        engine: {key: round(statistics.median(one[key] for one in taken), 2) for key in ("wall", "cpu", "peak_mib")}
        for engine, taken in found.items()
    }
    return {**middle, "wheel_version": WHEEL, "rows": rows["ours"]["n"], **_ratios(middle["wheel"], middle["ours"])}


def _agree(rows: dict[str, dict[str, int]]) -> None:
    if len({json.dumps(found, sort_keys=True) for found in rows.values()}) != 1:
        raise RuntimeError(f"the engines do not hold the same rows: {rows}")


def _ratios(peer: dict[str, float], ours: dict[str, float]) -> dict[str, float]:
    """How many times as much the other engine takes."""
    return {"wall_ratio": round(peer["wall"] / ours["wall"], 2), "cpu_ratio": round(peer["cpu"] / ours["cpu"], 2)}


def with_predicates(table: Path, scratch: Path) -> list[dict[str, Any]]:
    """A partition, a record key, and values, over the large table and golden ones with every index."""
    indexed = {version: open_case(version, "mdt_all_cow", scratch).table for version in ("6", "8", "9")}
    queries = [("1m", table, "part = '1'"), ("1m", table, "id = 'key-000000000007'")]
    for version, path in indexed.items():
        queries += [
            (f"{version}/mdt_all_cow", path, where)
            for where in ("dt = '2024-01-01'", "id = 'k00003'", "amount > 1000000", "name = 'quartz-3-r3'")
        ]
    return pruned(queries)


def main() -> None:
    """Measures what is asked for and stores the result; parts that are not asked for keep what is stored."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", default="1m", choices=sorted(SIZES))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--parts", default="spark,process,pruned,hfile,log,open")
    parser.add_argument(
        "--scale",
        type=float,
        default=1.0,
        help="of the HFile, the log block and the timelines; below 1 only to try it out",
    )
    parser.add_argument("--output", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    parts = chosen.parts.split(",")
    scaled = {
        name: max(int(count * chosen.scale), 10)
        for name, count in (("hfile", 1_000_000), ("log", 500_000), ("active", 10_000), ("archived", 100_000))
    }
    kept = cache() / "read"
    kept.mkdir(parents=True, exist_ok=True)
    found = json.loads(chosen.output.read_text()) if chosen.output.is_file() else {}
    found["machine"] = machine()
    with tempfile.TemporaryDirectory(dir=kept) as scratch:
        work: dict[str, Callable[[], Any]] = {
            "spark": lambda: on_spark(table_of(chosen.size), chosen.runs),
            "process": lambda: in_process(table_of(chosen.size), chosen.runs),
            "pruned": lambda: with_predicates(table_of(chosen.size), Path(scratch)),
            "hfile": lambda: {f"blocks_of_{size}_kib": lookups(kept, scaled["hfile"], size) for size in (1024, 64)},
            "log": lambda: log_decode(scaled["log"]),
            "open": lambda: openings(kept, scaled["active"], scaled["archived"]),
        }
        for part in parts:
            found[part] = work[part]()
    store(chosen.output, found)
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
