"""The sweeps that are too long for `make test`: `python -m benchmarks.sweeps`. Stores benchmarks/results/sweeps.json; ends with 1 when a test failed.

What is marked soak: every service killed at every operation on the storage, on every table and by every form of death; memory at full size.
And real Hudi judges every service on every table (AIRFLOW_HUDI_ALL_SERVICES), and what runs on moto in `make test` runs on versitygw.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.measure import machine
from tests.report import counts

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results" / "sweeps.json"


@dataclass(frozen=True)
class Sweep:
    """A run of pytest."""

    arguments: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)


SWEEPS = {
    "faults": Sweep(["-m", "soak", "tests/faults"]),
    "memory and the rest": Sweep(["-m", "soak", "--ignore=tests/faults", "tests"]),
    "services judged by real Hudi": Sweep(["tests/interop/test_services.py"], {"AIRFLOW_HUDI_ALL_SERVICES": "1"}),
    "locks and services on versitygw": Sweep(
        [f"tests/contract/test_{name}.py" for name in ("locks", "lock_races", "probe_store", "completion_races", "services_s3")],
        {"AIRFLOW_HUDI_S3_SERVER": "versitygw"},
    ),
}


def run(sweep: Sweep) -> dict[str, Any]:
    """How many tests passed and failed, a skipped one counted as failed, and the seconds of wall time."""
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.xml"
        begun = time.monotonic()
        command = [sys.executable, "-m", "pytest", "-q", "--durations=10", f"--junitxml={report}", *sweep.arguments]
        code = subprocess.run(command, cwd=ROOT, env={**os.environ, **sweep.environment}).returncode
        found = counts(report)
    return {"passed": found.passed, "failed": found.failed, "pytest": code, "seconds": round(time.monotonic() - begun)}


def main() -> int:
    """Runs the sweeps, stores what became of each, and prints it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sweeps", default=",".join(SWEEPS), help="names, with commas between them")
    parser.add_argument("--output", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    names = chosen.sweeps.split(",")
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    chosen.output.parent.mkdir(parents=True, exist_ok=True)
    # Results of sweeps that do not run this time stay: each says at which commit it was.
    done: dict[str, Any] = json.loads(chosen.output.read_text())["sweeps"] if chosen.output.exists() else {}
    for name in names:
        done[name] = {"commit": head, **run(SWEEPS[name])}
        found = {"machine": machine(), "passed": sum(item["passed"] for item in done.values()), "sweeps": done}
        # After every sweep: a run of hours that is stopped has its results so far.
        chosen.output.write_text(json.dumps(found, indent=2) + "\n")
        print(json.dumps(done[name]))
    return 0 if all(done[name]["pytest"] == 0 and not done[name]["failed"] for name in names) else 1


if __name__ == "__main__":
    sys.exit(main())
