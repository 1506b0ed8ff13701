"""One short program of the random test; `python -m tests.torture` runs as many as there is time for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.interop.real_hudi import RealHudi
from tests.torture.explore import commit, explore, running
from tests.torture.generate import STEPS as STEPS_OF_A_PROGRAM
from tests.torture.generate import WRITERS, program
from tests.torture.results import RESULTS, store
from tests.torture.session import Judges, run

pytestmark = [pytest.mark.hudi, pytest.mark.slow]
SEED = 1
STEPS = 12
MINUTES = 10.0


@pytest.fixture
def judges(hudi_1_2: RealHudi) -> Iterator[Judges]:
    made = Judges()
    made.lend(hudi_1_2)
    yield made
    made.close()


@pytest.mark.conformance
def test_a_random_program_keeps_every_row(judges: Judges) -> None:
    outcome = run(judges, program("9", SEED, STEPS))
    assert outcome.failure is None, outcome.failure
    assert sum(outcome.steps.values()) > STEPS // 2
    assert outcome.counts.compared.total() > 4 * STEPS


@pytest.mark.soak
@pytest.mark.parametrize("version", WRITERS)
def test_ten_minutes_of_random_programs(version: str) -> None:
    with running() as judges:
        done = explore(judges, version, SEED, MINUTES, STEPS_OF_A_PROGRAM)
    store(RESULTS, done, commit())
    assert done.failures == []
    assert done.programs > 0
