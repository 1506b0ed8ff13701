"""Which engine runs a plan."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hudi_core.config.engine_config import EngineConfig, Extent
from hudi_core.config.rows_config import WriteConfig
from hudi_core.services.engine_choice import PROCESS_BYTES, Choice, choose, task_memory

GIB = 1 << 30
CONFIG = EngineConfig(max_bytes=GIB, max_units=100, memory_bytes=4 * GIB, processors=8)
WRITING = WriteConfig()


def test_extents_are_counted_up_to_what_decides() -> None:
    assert Extent.of([5, 7, 3], CONFIG) == Extent(3, 15, 7)
    taken = iter([GIB] * 50)
    assert Extent.of(taken, CONFIG).size == 2 * GIB
    assert len(list(taken)) == 48
    assert Extent.of([0] * 500, CONFIG).units == 101
    assert Extent.of([], CONFIG) == Extent(0, 0, 0)
    assert Extent(2, 9, 3) | Extent(4, 1, 8) == Extent(4, 9, 8)


@pytest.mark.parametrize(
    ("extent", "local", "why"),
    [
        (Extent(), True, "1 units"),
        (Extent(100, GIB, 1 << 20), True, "100 units, 1024.0 MiB"),
        (Extent(101), False, "airflow_hudi.engine.local.max.units"),
        (Extent(5, GIB + 1, 1), False, "airflow_hudi.engine.local.max.bytes"),
    ],
)
def test_a_plan_is_local_up_to_its_limits(extent: Extent, local: bool, why: str) -> None:
    choice = choose(extent, CONFIG, WRITING)
    assert choice.local is local
    assert why in choice.why


def test_the_memory_decides_how_many_run_side_by_side() -> None:
    large = Extent(8, GIB, 200 << 20)
    needed = task_memory(large, WRITING)
    assert needed == (200 << 20) + WRITING.memory_bytes + 2 * WRITING.row_group_bytes
    assert choose(large, CONFIG, WRITING).width == 4 * GIB // needed == 2
    assert choose(large, CONFIG, WRITING, at_once=2).width == 1
    refused = choose(large, CONFIG, WRITING, at_once=4)
    assert (refused.local, "airflow_hudi.engine.local.memory.bytes" in refused.why) == (False, True)
    small = Extent(8, 8 << 20, 1 << 20)
    assert task_memory(small, WRITING) == (200 << 20) + (16 << 20)
    assert choose(small, CONFIG, WRITING).width == 8
    assert choose(small, CONFIG, WRITING, at_once=4).width == 2
    assert choose(Extent(), CONFIG, WRITING, at_once=100).width == 1


def test_processes_are_for_plans_that_are_worth_their_start() -> None:
    assert choose(Extent(4, PROCESS_BYTES, 1 << 20), CONFIG, WRITING).in_processes
    assert not choose(Extent(4, PROCESS_BYTES - 1, 1 << 20), CONFIG, WRITING).in_processes
    assert not choose(Extent(1, PROCESS_BYTES, PROCESS_BYTES), CONFIG, WRITING).in_processes
    with Choice(True, "", 2, True).engine() as engine:
        assert engine.name == "local"


def test_small_units_that_wait_for_requests_run_beside_more() -> None:
    small, memory = Extent(100, 8 << 20, 1 << 20), CONFIG.memory_bytes // task_memory(Extent(1, 0, 1 << 20), WRITING)
    assert choose(small, CONFIG, WRITING, waits=True).width == min(memory, CONFIG.width)  # the option says how many
    free = replace(CONFIG, processors=0)
    assert choose(small, free, WRITING, waits=True).width == min(memory, 4 * free.width)
    assert choose(Extent(3, 8 << 20, 1 << 20), free, WRITING, waits=True).width == 3
    large = Extent(100, PROCESS_BYTES, 1 << 20)
    assert choose(large, free, WRITING, waits=True).width == choose(large, free, WRITING).width
