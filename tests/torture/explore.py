"""Runs programs for some minutes, and makes one that fails shorter."""

from __future__ import annotations

import _thread
import faulthandler
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.support.peak_memory import anonymous
from tests.torture.generate import program
from tests.torture.minimise import minimised
from tests.torture.mixed_workload import mixed_workload
from tests.torture.program import Program, Step
from tests.torture.results import Run
from tests.torture.session import EVERY_STEP, Judges, Outcome, Readers, run

ROOT = Path(__file__).parents[2]


HUDI: Final = Readers(0, EVERY_STEP.hudi)
SELDOM: Final = Readers(1, 10)
"""Programs of sixty commits ask real Hudi a dozen questions at a time."""
MOST_BYTES = 4 << 30
"""Of this process, which reads tables of some hundred rows. One run took 21 GiB (tests/memory/test_footers.py)."""


@contextmanager
def running() -> Iterator[Judges]:
    """Judges, which are ended afterwards. What takes more than MOST_BYTES meanwhile is interrupted, and shows where."""
    judges, done = Judges(), threading.Event()

    def watch() -> None:
        while not done.wait(0.5):
            if anonymous() > MOST_BYTES:
                faulthandler.dump_traceback(sys.__stderr__ or sys.stderr)
                _thread.interrupt_main()
                return

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield judges
    finally:
        done.set()
        judges.close()


def _until(minutes: float) -> Callable[[], bool]:
    end = time.monotonic() + 60 * minutes
    return lambda: time.monotonic() < end


def explore(judges: Judges, version: str, first: int, minutes: float, steps: int, folder: Path | None = None) -> Run:
    """Programs of one seed after another until the time is up; failing ones are put into `folder`."""
    result, may_go_on, started = Run(version, first), _until(minutes), time.monotonic()
    seed = first
    while may_go_on():
        _try(judges, program(version, seed, steps), f"v{version}-{seed}", result, folder, may_go_on)
        seed += 1
    result.seconds = round(time.monotonic() - started)
    return result


def work(judges: Judges, name: str, folder: Path | None = None) -> Run:
    """The program of this name of mixed_workload.py; a failing one is put into `folder`."""
    made, started = mixed_workload(name), time.monotonic()
    result = Run(name, made.seed)
    _try(judges, made, name, result, folder, readers=SELDOM)
    result.seconds = round(time.monotonic() - started)
    return result


def _try(
    judges: Judges,
    made: Program,
    name: str,
    result: Run,
    folder: Path | None,
    may_go_on: Callable[[], bool] = lambda: True,
    readers: Readers = EVERY_STEP,
) -> None:
    outcome = run(judges, made, may_go_on, readers=readers)
    hudi_alone = outcome.failure is not None and fails_without_us(judges, outcome)
    result.add(made.seed, outcome, hudi_alone=hudi_alone)
    report(name, outcome, hudi_alone)
    if outcome.failure is not None and folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.json").write_text(_shortened(outcome).to_json())


def fails_without_us(judges: Judges, outcome: Outcome) -> bool:
    """Whether it fails in the same way when none of our steps is done; wrong rows are read by real Hudi then."""
    assert outcome.failure is not None
    kind, wrong_rows = outcome.failure.kind, outcome.failure.kind.startswith("ours snapshot")
    if not wrong_rows and not kind.startswith(("hudi ", "validate ")):
        return False
    again = run(judges, _shortened(outcome).without_ours(), readers=HUDI if wrong_rows else EVERY_STEP).failure
    return again is not None and again.kind == ("hudi snapshot" if wrong_rows else kind)


def minimise(judges: Judges, failing: Program, minutes: float) -> Program | None:
    """The program without the steps that its failure does not need; None where it does not fail."""
    found = run(judges, failing)
    if found.failure is None:
        return None
    kind = found.failure.kind
    print(f"{found.failure.kind}\n{found.failure.text}", file=sys.stderr)

    def fails(kept: Sequence[Step]) -> bool:
        again = run(judges, failing.only(kept)).failure
        print(f"{len(kept)} steps: {again.kind if again else 'none'}", file=sys.stderr)
        return again is not None and again.kind == kind

    shorter = _shortened(found)
    return shorter.only(minimised(list(shorter.steps[1:]), fails, _until(minutes)))


def _shortened(outcome: Outcome) -> Program:
    assert outcome.failure is not None
    return outcome.program.only(outcome.program.steps[1 : outcome.failure.step + 1])


def commit() -> str:
    """The checkout's commit."""
    return subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


def report(name: str, outcome: Outcome, hudi_alone: bool) -> None:
    """A line on stderr."""
    steps, reads = sum(outcome.steps.values()), sum(outcome.counts.compared.values())
    line = f"{name} (by {outcome.program.writer}): {outcome.commits} writes, {steps} steps, {reads} reads"
    if outcome.failure is not None:
        line += f"; {'real Hudi alone' if hudi_alone else 'FAILED'}: {outcome.failure.kind}\n  {outcome.failure.text}"
    print(line, file=sys.stderr, flush=True)
