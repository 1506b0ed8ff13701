"""What deltacommits of the metadata table say of the file groups that they write."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hudi_core.errors import TimelineError
from hudi_core.metadata_table.read.file_group import LatestSlice
from hudi_core.metadata_table.timeline import (
    delta_commit_content,
    latest_schema,
    log_stat,
    profile_stat,
)
from hudi_core.model.names import WriteToken
from hudi_core.storage.base import FileInfo
from hudi_core.timeline.actions.commit import Operation, decode_commit
from hudi_core.timeline.instant import COMMIT_ACTIONS, Action
from hudi_core.timeline.timeline import Timeline
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import Table
from tests.support.metadata_services import metadata_timeline_of

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ("6", "8", "9")
LOGS = tuple(FileInfo(f"m/.g-0_1.log.{version}_0-0-0", 9, 0.0) for version in (1, 2))
PLACE = LatestSlice("g-0", "1", FileInfo("m/g-0_0-0-0_1.hfile", 99, 0.0), LOGS, "column_stats")


@pytest.mark.parametrize("version", VERSIONS)
def test_the_inflight_file_names_the_groups_and_the_completed_one_the_schema(golden: Golden, version: str) -> None:
    metadata_timeline = metadata_timeline_of(Table(golden(version, "mor_basic").table))
    stats = {"column_stats": (profile_stat(PLACE, 7, metadata_instant=version != "6"),)}
    inflight = decode_commit(delta_commit_content(metadata_timeline, stats), path="inflight")
    assert inflight.operation_type == Operation.UPSERT_PREPPED
    assert inflight.schema_text is None
    (stat,) = inflight.partition_to_write_stats["column_stats"]
    assert (stat.file_id, stat.prev_commit, stat.num_update_writes) == ("g-0", "1", 7)
    completed = decode_commit(delta_commit_content(metadata_timeline, stats, "{}"), path="completed")
    assert completed.schema_text == "{}"


@pytest.mark.parametrize("metadata_instant", [False, True])
def test_a_log_file_is_described_beside_its_slice_only_where_its_name_shows_that(metadata_instant: bool) -> None:
    name = PLACE.next_log(WriteToken(0, 3, 0), "5" if metadata_instant else None)
    stat = log_stat(PLACE, name, 44, 6, 2, metadata_instant=metadata_instant)
    assert (stat.path, stat.partition_path, stat.log_version) == (f"column_stats/{name}", "column_stats", name.version)
    assert (stat.file_size_in_bytes, stat.num_update_writes, stat.num_deletes, stat.num_inserts) == (44, 6, 2, 0)
    if metadata_instant:
        assert (name.version, stat.prev_commit, stat.base_file, stat.log_files) == (1, "5", "", (str(name),))
    else:
        newest_first = tuple(info.name for info in reversed(LOGS))
        assert (name.version, stat.prev_commit, stat.base_file) == (3, "1", "g-0_0-0-0_1.hfile")
        assert stat.log_files == (*newest_first, str(name))


@pytest.mark.parametrize("version", VERSIONS)
def test_records_are_written_by_the_schema_of_the_latest_commit_that_has_one(golden: Golden, version: str) -> None:
    table = Table(golden(version, "mor_basic").table)
    active = table.metadata_timeline
    timeline = active.load()
    schemas = [active.read_commit(item).schema_text for item in timeline.commits()]
    assert latest_schema(active, timeline) == [text for text in schemas if text is not None][-1]
    bare, metadata_timeline = table.new_instant(), metadata_timeline_of(table)
    active.create_requested(bare, Action.DELTA_COMMIT)
    active.to_inflight(bare, Action.DELTA_COMMIT)
    metadata_timeline.complete(bare, Action.DELTA_COMMIT, delta_commit_content(metadata_timeline, {}))
    assert latest_schema(active, active.load()) == latest_schema(active, timeline)
    only = [item for item in active.load() if item.requested_time == bare and item.action in COMMIT_ACTIONS]
    with pytest.raises(TimelineError, match="carries a schema"):
        latest_schema(active, Timeline(only))
