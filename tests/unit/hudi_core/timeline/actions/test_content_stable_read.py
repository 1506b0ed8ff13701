"""Files of a timeline that are read while their writer is in the midst of them, as Hudi's is on a plain file system."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudi_core.errors import CorruptFileError
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.actions import content
from hudi_core.timeline.actions.commit import CommitMetadata, encode_commit
from hudi_core.timeline.actions.compaction import CompactionOperation, CompactionPlan, encode_compaction_plan
from hudi_core.timeline.actions.content import YOUNG_SECONDS
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, Instant, State
from tests.support.golden_timelines import Layout1

T = "20261120214905004"
PLAN = CompactionPlan((CompactionOperation("p", "f-0", "001", "f-0_0-0-0_001.parquet", (".f-0_001.log.1_0-0-0",)),))
COMMIT = CommitMetadata(operation_type="UPSERT", extra_metadata={"schema": '{"type": "record"}' * 1000})
BUFFER_BYTES = 4608
COMPLETED = Instant(T, Action.DELTA_COMMIT, State.COMPLETED, None, Action.DELTA_COMMIT)
READS: dict[str, tuple[State, bytes, Callable[[ActiveTimeline], Any], Any]] = {
    "compaction": (State.REQUESTED, encode_compaction_plan(PLAN), lambda active: active.read_plan(T), PLAN),
    "deltacommit": (State.COMPLETED, encode_commit(COMMIT), lambda active: active.read_commit(COMPLETED), COMMIT),
}


def timeline_at(base: Path, action: str, state: State) -> tuple[ActiveTimeline, Path]:
    """A timeline below `base`, and where the file of a state of its one instant is."""
    active = ActiveTimeline(LocalStorage(base), Layout1())
    path = base / active.path(T, action, state)
    path.parent.mkdir(parents=True)
    return active, path


@pytest.fixture(autouse=True, scope="module")
def damage_is_read_at_once() -> None:
    """Not here: the writers of these files are on their way."""


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that reading has waited, without waiting."""
    found: list[float] = []
    monkeypatch.setattr(content.time, "sleep", found.append)
    return found


@pytest.mark.parametrize("action", READS)
def test_a_file_is_read_when_its_writer_is_through(action: str, tmp_path: Path) -> None:
    state, content, read, expected = READS[action]
    active, path = timeline_at(tmp_path, action, state)
    path.touch()

    def write() -> None:
        for start in range(0, len(content), BUFFER_BYTES):
            time.sleep(0.02)
            with path.open("ab") as file:
                file.write(content[start : start + BUFFER_BYTES])

    writer = threading.Thread(target=write)
    writer.start()
    assert read(active) == expected
    writer.join()


@pytest.mark.parametrize("size", [0, 3, 30, BUFFER_BYTES])
def test_what_a_dead_writer_left_is_returned_as_it_is(size: int, tmp_path: Path, pauses: list[float]) -> None:
    active, path = timeline_at(tmp_path, Action.DELTA_COMMIT, State.COMPLETED)
    left = encode_commit(COMMIT)[:size]
    path.write_bytes(left)
    assert active.read_details(COMPLETED) == left
    assert pauses == list(content.PAUSES_SECONDS)
    pauses.clear()
    os.utime(path, (time.time() - YOUNG_SECONDS - 1,) * 2)
    assert active.read_details(COMPLETED) == left
    assert pauses == []


def test_a_plan_that_stays_cut_short_is_damaged(tmp_path: Path, pauses: list[float]) -> None:
    active, path = timeline_at(tmp_path, Action.COMPACTION, State.REQUESTED)
    path.write_bytes(encode_compaction_plan(PLAN)[:-1])
    with pytest.raises(CorruptFileError, match=r"compaction\.requested"):
        active.read_plan(T)
    assert pauses == list(content.PAUSES_SECONDS)


@pytest.mark.parametrize("action", READS)
def test_whole_files_are_read_once(action: str, tmp_path: Path, pauses: list[float]) -> None:
    state, content, read, expected = READS[action]
    active, path = timeline_at(tmp_path, action, state)
    path.write_bytes(content)
    assert read(active) == expected
    assert pauses == []


@pytest.mark.parametrize(
    ("action", "state"), [(Action.DELTA_COMMIT, State.REQUESTED), (Action.COMPACTION, State.INFLIGHT)]
)
def test_files_that_are_empty_by_their_nature_are_not_waited_for(
    action: str, state: State, tmp_path: Path, pauses: list[float]
) -> None:
    active, path = timeline_at(tmp_path, action, state)
    path.touch()
    assert active.read_any(T, action, state) == {}
    assert pauses == []
