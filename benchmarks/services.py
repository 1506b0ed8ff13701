"""Our cleaning and archival against real Hudi 0.15.0's, on copies of made-up tables: `python -m benchmarks.services`.

`make bench` stores benchmarks/results/services.json: a clean over 100,000 files of 1,000 partitions (planning, and all
of it), and the archival of 10,000 instants; whole process and warm, wall seconds, CPU seconds with every child counted,
peak memory, and Hudi's figures over ours. Both engines must leave the same files.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.measure import Cost, machine, middle, run_whole_process, store
from benchmarks.service_process import OPTIONS
from benchmarks.table_copies import cache, on_a_copy

RESULTS = Path(__file__).parent / "results" / "services.json"
SIZES = {
    "full": {"clean": ("100000", "1000"), "archive": ("10000",)},
    "small": {"clean": ("1000", "10"), "archive": ("200",)},
}


def table_of(service: str, size: tuple[str, ...]) -> Path:
    """The table of a service and size, made on first use."""
    folder = cache() / "-".join((service, *size))
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(folder.with_name(folder.name + ".tmp"), ignore_errors=True)
        subprocess.run([sys.executable, "-m", "benchmarks.service_tables", service, *size, str(folder)], check=True)
    return folder


def left_in(table: Path) -> dict[str, Any]:
    """The base files, and the commits on the timeline."""
    return {
        "base_files": sorted(path.relative_to(table).as_posix() for path in table.glob("*/*.parquet")),
        "commits": sorted(path.name for path in table.glob(".hoodie/*.commit")),
        "inflight": sorted(path.name for path in table.glob(".hoodie/*.inflight") if path.name.count(".") == 1),
    }


def hudictl(service: str) -> Callable[[Path], tuple[Cost, dict[str, Any]]]:
    """Our whole process: the shell verb as a user calls it."""
    options = [part for pair in OPTIONS[service].items() for part in ("--option", "=".join(pair))]
    how = [] if service == "archive" else ["--schedule", "--engine", "local"]

    def run(table: Path) -> tuple[Cost, dict[str, Any]]:
        program = Path(sys.executable).parent / "hudictl"
        cost, output = run_whole_process([str(program), "run", service, str(table), *how, *options, "--json"])
        return cost, json.loads(output)

    return run


def warm_process(engine: str, service: str) -> Callable[[Path], tuple[Cost, dict[str, Any]]]:
    """An engine in a process that is warm when its clock starts; the cost is the whole process's."""

    def run(table: Path) -> tuple[Cost, dict[str, Any]]:
        cost, output = run_whole_process(
            [sys.executable, "-m", "benchmarks.service_process", engine, service, str(table)]
        )
        return cost, json.loads(output.strip().splitlines()[-1])

    return run


def compare(service: str, size: tuple[str, ...], runs: int) -> dict[str, Any]:
    """All figures of one service; the engines take turns, so that both see the machine in the same state.

    Raises when they disagree.
    """
    table = table_of(service, size)
    whole: dict[str, list[Cost]] = {"ours": [], "hudi": []}
    warm: dict[str, list[dict[str, Any]]] = {"ours": [], "hudi": []}
    left: dict[str, dict[str, Any]] = {}
    for _ in range(runs):
        (cost, _), left["ours"] = on_a_copy(table, hudictl(service), left_in)
        whole["ours"].append(cost)
        (_, answer), left["ours, warm"] = on_a_copy(table, warm_process("ours", service), left_in)
        warm["ours"].append(answer)
        (cost, answer), left["hudi"] = on_a_copy(table, warm_process("hudi", service), left_in)
        whole["hudi"].append(cost)
        warm["hudi"].append(answer)
    for name in ("ours", "ours, warm"):
        if left[name] != left["hudi"]:
            counts = {engine: {key: len(found) for key, found in what.items()} for engine, what in left.items()}
            raise RuntimeError(f"the two engines did not leave the same files: {counts}")
    before = left_in(table)
    removed = {key: len(before[key]) - len(left["ours"][key]) for key in ("base_files", "commits")}
    if not any(removed.values()):
        raise RuntimeError(f"{service} removed nothing")
    return {
        "size": list(map(int, size)),
        "runs": runs,
        "removed": removed,
        "whole_process": _whole(middle(whole["ours"]), middle(whole["hudi"])),
        "warm": _warm([one["warm"] for one in warm["ours"]], [one["warm"] for one in warm["hudi"]]),
        **_planning(warm),
    }


def _whole(ours: Cost, hudi: Cost) -> dict[str, Any]:
    ratios = {f"{name}_ratio": round(getattr(hudi, key) / getattr(ours, key), 2) for name, key in _FIGURES.items()}
    return {"ours": ours.as_json(), "hudi_0_15_0": hudi.as_json(), **ratios}


_FIGURES = {"wall": "wall", "cpu": "cpu", "peak": "peak_mib"}


def _warm(ours: list[dict[str, float]], hudi: list[dict[str, float]]) -> dict[str, Any]:
    mine, theirs = (
        {key: statistics.median(one[key] for one in found) for key in ("wall", "cpu")} for found in (ours, hudi)
    )
    ratios = {f"{key}_ratio": round(theirs[key] / mine[key], 2) for key in mine}
    return {
        "ours": {key: round(mine[key], 3) for key in mine},
        "hudi_0_15_0": {key: round(theirs[key], 3) for key in theirs},
        **ratios,
    }


def _planning(warm: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Wall seconds until the plan was on the timeline, where the service has plans."""
    if "planning_wall" not in warm["ours"][0]:
        return {}
    mine, theirs = (statistics.median(one["planning_wall"] for one in warm[engine]) for engine in ("ours", "hudi"))
    return {
        "planning": {"ours": round(mine, 3), "hudi_0_15_0": round(theirs, 3), "wall_ratio": round(theirs / mine, 2)}
    }


def main() -> None:
    """Measures and stores the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", choices=sorted(SIZES), default="full")
    parser.add_argument("--services", default="clean,archive")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--output", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    sizes = SIZES[chosen.size]
    found = {
        "machine": machine(),
        **{service: compare(service, sizes[service], chosen.runs) for service in chosen.services.split(",")},
    }
    store(chosen.output, found)
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
