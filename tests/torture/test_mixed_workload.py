"""The programs of sixty commits; `python -m tests.torture --workload 9-mor-record` runs one."""

from __future__ import annotations

import pytest

from tests.torture.explore import commit, running, work
from tests.torture.mixed_workload import COMMITS, NAMES, PROGRAMS, mixed_workload
from tests.torture.program import Command, Write, from_json
from tests.torture.results import WORKLOADS, store

KEY_INDEXES = {"SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM", "RECORD_INDEX", "BUCKET"}


@pytest.mark.parametrize("version", PROGRAMS)
def test_each_version_meets_each_index_by_both_writers(version: str) -> None:
    made = [mixed_workload(f"{version}-{name}") for name in PROGRAMS[version]]
    writes = [step for program in made for step in program.steps if isinstance(step, Write)]
    due = KEY_INDEXES | ({"RECORD_LEVEL_INDEX"} if version == "9" else set())
    for ours in (True, False):
        assert {step.options["hoodie.index.type"] for step in writes if step.ours is ours} == due
        assert {step.evolution for step in writes if step.ours is ours} == {"", "add_column", "widen"}
    indexings = [step for program in made for step in program.steps if isinstance(step, Command) and step.options]
    assert sum(step.verb == "run indexing" for step in indexings) == (0 if version == "6" else 4)
    assert [from_json(program.to_json()) for program in made] == made
    assert all(sum(isinstance(step, Write) for step in program.steps) >= COMMITS for program in made)


@pytest.mark.hudi
@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize("name", NAMES)
def test_sixty_commits_equal_the_model(name: str) -> None:
    with running() as judges:
        done = work(judges, name)
    store(WORKLOADS, done, commit())
    assert (done.failures, done.hudi_alone) == ([], [])
    assert done.commits >= COMMITS
