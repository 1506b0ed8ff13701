"""An overwrite's memory is bounded by its options, however many rows come and file groups go."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.service_tables import single_slices
from tests.memory.test_compaction import MIB
from tests.support.golden_data import GoldenCase

ROWS, TEXT = 400_000, 700
"""Some 270 MiB of text."""
BUDGET = 32 * MIB
BOUND = 500 * MIB
"""Half of the budget of rows and their sorted copy, a row group of 131,072 rows (90 MiB here) being written and
compressed, a bloom filter, and what allocators keep back: 370 to 425 MiB on an idle machine, less on a busy one.
"""
GROUPS, PARTITIONS = 100_000, 1_000
GROUPS_BOUND = 400 * MIB


def run(table: Path, source: Path, budget: int) -> dict[str, Any]:
    """The probe's answer."""
    probe = Path(__file__).with_name("overwrite_probe.py")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "POLARS_MAX_THREADS": "1"}
    command = [sys.executable, str(probe), str(table), str(source), str(budget)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=env)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def put_rows(folder: Path, rows: int, partitions: list[str], **columns: pa.Array) -> Path:
    folder.mkdir()
    keys = pa.array([f"key-{at:09d}" for at in range(rows)])
    of = pa.array([partitions[at % len(partitions)] for at in range(rows)])
    names = list(columns)
    table = pa.table([keys, of, *columns.values()], names=["id", "dt" if "name" in columns else "part", *names])
    pq.write_table(table, folder / "part-0.parquet", row_group_size=50_000, compression="zstd")
    return folder


@pytest.mark.slow
def test_memory_stays_within_the_bound_when_the_rows_do_not(
    golden: Callable[[str, str], GoldenCase], tmp_path: Path
) -> None:
    texts = pa.array([f"{at:09d}" + "x" * TEXT for at in range(ROWS)])
    source = put_rows(tmp_path / "rows", ROWS, ["2024-01-01", "2024-01-02"], name=texts)
    tight = run(golden("9", "cow_basic").table, source, BUDGET)
    roomy = run(golden("9", "cow_basic").table, source, 1 << 30)
    assert (tight["rows"], roomy["rows"]) == (ROWS, ROWS)
    assert tight["peak"] < BOUND
    assert roomy["peak"] > 1.4 * BOUND, "the measurement sees what is in memory"


@pytest.mark.soak
def test_a_hundred_thousand_file_groups_go(tmp_path: Path) -> None:
    """Their ids are what the driver holds of them."""
    table = tmp_path / "table"
    single_slices(GROUPS, PARTITIONS, table)
    source = put_rows(tmp_path / "rows", 10, ["p00000"], ts=pa.array(range(10), pa.int64()))
    done = run(table, source, BUDGET)
    assert (done["rows"], done["replaced"]) == (10, GROUPS)
    assert done["peak"] < GROUPS_BOUND
