"""The view over the metadata table is the view over the storage, on every golden table of every version that has a
metadata table.
"""

from __future__ import annotations

from collections import Counter

from hudi_core.config.table_config import TableConfig
from hudi_core.history.archived import load_history
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.model.names import LogFileName, parse_data_file
from hudi_core.view.file_group import FileSlice
from hudi_core.view.file_system_view import FileSystemView, load_view
from tests.support.golden_views import groups_in_pending_clustering, open_table, replaced_groups, table_names

FAILED_LOGS = {
    "6/failed_after_metadata_mor",
    "6/failed_after_metadata_mor.after",
    "6/failed_inflight_mor",
    "6/failed_inflight_mor.after",
    "6/rolled_back_mor",
    "6-by-1.2.0/failed_inflight_mor",
}
"""In layout 1 the log of a failed deltacommit is in a visible slice, by its name, until it is compacted: its blocks are
what a reader passes over. The metadata table does not list it, or, once it was rolled back, lists it with a size of 1
(real Hudi wrote that).
"""


def _by_metadata(name: str) -> tuple[FileSystemView, FileSystemView] | None:
    """The view by listing the storage and the one by the metadata table; None for a table without one."""
    storage, active, view = open_table(name)
    config = TableConfig.load(storage)
    if "files" not in config.metadata_partitions:
        return None
    metadata = MetadataTable(storage, config, view.timeline)
    metadata.check_available()
    return view, load_view(active, metadata, view.timeline, lambda: load_history(storage, config))


def _uncommitted(view: FileSystemView, partition: str) -> set[str]:
    return {file.name for group in view.all_file_groups(partition) for item in group.uncommitted for file in item.files}


def _without_failed_logs(item: FileSlice, kept: set[str]) -> tuple[str, str, str | None, list[str]]:
    base = item.base_file.name if item.base_file else None
    return item.file_group.file_id, item.base_instant, base, [log.name for log in item.log_files if log.name in kept]


def test_both_listings_give_one_view() -> None:
    compared = Counter[str]()
    for name in table_names():
        views = _by_metadata(name)
        if views is None:
            continue
        by_storage, by_metadata = views
        partitions = by_storage.partitions()
        assert by_metadata.partitions() == partitions, name
        for partition in partitions:
            assert by_metadata.latest_base_files(partition) == by_storage.latest_base_files(partition), name
            assert by_metadata.all_base_files(partition) == by_storage.all_base_files(partition), name
            assert _uncommitted(by_metadata, partition) <= _uncommitted(by_storage, partition), name
            if name in FAILED_LOGS:
                continue
            assert by_metadata.all_slices(partition) == by_storage.all_slices(partition), name
            assert by_metadata.latest_slices(partition) == by_storage.latest_slices(partition), name
            assert by_metadata.latest_merged_slices(partition) == by_storage.latest_merged_slices(partition), name
            assert replaced_groups(by_metadata, partition) == replaced_groups(by_storage, partition), name
        assert groups_in_pending_clustering(by_metadata) == groups_in_pending_clustering(by_storage)
        compared[name.split("/")[0]] += 1
    assert compared == Counter({"6": 41, "6-by-1.2.0": 8, "8": 41, "8-by-1.2.0": 8, "9": 41})


def test_in_layout_1_the_listings_differ_in_the_logs_of_failed_writes_alone() -> None:
    for name in FAILED_LOGS:
        views = _by_metadata(name)
        assert views is not None
        differing = 0
        for partition in views[0].partitions():
            by_storage, by_metadata = (view.latest_merged_slices(partition) for view in views)
            listed = {file.name for item in by_metadata for file in item.files if file.size > 1}
            differing += by_storage != by_metadata
            kept = [_without_failed_logs(item, listed) for item in by_storage]
            assert kept == [_without_failed_logs(item, listed) for item in by_metadata], name
            for item in by_storage:
                for file in item.files:
                    assert file.name in listed or isinstance(parse_data_file(file.name), LogFileName), name
        assert differing, name
