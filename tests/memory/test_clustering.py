"""A sorted clustering's memory is bounded by its options: a file group many times larger than the budget stays within
the bound.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudi_core.services.compaction.merge_slice import CompactionUnit
from tests.memory.test_compaction import BASE_ROWS, MIB, REPEATED, REPEATED_ROWS, repeat_text

BUDGET = 32 * MIB
BOUND = 300 * MIB
"""A sorted part of a quarter of the budget and its copy, pieces of each of some forty parts, a row group being written,
and what allocators keep back. Rows and logs come to more than 300 MiB.
"""


def run(folder: Path, budget: int, *how: str) -> dict[str, Any]:
    """The probe's answer."""
    probe = Path(__file__).with_name("clustering_probe.py")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "POLARS_MAX_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(probe), str(folder), str(budget), *how],
        capture_output=True,
        text=True,
        timeout=120,
        env=env,
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.fixture
def group(large_group: Callable[[Path], CompactionUnit], tmp_path: Path) -> Path:
    large_group(tmp_path / "group")
    return tmp_path / "group"


@pytest.mark.conformance
def test_memory_stays_within_the_bound_when_the_rows_do_not(group: Path) -> None:
    done = run(group, BUDGET)
    assert sum(done["written"]) == done["read"][0] > BASE_ROWS
    assert len(done["written"]) == 3
    assert max(done["written"]) < 1.2 * min(done["written"])
    assert done["peak"] < BOUND


@pytest.mark.conformance
def test_so_it_does_in_one_task_and_with_many_parts(group: Path) -> None:
    tight, task, many_parts = run(group, BUDGET), run(group, BUDGET, "task"), run(group, BUDGET // 4)
    assert {**task, "peak": 0} == {**tight, "peak": 0} == {**many_parts, "peak": 0}
    assert max(task["peak"], many_parts["peak"]) < BOUND


@pytest.mark.conformance
def test_the_same_work_without_spilling_is_out_of_bounds(group: Path) -> None:
    """So the measurement sees what is in memory."""
    tight, roomy = run(group, BUDGET), run(group, 1 << 30)
    assert tight["read"] == roomy["read"]
    assert sum(roomy["written"]) == tight["read"][0]
    assert roomy["peak"] > 1.4 * BOUND


@pytest.mark.conformance
def test_a_long_text_that_is_repeated_needs_no_memory_for_each_row(group: Path) -> None:
    repeat_text(group)
    done = run(group, BUDGET)
    assert sum(done["written"]) == done["read"][0] > REPEATED_ROWS
    assert done["peak"] < BOUND < REPEATED_ROWS * REPEATED
