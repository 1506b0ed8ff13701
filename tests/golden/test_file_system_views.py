"""The file system view of every table of every version: each data file is accounted for, and slices are those that real
Hudi planned with.
"""

from __future__ import annotations

import io
from collections import Counter

import numpy as np
import pyarrow.parquet as pq
import pytest

from hudi_core.errors import CorruptFileError, StorageNotFoundError
from hudi_core.model.names import LogFileName, parse_data_file
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, Instant, completed_action
from hudi_core.timeline.pending_plans import read_clustering_plan
from hudi_core.view.file_group import FileSlice
from hudi_core.view.file_system_view import FileSystemView
from hudi_core.view.listing import StorageListing
from tests.support.golden_views import (
    VERSIONS,
    expected_folder,
    groups_in_pending_clustering,
    info_of,
    load_table,
    open_table,
    replaced_groups,
    table_names,
)
from tests.support.memory_storage import MemoryStorage
from tests.support.views import view_of

NO_COMMIT = "empty_table_no_commits"
COMPARED = Counter({"6": 126, "6-by-1.2.0": 20, "8": 131, "8-by-1.2.0": 22, "9": 137})
"""Tables whose rows in base files are compared."""
NAMED = Counter({"6": 125, "6-by-1.2.0": 20, "8": 125, "8-by-1.2.0": 22, "9": 135})
"""Tables whose rows name the files that they come from."""
PLANNED = Counter(
    {
        ("6", "compaction"): 116,
        ("6", "logcompaction"): 6,
        ("6", "replacecommit"): 36,
        ("6-by-1.2.0", "compaction"): 24,
        ("6-by-1.2.0", "replacecommit"): 12,
        ("8", "clustering"): 36,
        ("8", "compaction"): 119,
        ("8", "logcompaction"): 6,
        ("8-by-1.2.0", "clustering"): 12,
        ("8-by-1.2.0", "compaction"): 30,
        ("9", "clustering"): 36,
        ("9", "compaction"): 134,
        ("9", "logcompaction"): 6,
    }
)
"""Slices compared with plans, by version and action."""


def _case(name: str) -> str:
    return name.split("/")[1].removesuffix(".after")


def _account(view: FileSystemView) -> dict[str, str]:
    """What each data file is: visible, older, replaced or uncommitted. A file in two slices would be counted twice and
    fails.
    """
    reported: list[tuple[str, str]] = []
    for partition in view.partitions():
        visible = {data_file for item in view.latest_merged_slices(partition) for data_file in item.files}
        for group in view.all_file_groups(partition):
            for item in group.uncommitted:
                reported += [(data_file.path, "uncommitted") for data_file in item.files]
            for item in group.slices:
                kind = "older" if view.replaced_at(group.id) is None else "replaced"
                reported += [(data_file.path, "visible" if data_file in visible else kind) for data_file in item.files]
    assert len({path for path, _ in reported}) == len(reported)
    return dict(reported)


def _data_files(storage: MemoryStorage, folder: str = "") -> set[str]:
    found = {info.path for info in storage.list_files(folder) if parse_data_file(info.name) is not None}
    for child in storage.list_folders(folder):
        if child != ".hoodie":
            found |= _data_files(storage, child)
    return found


@pytest.mark.parametrize("name", table_names())
def test_every_data_file_is_accounted_for(name: str) -> None:
    storage, _, view = open_table(name)
    assert set(_account(view)) == _data_files(storage)
    assert {info.path for partition in view.partitions() for info in view.files(partition)} == _data_files(storage)


def test_columns_are_the_newest_slices() -> None:
    slices = 0
    for name in table_names():
        _, _, view = open_table(name)
        newest = [item for partition in view.partitions() for item in view.latest_slices(partition)]
        parts = view.latest_slice_columns(view.partitions())
        assert [item for part in parts for item in part.slices(np.arange(len(part)))] == newest, name
        slices += len(newest)
    assert slices > 1_500


def _rows(storage: MemoryStorage, view: FileSystemView) -> int:
    paths = [data_file.path for partition in view.partitions() for data_file in view.latest_base_files(partition)]
    return sum(pq.read_metadata(io.BytesIO(storage.read(path))).num_rows for path in paths)


