"""Rollbacks on the metadata timeline: repeated, continued after a crash, and refused once the instant was merged."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_core.errors import ConflictError, TimelineError
from hudi_core.metadata_table.extract.data_file import StatisticsRequirements
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.metadata_table.write.rollback import MetadataRollback
from hudi_core.timeline.instant import Action, State
from tests.support.fault_storage import MUTATIONS, FaultPlan, FaultStorage, InjectedCrash
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import TOKEN, Table
from tests.support.metadata_services import clock
from tests.unit.hudi_core.metadata_table.write.test_rollback_strategies import (
    FAILED,
    METADATA_ROLLBACK,
    ROLLBACK,
    FailedTable,
    commit_of,
    failed,
)

__all__ = ["failed"]
Golden = Callable[[str, str], GoldenCase]


def test_a_second_rollback_finds_nothing(failed: tuple[FailedTable, FailedTable]) -> None:
    ours, _ = failed
    assert ours.rollback.footprint(FAILED)
    ours.rollback.run(FAILED, ROLLBACK)
    assert not ours.rollback.footprint(FAILED)
    before = ours.names()
    ours.rollback.run(FAILED, ROLLBACK)
    assert ours.names() == before
    assert ours.blocks() == ([], [METADATA_ROLLBACK])


def test_a_rollback_that_died_anywhere_is_resumed(golden: Golden, tmp_path: Path) -> None:
    number = 0
    while True:
        table = FailedTable(golden("6", "compaction_inflight").table)
        plan = FaultPlan(kill_at=number, timing="after", counts=MUTATIONS)
        with contextlib.suppress(InjectedCrash):
            MetadataRollback(FaultStorage(table.storage, plan), table.config, TOKEN).run(FAILED, ROLLBACK)
        table.rollback.run(FAILED, ROLLBACK)
        assert not table.rollback.footprint(FAILED)
        assert table.blocks() == ([], [METADATA_ROLLBACK])
        assert [instant.requested_time for instant in table.active.load().pending()] == []
        assert table.active.load().get(METADATA_ROLLBACK, Action.ROLLBACK).is_completed
        assert not table.active.load().contains(FAILED)
        if not plan.crashed:
            break
        number += 1
    assert number > 8


@pytest.mark.parametrize("state", [State.REQUESTED, State.INFLIGHT])
def test_an_unfinished_deltacommit_is_rolled_back(failed: tuple[FailedTable, FailedTable], state: State) -> None:
    ours, _ = failed
    for later in (State.COMPLETED, State.INFLIGHT):
        if later.rank > state.rank:
            ours.active.remove(FAILED, Action.DELTA_COMMIT, later)
    ours.rollback.run(FAILED, ROLLBACK)
    assert not ours.active.load().contains(FAILED)
    assert ours.blocks() == ([], [METADATA_ROLLBACK])


def test_a_compacted_metadata_table_cannot_be_rolled_back(failed: tuple[FailedTable, FailedTable]) -> None:
    ours, _ = failed
    compaction = f"{FAILED}001"
    for state, data in ((State.REQUESTED, b""), (State.INFLIGHT, b""), (State.COMPLETED, b"{}")):
        ours.storage.write(ours.active.path(compaction, Action.COMPACTION, state), data)
    with pytest.raises(TimelineError, match=compaction):
        ours.rollback.run(FAILED, ROLLBACK)


def test_publishing_beside_another_attempt_is_refused(failed: tuple[FailedTable, FailedTable]) -> None:
    ours, real = failed
    with pytest.raises(ConflictError, match="deltacommit"):
        ours.writer().publish_commit(FAILED, commit_of(real), [], StatisticsRequirements({"fields": []}))
    for state in (State.COMPLETED, State.INFLIGHT, State.REQUESTED):
        ours.active.remove(FAILED, Action.DELTA_COMMIT, state)
    with pytest.raises(ConflictError, match="another attempt's block"):
        ours.writer().publish_commit(FAILED, commit_of(real), [], StatisticsRequirements({"fields": []}))


def test_publishing_while_the_rollback_is_unfinished_is_refused(failed: tuple[FailedTable, FailedTable]) -> None:
    ours, real = failed
    ours.rollback.run(FAILED, ROLLBACK)
    (ours.table / ROOT / ".hoodie" / f"{METADATA_ROLLBACK}.rollback").unlink()
    with pytest.raises(ConflictError, match="unfinished"):
        ours.writer().publish_commit(FAILED, commit_of(real), [], StatisticsRequirements({"fields": []}))


@pytest.mark.parametrize("version", ["8", "9"])
def test_an_instant_that_a_compaction_merged_stays(golden: Golden, version: str) -> None:
    """In layout 2 it merges what had completed when it was requested; what is pending is in none."""
    table = Table(golden(version, "failed_after_metadata_mor").table)
    (instant,) = table.data.load().pending().requested_times
    rollback = MetadataRollback(table.storage, table.config, TOKEN, clock(table))
    found = table.metadata_timeline.load().get(instant, Action.DELTA_COMMIT)
    compaction = f"{int(found.completed_at) + 1}"
    table.metadata_timeline.create_requested(compaction, Action.COMPACTION, b"plan")
    before = table.metadata_timeline.names()
    for act in (lambda: rollback.check(instant), lambda: rollback.run(instant, table.new_instant())):
        with pytest.raises(TimelineError, match=f"is about to be compacted at {compaction}"):
            act()
    assert table.metadata_timeline.names() == before
    table.metadata_timeline.remove(instant, Action.DELTA_COMMIT, State.COMPLETED)
    rollback.check(instant)
