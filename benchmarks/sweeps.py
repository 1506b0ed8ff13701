"""The tests that are too long for `make test`: `python -m benchmarks.sweeps conformance`, or `soak`.

Stores benchmarks/results/conformance.json or sweeps.json; ends with 1 when a test failed. `conformance` is every
service on every golden table of every version, and every index, most of it with real Hudi as judge: the cases that
`make test` leaves out. `soak` is every service killed at every operation on the storage, by every form of death, ten
minutes of random programs on each table version, memory at full size, and on versitygw what `make test` runs on moto.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.measure import head_commit, machine
from tests.support.junit_report import counts

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Sweep:
    """A run of pytest."""

    arguments: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)


INTEROP = "tests/interop/test_metadata"
CORE = "tests/unit/hudi_core"
Marked = Mapping[str, tuple[int, Sequence[str]]]
CONFORMANCE: Marked = {
    "golden tables by a metadata table of ours": (4, (f"{INTEROP}_golden.py",)),
    "metadata tables made and kept": (1, (f"{INTEROP}_tables.py", f"{INTEROP}_large_cells.py")),
    "services with every kind judged by real Hudi": (1, (f"{INTEROP}_services.py",)),
    "indexing beside a writer": (1, (f"{INTEROP}_indexing.py",)),
    "the next writer behind an index": (2, ("tests/interop/test_next_writer.py",)),
    "what writers leave out of indexes": (1, ("tests/interop/test_index_matrix.py",)),
    "metadata tables without a JVM": (4, (f"{CORE}/metadata_table", f"{CORE}/services/metadata", "tests/golden")),
    "base files of pages and copies": (1, ("tests/interop/test_parquet_files.py", f"{CORE}/codec/parquet")),
    "rewrites of golden tables": (16, ("tests/interop/test_rewrites_golden.py",)),
    "compactions planned by us": (
        1,
        ("tests/interop/test_compaction_planning.py", "tests/interop/test_compaction_planning_golden.py"),
    ),
    "services judged by real Hudi": (2, ("tests/interop/test_services.py",)),
    "writes of rows judged by real Hudi": (12, ("tests/interop/test_writes.py",)),
    "tables that we create": (2, ("tests/interop/test_create.py",)),
    "overwrites and other forms of writes": (
        4,
        tuple(
            f"tests/interop/test_{name}.py"
            for name in (
                "overwrites",
                "writes_global",
                "writes_hashed_buckets",
                "change_logs",
                "log_blocks",
                "repeated_keys",
            )
        ),
    ),
    "what else real Hudi judges": (4, ("tests/interop",)),
    "kills and races": (1, ("tests/faults",)),
    "units with contracts and DAGs": (2, ("tests",)),
}
SOAK: Marked = {
    "faults with every kind": (
        3,
        ("tests/faults/test_services_fully_indexed.py", "tests/faults/test_compaction_fully_indexed.py"),
    ),
    "faults": (6, ("tests/faults",)),
    "random programs": (1, ("tests/torture",)),
    "memory and the rest": (1, ("tests",)),
}
"""What has the marker: how many parts it is cut into, each stored on its own, and the paths that hold it.

A path also holds what lies in it and is not named before.
"""


def sweeps_of(marker: str, marked: Marked) -> dict[str, Sweep]:
    """Each test of the marker in one sweep."""
    sweeps: dict[str, Sweep] = {}
    before: list[str] = []
    for name, (parts, paths) in marked.items():
        chosen = ["-m", marker, *(f"--ignore={path}" for path in before), *paths]
        cuts = [f"{number}/{parts}" for number in range(1, parts + 1)] if parts > 1 else []
        sweeps |= {f"{name} {cut}": Sweep([*chosen, "--part", cut]) for cut in cuts} or {name: Sweep(chosen)}
        before += paths
    return sweeps


TIERS: Mapping[str, tuple[Path, Mapping[str, Sweep]]] = {
    "conformance": (RESULTS / "conformance.json", sweeps_of("conformance", CONFORMANCE)),
    "soak": (
        RESULTS / "sweeps.json",
        {
            **sweeps_of("soak", SOAK),
            "locks and services on versitygw": Sweep(
                [
                    f"tests/contract/test_{name}.py"
                    for name in ("locks", "lock_races", "probe_store", "completion_races", "services_s3")
                ],
                {"AIRFLOW_HUDI_S3_SERVER": "versitygw"},
            ),
        },
    ),
}
"""Where the results of a tier are stored, and its sweeps."""


def run(sweep: Sweep) -> dict[str, Any]:
    """How many tests passed and failed, a skipped one counted as failed, which failed, and the seconds of wall time."""
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.xml"
        started = time.monotonic()
        command = [sys.executable, "-m", "pytest", "-q", "--durations=10", f"--junitxml={report}", *sweep.arguments]
        code = subprocess.run(command, cwd=ROOT, env={**os.environ, **sweep.environment}).returncode
        found = counts(report)
    seconds = round(time.monotonic() - started)
    return {
        "passed": found.passed,
        "failed": found.failed,
        "failures": list(found.failures),
        "pytest": code,
        "seconds": seconds,
    }


def run_failed(sweep: Sweep, head: str, before: Mapping[str, Any]) -> dict[str, Any]:
    """What became of the sweep `before`, with what failed then run again at the commit `head`."""
    again = {"commit": head, **run(Sweep(before["failures"], sweep.environment))}
    now = {name: again[name] for name in ("failed", "failures", "pytest")}
    return {**before, **now, "passed": before["passed"] + again["passed"], "again": again}


def store(path: Path, name: str, result: Mapping[str, Any], known: Collection[str]) -> None:
    """Puts the result of one sweep among those of others, which stay: each says at which commit it was.

    Two runs may do so side by side. What is not among the `known` names of sweeps goes.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        text = file.read()
        before = json.loads(text)["sweeps"] if text else {}
        sweeps: dict[str, Any] = {**{sweep: before[sweep] for sweep in before if sweep in known}, name: result}
        stored = {"machine": machine(), "passed": sum(one["passed"] for one in sweeps.values()), "sweeps": sweeps}
        file.truncate(0)
        file.write(json.dumps(stored, indent=2) + "\n")


def main() -> int:
    """Runs the sweeps, stores what became of each, and prints it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tier", choices=TIERS)
    parser.add_argument("--sweeps", default="", help="with commas between them; without it all of the tier")
    parser.add_argument("--output", type=Path, help="where to store the results, if not in benchmarks/results")
    parser.add_argument(
        "--failed", action="store_true", help="run what failed of them at last again, and add what passes now"
    )
    chosen = parser.parse_args()
    results, sweeps = TIERS[chosen.tier]
    output = chosen.output or results
    names = chosen.sweeps.split(",") if chosen.sweeps else list(sweeps)
    head = head_commit()
    codes = []
    before = json.loads(output.read_text())["sweeps"] if chosen.failed else {}
    for name in names:
        if chosen.failed and not before.get(name, {}).get("failures"):
            continue
        result = (
            run_failed(sweeps[name], head, before[name]) if chosen.failed else {"commit": head, **run(sweeps[name])}
        )
        # After every sweep: a run of hours that is stopped has its results so far.
        store(output, name, result, sweeps)
        print(json.dumps(result))
        codes.append(result["pytest"] or result["failed"])
    return 1 if any(codes) else 0


if __name__ == "__main__":
    sys.exit(main())
