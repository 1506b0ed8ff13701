"""Random tables by seed, written and read by real Hudi: what it reads is what we read, all columns, every query
type.

`AIRFLOW_HUDI_RANDOM_TABLES=200` takes that many seeds of each sort instead of the one that every run takes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace

import pytest

from tests.interop.real_hudi import RealHudi
from tests.torture.random_runs import Outcome, run
from tests.torture.random_tables import KINDS, Workload, workload

pytestmark = [pytest.mark.hudi, pytest.mark.conformance]

SEEDS = int(os.environ.get("AIRFLOW_HUDI_RANDOM_TABLES", "1"))
Outcomes = Mapping[tuple[str, int], Future[Outcome]]


def table_of(kind: str, seed: int) -> Workload:
    table = workload(kind, seed)
    return replace(table, steps=table.steps[:4]) if SEEDS == 1 else table  # to be quick


@pytest.fixture(scope="module")
def outcomes(hudi_0_15: RealHudi, hudi_1_2: RealHudi, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcomes]:
    """What becomes of every table: one after another with each version of Hudi, both versions at once."""
    with ExitStack() as stack:
        found = {}
        for hudi in (hudi_0_15, hudi_1_2):
            queue = ThreadPoolExecutor(max_workers=1)
            stack.callback(queue.shutdown, cancel_futures=True)
            for seed in range(SEEDS):
                for kind in (kind for kind, (version, _) in KINDS.items() if version == hudi.version):
                    found[kind, seed] = queue.submit(
                        run, hudi, table_of(kind, seed), tmp_path_factory.mktemp(f"{kind}-{seed}")
                    )
        yield found


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("kind", KINDS)
def test_random_table_reads_as_real_hudi_reads_it(outcomes: Outcomes, kind: str, seed: int) -> None:
    table = table_of(kind, seed)
    outcome = outcomes[kind, seed].result()
    assert outcome.mismatches == [], (table.options, outcome.done, outcome.refused)
    assert outcome.compared > 2 * len(outcome.unanswered), outcome.unanswered
    assert outcome.compared > 2 * len(outcome.known), outcome.known
    assert len(outcome.done) >= len(table.steps) // 2, outcome.refused


def test_a_seed_makes_the_same_table() -> None:
    for kind in KINDS:
        first, second = workload(kind, 7), workload(kind, 7)
        assert (first.options, [step.name for step in first.steps]) == (
            second.options,
            [step.name for step in second.steps],
        )
        assert [str(step.rows) for step in first.steps] == [
            str(step.rows) for step in second.steps
        ]  # as text: NaN is not NaN