def _expected_rows(name: str) -> int | None:
    """The rows that real Hudi reads from base files alone; None where it gave no answer."""
    query = "snapshot" if info_of(name)["table_type"] == "COPY_ON_WRITE" else "read_optimized"
    path = expected_folder(name) / f"{'after_' if name.endswith('.after') else ''}{query}.parquet"
    return pq.read_metadata(path).num_rows if path.exists() else None


def test_base_files_hold_as_many_rows_as_real_hudi_reads() -> None:
    compared = Counter[str]()
    for name in table_names():
        expected = _expected_rows(name)
        if expected is not None and _case(name) != NO_COMMIT:
            storage, _, view = open_table(name)
            assert _rows(storage, view) == expected, name
            compared[name.split("/")[0]] += 1
    assert compared == COMPARED


def test_rows_come_from_the_files_of_the_view() -> None:
    """`_hoodie_file_name` names the base file that a row was read from, or for a row from a log, its file id."""
    compared = Counter[str]()
    for name in table_names():
        snapshot = expected_folder(name) / f"{'after_' if name.endswith('.after') else ''}snapshot.parquet"
        if not snapshot.exists() or "_hoodie_file_name" not in pq.read_schema(snapshot).names:
            continue
        _, _, view = open_table(name)
        slices = [item for partition in view.partitions() for item in view.latest_merged_slices(partition)]
        named = {
            value for value in pq.read_table(snapshot, columns=["_hoodie_file_name"]).column(0).to_pylist() if value
        }
        assert named or pq.read_metadata(snapshot).num_rows == 0
        known = {data_file.name for item in slices for data_file in item.files} | {
            item.file_group.file_id for item in slices
        }
        assert named <= known, name
        compared[name.split("/")[0]] += 1
    assert compared == NAMED


def _planned_slices(active: ActiveTimeline, instant: Instant) -> list[tuple[str, str, str | None, set[str]]]:
    """Partition, file id, base file and log files of each slice in a plan of compaction, log compaction or
    clustering.
    """
    action = instant.pending_action
    if action in (Action.COMPACTION, Action.LOG_COMPACTION):
        operations = active.read_plan(instant.requested_time, action).operations
        return [(item.partition, item.file_id, item.base_file, set(item.log_files)) for item in operations]
    plan = read_clustering_plan(active, instant)
    slices = [] if plan is None else plan.slices
    return [(item.partition, item.file_id, item.base_file, set(item.log_files)) for item in slices]


def _slice_then(view: FileSystemView, item: tuple[str, str, str | None, set[str]], instant: str) -> FileSlice | None:
    """The slice that was the newest when the plan was made; None when its files were cleaned since."""
    groups = {group.id.file_id: group for group in view.all_file_groups(item[0])}
    return groups[item[1]].latest_slice_before(instant) if item[1] in groups else None


def test_slices_are_those_that_real_hudi_planned_with() -> None:
    """A plan names the base file and the logs of each slice as real Hudi saw it: the strongest word on slicing that a
    table holds.
    """
    compared = Counter[tuple[str, str]]()
    for name in table_names():
        _, active, view = open_table(name)
        for instant in view.timeline:
            if completed_action(instant.action) not in (Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT):
                continue
            try:
                planned = (
                    _planned_slices(active, instant)
                    if instant.pending_action not in (Action.COMMIT, Action.DELTA_COMMIT)
                    else []
                )
            except StorageNotFoundError:
                continue
            for item in planned:
                then = _slice_then(view, item, instant.requested_time)
                if then is None:
                    continue
                _, _, base_file, log_files = item
                assert (then.base_file.name if then.base_file else None) == base_file, (name, item)
                logs = {data_file.name for data_file in then.log_files}
                # A log compaction adds its own output to the slice that it read.
                own = (
                    set()
                    if instant.pending_action != Action.LOG_COMPACTION or not instant.is_completed
                    else logs - log_files
                )
                assert log_files == logs - own, (name, item)
                assert len(own) <= 1, (name, item)
                compared[name.split("/")[0], instant.pending_action] += 1
    assert compared == PLANNED


