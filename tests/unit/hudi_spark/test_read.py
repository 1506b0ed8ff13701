"""Splits in bins, and the reader that tasks run."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.table import HudiTable
from hudi_spark.read import SplitReader, bins_of
from hudi_spark.tasks import TaskFailure, error_in_text
from tests.support.golden_data import open_case
from tests.support.rows import assert_same_rows


@given(st.lists(st.integers(0, 1000), max_size=300), st.integers(1, 2000))
def test_every_split_is_in_one_bin_and_bins_keep_their_size(sizes: list[int], limit: int) -> None:
    splits: list[dict[str, Any]] = [{"bytes": size, "n": index} for index, size in enumerate(sizes)]
    bins = bins_of(splits, limit)
    assert sorted(split["n"] for found in bins for split in found) == list(range(len(sizes)))
    assert all(sum(split["bytes"] for split in found) <= limit or len(found) == 1 for found in bins)
    assert sum(2 * sum(split["bytes"] for split in found) <= limit for found in bins) <= 1 + len(bins) // 64


def test_the_largest_split_starts_first() -> None:
    assert [
        [split["bytes"] for split in found] for found in bins_of([{"bytes": size} for size in (10, 200, 90)], 100)
    ] == [[200], [90, 10]]


def number(index: int) -> list[pa.RecordBatch]:
    return [pa.RecordBatch.from_pydict({"id": [index]})]


def test_a_pickled_reader_reads_its_bins(tmp_path: Path) -> None:
    table = HudiTable.open(str(open_case("6", "bulk_insert_multi_groups", tmp_path).table))
    plan = table.plan()
    bins = [[split] for split in plan.splits]
    assert len(bins) > 1
    reader: SplitReader = pickle.loads(pickle.dumps(SplitReader.of(plan.common, bins)))
    found = [batch for index in range(len(bins)) for batch in reader(iter(number(index)))]
    assert_same_rows(
        pa.Table.from_batches(found, plan.schema), pa.Table.from_batches(list(plan.batches()), plan.schema), ignore=()
    )


def test_an_error_reaches_the_driver_typed(tmp_path: Path) -> None:
    case = open_case("6", "cow_basic", tmp_path)
    plan = HudiTable.open(str(case.table)).plan()
    for path in case.table.glob("*/*.parquet"):
        path.unlink()
    reader = SplitReader.of(plan.common, [plan.splits])
    with pytest.raises(TaskFailure) as raised:
        list(reader(iter(number(0))))
    error = error_in_text(str(raised.value))
    assert type(error).__name__ == "StorageNotFoundError"


def test_a_reader_does_not_show_its_secrets() -> None:
    reader = SplitReader.of({"storage_options": {"secret": "hunter2"}}, [[{"bytes": 1}]])
    assert "hunter2" not in repr(reader)
    assert reader.bins.unit(0).common == {"storage_options": {"secret": "hunter2"}}
