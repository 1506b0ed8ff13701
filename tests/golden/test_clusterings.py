"""Our run of clusterings: of real Hudi's plans against real Hudi's run of them, and of plans over every slice of every
golden table. Rows, file groups, commit, timelines, metadata table.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hudi_core.errors import CorruptFileError, UnsupportedError
from hudi_core.services.rewriting.sort_order import SortOrder
from tests.support.golden_clusterings import (
    LAYOUT,
    SORT_COLUMNS,
    cluster,
    commit_of,
    metadata_counts,
    new_files,
    plan_of_all,
    planned,
    planned_cases,
    replaced,
)
from tests.support.golden_compactions import FOLDERS, own_timeline, timeline_names
from tests.support.golden_data import GoldenCase, golden_cases
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import assert_metadata_true, leftovers, read_rows
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
PLANNED = planned_cases()
IGNORED = ("_hoodie_file_name",)


@pytest.mark.parametrize(
    ("folder", "case"),
    tiered(
        PLANNED,
        [("6", "clustering_requested_mor"), ("8", "clustering_requested_cow"), ("9", "clustering_requested_mor")],
    ),
)
def test_it_leaves_what_real_hudi_leaves(golden: Golden, folder: str, case: str) -> None:
    found = golden(folder, case)
    ours, real, instant = found.table, found.after(), planned(found.table)
    before = read_rows(ours)
    result = cluster(ours)
    assert (result.instant, result.action, result.state, result.records) == (
        instant,
        "clustering",
        "completed",
        before.num_rows,
    )
    assert_same_rows(read_rows(ours), before, ignore=IGNORED)
    assert_same_rows(read_rows(ours), read_rows(real), ignore=IGNORED)
    assert timeline_names(ours) == timeline_names(real)
    assert own_timeline(ours) == own_timeline(real)
    assert replaced(ours, instant) == replaced(real, instant)
    assert rows_and_files(found, instant) == rows_and_files(found, instant, real=True)
    assert metadata_counts(ours) == metadata_counts(real)
    assert_metadata_true(ours)
    assert leftovers(ours, instant) == []
    assert cluster(ours, instant).files_written == 0, "a second run does nothing"


def rows_and_files(case: GoldenCase, instant: str, *, real: bool = False) -> object:
    """What the commit says, but for names, sizes, times and what we add to the extra metadata."""
    metadata = commit_of(case.after() if real else case.table, instant)
    stats = Counter(
        (name, stat.prev_commit, stat.num_writes, stat.num_inserts, stat.num_deletes, stat.num_update_writes)
        for name, stats in metadata.partition_to_write_stats.items()
        for stat in stats
    )
    extra = {name for name in metadata.extra_metadata if not name.startswith("airflow_hudi.")}
    return metadata.operation_type, metadata.compacted, stats, json.loads(metadata.schema_text or ""), extra


ALL = [(folder, case) for folder in FOLDERS for case in golden_cases(folder)]
ORDERS = {"none": ("", 1), "linear": ("linear", 2), "z-order": ("z-order", 2), "hilbert": ("hilbert", 3)}
REFUSED = ("log_garbage", "log_truncated", "bucket_index", "mor_log_only")
"""Cases without a clustering here: lost rows of a commit, buckets."""


@pytest.mark.parametrize(
    ("folder", "case", "order"),
    tiered(
        [(*item, order) for item in ALL for order in ORDERS],
        [
            ("6", "mdt_all_mor", "linear"),
            ("8", "mdt_all_cow", "z-order"),
            ("9", "mdt_all_mor", "none"),
        ],
    ),
)
def test_every_slice_of_a_table(golden: Golden, folder: str, case: str, order: str) -> None:
    table = golden(folder, case).table
    before = read_rows(table)
    layout, outputs = ORDERS[order]
    columns = sortable(before.schema)
    instant = plan_of_all(table, {SORT_COLUMNS: ",".join(columns), LAYOUT: layout} if layout else {}, outputs)
    if instant is None:
        assert not before.num_rows or "compaction" in case or PENDING.search(case), "there are slices to cluster"
        return
    try:
        cluster(table, instant)
    except (UnsupportedError, CorruptFileError):
        assert case.startswith(REFUSED)
        return
    for listing in ("off", "auto"):
        assert_same_rows(read_rows(table, listing), before, ignore=IGNORED)
    assert_metadata_true(table)
    assert leftovers(table, instant) == []
    for path in new_files(table, instant):
        assert pq.read_metadata(path).num_rows
        if layout == "linear":
            assert_sorted(path, columns)


PENDING = re.compile("merge_mode|payload|partial_update|log_compaction|evolution|bucket_index")
"""Merge-on-read tables whose file groups are all in a pending plan."""


def sortable(schema: pa.Schema) -> list[str]:
    """Up to three columns that rows can be sorted by."""
    fields = [field for field in schema if not field.name.startswith("_hoodie_")]
    return [field.name for field in fields if not pa.types.is_nested(field.type)][:3]


def assert_sorted(path: Path, columns: list[str]) -> None:
    rows = pq.ParquetFile(path).read()
    there = [name for name in columns if name in rows.column_names]
    keys = SortOrder(tuple(there)).keys(rows.combine_chunks().to_batches()[0]).to_pylist()
    assert keys == sorted(keys)


@pytest.mark.parametrize(("folder", "case"), [("6", "clustered_cow"), ("8", "clustered_mor"), ("9", "clustered_mor")])
def test_files_of_a_partition_follow_each_other(golden: Golden, folder: str, case: str) -> None:
    """Each file has its range of the sort column: readers skip the others by their statistics."""
    table = golden(folder, case).table
    instant = plan_of_all(table, {SORT_COLUMNS: "amount"}, 3)
    cluster(table, instant)
    by_partition: dict[str, list[tuple[float, float, int]]] = {}
    for path in new_files(table, str(instant)):
        bounds = pc.min_max(pq.ParquetFile(path).read(["amount"]).column(0)).as_py()
        rows = pq.read_metadata(path).num_rows
        by_partition.setdefault(path.parent.name, []).append((bounds["min"], bounds["max"], rows))
    for ranges in by_partition.values():
        assert len(ranges) == 3
        assert all(left[1] <= right[0] for left, right in pairwise(sorted(ranges)))
        assert max(rows for *_, rows in ranges) - min(rows for *_, rows in ranges) <= 4, "equal parts"


@pytest.mark.parametrize("folder", ["6", "8", "9"])
def test_rows_get_the_instant_where_the_plan_preserves_nothing(golden: Golden, folder: str) -> None:
    table = golden(folder, "clustered_cow").table
    before = read_rows(table)
    instant = plan_of_all(table, {}, preserves=False)
    cluster(table, instant)
    after = read_rows(table)
    stamped = ("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_file_name")
    assert_same_rows(after, before, ignore=stamped)
    assert set(after.column("_hoodie_commit_time").to_pylist()) == {instant}
    assert len(set(after.column("_hoodie_commit_seqno").to_pylist())) == after.num_rows


def test_what_is_compared() -> None:
    assert len(PLANNED) == 8
    assert len(ALL) > 250
