"""Runs targets in worker processes and gathers what they report."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.fuzz.target import target_of

DEFAULT_INPUTS = 300
VARIABLE = "AIRFLOW_HUDI_FUZZ_INPUTS"
PIECE = 20_000
"""Inputs of one process: a leak shows within them, and a crash loses no more than them."""
SECONDS_FOR_NOTHING = 120
SECONDS_AN_INPUT = 0.1

NAMES = (
    *(
        "log",
        "log_content",
        "hfile",
        "hfile_cells",
        "avro_container",
        "avro_payload",
        "avro_schema",
        "commit_metadata",
        "commit_json",
    ),
    *(
        "compaction_plan",
        "clean_plan",
        "clean_metadata",
        "properties",
        "names",
        "history_log",
        "history_manifest",
        "history_manifest_json",
        "history_parquet",
    ),
    *("metadata_record", "bloom_filter", "schema_history", "index_definitions", "orc_zones", "table"),
    *("parquet_footer", "parquet_pages"),
)


@dataclass
class Report:
    """What became of a target's inputs. `failures` names each kind once, with an input that shows it."""

    target: str
    seed: int
    inputs: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    failures: list[dict[str, Any]] = field(default_factory=list)
    slowest_cpu_ms: float = 0.0
    grown_mib: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """For storing."""
        return {
            "seed": self.seed,
            "inputs": self.inputs,
            "ends": dict(sorted(self.ends.items())),
            "failures": self.failures,
            "slowest_cpu_ms": self.slowest_cpu_ms,
            "grown_mib": self.grown_mib,
        }


def asked_inputs() -> int:
    """How many inputs a target gets, its share aside."""
    return int(os.environ.get(VARIABLE, DEFAULT_INPUTS))


def run_target(name: str, inputs: int, seed: int) -> Report:
    """Runs a target's share of `inputs`. A worker that crashes or hangs is a failure of the input that it was at."""
    report = Report(name, seed)
    total = max(int(inputs * target_of(name).share), 1)
    for first in range(0, total, PIECE):
        _run_piece(report, first, min(PIECE, total - first))
    return report


def run_all(names: Iterable[str], inputs: int, seed: int, at_once: int = 2) -> Iterator[Report]:
    """Several targets, `at_once` at a time; their reports in the order of their names."""
    with ThreadPoolExecutor(max_workers=at_once) as pool:
        yield from pool.map(lambda name: run_target(name, inputs, seed), names)


def _run_piece(report: Report, first: int, count: int) -> None:
    with tempfile.NamedTemporaryFile() as progress:
        progress.write(bytes(8))
        progress.flush()
        command = [
            sys.executable,
            "-m",
            "tests.fuzz.worker",
            report.target,
            str(report.seed),
            str(first),
            str(count),
            progress.name,
        ]
        root = Path(__file__).parents[2]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join((str(root), str(root / "spark_jobs"))),
            "RUST_BACKTRACE": "0",
        }
        # One allocator arena: with many, glibc reserves 64 MiB of address space for every thread.
        environment["MALLOC_ARENA_MAX"] = "2"
        try:
            limit = SECONDS_FOR_NOTHING + count * SECONDS_AN_INPUT
            done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=limit)
            what = "" if done.returncode == 0 else f"the process ended with {done.returncode}: {done.stderr[-1500:]}"
        except subprocess.TimeoutExpired:
            what = "the process did not end in time"
        at = int.from_bytes(Path(progress.name).read_bytes()[:8], "big")
    report.inputs += count
    if what:
        report.ends["failed"] += 1
        report.failures.append({"index": at, "what": what})
        return
    found = json.loads(done.stdout.splitlines()[-1])
    report.ends.update(found["ends"])
    report.failures += found["failures"]
    report.slowest_cpu_ms = max(report.slowest_cpu_ms, found["slowest_cpu_ms"])
    report.grown_mib = max(report.grown_mib, found["grown_mib"])
