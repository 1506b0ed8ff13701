"""Where the time of `make test` goes: `python -m benchmarks.suite` runs it in a fresh clone of the last commit. Stores
benchmarks/results/suite.json.

Seconds of wall time: of all; of the set-up; of each part of the tests (tests/run.sh; four run side by side), with its
seconds of CPU; and of the tests of each file, with what they set up. Ends as `make test` ends.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.measure import head_commit, machine, store
from tests.support.junit_report import counts

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results" / "suite.json"
PART = re.compile(r"^== (\w+), (\d+) s, (\d+) s of CPU$", re.MULTILINE)


def summary(output: str, reports: Path) -> dict[str, Any]:
    """The figures of a run, by what it printed and the reports of its parts."""
    parts = {}
    for name, seconds, cpu_seconds in PART.findall(output):
        report = counts(reports / f"{name}.xml")
        parts[name] = {
            "seconds": int(seconds),
            "cpu_seconds": int(cpu_seconds),
            "passed": report.passed,
            "failed": report.failed,
            "files": {file: round(took, 1) for file, took in report.seconds.most_common()},
        }
    return parts


def main() -> int:
    """Sets a clone up, then runs its lint and tests."""
    with tempfile.TemporaryDirectory() as scratch:
        clone, reports = Path(scratch) / "clone", Path(scratch) / "reports"
        reports.mkdir()
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        environment = {**os.environ, "AIRFLOW_HUDI_TEST_REPORTS": str(reports)}
        environment.pop("PYTHONPATH", None)
        started = time.monotonic()
        subprocess.run(["make", f"{clone}/.venv/.done"], cwd=clone, env=environment, check=True)
        set_up = round(time.monotonic() - started)
        run = subprocess.run(["make", "test"], cwd=clone, env=environment, stdout=subprocess.PIPE, text=True)
        seconds = round(time.monotonic() - started)
        print(run.stdout)
        parts = summary(run.stdout, reports)
    stored = {"machine": machine(), "commit": head_commit(), "seconds": seconds, "set_up_seconds": set_up}
    store(RESULTS, {**stored, "parts": parts})
    return run.returncode


if __name__ == "__main__":
    sys.exit(main())
