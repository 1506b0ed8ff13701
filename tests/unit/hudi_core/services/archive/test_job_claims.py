"""Archival drops the claims of instants that are over: those that Hudi completed behind a run of ours, and those that
the timeline lost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hudi_core.model.names import HUDI_HEARTBEATS
from hudi_core.storage.local import LocalStorage
from hudi_core.transaction.claim import Claim, claim
from hudi_core.transaction.claim_file import claimed_instants
from hudi_core.transaction.owner import Owner
from tests.support.fault_storage import MUTATIONS, FaultPlan, FaultStorage, InjectedCrash
from tests.support.golden_archives import active_of, archive
from tests.support.golden_cleans import context_of
from tests.support.golden_data import GoldenCase

Golden = Callable[[str, str], GoldenCase]
DEAD = replace(Owner.current("a run that died"), process_start="1")


def claims_of(table: Path) -> list[str]:
    return sorted(claimed_instants(LocalStorage(table)))


def left_behind(table: Path, instant: str) -> Claim:
    """A claim of a process that died: with its heartbeat, and not released."""
    held = claim(LocalStorage(table), instant, DEAD)
    held.heartbeat.stop()
    return held


@pytest.mark.parametrize("folder", ["6", "8", "9"])
def test_claims_of_archived_instants_go(golden: Golden, folder: str) -> None:
    table = golden(folder, "archived_timeline_mor").table
    times = [time for time, _ in active_of(table)]
    claim(LocalStorage(table), times[0], DEAD).release()
    for time in (times[1], times[-1]):
        left_behind(table, time)
    went = {time for time, _ in archive(table)}
    assert {times[0], times[1]} <= went
    assert claims_of(table) == [times[-1]]
    assert [info.name for info in LocalStorage(table).list_files(HUDI_HEARTBEATS)] == [times[-1]]


@pytest.mark.parametrize("folder", ["6", "9"])
def test_claims_of_instants_that_the_timeline_no_longer_holds_go(golden: Golden, folder: str) -> None:
    """Rolled back or archived by Hudi. One that is newer than the timeline's start may be an instant that is about to
    show.
    """
    table = golden(folder, "archived_timeline_cow").table
    newer = str(int(active_of(table)[-1][0]) + 1)
    for time in ("20200101000000000", newer):
        left_behind(table, time)
    assert archive(table)
    assert claims_of(table) == [newer]


@pytest.mark.parametrize("folder", ["6", "9"])
def test_killed_anywhere_no_claim_stays_behind(golden: Golden, folder: str) -> None:
    number, crashed = 0, True
    while crashed:
        table = golden(folder, "archived_timeline_cow").table
        times = [time for time, _ in active_of(table)]
        left_behind(table, times[0])
        plan = FaultPlan(kill_at=number, counts=MUTATIONS)
        try:
            archive(table, owner=DEAD, storage=FaultStorage(LocalStorage(table), plan))
        except InjectedCrash:
            assert number < 60
        crashed = plan.crashed
        archive(table)
        assert times[0] not in {time for time, _ in active_of(table)}
        assert claims_of(table) == [], number
        number += 7
    assert number > 14


def test_nothing_is_dropped_when_nothing_is_archived(golden: Golden) -> None:
    table = golden("9", "mor_basic").table
    first = active_of(table)[0][0]
    left_behind(table, first)
    assert archive(table, {}) == []
    assert claims_of(table) == [first]
    assert context_of(table).active.load().contains(first)
