"""Where the time of `make test` goes: `python -m benchmarks.suite` runs it and stores benchmarks/results/suite.json.

Seconds of wall time: of all, of each part (tests/run.sh; four run side by side), and of the tests of each file, with
what they set up. Ends as the tests end.
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
PART = re.compile(r"^== (\w+), (\d+) s$", re.MULTILINE)


def summary(output: str, reports: Path) -> dict[str, Any]:
    """The figures of a run, by what it printed and the reports of its parts."""
    parts = {}
    for name, seconds in PART.findall(output):
        report = counts(reports / f"{name}.xml")
        parts[name] = {
            "seconds": int(seconds),
            "passed": report.passed,
            "failed": report.failed,
            "files": {file: round(took, 1) for file, took in report.seconds.most_common()},
        }
    return parts


def main() -> int:
    """Runs the tests of `make test`, without lint."""
    with tempfile.TemporaryDirectory() as reports:
        started = time.monotonic()
        run = subprocess.run(
            ["bash", "tests/run.sh"],
            cwd=ROOT,
            env={**os.environ, "AIRFLOW_HUDI_TEST_REPORTS": reports},
            stdout=subprocess.PIPE,
            text=True,
        )
        seconds = round(time.monotonic() - started)
        print(run.stdout)
        parts = summary(run.stdout, Path(reports))
    store(RESULTS, {"machine": machine(), "commit": head_commit(), "seconds": seconds, "parts": parts})
    return run.returncode


if __name__ == "__main__":
    sys.exit(main())
