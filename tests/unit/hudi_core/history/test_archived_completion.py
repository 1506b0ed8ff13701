"""Completion times: the archive is read for old writes only, and once."""

from __future__ import annotations

import io
import json
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.history.archived import ArchivedTimeline, CompletionTimes
from hudi_core.history.lsm import LsmHistory
from hudi_core.services.restore.savepoint import savepoint_create
from hudi_core.timeline.instant import Action
from hudi_core.timeline.naming import timeline_of
from tests.support.changed_tables import an_owner, open_context
from tests.support.golden_archives import archive_these
from tests.support.golden_data import GoldenCase
from tests.support.memory_storage import MemoryStorage
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import read_rows
from tests.support.tiers import tiered

ARCHIVED = [("05", "07", "deltacommit"), ("15", "17", "commit")]


def _history(loads: list[str]) -> ArchivedTimeline:
    loads.append("loaded")
    storage = MemoryStorage()
    columns = [list(values) for values in zip(*ARCHIVED, strict=True)]
    out = io.BytesIO()
    pq.write_table(pa.table(columns, names=["instantTime", "completionTime", "action"]), out)
    storage.write("h/05_15_0.parquet", out.getvalue())
    storage.write("h/manifest_1", json.dumps({"files": [{"fileName": "05_15_0.parquet"}]}).encode())
    storage.write("h/_version_", b"1")
    return LsmHistory(storage, "h")


def test_the_active_timeline_answers_first() -> None:
    loads: list[str] = []
    timeline = timeline_of(["20_21.commit", "30.deltacommit.requested", "40_45.replacecommit"], 2)
    times = CompletionTimes(timeline, lambda: _history(loads))
    assert [times.of(time) for time in ("20", "30", "35", "40", "50")] == ["21", None, None, "45", None]
    assert not loads
    assert [times.of(time) for time in ("05", "15", "10")] == ["07", "17", None]
    assert times.is_completed("05")
    assert not times.is_completed("30")
    assert loads == ["loaded"]


@pytest.mark.parametrize(
    "names",
    [
        ["01_02.clean", "20_21.commit"],  # cleans are archived apart from writes
        ["10_11.commit", "10_12.savepoint", "20_21.commit"],  # archive beyond savepoint
    ],
)
def test_archived_writes_may_be_younger_than_the_first_active_instant(names: list[str]) -> None:
    times = CompletionTimes(timeline_of(names, 2), lambda: _history([]))
    assert times.of("15") == "17"


def test_a_savepoint_does_not_hide_its_commits_completion() -> None:
    times = CompletionTimes(timeline_of(["10_99.savepoint", "10_11.deltacommit"], 2), lambda: _history([]))
    assert times.of("10") == "11"


@pytest.mark.parametrize("names", [["20_21.commit", "20_22.savepoint"], ["20_22.savepoint"], ["30_31.clean"], []])
def test_the_archive_is_asked_where_no_active_write_is_without_a_savepoint(names: list[str]) -> None:
    loads: list[str] = []
    times = CompletionTimes(timeline_of(names, 2), lambda: _history(loads))
    assert [times.of(time) for time in ("05", "15", "25")] == ["07", "17", None]
    assert loads == ["loaded"]


@pytest.mark.parametrize("version", tiered(["8", "9"], ["9"]))
def test_savepoints_of_all_active_writes_leave_the_rows_as_they_are(
    golden: Callable[[str, str], GoldenCase], version: str
) -> None:
    """The logs of archived writes stay in the slices that a compaction read."""
    table = golden(version, "mor_compacted").table
    timeline = open_context(table).active.load()
    (compaction,) = timeline.of_actions(Action.COMMIT)
    archive_these(table, (item for item in timeline if item.requested_time < compaction.requested_time))

    def logs_and_bases() -> list[tuple[str, str, list[str]]]:
        view = open_context(table).view(open_context(table).active.load())
        return sorted(
            (item.file_group.file_id, item.base_instant, sorted(log.name for log in item.log_files))
            for partition in view.partitions()
            for item in view.latest_slices(partition)
        )

    rows, slices = read_rows(table), logs_and_bases()
    for item in open_context(table).active.load().commits():
        savepoint_create(open_context(table), item.requested_time, an_owner())
        assert logs_and_bases() == slices
        assert_same_rows(read_rows(table), rows)


def test_layout_1_completes_at_the_requested_time() -> None:
    times = CompletionTimes(timeline_of(["20.commit", "30.commit.requested"]), lambda: _history([]))
    assert (times.of("20"), times.of("30")) == ("20", None)
