"""What is stored of a run."""

from __future__ import annotations

import json
from pathlib import Path

from tests.torture.checks import Failure
from tests.torture.generate import program
from tests.torture.results import Run, store
from tests.torture.session import Outcome


def outcome(seed: int, failure: Failure | None = None) -> Outcome:
    made = Outcome(program("9", seed), failure=failure, faults=2)
    made.steps["hudi upsert"] += 3
    made.counts.compared["ours snapshot"] += 4
    made.counts.refused["time travel: #"] += 1
    return made


def test_programs_are_summed_and_failures_are_told_apart(tmp_path: Path) -> None:
    done = Run("9", 5)
    done.add(5, outcome(5), hudi_alone=False)
    done.add(6, outcome(6, Failure("ours filtered", 3, "rows")), hudi_alone=False)
    done.add(7, outcome(7, Failure("hudi upsert fails", 2, "why")), hudi_alone=True)
    store(tmp_path / "torture.json", done, "abc")
    store(tmp_path / "torture.json", Run("8", 1), "abc")
    stored = json.loads((tmp_path / "torture.json").read_text())["versions"]
    assert list(stored) == ["8", "9"]
    nine = stored["9"]
    assert (nine["commit"], nine["first_seed"], nine["programs"], nine["steps"]) == ("abc", 5, 3, 9)
    assert (nine["commands_killed_or_failed"], nine["reads_compared"]) == (6, 12)
    assert nine["by_kind"]["refused"] == {"time travel: #": 3}
    assert [(item["seed"], item["kind"]) for item in nine["failures"]] == [(6, "ours filtered")]
    assert [item["seed"] for item in nine["failures_of_real_hudi_alone"]] == [7]
    assert stored["8"]["programs"] == 0
