"""Transitions of the timeline: each happens once, and none without its predecessor, in any race."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from hudi_core.errors import (
    ConflictError,
    CorruptFileError,
    FormatError,
    StorageExistsError,
    StorageNotFoundError,
    TimelineError,
    UnsupportedVersionError,
)
from hudi_core.storage.base import FileInfo
from hudi_core.timeline.actions.commit import CommitMetadata, encode_commit
from hudi_core.timeline.actions.compaction import CompactionOperation, CompactionPlan, encode_compaction_plan
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Instant, State
from hudi_core.timeline.instant_time import of_epoch_seconds
from hudi_core.timeline.timeline import Timeline
from tests.support.fault_storage import MUTATIONS, FaultPlan, FaultStorage, InjectedCrash
from tests.support.golden_timelines import Layout1
from tests.support.memory_storage import MemoryStorage

T = "20261120214905004"
INSTANTS = [
    (T, "commit"),
    (T, "savepoint"),
    (f"{T}001", "compaction"),
    (f"{T}002", "deltacommit"),
    (f"{T}003", "clean"),
]
_instants = st.sampled_from(INSTANTS)


class Layout2:
    """What a timeline asks of the configuration of a table of version 8 or 9."""

    layout_version = 2
    timeline_folder = ".hoodie/timeline"


class Transitions(RuleBasedStateMachine):
    """Two writers on one storage against a model: the set of states that each (time, action) has reached."""

    layout: Any = Layout1

    def __init__(self) -> None:
        super().__init__()
        storage = MemoryStorage()
        self.writers = [ActiveTimeline(storage, self.layout()), ActiveTimeline(storage, self.layout())]
        self.completions = itertools.count(20261121000000000)
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
        completion = None if self.layout is Layout1 else str(next(self.completions))
        if State.INFLIGHT not in states:
            with pytest.raises(TimelineError):
                self.writers[writer].complete(*instant, b"{ }", completion)
        elif State.COMPLETED in states:
            with pytest.raises(StorageExistsError):
                self.writers[writer].complete(*instant, b"{ }", completion)
        else:
            done = self.writers[writer].complete(*instant, b"{ }", completion)
            assert done.is_completed
            assert done.pending_action == instant[1]
            assert done.completion_time == completion
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

    @rule(writer=st.integers(0, 1), instant=_instants)
    def delete_instant(self, writer: int, instant: tuple[str, str]) -> None:
        states = self.states(instant)
        assert self.writers[writer].delete_instant(*instant) == bool(states)
        states.clear()

    @rule(writer=st.integers(0, 1), instant=_instants)
    def roll_back_to_requested(self, writer: int, instant: tuple[str, str]) -> None:
        states = self.states(instant)
        if instant[1] == "savepoint" or State.REQUESTED not in states or State.COMPLETED in states:
            with pytest.raises(TimelineError):
                self.writers[writer].roll_back_to_requested(*instant)
        else:
            assert self.writers[writer].roll_back_to_requested(*instant) == (State.INFLIGHT in states)
            states.discard(State.INFLIGHT)

    @invariant()
    def both_writers_see_the_model(self) -> None:
        expected = {
            (
                time,
                "commit" if action == "compaction" and State.COMPLETED in states else action,
                max(states, key=lambda state: state.rank),
            )
            for (time, action), states in self.model.items()
            if states
        }
        for writer in self.writers:
            assert {(instant.requested_time, instant.action, instant.state) for instant in writer.load()} == expected


class TransitionsOfLayout2(Transitions):
    """The same where names carry completion times."""

    layout = Layout2


_SETTINGS = settings(max_examples=40, stateful_step_count=30, deadline=None)
TestTransitions = Transitions.TestCase
TestTransitions.settings = _SETTINGS
TestTransitionsOfLayout2 = TransitionsOfLayout2.TestCase
TestTransitionsOfLayout2.settings = _SETTINGS


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


LAYOUTS = pytest.mark.parametrize("layout", [Layout1, Layout2])
DONE = "20261121000000000"


def _completed(storage: MemoryStorage, layout: Any, time: str = T, action: str = "compaction") -> ActiveTimeline:
    active = ActiveTimeline(storage, layout())
    active.create_requested(time, action, b"plan")
    active.to_inflight(time, action)
    active.complete(time, action, b"{}", DONE)
    return active


def test_layout_2_completes_at_a_time_and_never_before_it_began() -> None:
    active = ActiveTimeline(MemoryStorage(), Layout2())
    active.create_requested(T, "clustering", b"plan")
    active.to_inflight(T, "clustering")
    with pytest.raises(TimelineError, match="requested and a completion time"):
        active.complete(T, "clustering", b"{}")
    with pytest.raises(TimelineError, match="before it began"):
        active.complete(T, "clustering", b"{}", T)
    done = active.complete(T, "clustering", b"{}", DONE)
    assert (done.action, done.pending_action, done.completion_time) == ("replacecommit", "clustering", DONE)
    assert active.names() == [f"{T}.clustering.inflight", f"{T}.clustering.requested", f"{T}_{DONE}.replacecommit"]


@pytest.mark.parametrize("left", [f"{T}_20261120220000000.commit", f"{T}.commit"])
def test_layout_2_completes_no_instant_that_has_any_completed_file(left: str) -> None:
    """Under whatever time it completed, and also when an upgrade left it with a name of layout 1."""
    storage = MemoryStorage()
    active = ActiveTimeline(storage, Layout2())
    active.create_requested(T, "compaction", b"plan")
    active.to_inflight(T, "compaction")
    storage.write(f".hoodie/timeline/{left}", b"{}")
    for refused in (lambda: active.complete(T, "compaction", b"{}", DONE), lambda: active.to_inflight(T, "compaction")):
        with pytest.raises(StorageExistsError) as caught:
            refused()
        assert caught.value.path == f".hoodie/timeline/{left}"
    assert active.completed_paths(T, "compaction") == [f".hoodie/timeline/{left}"]
    assert active.completed_paths(T[:-1], "compaction") == []
    assert active.completed_paths(T, "clean") == []


def test_a_savepoint_does_not_complete_the_commit_of_its_instant() -> None:
    storage = MemoryStorage()
    active = ActiveTimeline(storage, Layout2())
    storage.write(f".hoodie/timeline/{T}_{DONE}.savepoint", b"{}")
    active.create_requested(T, "commit")
    active.to_inflight(T, "commit", b"{ }")
    assert active.complete(T, "commit", b"{}", DONE).is_completed
    assert active.delete_instant(T, "commit")
    assert active.names() == [f"{T}_{DONE}.savepoint"]


@LAYOUTS
def test_a_kill_anywhere_in_a_deletion_leaves_it_less_far_and_the_next_one_ends_it(layout: Any) -> None:
    for number in range(3):
        for timing in ("before", "after"):
            storage = MemoryStorage()
            _completed(storage, layout)
            plan = FaultPlan(kill_at=number, counts=MUTATIONS, timing=timing)  # type: ignore[arg-type]
            with pytest.raises(InjectedCrash):
                ActiveTimeline(FaultStorage(storage, plan), layout()).delete_instant(T, "compaction")
            active = ActiveTimeline(storage, layout())
            deletes = number + (timing == "after")
            left = active.load().find(T, "compaction")
            assert (None if left is None else left.state) == [State.COMPLETED, State.INFLIGHT, State.REQUESTED, None][
                deletes
            ]
            active.delete_instant(T, "compaction")
            assert active.names() == []
            assert not active.delete_instant(T, "compaction")


@LAYOUTS
def test_a_deletion_removes_every_completed_file(layout: Any) -> None:
    storage = MemoryStorage()
    active = _completed(storage, layout)
    if layout is Layout2:
        storage.write(f".hoodie/timeline/{T}_20261121000000001.commit", b"{}")
    assert active.delete_instant(T, "compaction")
    assert active.names() == []


@LAYOUTS
def test_a_plan_that_is_gone_is_not_rolled_back_to(layout: Any) -> None:
    storage = MemoryStorage()
    active = ActiveTimeline(storage, layout())
    storage.write(active.path(T, "compaction", State.INFLIGHT), b"")
    with pytest.raises(TimelineError, match="has lost its plan"):
        active.roll_back_to_requested(T, "compaction")


def _history(storage: MemoryStorage, layout: Any) -> ActiveTimeline:
    for number in range(4):
        _completed(
            storage, layout, f"2026112021490500{number}", ("deltacommit", "compaction", "clean", "rollback")[number]
        )
    storage.write(f"{ActiveTimeline(storage, layout()).folder}/hoodie.properties", b"foreign")
    return ActiveTimeline(storage, layout())


@LAYOUTS
def test_archived_instants_are_forgotten_pending_files_first_then_completed_oldest_first(layout: Any) -> None:
    storage = MemoryStorage()
    _history(storage, layout)
    plan = FaultPlan()
    active = ActiveTimeline(FaultStorage(storage, plan), layout())
    archived = active.load().before("20261120214905003")
    assert active.forget(reversed(list(archived))) == 9
    deleted = [active._naming.instants([operation.path.rpartition("/")[2]])[0] for operation in plan.mutations()]
    assert [instant.is_completed for instant in deleted] == [False] * 6 + [True] * 3
    assert [instant.requested_time[-1] for instant in deleted[6:]] == ["0", "1", "2"]
    assert [instant.requested_time[-1] for instant in active.load()] == ["3"]
    assert "hoodie.properties" in active.names()
    assert active.forget(archived) == 0


@LAYOUTS
def test_hudi_7207_a_kill_while_archived_instants_are_forgotten_leaves_no_hole(layout: Any) -> None:
    """And the same instants can be forgotten again. Without the order, deleting instant by instant, the timeline would
    show holes.
    """
    for number in range(9):
        storage = MemoryStorage()
        archived = _history(storage, layout).load().before("20261120214905003")
        plan = FaultPlan(kill_at=number, counts=MUTATIONS)
        with pytest.raises(InjectedCrash):
            ActiveTimeline(FaultStorage(storage, plan), layout()).forget(archived)
        active = ActiveTimeline(storage, layout())
        left = [instant.requested_time[-1] for instant in active.load().completed()]
        assert left == list("0123")[4 - len(left) :]
        assert not active.load().pending()
        active.forget(archived)
        assert [instant.requested_time[-1] for instant in active.load()] == ["3"]


@LAYOUTS
def test_a_pending_instant_is_never_forgotten(layout: Any) -> None:
    storage = MemoryStorage()
    active = _completed(storage, layout)
    active.create_requested("20261120214905005", "compaction", b"plan")
    before = active.names()
    with pytest.raises(TimelineError, match="is not completed"):
        active.forget(active.load())
    assert active.names() == before


@LAYOUTS
def test_when_an_instant_completed_in_layout_1_is_when_its_file_was_modified(layout: Any) -> None:
    storage = MemoryStorage(clock=lambda: 1_800_000_000.0)
    active = _completed(storage, layout)
    (instant,) = active.load()
    expected = of_epoch_seconds(1_800_000_000.0) if layout is Layout1 else DONE
    assert active.completion_times(active.load()) == {instant: expected}
    assert set(active.modified().values()) == {1_800_000_000.0}
    storage.delete(active.path_of(instant))
    assert layout is Layout2 or active.completion_times(Timeline([instant])) == {}


@LAYOUTS
def test_an_empty_completed_replacecommit_is_damaged(layout: Any) -> None:
    """Read as metadata without content, it would bring back the file groups that it replaced."""
    storage = MemoryStorage()
    active = ActiveTimeline(storage, layout)
    storage.write(active.path("20261120214905004", "replacecommit", State.COMPLETED, DONE), b"")
    (instant,) = active.load()
    with pytest.raises(CorruptFileError, match="is empty") as caught:
        active.read_commit(instant)
    assert caught.value.path == active.path_of(instant)


@pytest.mark.parametrize("conditional", [True, False])
def test_an_inflight_file_is_emptied_and_not_created_anew(conditional: bool) -> None:
    storage = MemoryStorage()
    storage.supports_conditional_write = conditional
    active = ActiveTimeline(storage, Layout2())
    active.create_requested(T, "clustering", b"plan")
    active.to_inflight(T, "clustering", b"file groups")
    path = active.path(T, "clustering", State.INFLIGHT)
    for _ in range(2):
        active.empty_inflight(T, "clustering")
        assert storage.read(path) == b""
    active.remove(T, "clustering", State.INFLIGHT)
    with pytest.raises(ConflictError, match="rolled clustering"):
        active.empty_inflight(T, "clustering")
    assert not storage.exists(path)
