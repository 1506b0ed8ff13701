"""Random tables by seed, written and read by real Hudi: what it reads is what we read, all columns, every kind of query.

`AIRFLOW_HUDI_RANDOM_TABLES=200` takes that many seeds of each kind instead of the one that every run takes.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.interop.random_runs import run
from tests.interop.random_tables import KINDS, workload
from tests.interop.real_hudi import RealHudi

pytestmark = pytest.mark.hudi

SEEDS = int(os.environ.get("AIRFLOW_HUDI_RANDOM_TABLES", "1"))


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("kind", KINDS)
def test_random_table_reads_as_real_hudi_reads_it(hudi_0_15: RealHudi, hudi_1_2: RealHudi, tmp_path: Path, kind: str, seed: int) -> None:
    table = workload(kind, seed)
    if SEEDS == 1:
        table = replace(table, steps=table.steps[:5])  # to be quick: every step makes questions, too
    outcome = run(hudi_1_2 if table.hudi == "1.2.0" else hudi_0_15, table, tmp_path)
    assert outcome.mismatches == [], (table.options, outcome.done, outcome.refused)
    assert outcome.compared > 2 * len(outcome.unanswered), outcome.unanswered
    assert outcome.compared > 2 * len(outcome.known), outcome.known
    assert len(outcome.done) >= len(table.steps) // 2, outcome.refused


def test_a_seed_makes_the_same_table() -> None:
    for kind in KINDS:
        first, second = workload(kind, 7), workload(kind, 7)
        assert (first.options, [step.name for step in first.steps]) == (second.options, [step.name for step in second.steps])
        assert [str(step.rows) for step in first.steps] == [str(step.rows) for step in second.steps]  # as text: NaN is not NaN
