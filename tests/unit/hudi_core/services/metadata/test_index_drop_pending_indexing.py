"""Pending indexing actions: what they build, and their removal from the timeline."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from hudi_core.errors import ConflictError, CorruptFileError
from hudi_core.services.metadata.index_drop import (
    abandon_builds,
    inflight_build,
    pending_builds,
    planned_partitions,
    read_index_plan,
    refuse_running_builds,
    remove_build,
)
from hudi_core.timeline.instant import Action, State
from hudi_core.transaction.owner import Owner
from tests.support.golden_cleans import context_of
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import Table

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ("6", "8", "9")
OWNER = Owner.current("test")


def planned(golden: Golden, version: str) -> tuple[Table, str]:
    """A table with an indexing action that real Hudi planned."""
    table = Table(golden(version, "indexing_requested").table)
    (instant,) = table.data.load().pending().of_actions(Action.INDEXING)
    return table, instant.requested_time


def damage(table: Table, instant: str) -> None:
    table.storage.write(table.data.path(instant, Action.INDEXING, State.REQUESTED), b"no plan")


@pytest.mark.parametrize("version", VERSIONS)
def test_the_plan_names_what_is_built(golden: Golden, version: str) -> None:
    table, instant = planned(golden, version)
    context = context_of(table.path)
    names = {item.name for item in read_index_plan(context, instant)}
    assert names
    assert list(pending_builds(context, context.active.load())) == [instant]
    assert set(planned_partitions(context, context.active.load(), instant)) == names
    assert inflight_build(context, names) is None
    table.data.to_inflight(instant, Action.INDEXING)
    assert inflight_build(context, names) == inflight_build(context, ["files"]) == instant
    assert inflight_build(context, ["expr_index_none"]) is None


def test_a_damaged_plan_builds_what_is_inflight(golden: Golden, caplog: pytest.LogCaptureFixture) -> None:
    table, instant = planned(golden, "9")
    context = context_of(table.path)
    damage(table, instant)
    with pytest.raises(CorruptFileError):
        read_index_plan(context, instant)
    with caplog.at_level(logging.WARNING):
        assert pending_builds(context, context.active.load()) == {instant: ()}
    assert instant in caplog.text
    assert planned_partitions(context, context.active.load(), instant) == ()


@pytest.mark.parametrize("version", VERSIONS)
def test_an_action_that_runs_is_not_removed(golden: Golden, version: str) -> None:
    table, instant = planned(golden, version)
    context = context_of(table.path)
    names = [item.name for item in read_index_plan(context, instant)]
    held = context.claim(instant, OWNER)
    try:
        with pytest.raises(ConflictError, match=f"indexing {instant} is run by"):
            refuse_running_builds(context, names)
        with pytest.raises(ConflictError):
            refuse_running_builds(context, ["files"])
        refuse_running_builds(context, ["expr_index_none"])
    finally:
        held.release()
    refuse_running_builds(context, names)


@pytest.mark.parametrize("version", VERSIONS)
def test_abandoned_builds_leave_the_timeline(golden: Golden, version: str) -> None:
    table, instant = planned(golden, version)
    context = context_of(table.path)
    names = [item.name for item in read_index_plan(context, instant)]
    table.data.to_inflight(instant, Action.INDEXING)
    abandon_builds(context, ["expr_index_none"], OWNER)
    assert table.data.load().contains(instant)
    abandon_builds(context, names[:1], OWNER)
    assert not table.data.load().contains(instant)
    abandon_builds(context, names, OWNER)


def test_a_listed_partition_stays_when_its_build_is_removed(golden: Golden) -> None:
    table = Table(golden("9", "mdt_all_cow").table)
    context, before = context_of(table.path), table.records()
    remove_build(context, table.new_instant(), ["record_index", "column_stats"])
    assert table.records() == before
