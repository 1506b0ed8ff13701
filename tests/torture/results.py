"""What runs of the random test and the mixed workload did, as they are stored in benchmarks/results."""

from __future__ import annotations

import fcntl
import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from benchmarks.measure import machine
from tests.torture.session import Outcome

RESULTS: Final = Path(__file__).parents[2] / "benchmarks" / "results" / "torture.json"
WORKLOADS: Final = RESULTS.with_name("mixed_workload.json")


@dataclass
class Run:
    """The programs of one table version, or the one of this `name`: their sums, and each failure with its seed."""

    name: str
    first_seed: int
    programs: int = 0
    commits: int = 0
    steps: Counter[str] = field(default_factory=Counter)
    faults: int = 0
    compared: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    avoided: Counter[str] = field(default_factory=Counter)
    hudi_alone: list[dict[str, Any]] = field(default_factory=list)
    failures: list[dict[str, Any]] = field(default_factory=list)
    seconds: int = 0

    def add(self, seed: int, outcome: Outcome, *, hudi_alone: bool) -> None:
        """One more program. `hudi_alone`: its failure is real Hudi's, and shows without any of our steps."""
        self.programs += 1
        self.commits += outcome.commits
        self.steps += outcome.steps
        self.faults += outcome.faults
        self.compared += outcome.counts.compared
        self.skipped += outcome.counts.skipped
        self.refused += outcome.refused + outcome.counts.refused
        self.avoided += outcome.avoided
        if outcome.failure is not None:
            found = {"seed": seed, "writer": outcome.program.writer, "kind": outcome.failure.kind}
            (self.hudi_alone if hudi_alone else self.failures).append({**found, "step": outcome.failure.step})

    def as_value(self) -> dict[str, Any]:
        """The members as JSON has them, the most frequent first."""
        kinds = ("steps", "compared", "skipped", "refused", "avoided")
        counted = {name: dict(getattr(self, name).most_common()) for name in kinds}
        return {
            "first_seed": self.first_seed,
            "programs": self.programs,
            "writes": self.commits,
            "steps": sum(self.steps.values()),
            "commands_killed_or_failed": self.faults,
            "reads_compared": sum(self.compared.values()),
            "failures": self.failures,
            "failures_of_real_hudi_alone": self.hudi_alone,
            "seconds": self.seconds,
            "by_kind": counted,
        }

    def to_json(self) -> str:
        """The text of `as_value`."""
        return json.dumps({self.name: self.as_value()}, indent=1)


def store(path: Path, run: Run, commit: str) -> None:
    """Puts the run among those of other names, which stay."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        text = file.read()
        versions = json.loads(text)["versions"] if text else {}
        versions[run.name] = {"commit": commit, **run.as_value()}
        file.truncate(0)
        file.write(json.dumps({"machine": machine(), "versions": dict(sorted(versions.items()))}, indent=2) + "\n")
