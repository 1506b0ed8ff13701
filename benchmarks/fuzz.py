"""200,000 mutated inputs for every codec: `python -m benchmarks.fuzz`.

Stores benchmarks/results/fuzz.json; ends with 1 when an input failed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.measure import head_commit, machine, store
from tests.fuzz.run import NAMES, VARIABLE, run_all

RESULTS = Path(__file__).parent / "results" / "fuzz.json"
INPUTS = 200_000


def main() -> int:
    """Fuzzes, stores what became of the inputs, and prints it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=int(os.environ.get(VARIABLE, INPUTS)))
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--targets", default=",".join(NAMES))
    parser.add_argument("--output", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    started = time.monotonic()
    head = head_commit()
    chosen.output.parent.mkdir(parents=True, exist_ok=True)
    # Results of targets that do not run this time are kept: each names its commit.
    targets: dict[str, Any] = json.loads(chosen.output.read_text())["targets"] if chosen.output.exists() else {}
    found: dict[str, Any] = {"machine": machine(), "inputs": 0, "failed": 0, "targets": targets}
    for report in run_all(chosen.targets.split(","), chosen.inputs, chosen.seed):
        targets[report.target] = {"commit": head, "until_second": round(time.monotonic() - started), **report.as_json()}
        found["inputs"] = sum(target["inputs"] for target in targets.values())
        found["failed"] = sum(target["ends"].get("failed", 0) for target in targets.values())
        # After every target: a run of hours that is stopped has its results so far.
        store(chosen.output, found)
    print(json.dumps(found, indent=2))
    return 1 if found["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
