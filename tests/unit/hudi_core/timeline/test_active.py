"""Transitions of the timeline: each happens once, and none without its predecessor, whoever races."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from hudi_core.errors import FormatError, StorageExistsError, StorageNotFoundError, TimelineError, UnsupportedVersionError
from hudi_core.storage.base import FileInfo
from hudi_core.storage.memory import MemoryStorage
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.commit_metadata import CommitMetadata, encode_commit
from hudi_core.timeline.instant import Instant, State
from hudi_core.timeline.instant_time import of_epoch_seconds
from hudi_core.timeline.plans import CompactionOperation, CompactionPlan, encode_compaction_plan
from tests.unit.hudi_core.timeline.golden_tables import Layout1

T = "20261120214905004"
INSTANTS = [(T, "commit"), (T, "savepoint"), (f"{T}001", "compaction"), (f"{T}002", "deltacommit"), (f"{T}003", "clean")]
_instants = st.sampled_from(INSTANTS)


class Transitions(RuleBasedStateMachine):
    """Two writers on one storage against a model: the set of states that each (time, action) has reached."""

    def __init__(self) -> None:
        super().__init__()
        storage = MemoryStorage()
        self.writers = [ActiveTimeline(storage, Layout1()), ActiveTimeline(storage, Layout1())]
        self.model: dict[tuple[str, str], set[State]] = {}

    def states(self, instant: tuple[str, str]) -> set[State]:
        return self.model.setdefault(instant, set())

    @rule(writer=st.integers(0, 1), instant=_instants)
    def request(self, writer: int, instant: tuple[str, str]) -> None:
        states = self.states(instant)
        if instant[1] == "savepoint":
            with pytest.raises(TimelineError):
                self.writers[writer].create_requested(*instant)
        elif states:
            with pytest.raises(StorageExistsError):
                self.writers[writer].create_requested(*instant)
        else:
            assert self.writers[writer].create_requested(*instant) == Instant(*instant, State.REQUESTED)
            states.add(State.REQUESTED)

    @rule(writer=st.integers(0, 1), instant=_instants)
    def start(self, writer: int, instant: tuple[str, str]) -> None:
        states = self.states(instant)
        if State.REQUESTED not in states and instant[1] != "savepoint":
            with pytest.raises(TimelineError):
                self.writers[writer].to_inflight(*instant)
        elif State.COMPLETED in states:
            with pytest.raises(StorageExistsError):
                self.writers[writer].to_inflight(*instant)
        else:
            assert self.writers[writer].to_inflight(*instant) == (State.INFLIGHT not in states)
            states.add(State.INFLIGHT)

    @rule(writer=st.integers(0, 1), instant=_instants)
    def complete(self, writer: int, instant: tuple[str, str]) -> None:
        states = self.states(instant)
        if State.INFLIGHT not in states:
            with pytest.raises(TimelineError):
                self.writers[writer].complete(*instant, b"{ }")
        elif State.COMPLETED in states:
            with pytest.raises(StorageExistsError):
                self.writers[writer].complete(*instant, b"{ }")
        else:
            done = self.writers[writer].complete(*instant, b"{ }")
            assert done.is_completed
            assert done.pending_action == instant[1]
            states.add(State.COMPLETED)

    @rule(writer=st.integers(0, 1), instant=_instants, state=st.sampled_from(State))
    def remove(self, writer: int, instant: tuple[str, str], state: State) -> None:
        states = self.states(instant)
        if any(later.rank > state.rank for later in states):
            with pytest.raises(TimelineError):
                self.writers[writer].remove(*instant, state)
        else:
            assert self.writers[writer].remove(*instant, state) == (state in states)
            states.discard(state)

    @invariant()
    def both_writers_see_the_model(self) -> None:
        expected = {
            (time, "commit" if action == "compaction" and State.COMPLETED in states else action, max(states, key=lambda state: state.rank))
            for (time, action), states in self.model.items()
            if states
        }
        for writer in self.writers:
            assert {(instant.requested_time, instant.action, instant.state) for instant in writer.load()} == expected


TestTransitions = Transitions.TestCase
TestTransitions.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)


def _race(count: int, action: Any) -> list[object]:
    results: list[object] = [None] * count
    barrier = threading.Barrier(count)

    def run(index: int) -> None:
        barrier.wait()
        try:
            results[index] = action()
        except StorageExistsError:
            results[index] = "exists"

    threads = [threading.Thread(target=run, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_of_racing_writers_one_moves_the_instant_on() -> None:
    active = ActiveTimeline(MemoryStorage(), Layout1())
    assert _race(8, lambda: active.create_requested(T, "compaction").state).count(State.REQUESTED) == 1
    assert _race(8, lambda: active.to_inflight(T, "compaction")).count(True) == 1
    assert _race(8, lambda: active.complete(T, "compaction", b"{}").state).count(State.COMPLETED) == 1
    assert active.names() == [f"{T}.commit", f"{T}.compaction.inflight", f"{T}.compaction.requested"]


def test_an_empty_completed_file_is_refused_but_read() -> None:
    storage = MemoryStorage()
    active = ActiveTimeline(storage, Layout1())
    active.create_requested(T, "commit")
    active.to_inflight(T, "commit", b"{ }")
    with pytest.raises(TimelineError, match="must have content"):
        active.complete(T, "commit", b"")
    storage.write(f".hoodie/{T}.commit", b"")
    (instant,) = active.load()
    assert active.read_commit(instant) == CommitMetadata()
    assert active.read_any(T, "commit", State.COMPLETED) == {}


def test_the_metadata_table_has_a_timeline_of_its_own() -> None:
    storage = MemoryStorage()
    ActiveTimeline(storage, Layout1(), ".hoodie/metadata").create_requested(T, "deltacommit")
    assert storage.exists(f".hoodie/metadata/.hoodie/{T}.deltacommit.requested")
    assert len(ActiveTimeline(storage, Layout1()).load()) == 0


def test_reads_name_what_they_miss() -> None:
    storage = MemoryStorage()
    active = ActiveTimeline(storage, Layout1())
    with pytest.raises(StorageNotFoundError):
        active.read_plan(T)
    with pytest.raises(TimelineError, match="no compaction plan"):
        active.read_plan(T, "clean")
    with pytest.raises(TimelineError, match="not a completed commit"):
        active.read_commit(Instant(T, "compaction", State.REQUESTED))
    storage.write(f".hoodie/{T}.compaction.requested", b"Obj\x01 cut")
    with pytest.raises(FormatError, match=f"{T}.compaction.requested"):
        active.read_plans(active.load())


def test_plans_and_commits_come_back() -> None:
    active = ActiveTimeline(MemoryStorage(), Layout1())
    plan = CompactionPlan((CompactionOperation("p", "f-0", "001", "f-0_0-0-0_001.parquet", (".f-0_001.log.1_0-0-0",)),))
    active.create_requested(T, "compaction", encode_compaction_plan(plan))
    assert active.read_plans(active.load()) == {T: plan}
    active.to_inflight(T, "compaction")
    metadata = CommitMetadata(compacted=True, operation_type="COMPACT", extra_metadata={"schema": "{}"})
    done = active.complete(T, "compaction", encode_commit(metadata))
    assert active.read_commit(done) == metadata
    assert active.read_plan(T) == plan


def test_an_unknown_layout_is_refused_before_anything_is_read() -> None:
    class Layout3:
        layout_version = 3
        timeline_folder = ".hoodie/timeline"

    with pytest.raises(UnsupportedVersionError):
        ActiveTimeline(MemoryStorage(), Layout3())


class Layout2:
    layout_version = 2
    timeline_folder = ".hoodie/timeline"


def test_files_that_an_upgrade_left_completed_when_they_were_modified() -> None:
    storage = MemoryStorage()
    commit = encode_commit(CommitMetadata(operation_type="UPSERT"))
    storage.write(".hoodie/timeline/20261120214905004.commit", commit)
    storage.write(".hoodie/timeline/20261120214906004_20261120214907004.commit", commit)
    before = of_epoch_seconds(storage.stat(".hoodie/timeline/20261120214905004.commit").modified, "Asia/Tokyo")
    active = ActiveTimeline(storage, Layout2(), zone="Asia/Tokyo")
    legacy, new = active.load()
    assert (legacy.completion_time, legacy.is_legacy) == (before, True)
    assert (new.completion_time, new.is_legacy) == ("20261120214907004", False)
    assert active.path_of(legacy) == ".hoodie/timeline/20261120214905004.commit"
    assert active.read_commit(legacy).operation_type == "UPSERT"


def test_a_legacy_file_that_is_archived_meanwhile_has_no_completion_time() -> None:
    class Archiving(MemoryStorage):
        def stat(self, path: str) -> FileInfo:
            self.delete(path)
            return super().stat(path)

    storage = Archiving()
    storage.write(".hoodie/timeline/20261120214905004.commit", b"{}")
    (instant,) = ActiveTimeline(storage, Layout2()).load()
    assert instant.completion_time is None
