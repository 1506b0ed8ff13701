"""Which instants' blocks count in the metadata table."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hudi_core.config.table_config import TableConfig
from hudi_core.errors import CorruptFileError
from hudi_core.metadata_table.instants import is_metadata_suffix, rolled_back_by, valid_instants
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.actions.content import encode_datum
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.timeline import Timeline
from tests.support.golden_data import GoldenCase

T1, T2, T3, R = "20260101000000001", "20260101000000002", "20260101000000003", "20260101000000009"


def done(time: str, action: str = Action.COMMIT) -> Instant:
    return Instant(time, action, State.COMPLETED)


def nothing(_: Instant) -> list[str]:
    return []


def test_completed_data_instants_count_and_pending_ones_do_not() -> None:
    data = Timeline([done(T1), done(T2, Action.CLEAN), Instant(T3, Action.DELTA_COMMIT, State.INFLIGHT)])
    metadata = Timeline([done(time, Action.DELTA_COMMIT) for time in (T1, T2, T3)])
    assert valid_instants(data, metadata, nothing) == {T1, T2}


def test_the_metadata_tables_own_instants_count() -> None:
    metadata_timeline = ["00000000000000010", "00000000000000011", T1 + "010", T1 + "014", T1 + "004"]
    metadata = Timeline(
        [
            *(done(time, Action.DELTA_COMMIT) for time in metadata_timeline),
            done(T1 + "001", Action.COMMIT),
            done(T1 + "002", Action.CLEAN),
            done(T2 + "006", Action.ROLLBACK),
            Instant(T3 + "004", Action.DELTA_COMMIT, State.INFLIGHT),
        ]
    )
    assert valid_instants(Timeline(), metadata, nothing) == {*metadata_timeline, T2 + "006"}


def test_without_suffixes_every_deltacommit_counts_that_is_not_pending_on_the_data_timeline() -> None:
    """Version 8 on: instants of the metadata table look like any other."""
    solo = "00000000000000002"
    data = Timeline([done(T1), Instant(T3, Action.DELTA_COMMIT, State.INFLIGHT)])
    metadata = Timeline(
        [
            *(done(time, Action.DELTA_COMMIT) for time in (solo, T1, T2, T3)),
            Instant(R, Action.DELTA_COMMIT, State.INFLIGHT),
            done("20260101000000004", Action.COMMIT),
            done("20260101000000005", Action.ROLLBACK),
        ]
    )
    assert valid_instants(data, metadata, nothing, suffixes=False) == {solo, T1, T2, "20260101000000005"}


@pytest.mark.parametrize(
    ("time", "metadata_timeline"),
    [
        (T1, False),
        (T1 + "007", False),
        (T1 + "000", False),
        (T1 + "006", True),
        (T1 + "010", True),
        (T1 + "0100", False),
    ],
)
def test_is_own(time: str, metadata_timeline: bool) -> None:
    assert is_metadata_suffix(time) is metadata_timeline


def test_rolled_back_instants_count_because_rollback_commands_take_their_blocks() -> None:
    data = Timeline([done(T1), done(R, Action.ROLLBACK)])
    assert valid_instants(data, Timeline(), lambda instant: [T2] if instant.requested_time == R else []) == {T1, T2, R}
    earliest = Timeline([done(T1, Action.ROLLBACK), done(T3)])
    assert valid_instants(earliest, Timeline(), lambda _: [T2]) == {T1, T3}, (
        "nothing older than the timeline can be rolled back"
    )


def rollback_metadata(*times: str) -> dict[str, object]:
    return {
        "startRollbackTime": R,
        "timeTakenInMillis": 1,
        "totalFilesDeleted": 0,
        "commitsRollback": list(times),
        "partitionMetadata": {},
        "version": 1,
        "instantsRollback": [],
    }


def test_what_a_rollback_rolled_back(golden: Callable[[str, str], GoldenCase]) -> None:
    table = golden("6", "mor_basic").table
    storage = LocalStorage(table)
    timeline = ActiveTimeline(storage, TableConfig.load(storage))
    instant = done(R, Action.ROLLBACK)
    file = table / ".hoodie" / f"{R}.rollback"
    file.write_bytes(encode_datum("HoodieRollbackMetadata", rollback_metadata(T1, T2)))
    assert rolled_back_by(timeline, instant) == [T1, T2]
    file.with_suffix(".restore").write_bytes(b"{}")
    with pytest.raises(CorruptFileError, match="does not say"):
        rolled_back_by(timeline, done(R, Action.RESTORE))


def test_the_plan_of_an_empty_rollback_names_its_instant(golden: Callable[[str, str], GoldenCase]) -> None:
    table = golden("6", "rolled_back_mor").table
    storage = LocalStorage(table)
    timeline = ActiveTimeline(storage, TableConfig.load(storage))
    instant = timeline.load().completed().of_actions(Action.ROLLBACK).instants[-1]
    recorded = rolled_back_by(timeline, instant)
    assert len(recorded) == 1
    (table / ".hoodie" / f"{instant.requested_time}.rollback").write_bytes(b"")
    assert rolled_back_by(timeline, instant) == recorded


def test_what_a_restore_rolled_back(golden: Callable[[str, str], GoldenCase]) -> None:
    table = golden("6", "restored_then_written").table
    storage = LocalStorage(table)
    timeline = ActiveTimeline(storage, TableConfig.load(storage))
    (instant,) = timeline.load().completed().of_actions(Action.RESTORE)
    recorded = rolled_back_by(timeline, instant)
    assert recorded
    assert all(time < instant.requested_time for time in recorded)
