"""Groups that an earlier clustering left as the next one would (hudi#13475, hudi#14086)."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_core.config.services.clustering_config import LAYOUT, SORT_COLUMNS, TARGET_FILE_BYTES, ClusteringConfig
from hudi_core.engine.local import LocalEngine
from hudi_core.services.clustering.planner import ClusteringService
from hudi_core.services.clustering.strategies import ClusteredAlike, Group
from hudi_core.services.context import TableContext
from hudi_core.timeline.instant import Action
from hudi_core.transaction.owner import Owner
from hudi_core.verbs.run import RunRequest
from hudi_core.view.file_group import DataFile, FileSlice
from tests.support.golden_archives import archive_these
from tests.support.golden_compactions import context_of
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import overwrite, own_rows, put_source
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import read_rows
from tests.support.table_requests import perform
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
SORTED = {SORT_COLUMNS.name: "name,qty"}
PLAN = "hoodie.clustering.plan.strategy"
VERSIONS = ("6", "8", "9")


def groups(context: TableContext) -> list[Group]:
    """The slices of each partition, as one group."""
    view = context.view(context.active.load())
    return [tuple(view.latest_slices(partition)) for partition in view.partitions()]


def is_alike(context: TableContext, group: Group, options: dict[str, str]) -> bool:
    return ClusteredAlike(context, context.active.load(), ClusteringConfig.of(options)).holds(group)


def clustered_by_hudi(golden: Golden, folder: str) -> TableContext:
    return context_of(golden(folder, "clustering_requested_cow").after())


@pytest.mark.parametrize("folder", VERSIONS)
def test_what_real_hudi_clustered_counts_for_the_same_order_alone(golden: Golden, folder: str) -> None:
    context = clustered_by_hudi(golden, folder)
    found = groups(context)
    assert [len(group) for group in found] == [1, 1, 1]
    for group in found:
        assert is_alike(context, group, SORTED)
        assert not is_alike(context, group, {})
        assert not is_alike(context, group, {SORT_COLUMNS.name: "qty"})
        assert not is_alike(context, group, {**SORTED, LAYOUT.name: "hilbert"})


def test_without_its_target_as_many_files_have_to_come_out(golden: Golden) -> None:
    """Real Hudi's plan does not say how large its files were to be."""
    context = clustered_by_hudi(golden, "9")
    (item,) = groups(context)[0]
    assert item.base_file is not None
    size = item.base_file.size
    assert is_alike(context, (item,), {**SORTED, TARGET_FILE_BYTES.name: str(size)})
    assert not is_alike(context, (item,), {**SORTED, TARGET_FILE_BYTES.name: str(size - 1)})
    assert not is_alike(context, (item, item), SORTED), "one file would come out"


def test_log_files_and_slices_without_a_base_file_are_never_alike(golden: Golden) -> None:
    context = clustered_by_hudi(golden, "8")
    (item,) = groups(context)[0]
    log = DataFile(item.file_group.partition, ".x.log", 1)
    assert not is_alike(context, (replace(item, log_files=(log,)),), SORTED)
    assert not is_alike(context, (replace(item, base_file=None),), SORTED)


def test_files_of_several_commits_are_not_alike(golden: Golden) -> None:
    context = clustered_by_hudi(golden, "9")
    (item,) = groups(context)[0]
    other = replace(item, base_instant="20200101000000000")
    assert not is_alike(context, (item, other), SORTED)
    assert not is_alike(context, (other,), SORTED), "no clustering wrote it"


@pytest.mark.parametrize("case", ["cow_basic", "insert_overwrite_table"])
def test_what_other_writes_left_is_not_alike(golden: Golden, case: str) -> None:
    context = context_of(golden("6", case).table)
    assert not any(is_alike(context, group, {}) for group in groups(context) if group)


def cluster(table: Path, partition: str, options: dict[str, str]) -> None:
    chosen = {**options, f"{PLAN}.partition.selected": partition}
    request = RunRequest(table=str(table), service="clustering", owner="t", schedule=True)
    (done,) = perform(context_of(table, chosen), request, LocalEngine(1), Owner.current("test")).instants
    assert done.state == "completed"


