"""Where the time of `make test` goes: `python -m benchmarks.suite` runs it in a fresh clone of the last commit. Stores
benchmarks/results/suite.json.

Seconds of wall time of each run: of all; of the set-up; of each part of the tests (tests/run.sh; four run side by side)
with its seconds of CPU. Of the last idle run also the seconds of the tests of each file, with what they set up. With
`--busy 2` two processes are busy meanwhile. Ends as `make test` ends.
"""

from __future__ import annotations

import argparse
import json
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


def busy(count: int) -> list[subprocess.Popen[bytes]]:
    """Processes that take a core each."""
    return [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]


def main() -> int:
    """Sets a clone up, then runs its lint and tests."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--busy", type=int, default=0, help="processes that compute beside the tests")
    parser.add_argument("--others", type=int, default=0, help="processes that compute already, to be stored too")
    given = parser.parse_args()
    beside = given.busy + given.others
    with tempfile.TemporaryDirectory() as scratch:
        clone, reports = Path(scratch) / "clone", Path(scratch) / "reports"
        reports.mkdir()
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        commit = head_commit()
        environment = {**os.environ, "AIRFLOW_HUDI_TEST_REPORTS": str(reports)}
        environment.pop("PYTHONPATH", None)
        started = time.monotonic()
        subprocess.run(["make", f"{clone}/.venv/.done"], cwd=clone, env=environment, check=True)
        set_up = round(time.monotonic() - started)
        others = busy(given.busy)
        run = subprocess.run(["make", "test"], cwd=clone, env=environment, stdout=subprocess.PIPE, text=True)
        for process in others:
            process.kill()
        seconds = round(time.monotonic() - started)
        print(run.stdout)
        parts = summary(run.stdout, reports)
    before = json.loads(RESULTS.read_text())
    short = {name: {key: part[key] for key in part if key != "files"} for name, part in parts.items()}
    one = {"commit": commit, "busy": beside, "seconds": seconds, "set_up_seconds": set_up, "parts": short}
    files = {name: part["files"] for name, part in parts.items()} if not beside else before["files"]
    store(RESULTS, {"machine": machine(), "runs": [*before["runs"], one], "files": files})
    return run.returncode


if __name__ == "__main__":
    sys.exit(main())
