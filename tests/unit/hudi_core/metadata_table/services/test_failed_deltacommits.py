"""What the metadata table's own services must not touch while an index is being built, and what they must not take for
merged.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest

from hudi_core.config.versions import V8, V9, TableVersion
from hudi_core.metadata_table.file_changes import FileChanges
from hudi_core.metadata_table.services.archival import to_archive
from hudi_core.metadata_table.services.compaction_planner import Due, NotNow, due
from hudi_core.metadata_table.services.failed_deltacommits import roll_back_failed
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.timeline import Timeline
from tests.support.fault_storage import FaultPlan, FaultStorage, InjectedCrash
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import TOKEN, Table
from tests.unit.hudi_core.metadata_table.services.test_compaction import held
from tests.unit.hudi_core.metadata_table.services.test_run import VERSIONS, clock, initialized

Golden = Callable[[str, str], GoldenCase]
DRAWN = "20240105000000000"
FIRST, SECOND = "20240101000000000", "20240102000000000"


def completed(time: str, action: str, at: str, planned: str | None = None) -> Instant:
    return Instant(time, action, State.COMPLETED, at, planned)


def decided(data: Timeline, metadata_timeline: Timeline, features: TableVersion) -> Due | NotNow:
    return due(data, metadata_timeline, features, trigger=1, draw=lambda: DRAWN)


@pytest.mark.parametrize("features", [V8, V9])
def test_no_compaction_is_planned_while_an_index_is_being_built(features: TableVersion) -> None:
    """The index's base files bear the indexing's instant: a compaction of what writers told the index meanwhile would
    lie above them.
    """
    recorded = [
        completed(FIRST, Action.DELTA_COMMIT, "20240101000001000"),
        completed(SECOND, Action.DELTA_COMMIT, "20240102000001000"),
    ]
    started_at = Instant("20240101120000000", Action.INDEXING, State.INFLIGHT)
    data = [completed(item.requested_time, Action.DELTA_COMMIT, item.completed_at) for item in recorded]
    found = decided(Timeline([*data, started_at]), Timeline(recorded), features)
    assert isinstance(found, NotNow)
    assert started_at.requested_time in found.reason
    assert decided(Timeline(data), Timeline(recorded), features) == Due(DRAWN, DRAWN)
    requested = Instant(started_at.requested_time, Action.INDEXING, State.REQUESTED)
    assert decided(Timeline([*data, requested]), Timeline(recorded), features) == Due(DRAWN, DRAWN), (
        "nothing is built yet"
    )
    built = completed(started_at.requested_time, Action.DELTA_COMMIT, "20240102120000000")
    assert decided(Timeline([*data, started_at]), Timeline([*recorded, built]), features) == Due(
        "20240101115959999", "20240101115959999"
    )


@pytest.mark.parametrize("features", [V8, V9])
def test_no_compaction_is_planned_before_the_latest(features: TableVersion) -> None:
    compacted = completed("20240101120000000", Action.COMMIT, "20240101120001000", Action.COMPACTION)
    recorded = [
        completed(time, Action.DELTA_COMMIT, f"20240102{number:02d}0000000")
        for number, time in enumerate((FIRST, SECOND))
    ]
    pending = Instant(FIRST, Action.DELTA_COMMIT, State.INFLIGHT)
    assert isinstance(decided(Timeline([pending]), Timeline([*recorded, compacted]), features), NotNow)


def test_what_completed_as_the_compaction_began_is_not_in_it() -> None:
    data = Timeline([Instant("8", Action.COMMIT, State.COMPLETED, "9", Action.COMMIT)])
    commits = initialized(9)
    compacted = Instant(f"{7:017d}1", Action.COMMIT, State.COMPLETED, f"{7:017d}2", Action.COMPACTION)
    late = Instant(
        commits[2].requested_time, Action.DELTA_COMMIT, State.COMPLETED, compacted.requested_time, Action.DELTA_COMMIT
    )
    metadata_timeline = Timeline([*commits[:2], late, *commits[3:], compacted])
    assert to_archive(metadata_timeline, data, 2, 3, counts_cleans=False) == commits[:2]


def test_an_indexers_deltacommit_is_left_while_the_indexing_is_pending(golden: Golden) -> None:
    """Version 6: the indexer builds without the table lock, under an instant that the data table does not have."""
    table = Table(golden("6", "mor_basic").table)
    last = table.data.load().last_completed()
    assert last is not None
    building, indexing = f"{last.requested_time}004", table.new_instant()
    table.data.create_requested(indexing, Action.INDEXING, b"")
    table.metadata_timeline.create_requested(building, Action.DELTA_COMMIT)
    table.metadata_timeline.to_inflight(building, Action.DELTA_COMMIT)
    assert roll_back_failed(table.storage, table.config, TOKEN, clock(table)) == ()
    assert table.metadata_timeline.load().find(building, Action.DELTA_COMMIT) is not None
    table.data.undo(indexing, Action.INDEXING)
    assert roll_back_failed(table.storage, table.config, TOKEN, clock(table)) == (building,)


@pytest.mark.parametrize("version", VERSIONS)
def test_what_a_dead_writer_left_is_taken_back(golden: Golden, version: str) -> None:
    table = Table(golden(version, "mor_basic").table)
    before = held(table)
    dead = table.new_instant()
    plan = FaultPlan(
        when=lambda operation: operation.kind == "create_exclusive" and operation.path.endswith(".deltacommit")
    )
    with contextlib.suppress(InjectedCrash):
        partition, *_ = sorted(path.name for path in table.path.iterdir() if path.name.startswith("2"))
        files = frozenset(path.name for path in (table.path / partition).glob("*.parquet"))
        table.publisher(FaultStorage(table.storage, plan)).publish_deletes(
            dead, FileChanges(deleted={partition: files})
        )
    assert plan.crashed
    assert table.metadata_timeline.load().find(dead, Action.DELTA_COMMIT) is not None
    assert roll_back_failed(table.storage, table.config, TOKEN, clock(table)) == (dead,)
    assert table.metadata_timeline.load().find(dead, Action.DELTA_COMMIT) is None
    assert held(table) == before
    assert roll_back_failed(table.storage, table.config, TOKEN, clock(table)) == ()


def test_what_is_pending_on_the_data_table_is_left_to_its_rollback(golden: Golden) -> None:
    table = Table(golden("8", "failed_after_metadata_mor").table)
    (failed,) = table.data.load().pending().requested_times
    table.metadata_timeline.remove(failed, Action.DELTA_COMMIT, State.COMPLETED)
    assert roll_back_failed(table.storage, table.config, TOKEN, clock(table)) == ()
    assert table.metadata_timeline.load().find(failed, Action.DELTA_COMMIT) is not None