@pytest.mark.parametrize("folder", tiered(VERSIONS, ["6", "9"]))
def test_our_own_counts_for_its_target_also_once_it_is_archived(golden: Golden, folder: str) -> None:
    """Other numbers of files may come out than the target gives: rows do not compress as they did."""
    table = golden(folder, "clustering_then_cleaned").table
    before = context_of(table).active.load().requested_times
    target = {**SORTED, TARGET_FILE_BYTES.name: "3000"}
    cluster(table, "2024-01-01", target)
    cluster(table, "2024-01-02", target)
    for archived in (False, True):
        context = context_of(table)
        timeline = context.active.load()
        made = timeline.of_actions(Action.REPLACE_COMMIT).filter(lambda item: item.requested_time not in before)
        first = made.first()
        assert first is not None
        if archived:
            archive_these(table, timeline.up_to(first.requested_time))
            context = context_of(table)
            assert not context.active.load().contains(first.requested_time)
        # An archival comes after a clean, which this table had not: what was replaced is seen again.
        group = tuple(item for item in groups(context)[0] if item.base_instant == first.requested_time)
        assert group
        assert is_alike(context, group, target)
        assert is_alike(context, (*group, *group), target)
        assert not is_alike(context, (*group, *group), {**target, TARGET_FILE_BYTES.name: "3001"})
        assert not is_alike(context, group, {**target, SORT_COLUMNS.name: "qty"})


def of_size(item: FileSlice, size: int) -> FileSlice:
    assert item.base_file is not None
    return replace(item, base_file=replace(item.base_file, size=size))


def test_files_of_several_clusterings_are_alike_unless_half_as_many_would_come_out(golden: Golden) -> None:
    """Of a sorted group some files may be full, each with a rest behind it: to save one file is to risk as many."""
    table = golden("9", "cow_basic").table
    target = {**SORTED, TARGET_FILE_BYTES.name: "100000"}
    cluster(table, "2024-01-01", target)
    cluster(table, "2024-01-02", target)
    context = context_of(table)
    first, second, unclustered = (group[0] for group in groups(context))
    assert first.base_instant != second.base_instant
    for sizes, alike in (
        ([90000, 90000], True),
        ([90000, 80000, 30000], True),
        ([90000, 80000, 20000, 10000], False),
        ([30000, 20000], False),
        ([110000, 100000, 100000], True),
    ):
        group = [of_size(item, size) for item, size in zip((first, second) * 2, sizes, strict=False)]
        assert is_alike(context, group, target) == alike, sizes
    pair = (of_size(first, 90000), of_size(second, 90000))
    assert not is_alike(context, (*pair, of_size(unclustered, 90000)), target)
    assert not is_alike(context, pair, {**target, LAYOUT.name: "hilbert"})
    other = {**target, TARGET_FILE_BYTES.name: "60000"}
    assert not is_alike(context, pair, other), "three files would come out"
    assert is_alike(context, pair, {**target, TARGET_FILE_BYTES.name: "120000"})


def test_the_archive_is_not_read_for_writes_of_the_timeline(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    context = context_of(golden("8", "cow_basic").table)
    monkeypatch.setattr(TableContext, "history", lambda _: pytest.fail("the archive is read"))
    assert not any(is_alike(context, group, {}) for group in groups(context))


@pytest.mark.parametrize(
    "limit",
    [
        pytest.param({f"{PLAN}.max.num.groups": "1"}, marks=pytest.mark.conformance),
        {"airflow_hudi.plan.max.bytes": "32000"},
    ],
)
def test_clusterings_of_a_table_that_nothing_else_changes_come_to_an_end(
    golden: Golden, tmp_path: Path, limit: dict[str, str]
) -> None:
    """A partition is clustered by several plans, each of which takes files of those before."""
    table, draw = golden("6", "cow_basic").table, random.Random(1)
    few = own_rows(table, read_rows(table))
    rows = few.take(pa.array([draw.randrange(few.num_rows) for _ in range(700)]))
    texts = {
        "id": [f"k{number:06d}" for number in range(700)],
        "name": [str(draw.randrange(10**9)) for _ in range(700)],
        "note": [draw.randbytes(8).hex() for _ in range(700)],
        "dt": ["2024-01-01"] * 700,
    }
    for name, values in texts.items():
        at = rows.schema.get_field_index(name)
        rows = rows.set_column(at, rows.schema.field(at), pa.array(values))
    small = {"airflow_hudi.parquet.row_group.rows": "100"}
    overwrite(table, put_source(rows, tmp_path), {"hoodie.parquet.max.file.size": "8000", **small}, whole_table=True)
    before = read_rows(table)
    context = context_of(
        table,
        {
            f"{PLAN}.target.file.max.bytes": "8000",
            f"{PLAN}.max.bytes.per.group": "32000",
            SORT_COLUMNS.name: "name",
            **small,
            **limit,
        },
    )
    run: set[str] = set()

    def not_for_ever(instant: str, done: int, total: int) -> None:
        run.add(instant)
        assert len(run) <= 12

    request = RunRequest(str(table), "clustering", schedule=True, all_pending=True)
    perform(context, request, LocalEngine(1), Owner.current("test"), not_for_ever)
    assert len(run) > 1
    scheduled = ClusteringService().schedule(context, Owner.current("test"), dry_run=False)
    assert scheduled.instant is None
    assert "that an earlier clustering left as this one would" in str(scheduled.reason)
    assert_same_rows(read_rows(table), before)
