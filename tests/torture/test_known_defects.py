"""Conditions of real Hudi's defects, on tables that real Hudi wrote; no JVM."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.support.stale_indexes import StaleTable
from tests.torture.known_defects import narrowed
from tests.torture.model import Model
from tests.torture.our_commands import Situation
from tests.torture.program import Program, TableShape, Write

SHAPE = TableShape(True, False, 3, False, (), {"hoodie.datasource.write.hive_style_partitioning": "true"})
PROGRAM = Program("8", "1.0.2", 0, SHAPE, ())
UPSERT = Write("upsert", 1, (0, 1, 10))


def test_writes_of_1_0_2_behind_a_pending_compaction_narrow_the_partitions_of_their_keys(
    stale: Callable[[str], StaleTable],
) -> None:
    """Until one without a pending compaction makes their ranges anew."""
    pending = Situation.of(stale("narrow_v8").path, Model(SHAPE))
    partitions: set[str] = set()
    for step, program in (
        (replace(UPSERT, ours=True), PROGRAM),
        (replace(UPSERT, fails=True), PROGRAM),
        (UPSERT, replace(PROGRAM, writer="1.2.0")),
    ):
        narrowed(partitions, step, program, pending)
        assert partitions == set()
    narrowed(partitions, UPSERT, PROGRAM, pending)
    assert partitions == {"part=p0", "part=p1"}
    compacted = Situation.of(stale("overtaken_v8").path, Model(SHAPE))
    narrowed(partitions, replace(UPSERT, keys=(1,)), PROGRAM, compacted)
    assert partitions == {"part=p0"}
