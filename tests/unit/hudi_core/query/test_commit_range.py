"""The commits that an incremental query reads."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hudi_core.errors import ConfigError
from hudi_core.query.commit_range import commits_in_range, first_incomplete_write
from hudi_core.query.request import START, ReadRequest
from hudi_core.timeline.instant import COMMIT_ACTIONS
from tests.support.changed_tables import open_context
from tests.support.golden_data import GoldenCase

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ["6", "8", "9"]
HOLES = "hoodie.read.timeline.holes.resolution.policy"


def request(begin: str = START, end: str | None = None) -> ReadRequest:
    return ReadRequest("incremental", begin=begin, end=end)


@pytest.mark.parametrize("version", VERSIONS)
def test_begin_is_exclusive_and_end_inclusive(golden: Golden, version: str) -> None:
    context = open_context(golden(version, "mor_basic").table)
    timeline = context.active.load()
    commits = sorted(timeline.commits(), key=lambda item: item.completed_at)
    assert len(commits) >= 2
    every = commits_in_range(context, timeline, request())
    assert every.requested_times == {item.requested_time for item in commits}
    assert every.last == max(item.requested_time for item in commits)
    first, last = commits[0].completed_at, commits[-1].completed_at
    after = commits_in_range(context, timeline, request(first))
    assert set(after.metadata) == set(commits[1:])
    assert set(commits_in_range(context, timeline, request(START, first)).metadata) == {commits[0]}
    nothing = commits_in_range(context, timeline, request(last))
    assert (dict(nothing.metadata), nothing.last) == ({}, None)


@pytest.mark.parametrize("version", VERSIONS)
def test_archived_commits_are_in_the_range(golden: Golden, version: str) -> None:
    context = open_context(golden(version, "archived_timeline_cow").table)
    timeline = context.active.load()
    found = commits_in_range(context, timeline, request())
    assert found.archived
    assert not {item.requested_time for item in found.archived} & timeline.requested_times
    archived_commits = {item.requested_time for item in found.archived if item.action in COMMIT_ACTIONS}
    assert found.requested_times > archived_commits > set()


@pytest.mark.parametrize("version", ["8", "9"])
def test_the_option_skips_compactions(golden: Golden, version: str) -> None:
    table = golden(version, "mor_compacted").table
    context = open_context(table, {"hoodie.datasource.read.incr.skip_compact": "true"})
    timeline = context.active.load()
    skipped = commits_in_range(context, timeline, request()).requested_times
    every = commits_in_range(open_context(table), timeline, request()).requested_times
    assert every - skipped == timeline.commits().of_actions("commit").requested_times != frozenset()


def test_a_range_that_ends_before_it_begins_is_refused(golden: Golden) -> None:
    context = open_context(golden("9", "cow_basic").table)
    with pytest.raises(ConfigError, match="before it begins"):
        commits_in_range(context, context.active.load(), request("20300101000000000", "20200101000000000"))


def test_an_incomplete_commit_of_layout_1_ends_the_range(golden: Golden) -> None:
    """The option BLOCK reads what is older; by default the query fails, since later rows would be skipped."""
    table = golden("6", "cow_basic").table
    first, *later = open_context(table).active.load().commits()
    hollow = later[0].requested_time
    (table / ".hoodie" / f"{hollow}.commit").unlink()
    assert len(later) > 1
    context = open_context(table)
    timeline = context.active.load()
    incomplete = first_incomplete_write(context.active, timeline)
    assert incomplete is not None
    assert incomplete.requested_time == hollow
    with pytest.raises(ConfigError, match=f"{hollow} is not complete"):
        commits_in_range(context, timeline, request())
    blocking = open_context(table, {HOLES: "BLOCK"})
    assert tuple(commits_in_range(blocking, timeline, request()).metadata) == (first,)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_pending_clustering_is_no_incomplete_write(golden: Golden, version: str) -> None:
    context = open_context(golden(version, "clustering_requested_cow").table)
    assert first_incomplete_write(context.active, context.active.load()) is None
