"""Runs cases of the generator: `python -m tests.hostile.run --seed N` one, with all that it printed;
`--first N --count M` a range, of which one JSON document is printed.

Each case is made again from its number alone, by the same commit.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from tests.hostile.cases import Report, run_case
from tests.hostile.forked import prepare
from tests.hostile.hudictl_server import ROOT, in_environment

SHOWN = 60
"""Failures that a report holds; their number is exact."""


def replay_command(seed: int) -> str:
    """How a case is run again."""
    return f"python -m tests.hostile.run --seed {seed}"


def failure_of(report: Report) -> dict[str, Any]:
    """What a failed case was, and how to run it again."""
    case = report.case
    return {
        "seed": case.seed,
        "replay": replay_command(case.seed),
        "faults": {fault.fault: fault.what for fault in report.faults},
        "kind": case.kind,
        "table": "/".join(case.table),
        "path": case.path,
        "nature": case.nature.value,
        "what": case.what[:300],
        "command": " ".join(case.command.arguments),
    }


def run_range(first: int, count: int) -> dict[str, Any]:
    """The cases from a number on, one after the other."""
    prepare()
    kinds: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    failures, slowest, most = [], 0.0, 0
    started = time.monotonic()
    for seed in range(first, first + count):
        report = run_case(seed)
        end = f"exit {report.ended.code}" if report.ended.signal is None else f"signal {report.ended.signal}"
        kinds[report.case.kind][report.mode].update(["runs", end, *{fault.fault for fault in report.faults}])
        slowest, most = max(slowest, report.ended.cpu_seconds), max(most, report.ended.peak_mib)
        if report.faults:
            failures.append(failure_of(report))
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return {
        "first": first,
        "runs": count,
        "failed": len(failures),
        "faults": dict(Counter(fault for failure in failures for fault in failure["faults"])),
        "kinds": {kind: {mode: dict(found) for mode, found in modes.items()} for kind, modes in sorted(kinds.items())},
        "failures": failures[:SHOWN],
        "slowest_cpu_seconds": slowest,
        "peak_mib": most,
        "cpu_seconds": round(sum(usage.ru_utime + usage.ru_stime for usage in used), 1),
        "seconds": round(time.monotonic() - started),
    }


def run_apart(first: int, count: int) -> dict[str, Any]:
    """As run_range, in a process of its own: one that forks may have no threads."""
    command = [sys.executable, "-m", "tests.hostile.run", "--first", str(first), "--count", str(count)]
    done = subprocess.run(command, cwd=ROOT, env=in_environment(), capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _tell(seed: int) -> Iterator[str]:
    prepare()
    report = run_case(seed)
    yield json.dumps(failure_of(report), indent=2)
    yield f"exit {report.ended.code}, signal {report.ended.signal}, {report.ended.cpu_seconds} s of CPU time, "
    yield f"{report.ended.peak_mib} MiB\n{report.ended.out[-3000:]}\n{report.ended.err[-5000:]}"


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    chosen = parser.parse_args()
    if os.environ.get("TZ") != "UTC":  # before anything has read it
        os.execve(sys.executable, [sys.executable, "-m", "tests.hostile.run", *sys.argv[1:]], in_environment())
    if chosen.seed is not None:
        print("\n".join(_tell(chosen.seed)))
    else:
        print(json.dumps(run_range(chosen.first, chosen.count), indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
