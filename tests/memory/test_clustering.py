"""A sorted clustering's memory is bounded by its options: a file group many times larger than the budget stays within
the bound.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.memory.test_compaction import BASE_ROWS, MIB, REPEATED, REPEATED_ROWS, make_table, repeat_text

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


def test_memory_stays_within_the_bound_when_the_rows_do_not(tmp_path: Path) -> None:
    make_table(tmp_path)
    tight, roomy, task = run(tmp_path, BUDGET), run(tmp_path, 1 << 30), run(tmp_path, BUDGET, "task")
    many_parts = run(tmp_path, BUDGET // 4)
    assert tight["read"] == roomy["read"]
    assert {**task, "peak": 0} == {**tight, "peak": 0} == {**many_parts, "peak": 0}
    assert sum(tight["written"]) == sum(roomy["written"]) == tight["read"][0] > BASE_ROWS
    assert len(tight["written"]) == 3
    assert max(tight["written"]) < 1.2 * min(tight["written"])
    assert max(tight["peak"], task["peak"], many_parts["peak"]) < BOUND
    assert roomy["peak"] > 1.4 * BOUND, "the measurement sees what is in memory"


def test_a_long_text_that_is_repeated_needs_no_memory_for_each_row(tmp_path: Path) -> None:
    make_table(tmp_path)
    repeat_text(tmp_path)
    done = run(tmp_path, BUDGET)
    assert sum(done["written"]) == done["read"][0] > REPEATED_ROWS
    assert done["peak"] < BOUND < REPEATED_ROWS * REPEATED
