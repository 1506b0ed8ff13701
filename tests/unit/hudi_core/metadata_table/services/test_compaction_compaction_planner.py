"""When a compaction of the metadata table is due, and which log files its plan names."""

from __future__ import annotations

import pytest

from hudi_core.config.versions import V6, V8, V9, TableVersion
from hudi_core.metadata_table.read.file_group import LatestSlice
from hudi_core.metadata_table.services.compaction import Due, compaction_plan, due
from hudi_core.storage.base import FileInfo
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.timeline import Timeline

BASE = FileInfo(".hoodie/metadata/files/files-0000-0_0-1-1_20260101000000300.hfile", 1 << 20, 0.0)
DRAWN = "20240105000000000"
FIRST, SECOND = "20240101000000000", "20240102000000000"


def log(instant: str) -> FileInfo:
    return FileInfo(f".hoodie/metadata/files/.files-0000-0_{instant}.log.1_0-0-0", 100, 0.0)


def planned(logs: tuple[FileInfo, ...], base: FileInfo | None) -> list[str]:
    """With one deltacommit on the timeline."""
    metadata_timeline = Timeline(
        [Instant("20260101000000400", Action.DELTA_COMMIT, State.COMPLETED, "20260101000000410")]
    )
    plan = compaction_plan(
        [LatestSlice("files-0000-0", "20260101000000300", base, logs, "files")],
        metadata_timeline,
        "20260101000000500",
        V8,
    )
    return [name.split("_")[1].partition(".")[0] for operation in plan.operations for name in operation.log_files]


def test_what_the_base_file_holds_already_is_excluded() -> None:
    """It lies on top of the newest slice, as its completion is archived, until real Hudi cleans it away
    under the plan.
    """
    assert planned((log("20260101000000200"), log("20260101000000400")), BASE) == ["20260101000000400"]
    assert planned((log("20260101000000200"),), BASE) == []


def test_what_no_base_file_holds_stays_in() -> None:
    assert planned((log("20260101000000200"), log("20260101000000400")), None) == [
        "20260101000000200",
        "20260101000000400",
    ]
    assert planned((log("20260101000000350"),), BASE) == ["20260101000000350"]


def completed(time: str, action: str, at: str, planned: str | None = None) -> Instant:
    return Instant(time, action, State.COMPLETED, at, planned)


def decided(data: Timeline, metadata_timeline: Timeline, features: TableVersion) -> Due | str:
    return due(data, metadata_timeline, features, trigger=1, draw=lambda: DRAWN)


@pytest.mark.parametrize("features", [V8, V9])
def test_no_compaction_is_planned_while_an_index_is_being_built(features: TableVersion) -> None:
    """The index's base files bear the indexing's instant: a compaction of what writers recorded meanwhile would
    lie above them.
    """
    recorded = [
        completed(FIRST, Action.DELTA_COMMIT, "20240101000001000"),
        completed(SECOND, Action.DELTA_COMMIT, "20240102000001000"),
    ]
    started_at = Instant("20240101120000000", Action.INDEXING, State.INFLIGHT)
    data = [completed(item.requested_time, Action.DELTA_COMMIT, item.completed_at) for item in recorded]
    found = decided(Timeline([*data, started_at]), Timeline(recorded), features)
    assert isinstance(found, str)
    assert started_at.requested_time in found
    assert decided(Timeline(data), Timeline(recorded), features) == Due(DRAWN, DRAWN)
    requested = Instant(started_at.requested_time, Action.INDEXING, State.REQUESTED)
    assert decided(Timeline([*data, requested]), Timeline(recorded), features) == Due(DRAWN, DRAWN), (
        "nothing is built yet"
    )
    built = completed(started_at.requested_time, Action.DELTA_COMMIT, "20240102120000000")
    assert decided(Timeline([*data, started_at]), Timeline([*recorded, built]), features) == Due(
        "20240101115959999", "20240101115959999"
    )


@pytest.mark.parametrize(("features", "instant"), [(V6, f"{SECOND}001"), (V8, DRAWN), (V9, DRAWN)])
def test_an_unfinished_savepoint_does_not_hold_up_a_compaction(features: TableVersion, instant: str) -> None:
    recorded = [completed(time, Action.DELTA_COMMIT, f"{time[:8]}120000000") for time in (FIRST, SECOND)]
    saved = Instant(FIRST, Action.SAVEPOINT, State.INFLIGHT)
    found = decided(Timeline([*recorded, saved]), Timeline(recorded), features)
    assert isinstance(found, Due)
    assert found.instant == instant


@pytest.mark.parametrize("features", [V8, V9])
def test_no_compaction_is_planned_before_the_latest(features: TableVersion) -> None:
    compacted = completed("20240101120000000", Action.COMMIT, "20240101120001000", Action.COMPACTION)
    recorded = [
        completed(time, Action.DELTA_COMMIT, f"20240102{number:02d}0000000")
        for number, time in enumerate((FIRST, SECOND))
    ]
    pending = Instant(FIRST, Action.DELTA_COMMIT, State.INFLIGHT)
    assert isinstance(decided(Timeline([pending]), Timeline([*recorded, compacted]), features), str)
