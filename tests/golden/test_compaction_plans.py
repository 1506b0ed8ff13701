"""Plans of this engine equal those that real Hudi made of the golden tables: same slices, sizes and order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from itertools import groupby
from pathlib import Path

import pytest

from hudi_core.services.compaction.planner import Planned, make_plan
from hudi_core.timeline.actions.compaction import LOG_BYTES, CompactionOperation
from tests.support.golden_compactions import context_of, planned_cases
from tests.support.golden_data import GoldenCase

Golden = Callable[[str, str], GoldenCase]

DUE = {"hoodie.compact.inline.max.delta.commits": "1"}


def by_log_bytes(operations: tuple[CompactionOperation, ...]) -> list[list[CompactionOperation]]:
    """In the plan's order; operations of one size in any, as Hudi lists partitions in parallel."""
    sized = groupby(operations, lambda item: item.metrics[LOG_BYTES])
    return [sorted(group, key=lambda item: item.file_id) for _, group in sized]


@pytest.mark.parametrize(("folder", "case"), planned_cases())
def test_the_plan_is_the_one_that_real_hudi_made(golden: Golden, folder: str, case: str) -> None:
    table: Path = golden(folder, case).table
    context = context_of(table, DUE)
    timeline = context.active.load()
    (pending,) = timeline.pending_compactions()
    real = context.active.read_plan(pending.requested_time)

    made = make_plan(context, timeline.before(pending.requested_time), pending.requested_time, today=date(2026, 1, 1))

    assert isinstance(made, Planned), made
    assert by_log_bytes(made.plan.operations) == by_log_bytes(real.operations)
    metrics = {item.file_group: item.metrics for item in real.operations}
    assert {item.file_group: item.metrics for item in made.plan.operations} == metrics
    # 0.15 has no such field; ours always has it, so that the next planner looks at what was left out.
    assert made.plan.missing_partitions == ()
    assert real.missing_partitions in ((), None)
    assert replace(made.plan, operations=(), missing_partitions=None, extra_metadata=None) == replace(
        real, operations=(), missing_partitions=None, extra_metadata=None
    )
