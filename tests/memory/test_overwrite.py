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
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from benchmarks.service_tables import single_slices
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from tests.memory.test_compaction import MIB
from tests.support.changed_tables import open_context
from tests.support.golden_data import GoldenCase
from tests.support.many_file_groups import indexed_groups
from tests.support.table_invariants import assert_metadata_true

ROWS, TEXT = 400_000, 700
"""Some 270 MiB of text."""
BUDGET = 32 * MIB
BOUND = 500 * MIB
"""Half of the budget of rows and their sorted copy, a row group of 131,072 rows (90 MiB here) being written and
compressed, a bloom filter, and what allocators keep back: 370 to 425 MiB on an idle machine, less on a busy one.
"""
GROUPS, PARTITIONS = 100_000, 1_000
GROUPS_BOUND = 400 * MIB
INDEXED_GROUPS = (5_000, 20_000)
"""Fewer, in partitions of 100: each base file is read twice, for the record index and by the work."""
INDEXED_BOUND = 600 * MIB
"""Of GROUPS, as what each one more takes says: some 5 KB for its id, its slice, and its unit in the local engine."""


def run(table: Path, source: Path | str, budget: int) -> dict[str, Any]:
    """The probe's answer."""
    probe = Path(__file__).with_name("overwrite_probe.py")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "POLARS_MAX_THREADS": "1"}
    command = [sys.executable, str(probe), str(table), str(source), str(budget)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600, env=env)
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


@pytest.fixture
def long_rows(tmp_path: Path) -> Path:
    numbers = pa.array([f"{at:09d}" for at in range(ROWS)])
    texts = pc.binary_join_element_wise(numbers, pa.scalar("x" * TEXT), "")
    return put_rows(tmp_path / "rows", ROWS, ["2024-01-01", "2024-01-02"], name=texts)


@pytest.mark.slow
def test_memory_stays_within_the_bound_when_the_rows_do_not(
    golden: Callable[[str, str], GoldenCase], long_rows: Path
) -> None:
    done = run(golden("9", "cow_basic").table, long_rows, BUDGET)
    assert done["rows"] == ROWS
    assert done["peak"] < BOUND


@pytest.mark.conformance
def test_the_same_work_without_spilling_is_out_of_bounds(
    golden: Callable[[str, str], GoldenCase], long_rows: Path
) -> None:
    """So the measurement sees what is in memory."""
    done = run(golden("9", "cow_basic").table, long_rows, 1 << 30)
    assert done["rows"] == ROWS
    assert done["peak"] > 1.4 * BOUND


@pytest.mark.soak
def test_a_hundred_thousand_file_groups_go(tmp_path: Path) -> None:
    """Their ids are what the driver holds of them."""
    table = tmp_path / "table"
    single_slices(GROUPS, PARTITIONS, table)
    source = put_rows(tmp_path / "rows", 10, ["p00000"], ts=pa.array(range(10), pa.int64()))
    done = run(table, source, BUDGET)
    assert (done["rows"], done["replaced"]) == (10, GROUPS)
    assert done["peak"] < GROUPS_BOUND


@pytest.mark.soak
@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("rows", [10, 0], ids=["insert_overwrite_table", "delete_partition"])
def test_file_groups_with_a_record_index_go(version: str, rows: int, tmp_path: Path) -> None:
    """The driver holds their slices and the units that read them, too."""
    source = put_rows(tmp_path / "rows", rows, ["p00000"], ts=pa.array(range(rows), pa.int64())) if rows else ""
    peaks = []
    for groups in INDEXED_GROUPS:
        table = tmp_path / f"table-{groups}"
        indexed_groups(version, groups, groups // 100, table)
        assert indexed_keys(table) == groups
        done = run(table, source, BUDGET)
        assert (done["rows"], done["replaced"]) == (rows, groups)
        assert indexed_keys(table) == rows
        assert_metadata_true(table)
        peaks.append(done["peak"])
    fewer, more = INDEXED_GROUPS
    each = (peaks[1] - peaks[0]) / (more - fewer)
    assert peaks[1] + each * (GROUPS - more) < INDEXED_BOUND, peaks


def indexed_keys(table: Path) -> int:
    """How many record keys the record index has."""
    context = open_context(table)
    metadata = MetadataTable(context.storage, context.config, context.active.load())
    return sum(1 for _ in metadata.record_index.all())
