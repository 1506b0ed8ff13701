"""The one way to complete an instant, on both layouts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from hudi_core.errors import EXIT_RETRY, ConflictError, LockError, StorageError, TimelineError
from hudi_core.model.names import CLAIMS
from hudi_core.timeline.actions.commit import CommitMetadata, encode_commit
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction import commit
from hudi_core.transaction.claim import claim
from hudi_core.transaction.commit import CheckOwner, check_not_rolled_back
from tests.support.inflight_compactions import OWNER, LatePuts, MeanwhileStorage, T, Table
from tests.support.memory_storage import MemoryStorage

METADATA = encode_commit(CommitMetadata({}, True, "COMPACT", {"schema": "{}"}))


@dataclass
class Sink:
    """Records what is published, and lets something happen meanwhile."""

    seen: list[str] = field(default_factory=list)
    meanwhile: list[Callable[[], object]] = field(default_factory=list)

    def publish(self, check_lock: CheckOwner) -> None:
        check_lock()
        self.seen.append(T)
        for action in self.meanwhile:
            action()


class Setup:
    def __init__(self, layout: int) -> None:
        self.table = Table(layout).begin()
        self.storage = self.table.storage
        self.active = self.table.active
        self.claim = self.table.claim()
        self.sink = Sink()

    def complete(self) -> Instant:
        return self.table.completer(self.claim).complete(T, Action.COMPACTION, METADATA, publish=self.sink.publish)

    def complete_elsewhere(self, content: bytes) -> Instant:
        return self.active.complete(T, Action.COMPACTION, content, "20990101000000000")

    def state(self) -> State:
        return self.active.load().get(T, Action.COMPACTION).state


@pytest.fixture(params=[1, 2])
def setup(request: pytest.FixtureRequest) -> Setup:
    return Setup(request.param)


def test_published_first_then_completed_under_the_lock(setup: Setup) -> None:
    inflight = setup.active.path(T, Action.COMPACTION, State.INFLIGHT)
    setup.sink.meanwhile = [lambda: setup.storage.stat(".hoodie/lock"), lambda: setup.storage.stat(inflight)]
    completed = setup.complete()
    assert setup.sink.seen == [T]
    assert setup.storage.read(setup.active.path_of(completed)) == METADATA
    assert setup.active.load().get(T, Action.COMPACTION) == completed
    assert not setup.storage.exists(".hoodie/lock")


def test_layout_2_completes_at_a_time_after_everything_else_on_the_timeline() -> None:
    setup = Setup(2)
    setup.active.create_requested("20880101000000000", Action.DELTA_COMMIT)
    setup.active.to_inflight("20880101000000000", Action.DELTA_COMMIT)
    setup.active.complete("20880101000000000", Action.DELTA_COMMIT, b"{}", "20880102000000000")
    assert setup.complete().completion_time == "20880102000000001"


def test_without_a_metadata_table_nothing_is_published(setup: Setup) -> None:
    setup.table.completer(setup.claim).complete(T, Action.COMPACTION, METADATA)
    assert setup.state() is State.COMPLETED


def test_a_lost_claim_does_not_publish(setup: Setup) -> None:
    setup.claim.release()
    claim(setup.storage, T, OWNER)
    with pytest.raises(ConflictError, match="taken over"):
        setup.complete()
    assert setup.sink.seen == []


def test_a_claim_lost_while_publishing_does_not_complete(setup: Setup) -> None:
    setup.sink.meanwhile = [lambda: setup.table.claim(expired=True)]
    with pytest.raises(ConflictError, match="a new owner closed"):
        setup.complete()
    assert setup.state() is State.INFLIGHT


def test_a_lock_lost_while_publishing_does_not_complete(setup: Setup) -> None:
    setup.sink.meanwhile = [lambda: setup.storage.delete(".hoodie/lock")]
    with pytest.raises(LockError):
        setup.complete()
    assert setup.state() is State.INFLIGHT
    assert not setup.claim.may_have_decided


def test_only_an_inflight_instant_completes(setup: Setup) -> None:
    setup.active.remove(T, Action.COMPACTION, State.INFLIGHT)
    with pytest.raises(ConflictError, match="requested on the timeline"):
        setup.complete()
    setup.active.remove(T, Action.COMPACTION, State.REQUESTED)
    with pytest.raises(ConflictError, match="no longer on the timeline"):
        setup.complete()
    assert setup.sink.seen == []


def test_a_completed_instant_is_a_conflict(setup: Setup) -> None:
    setup.complete_elsewhere(b"another process's")
    with pytest.raises(ConflictError, match="completed on the timeline"):
        setup.complete()


def test_a_commit_that_appears_in_the_last_moment_is_a_conflict(setup: Setup) -> None:
    setup.sink.meanwhile = [lambda: setup.complete_elsewhere(b"{}")]
    with pytest.raises(ConflictError, match="another process completed"):
        setup.complete()
    assert setup.table.contents() == [b"{}"]


class LostAnswers(MemoryStorage):
    """Carries a create out and then says that it failed, or that the file is there, as a retry of a lost answer
    does.
    """

    def __init__(self, ending: str, error: type[Exception] | None) -> None:
        super().__init__()
        self.ending = ending
        self.error = error

    def create_exclusive(self, path: str, data: bytes) -> None:
        super().create_exclusive(path, data)
        if path.endswith(self.ending):
            ending, self.ending = self.ending, "never"
            if self.error is not None:
                raise self.error(f"no answer for {ending}")
            super().create_exclusive(path, data)


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.parametrize("ending", [".commit", ".decision"])
def test_our_own_request_whose_answer_got_lost_is_ours(layout: int, ending: str) -> None:
    table = Table(layout, LostAnswers(ending, None)).begin()
    table.completer(table.claim()).complete(T, Action.COMPACTION, METADATA)
    assert table.contents() == [METADATA]


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.parametrize("ending", [".commit", ".decision"])
def test_a_request_with_no_answer_is_finished_by_the_next_run(layout: int, ending: str) -> None:
    table = Table(layout, LostAnswers(ending, StorageError)).begin()
    with table.claim() as held, pytest.raises(StorageError, match="no answer"):
        table.completer(held).complete(T, Action.COMPACTION, METADATA)
    assert held.may_have_decided
    with table.claim() as again:
        finished = table.completer(again).finish_decided(T)
        again.check()
    assert finished is not None
    assert finished.is_completed
    assert table.contents() == [METADATA]


def test_preconditions_see_the_timeline_under_the_lock(setup: Setup) -> None:
    def refuse(timeline: Timeline) -> None:
        assert setup.storage.exists(".hoodie/lock")
        check_not_rolled_back(timeline, T, lambda rollback: T, started)

    started = setup.active.load()
    setup.active.create_requested("20260103000000000", Action.ROLLBACK, b"plan")
    with pytest.raises(ConflictError, match="20260103000000000"):
        setup.table.completer(setup.claim).complete(
            T, Action.COMPACTION, METADATA, publish=setup.sink.publish, preconditions=(refuse,)
        )
    assert setup.sink.seen == []
    check_not_rolled_back(setup.active.load(), T, lambda rollback: "another instant", started)


def test_a_rollback_counts_that_was_not_completed_at_the_start(setup: Setup) -> None:
    rollback, completion = "20260103000000000", None if setup.active.layout == 1 else "20260103000001000"
    setup.active.create_requested(rollback, Action.ROLLBACK, b"plan")
    before = setup.active.load()
    setup.active.to_inflight(rollback, Action.ROLLBACK)
    setup.active.complete(rollback, Action.ROLLBACK, b"done", completion)
    after = setup.active.load()
    with pytest.raises(ConflictError, match="has rolled"):
        check_not_rolled_back(after, T, lambda rollback: T, before)
    check_not_rolled_back(after, T, lambda rollback: T, after)


def test_an_empty_content_is_refused_and_leaves_the_instant_inflight(setup: Setup) -> None:
    with pytest.raises(TimelineError, match="must have content"):
        setup.table.completer(setup.claim).complete(T, Action.COMPACTION, b"")
    assert setup.state() is State.INFLIGHT
    assert not setup.claim.may_have_decided


def decided_and_cut_off(table: Table) -> None:
    """An owner that dies between its decision and its put."""
    with table.claim() as held:
        storage = MeanwhileStorage()
        storage.__dict__.update({name: value for name, value in table.storage.__dict__.items() if name != "before"})

        def cut() -> None:
            raise KeyboardInterrupt

        storage.when(lambda path: path.endswith(".commit"), cut)
        with pytest.raises(KeyboardInterrupt):
            table.completer(held, storage).complete(T, Action.COMPACTION, METADATA)


def test_what_a_dead_owner_decided_is_completed_by_the_next_with_the_same_bytes(setup: Setup) -> None:
    setup.claim.release()
    decided_and_cut_off(setup.table)
    assert setup.state() is State.INFLIGHT
    with setup.table.claim() as held:
        with pytest.raises(ConflictError, match="decided to complete"):
            held.check()
        with pytest.raises(ConflictError, match="decided to complete"):
            setup.table.completer(held).complete(T, Action.COMPACTION, b"other bytes")
        finished = setup.table.completer(held).finish_decided(
            T, why_not=lambda decision, _: None if decision.content == METADATA else "it has other bytes"
        )
        assert finished is not None
        held.check()
        assert setup.table.completer(held).finish_decided(T) is None
    assert setup.table.contents() == [METADATA]


@pytest.fixture
def too_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """No request of an earlier owner arrives any more."""
    monkeypatch.setattr(commit, "LATE_SECONDS", 0)


@pytest.mark.usefixtures("too_late")
def test_a_decision_whose_files_are_gone_is_abandoned_for_good(setup: Setup) -> None:
    setup.claim.release()
    decided_and_cut_off(setup.table)
    with setup.table.claim() as held:
        assert setup.table.completer(held).finish_decided(T, why_not=lambda *_: "its files are gone") is None
        held.check()
    with setup.table.claim() as held:
        assert held.decided is None
        setup.table.completer(held).complete(T, Action.COMPACTION, b"a new run's")
    assert setup.table.contents() == [b"a new run's"]


@pytest.mark.parametrize("layout", [1, 2])
def test_no_decision_is_abandoned_while_its_put_may_arrive(layout: int) -> None:
    """By the clock of the storage, and counted from the release of the claim, behind which the owner sends nothing."""
    now = [1_000_000.0]
    storage = LatePuts(lambda path: path.endswith(".commit"), clock=lambda: now[0])
    table = Table(layout, storage).begin()
    with table.claim() as held:
        with pytest.raises(StorageError, match="timed out"):
            table.completer(held).complete(T, Action.COMPACTION, METADATA)
        now[0] += 100.0
    now[0] += commit.LATE_SECONDS - 60.5
    with table.claim() as held:
        with pytest.raises(ConflictError, match="may still arrive") as refused:
            table.completer(held).finish_decided(T, why_not=lambda *_: "its files are gone")
        assert "in 61 seconds" in str(refused.value.remedy)
        assert refused.value.exit_code == EXIT_RETRY
    assert table.active.load().get(T, Action.COMPACTION).state is State.INFLIGHT
    storage.arrive()
    now[0] += 61.0
    with table.claim() as held:
        finished = table.completer(held).finish_decided(T, why_not=lambda *_: "its files are gone")
    assert finished == table.active.load().get(T, Action.COMPACTION)
    assert table.contents() == [METADATA]


@pytest.mark.usefixtures("too_late")
def test_a_decision_on_an_instant_that_was_rolled_back_is_abandoned(setup: Setup) -> None:
    setup.claim.release()
    decided_and_cut_off(setup.table)
    setup.active.roll_back_to_requested(T, Action.COMPACTION)
    with setup.table.claim() as held:
        assert setup.table.completer(held).finish_decided(T) is None
        held.check()
    assert setup.state() is State.REQUESTED


def test_a_decision_that_was_carried_out_is_reported_as_completed(setup: Setup) -> None:
    setup.complete()
    setup.claim.release()
    with setup.table.claim() as held:
        finished = setup.table.completer(held).finish_decided(T)
    assert finished == setup.active.load().get(T, Action.COMPACTION)
    assert setup.storage.list_files(f"{CLAIMS}/{T}")


def test_only_the_owner_finishes(setup: Setup) -> None:
    setup.claim.release()
    decided_and_cut_off(setup.table)
    first = setup.table.claim()
    with setup.table.claim(expired=True) as second:
        with pytest.raises(ConflictError, match="taken over"):
            setup.table.completer(first).finish_decided(T)
        assert setup.table.completer(second).finish_decided(T) is not None
    assert setup.table.contents() == [METADATA]


@pytest.mark.usefixtures("too_late")
def test_a_put_that_arrives_while_its_decision_is_abandoned_counts(setup: Setup) -> None:
    setup.claim.release()
    decided_and_cut_off(setup.table)
    with setup.table.claim() as held:
        assert held.decided is not None
        decision = held.decided

        def late_put(*_: object) -> str:
            setup.active.complete(T, Action.COMPACTION, decision.content, decision.completion_time)
            return "its files are gone"

        finished = setup.table.completer(held).finish_decided(T, why_not=late_put)
        held.check()
    assert finished == setup.active.load().get(T, Action.COMPACTION)
    assert setup.table.contents() == [METADATA]


def test_a_decision_records_the_commits_that_it_knew(setup: Setup) -> None:
    setup.claim.release()
    setup.active.create_requested("20260101000000000", Action.DELTA_COMMIT)
    setup.active.to_inflight("20260101000000000", Action.DELTA_COMMIT)
    setup.active.complete("20260101000000000", Action.DELTA_COMMIT, METADATA, "20260101000001000")
    decided_and_cut_off(setup.table)
    with setup.table.claim() as held:
        assert held.decided is not None
        assert held.decided.known == {"20260101000000000"}
