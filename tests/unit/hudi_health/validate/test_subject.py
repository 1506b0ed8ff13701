"""Which files completed commits wrote: of the timeline, and of its archive."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hudi_core.history.archived import CompletionTimes
from hudi_core.timeline.instant import Action
from hudi_health.validate.subject import CommitWrites
from tests.support.golden_cleans import context_of, data_files
from tests.support.golden_data import GoldenCase

Golden = Callable[[str, str], GoldenCase]


@pytest.mark.parametrize("version", ["6", "8", "9"])
@pytest.mark.parametrize("name", ["archived_timeline_cow", "cleaned_commits_cow"])
def test_files_of_completed_commits(golden: Golden, version: str, name: str) -> None:
    table = golden(version, name).table
    context = context_of(table)
    timeline = context.active.load()
    writes = CommitWrites(context, timeline, CompletionTimes(timeline, context.history))
    files = [path for path in data_files(table) if path.endswith(".parquet")]
    assert len(files) > 5
    for path in files:
        instant = path.rsplit("_", 1)[1].removesuffix(".parquet")
        assert writes.wrote(instant, path)
        assert not writes.wrote(instant, path.replace("_", "_9-", 1))
        assert not writes.wrote("20190101000000000", path)


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_commits_that_are_in_the_archive_alone(golden: Golden, version: str) -> None:
    context = context_of(golden(version, "archived_timeline_cow").table)
    timeline = context.active.load()
    writes = CommitWrites(context, timeline, CompletionTimes(timeline, context.history))
    archived = [
        item
        for item in context.history().instants()
        if item.action == Action.COMMIT and item.requested_time not in timeline.requested_times
    ]
    assert len(archived) > 4, "more than are kept at a time"
    for item in [*archived, *archived]:
        commit = context.history().commit(item.requested_time)
        assert commit is not None
        for stat in commit.write_stats():
            assert writes.wrote(item.requested_time, stat.path)
        assert not writes.wrote(item.requested_time, "elsewhere.parquet")


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_write_that_never_completed_wrote_nothing(golden: Golden, version: str) -> None:
    table = golden(version, "failed_inflight_cow").table
    context = context_of(table)
    timeline = context.active.load()
    (failed,) = timeline.pending().requested_times
    writes = CommitWrites(context, timeline, CompletionTimes(timeline, context.history))
    left = [path for path in data_files(table) if failed in path]
    assert left
    assert not any(writes.wrote(failed, path) for path in left)
