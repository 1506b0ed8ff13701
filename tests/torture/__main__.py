"""The random test: `python -m tests.torture --version 8 --seed 7 --minutes 10`; see docs/internals/testing.md."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.torture.explore import commit, explore, fails_without_us, minimise, report, running, work
from tests.torture.generate import STEPS, WRITERS
from tests.torture.mixed_workload import NAMES
from tests.torture.program import from_json
from tests.torture.results import RESULTS, WORKLOADS, store
from tests.torture.session import run

PATIENCE_MINUTES = 15.0
"""How long a failing program is made shorter."""


def main() -> int:
    """Ends with 1 when a program failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("--version", action="append", choices=sorted(WRITERS), help="table version; repeatable")
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--minutes", type=float, default=10.0, help="of each version")
    parser.add_argument("--steps", type=int, default=STEPS, help="of a program, after its first write")
    parser.add_argument("--workload", action="append", choices=NAMES, help="run this one; repeatable")
    parser.add_argument("--failures", type=Path, help="folder for failing programs")
    parser.add_argument("--replay", type=Path, metavar="PROGRAM", help="run a stored program")
    parser.add_argument("--keep", type=Path, help="folder in which --replay leaves the table")
    parser.add_argument("--minimise", type=Path, metavar="PROGRAM", help="shorten a stored program, in place")
    parser.add_argument("--store", action="store_true", help=f"into {RESULTS.name} or {WORKLOADS.name}")
    chosen = parser.parse_args()
    with running() as judges:
        if chosen.replay:
            outcome = run(judges, from_json(chosen.replay.read_text()), keep=chosen.keep)
            hudi_alone = outcome.failure is not None and fails_without_us(judges, outcome)
            report(chosen.replay.stem, outcome, hudi_alone)
            return int(outcome.failure is not None)
        if chosen.minimise:
            short = minimise(judges, from_json(chosen.minimise.read_text()), PATIENCE_MINUTES)
            if short is not None:
                chosen.minimise.write_text(short.to_json())
            return int(short is not None)
        failed = False
        for name in chosen.workload or chosen.version or sorted(WRITERS):
            if chosen.workload:
                done = work(judges, name, chosen.failures)
            else:
                done = explore(judges, name, chosen.seed, chosen.minutes, chosen.steps, chosen.failures)
            print(done.to_json())
            failed |= bool(done.failures)
            if chosen.store:
                store(WORKLOADS if chosen.workload else RESULTS, done, commit())
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