def _kinds(name: str) -> Counter[str]:
    return Counter(_account(open_table(name)[2]).values())


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("mor_compaction_requested", {"visible": 15}),
        ("mor_compaction_requested.after", {"visible": 9, "older": 9}),
        ("compaction_inflight", {"visible": 9, "uncommitted": 3}),
        ("compaction_inflight.after", {"visible": 3, "older": 9}),
        ("insert_overwrite_table", {"visible": 2, "replaced": 3}),
        ("clustered_mor", {"visible": 6, "replaced": 8}),
        ("clustering_requested_mor.after", {"visible": 3, "replaced": 8}),
        ("delete_partition_mor", {"visible": 5, "replaced": 2}),
        ("failed_inflight_cow", {"visible": 3, "older": 3, "uncommitted": 3}),
        ("failed_inflight_cow.after", {"visible": 3, "older": 3}),
        ("savepoint_cow", {"visible": 3, "older": 7}),
    ],
)
def test_kinds_of_files(version: str, case: str, expected: dict[str, int]) -> None:
    name = f"{version}/{case}"
    if name in table_names(version):
        assert _kinds(name) == expected


@pytest.mark.parametrize("version", ["8", "9"])
def test_failed_logs_are_dropped_by_instant_in_layout_2(version: str) -> None:
    _, _, view = open_table(f"{version}/failed_inflight_mor")
    hidden = [
        parse_data_file(file.name)
        for p in view.partitions()
        for g in view.all_file_groups(p)
        for item in g.uncommitted
        for file in item.files
    ]
    assert hidden
    assert any(isinstance(parsed, LogFileName) for parsed in hidden)
    pending = view.timeline.pending().requested_times
    assert {parsed.instant for parsed in hidden if parsed is not None} <= pending


@pytest.mark.parametrize(
    "case", ["restored_then_written", "rolled_back_mor", "savepoint_mor", "cdc_mor", "archived_timeline_mor"]
)
def test_slices_follow_the_logs_base_instant_in_layout_1(case: str) -> None:
    _, _, view = open_table(f"6/{case}")
    for partition in view.partitions():
        for item in view.all_slices(partition):
            for data_file in (item.base_file, *item.log_files):
                if data_file is not None:
                    parsed = parse_data_file(data_file.name)
                    assert parsed is not None
                    assert parsed.instant == item.base_instant


@pytest.mark.parametrize("version", VERSIONS)
def test_file_groups_of_pending_clusterings(version: str) -> None:
    """A clustering that is requested names every group; once it ran, the groups are replaced and no more pending."""
    _, _, before = open_table(f"{version}/clustering_requested_mor")
    groups = groups_in_pending_clustering(before)
    (instant,) = set(groups.values())
    assert set(groups) == {group.id for partition in before.partitions() for group in before.file_groups(partition)}
    _, _, after = open_table(f"{version}/clustering_requested_mor.after")
    assert groups_in_pending_clustering(after) == {}
    replaced = {
        group.id: after.replaced_at(group.id)
        for partition in after.partitions()
        for group in replaced_groups(after, partition)
    }
    assert set(replaced) == set(groups)
    assert set(replaced.values()) == {instant}


@pytest.mark.parametrize("version", VERSIONS)
def test_overwrites_are_no_clusterings(version: str) -> None:
    storage, active, view = open_table(f"{version}/insert_overwrite_table")
    (replace,) = view.timeline.of_actions(Action.REPLACE_COMMIT)
    assert read_clustering_plan(active, replace) is None
    assert groups_in_pending_clustering(view) == {}
    assert storage.exists(active.path_of(replace))


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_pending_log_compactions(version: str) -> None:
    storage, active, view = open_table(f"{version}/log_compaction_requested")
    operations = view.pending.log_compacting
    assert len(operations) == 3
    (pending,) = view.timeline.pending_log_compactions()
    assert {instant for instant, _ in operations.values()} == {pending.requested_time}
    storage.delete(active.path_of(pending))
    assert view_of(active, StorageListing(storage), view.timeline).pending.log_compacting == {}


@pytest.mark.parametrize("case", ["clustering_requested_mor", "log_compaction_requested"])
def test_a_plan_that_does_not_fit_does_not_prevent_reads(case: str) -> None:
    storage, active, view = open_table(f"9/{case}")
    (pending,) = view.timeline.pending()
    storage.write(active.path_of(pending), b"Obj")
    damaged = view_of(active, StorageListing(storage), view.timeline)
    assert [damaged.latest_merged_slices(partition) for partition in damaged.partitions()] == [
        view.latest_merged_slices(partition) for partition in view.partitions()
    ]
    with pytest.raises(CorruptFileError, match=pending.requested_time):
        _ = (groups_in_pending_clustering(damaged), damaged.pending.log_compacting)


def test_tables_load_again_for_each_test() -> None:
    assert load_table("9/mor_basic") is not load_table("9/mor_basic")
