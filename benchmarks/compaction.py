"""Our compaction against real Hudi's, on copies of tables that real Hudi made.

`make bench` stores benchmarks/results/compaction.json: for each case (benchmarks/compaction_cases.py), real Hudi of the
version that made the table, ours on Spark and ours in one process (`--engine local`). Whole processes with wall
seconds, CPU seconds with every child counted, peak memory and the MiB of the new base files; plan to commit in a warm
session; the ratios, Hudi's figure by ours; and the share of the pyarrow floor measured in the same run. Figures are
medians.

Each case is stored as it ends, with its machine and commit: only figures of one case are compared with each other. A
case that is stored is measured again on another commit, with changed code, or with --again.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.compaction_cases import (
    CODECS,
    HUDI,
    MEASURED_SIZES,
    UPDATES,
    Case,
    default_cases,
    matrix,
)
from benchmarks.measure import Cost, head_commit, machine, middle, run_whole_process, store
from benchmarks.table_copies import on_a_copy
from hudi_core.table import HudiTable

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results" / "compaction.json"
CODE = ("spark_jobs", "airflow_hudi")
"""Folders of the engine: with changes in them, no stored figure is of this code."""
CHANGED = "-changed"
AGREED = ("rows", "ts", "a")
"""What the rows of all engines must agree on."""
Answer = tuple[Cost, dict[str, Any]]


def contents(table: Path) -> dict[str, Any]:
    """Row count and sums over the read-optimized query, on which the engines must agree; the new files' codec, MiB."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    rows, total, check = 0, 0, 0
    answer = HudiTable.open(str(table)).read("read_optimized", columns=["ts", "a"])
    for batch in answer.batches:
        rows += batch.num_rows
        total += pc.sum(batch["ts"]).as_py() or 0
        check = (check + (pc.sum(pc.bit_wise_and(batch["a"], 0xFFFFFFFF)).as_py() or 0)) % 2**64
    newest = max(path.name.rsplit("_", 1)[1] for path in table.glob("*/*.parquet"))
    files = sorted(table.glob(f"*/*_{newest}"))
    return {
        "rows": rows,
        "ts": total,
        "a": check,
        "codec": pq.ParquetFile(files[0]).metadata.row_group(0).column(0).compression.lower(),
        "new_base_mib": round(sum(path.stat().st_size for path in files) / 2**20, 1),
    }


def module(name: str, table: Path, *arguments: str) -> Answer:
    """Runs one of this package's programs as a process of its own."""
    cost, output = run_whole_process([sys.executable, "-m", f"benchmarks.{name}", str(table), *arguments])
    return cost, json.loads(output.strip().splitlines()[-1])


def hudictl(table: Path, *arguments: str) -> Answer:
    """Our whole process: the shell verb as a user calls it."""
    program = Path(sys.executable).parent / "hudictl"
    cost, output = run_whole_process([str(program), "run", "compaction", str(table), "--json", *arguments])
    return cost, json.loads(output)


def measure(case: Case, runs: int) -> dict[str, Any]:
    """All figures of one case; the engines take turns, so that all see the machine in the same state."""
    table = case.table()
    whole: dict[str, list[Cost]] = {"hudi": [], "spark": [], "local": []}
    warm: dict[str, list[dict[str, float]]] = {"hudi": [], "spark": []}
    seen: dict[str, dict[str, Any]] = {}
    floors = []
    works: dict[str, Callable[[Path], Answer]] = {
        "hudi": lambda copy: module("peer", copy, case.hudi, case.codec),
        "spark": lambda copy: hudictl(copy, "--engine", "spark", "--master", "local[2]"),
        "local": lambda copy: hudictl(copy, "--engine", "local"),
        "spark_warm": lambda copy: module("ours", copy),
    }
    for _ in range(runs):
        for name, work in works.items():
            (cost, answer), seen[name] = on_a_copy(table, work, contents)
            if name in whole:
                whole[name].append(cost)
            if "warm" in answer:
                warm[name.removesuffix("_warm")].append(answer["warm"])
        _agree(case, seen)
        floors.append(module("floor", table, str(case.updates))[1])
    return {
        "rows": case.rows,
        "updates": case.updates,
        **figures(whole, warm, {name: found["new_base_mib"] for name, found in seen.items()}),
        "floor": _floor(floors, warm["spark"]),
        "agreed": {key: seen["hudi"][key] for key in AGREED},
    }


