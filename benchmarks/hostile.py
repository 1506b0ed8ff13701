"""50,000 hostile tables made from the golden ones: `python -m benchmarks.hostile`.

Stores benchmarks/results/hostile.json: by kind of the damaged file, with and without the metadata table, how many runs
of hudictl ended how, and what was wrong; ends with 1 when anything was. In parts, so that hours can be run piece by
piece: each part is stored on its own, with its commit.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.measure import head_commit, machine, store
from tests.hostile.judge import FAULTS
from tests.hostile.run import run_apart

RESULTS = Path(__file__).parent / "results" / "hostile.json"
RUNS = 50_000
PARTS = 50
PIECE = 250
"""Runs of one process: what it keeps of tables is thrown away with it."""


def total(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The figures of all parts: runs, faults, and both by kind of file and use of the metadata table."""
    kinds: dict[str, dict[str, Counter[str]]] = {}
    runs, faults = 0, Counter(dict.fromkeys(FAULTS, 0))
    for part in parts:
        runs += part["runs"]
        for kind, modes in part["kinds"].items():
            for mode, found in modes.items():
                kinds.setdefault(kind, {}).setdefault(mode, Counter()).update(found)
                faults.update({fault: found[fault] for fault in FAULTS if fault in found})
    shown = {
        kind: {mode: dict(sorted(found.items())) for mode, found in modes.items()} for kind, modes in kinds.items()
    }
    return {"runs": runs, "faults": dict(faults), "kinds": dict(sorted(shown.items()))}


def run_part(number: int, runs: int, at_once: int) -> dict[str, Any]:
    """One part of the runs, from 1 on."""
    first, end = runs * (number - 1) // PARTS, runs * number // PARTS
    with ThreadPoolExecutor(at_once) as pool:
        starts = range(first, end, PIECE)
        found = list(pool.map(lambda start: run_apart(start, min(PIECE, end - start)), starts))
    failures = [failure for piece in found for failure in piece["failures"]]
    return {
        "first": first,
        **{name: sum(piece[name] for piece in found) for name in ("runs", "failed", "cpu_seconds")},
        "slowest_cpu_seconds": max(piece["slowest_cpu_seconds"] for piece in found),
        "peak_mib": max(piece["peak_mib"] for piece in found),
        "kinds": total(found)["kinds"],
        "failures": failures,
    }


def main() -> int:
    """Runs the parts, stores what became of each, and prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--parts", default=f"1-{PARTS}", help=f"the first and the last of {PARTS}, as in 2-5")
    parser.add_argument("--at-once", type=int, default=2)
    parser.add_argument("--output", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    head = head_commit()
    parts: dict[str, Any] = json.loads(chosen.output.read_text())["parts"] if chosen.output.exists() else {}
    first, _, last = chosen.parts.partition("-")
    for number in range(int(first), int(last or first) + 1):
        parts[str(number)] = {"commit": head, **run_part(number, chosen.runs, chosen.at_once)}
        # After every part: a run of hours that is stopped has its results so far.
        found = {
            "machine": machine(),
            "failed": sum(part["failed"] for part in parts.values()),
            **total(parts.values()),
        }
        store(chosen.output, {**found, "parts": parts})
        print(json.dumps({name: parts[str(number)][name] for name in ("runs", "failed", "cpu_seconds")}), flush=True)
    return 1 if any(part["failed"] for part in parts.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
