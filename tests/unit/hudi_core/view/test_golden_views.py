"""The file system view of every table of version 6: each data file is accounted for, and the rows are those that real Hudi reads."""

from __future__ import annotations

import io
from collections import Counter

import pyarrow.parquet as pq
import pytest

from hudi_core.model.names import parse_data_file
from hudi_core.storage.memory import MemoryStorage
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.view.fs_view import FileSystemView, load_view
from hudi_core.view.listing import StorageListing
from tests.golden_data import golden_root
from tests.unit.hudi_core.timeline.golden_tables import Layout1, info_of, load_table, table_names

NOT_READ = {"timestamp_keygen_hive"}
"""Tables that real Hudi itself fails to read, by its case.json."""
NO_FILE_NAMES = {"empty_table_no_commits", "no_meta_fields_cow", "no_meta_fields_mor"} | NOT_READ
"""Tables without a snapshot whose rows say which file they came from."""


def _open(name: str) -> tuple[MemoryStorage, FileSystemView]:
    storage = load_table(name)
    return storage, load_view(ActiveTimeline(storage, Layout1()), StorageListing(storage))


def _account(view: FileSystemView) -> dict[str, str]:
    """What each data file is: visible, older, replaced or uncommitted. A file in two slices would be counted twice and fails."""
    told: list[tuple[str, str]] = []
    for partition in view.partitions():
        visible = {data_file for item in view.latest_merged_slices(partition) for data_file in item.files}
        for group in view.all_file_groups(partition):
            for item in group.uncommitted:
                told += [(data_file.path, "uncommitted") for data_file in item.files]
            for item in group.slices:
                kind = "older" if view.replaced_at(group.id) is None else "replaced"
                told += [(data_file.path, "visible" if data_file in visible else kind) for data_file in item.files]
    assert len({path for path, _ in told}) == len(told)
    return dict(told)


def _data_files(storage: MemoryStorage, folder: str = "") -> set[str]:
    found = {info.path for info in storage.list_files(folder) if parse_data_file(info.name) is not None}
    for child in storage.list_folders(folder):
        if child != ".hoodie":
            found |= _data_files(storage, child)
    return found


@pytest.mark.parametrize("name", table_names())
def test_every_data_file_is_accounted_for(name: str) -> None:
    storage, view = _open(name)
    assert set(_account(view)) == _data_files(storage)


def _rows(storage: MemoryStorage, view: FileSystemView) -> int:
    paths = [data_file.path for partition in view.partitions() for data_file in view.latest_base_files(partition)]
    return sum(pq.read_metadata(io.BytesIO(storage.read(path))).num_rows for path in paths)


@pytest.mark.parametrize("name", [name for name in table_names() if name not in NOT_READ | {"empty_table_no_commits"}])
def test_base_files_hold_as_many_rows_as_real_hudi_reads(name: str) -> None:
    storage, view = _open(name)
    info = info_of(name)
    prefix = "after_" if name.endswith(".after") else ""
    if info["table_type"] == "COPY_ON_WRITE":
        expected = info["reads"][f"{prefix}snapshot"]["mdt_off"]["rows"]
    else:
        expected = info["reads"][f"{prefix}read_optimized"]["rows"]
    assert _rows(storage, view) == expected


@pytest.mark.parametrize("name", [name for name in table_names() if not name.endswith(".after") and name not in NO_FILE_NAMES])
def test_rows_of_base_files_come_from_the_files_of_the_view(name: str) -> None:
    """`_hoodie_file_name` names the base file that a row was read from, or for a row from a log, its file id."""
    _, view = _open(name)
    snapshot = golden_root() / "6" / f"{name}.expected" / "snapshot.parquet"
    slices = [item for partition in view.partitions() for item in view.latest_merged_slices(partition)]
    named = {value for value in pq.read_table(snapshot, columns=["_hoodie_file_name"]).column(0).to_pylist() if value}
    assert named or pq.read_metadata(snapshot).num_rows == 0
    known = {data_file.name for item in slices for data_file in item.files} | {item.file_group.file_id for item in slices}
    assert named <= known


def _kinds(name: str) -> Counter[str]:
    return Counter(_account(_open(name)[1]).values())


@pytest.mark.parametrize(
    ("name", "expected"),
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
def test_kinds_of_files(name: str, expected: dict[str, int]) -> None:
    assert _kinds(name) == expected


@pytest.mark.parametrize("name", ["restored_then_written", "rolled_back_mor", "savepoint_mor", "cdc_mor", "archived_timeline_mor"])
def test_slices_follow_the_logs_base_instant(name: str) -> None:
    _, view = _open(name)
    for partition in view.partitions():
        for group in view.all_file_groups(partition):
            for item in group.slices:
                for data_file in (item.base_file, *item.log_files):
                    if data_file is not None:
                        parsed = parse_data_file(data_file.name)
                        assert parsed is not None
                        assert parsed.instant == item.base_instant