def _agree(case: Case, seen: Mapping[str, Mapping[str, Any]]) -> None:
    if len({tuple(found[key] for key in AGREED) for found in seen.values()}) != 1:
        raise RuntimeError(f"{case.name}: the engines do not hold the same rows: {seen}")
    if any(found["codec"] != case.codec for found in seen.values()):
        raise RuntimeError(f"{case.name}: an engine wrote another codec: {seen}")


def figures(
    whole: Mapping[str, Sequence[Cost]], warm: Mapping[str, Sequence[Mapping[str, float]]], mib: Mapping[str, float]
) -> dict[str, Any]:
    """Medians of each engine, and how many times as much Hudi takes."""
    entire = {name: middle(found) for name, found in whole.items()}
    kept = {
        name: {key: statistics.median(one[key] for one in found) for key in ("wall", "cpu")}
        for name, found in warm.items()
    }
    found: dict[str, Any] = {
        name: {
            "whole": cost.as_json(),
            **({"warm": {key: round(value, 2) for key, value in kept[name].items()}} if name in kept else {}),
            "new_base_mib": mib[name],
        }
        for name, cost in entire.items()
    }
    for key in ("cpu", "wall"):
        found[f"{key}_ratios"] = {
            "spark_whole": round(getattr(entire["hudi"], key) / getattr(entire["spark"], key), 2),
            "spark_warm": round(kept["hudi"][key] / kept["spark"][key], 2),
            "local_whole": round(getattr(entire["hudi"], key) / getattr(entire["local"], key), 2),
        }
    return found


def _floor(floors: Sequence[dict[str, Any]], warm: Iterable[Mapping[str, float]]) -> dict[str, Any]:
    floor = sorted(floors, key=lambda found: found["cpu"])[len(floors) // 2]
    ours = statistics.median(one["cpu"] for one in warm)
    return {"cpu": round(floor["cpu"], 2), "stages": floor["stages"], "share": round(floor["cpu"] / ours, 3)}


def code() -> str:
    """The commit that is measured; marked where the working tree has changes to it."""
    command = ["git", "status", "--porcelain", "--", *CODE]
    changed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()
    return head_commit() + (CHANGED if changed else "")


def pending(cases: Iterable[Case], stored: Mapping[str, Mapping[str, Any]], commit: str) -> list[Case]:
    """The cases that are not stored with this commit; all of them where the code has changes."""
    return [case for case in cases if commit.endswith(CHANGED) or stored.get(case.name, {}).get("commit") != commit]


def chosen_cases(chosen: argparse.Namespace) -> list[Case]:
    """The default cases; with any axis given, every combination of it and of the others' values."""
    axes = [(chosen.sizes, MEASURED_SIZES), (chosen.hudi, HUDI), (chosen.codecs, CODECS), (chosen.updates, UPDATES)]
    if not any(given for given, _ in axes):
        return default_cases()
    return matrix(*(given.split(",") if given else known for given, known in axes))


def main() -> None:
    """Measures the chosen cases and stores each as it ends."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hudi", help=f"versions, of {','.join(HUDI)}")
    parser.add_argument("--codecs", help=f"of {','.join(CODECS)}")
    parser.add_argument("--updates", help=f"pattern:percent; known are {','.join(UPDATES)}")
    parser.add_argument("--sizes", help=f"of the tables; {','.join(MEASURED_SIZES)}, and 20k to try it out")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--again", action="store_true", help="measure also what is stored with this commit")
    parser.add_argument("--output", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    cases, commit = chosen_cases(chosen), code()
    kept = json.loads(chosen.output.read_text())["cases"] if chosen.output.is_file() else {}
    for case in cases if chosen.again else pending(cases, kept, commit):
        kept[case.name] = {"machine": machine(), "commit": commit, "runs": chosen.runs, **measure(case, chosen.runs)}
        store(chosen.output, {"cases": kept})
        print(json.dumps({case.name: kept[case.name]}), flush=True)


if __name__ == "__main__":
    main()
