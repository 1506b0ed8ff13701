"""This code beside an earlier commit's: `python -m benchmarks.beside COMMIT` stores benchmarks/results/beside.json.

Both run the benchmarks' programs on the same tables in turns, so that a machine whose speed drifts slows both. The
figure is CPU seconds, without imports and Spark's start where the program tells them apart: the median of each, and the
median of the ratios of neighbouring runs.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import rewrites, services
from benchmarks.compaction_cases import table_of
from benchmarks.measure import machine, run_whole_process, store
from benchmarks.metadata_tables import DATASETS
from benchmarks.rewrite_process import WORKS
from benchmarks.table_copies import cache, on_a_copy

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results" / "beside.json"


ENTRIES = 1_000_000
READS = 3
"""Of a warm session, whose median counts."""


@dataclass(frozen=True)
class Code:
    """A checkout, whose programs run with its own modules."""

    root: Path

    def run(self, program: str, *arguments: str | Path) -> tuple[float, dict[str, Any]]:
        """CPU seconds of the whole process, and the JSON line that it ends with."""
        paths = os.pathsep.join((str(self.root), str(self.root / "spark_jobs")))
        command = ["env", "-C", str(self.root), f"PYTHONPATH={paths}", sys.executable, "-m", f"benchmarks.{program}"]
        cost, output = run_whole_process([*command, *map(str, arguments)])
        found: dict[str, Any] = json.loads(output.strip().splitlines()[-1])
        return cost.cpu, found


Figures = dict[str, float]


def compaction(code: Code) -> Figures:
    """Plan to commit of a million rows with 300,000 updates, in a warm session on Spark."""
    (_, found), _ = on_a_copy(table_of("1m"), lambda copy: code.run("ours", copy), lambda _: None)
    return {"compaction, plan to commit": found["warm"]["cpu"]}


def read(code: Code) -> Figures:
    """A snapshot of that table with every column: in one process, and in a warm session on Spark."""
    table = str(table_of("1m"))
    return {
        "read, one process": code.run("read_process", "ours", table)[1]["cpu"],
        "read, Spark": code.run("read_spark", "ours", table, str(READS))[1]["cpu"],
    }


def rewriting(code: Code) -> Figures:
    """Clusterings and an overwrite of two million rows, warm on Spark."""
    table, figures = rewrites.table_of("0.15.0", rewrites.ROWS), {}
    for work in WORKS:

        def on_copy(copy: Path, work: str = work) -> dict[str, Any]:
            with rewrites.with_source(table, copy):
                return code.run("rewrite_process", "ours", work, copy, "0.15.0")[1]

        found, _ = on_a_copy(table, on_copy, lambda _: None)
        figures[work] = found["warm"]["cpu"]
    return figures


def table_services(code: Code) -> Figures:
    """A clean of 25,000 files and the archival of 9,980 instants, warm."""
    figures = {}
    for name, size in services.SIZES["full"].items():
        table = services.table_of(name, size)
        (_, found), _ = on_a_copy(table, partial(code.run, "service_process", "ours", name), lambda _: None)
        figures[name] = found["warm"]["cpu"]
    return figures


def metadata(code: Code) -> Figures:
    """A listing of 283,675 files and a record index of a million keys: made, and queried; whole processes."""
    figures = {}
    with tempfile.TemporaryDirectory(dir=cache()) as scratch:
        for name, requested, queries in (
            ("listing", asdict(DATASETS["M"]), ("listing", "verbs")),
            ("record index", {"files": 100, "partitions": 10, "entries": ENTRIES, "groups": 1}, ("keys",)),
        ):
            for work in ("create", *queries):
                cpu, _ = code.run("metadata_process", work, f"{scratch}/{name}", json.dumps(requested))
                figures[f"metadata, {name}, {work}"] = cpu
    return figures


CASES: Mapping[str, Callable[[Code], Figures]] = {
    "compaction": compaction,
    "read": read,
    "rewriting": rewriting,
    "services": table_services,
    "metadata": metadata,
}


def compare(case: Callable[[Code], Figures], now: Code, before: Code, runs: int) -> dict[str, Any]:
    """Medians of both, and of the ratio now/before of each turn; who starts alternates."""
    turns = []
    for turn in range(runs):
        first, second = (now, before) if turn % 2 else (before, now)
        found = {first: case(first), second: case(second)}
        turns.append((found[now], found[before]))
        print(json.dumps({"now": found[now], "before": found[before]}), flush=True)
    return {
        name: {
            "now": round(statistics.median(mine[name] for mine, _ in turns), 3),
            "before": round(statistics.median(theirs[name] for _, theirs in turns), 3),
            "ratio": round(statistics.median(mine[name] / theirs[name] for mine, theirs in turns), 3),
        }
        for name in turns[0][0]
    }


def main() -> None:
    """Measures the given cases and stores each as it ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commit")
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--output", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    head, earlier = (
        subprocess.run(["git", "rev-parse", name], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()
        for name in ("HEAD", chosen.commit)
    )
    stored = json.loads(chosen.output.read_text()) if chosen.output.exists() else {}
    if stored.get("before") != earlier:
        stored = {}
    with tempfile.TemporaryDirectory() as scratch:
        archive = subprocess.run(["git", "archive", earlier], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
        subprocess.run(["tar", "x", "-C", scratch], input=archive, check=True)
        for name in chosen.cases.split(","):
            found = compare(CASES[name], Code(ROOT), Code(Path(scratch)), chosen.runs)
            cases = {**stored.get("cases", {}), name: {"commit": head, "runs": chosen.runs, "cpu_seconds": found}}
            stored = {"machine": machine(), "before": earlier, "cases": cases}
            store(chosen.output, stored)
    print(json.dumps(stored, indent=2))


if __name__ == "__main__":
    main()
