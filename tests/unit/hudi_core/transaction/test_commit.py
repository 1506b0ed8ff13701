"""The one way to complete an instant."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from hudi_core.errors import ConflictError, LockError
from hudi_core.storage.memory import MemoryStorage
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.commit_metadata import CommitMetadata, encode_commit
from hudi_core.timeline.instant import Action, State
from hudi_core.timeline.query import Timeline
from hudi_core.transaction.claim import Claim, claim
from hudi_core.transaction.commit import Completer, check_not_rolled_back
from hudi_core.transaction.lock import FileSystemLock
from hudi_core.transaction.owner import Owner

T = "20260102000000000"
METADATA = CommitMetadata({}, True, "COMPACT", {"schema": "{}"})


@dataclass
class Layout:
    layout_version: int = 1
    timeline_folder: str = ".hoodie"


@dataclass
class Sink:
    """Records what is published, and lets something happen meanwhile."""

    seen: list[str] = field(default_factory=list)
    meanwhile: list[object] = field(default_factory=list)

    def publish(self, instant: str, metadata: CommitMetadata) -> None:
        self.seen.append(instant)
        for action in self.meanwhile:
            action()  # type: ignore[operator]


class Setup:
    def __init__(self) -> None:
        self.storage = MemoryStorage()
        self.active = ActiveTimeline(self.storage, Layout())
        self.active.create_requested(T, Action.COMPACTION, b"plan")
        self.active.to_inflight(T, Action.COMPACTION)
        self.owner = Owner.current("tester")
        self.claim: Claim = claim(self.storage, T, self.owner)
        self.sink = Sink()

    def completer(self) -> Completer:
        return Completer(self.active, self.claim, lambda: FileSystemLock(self.storage, self.owner, wait_ms=0), self.sink)

    def complete(self) -> None:
        self.completer().complete(T, Action.COMPACTION, METADATA)

    def state(self) -> State:
        return self.active.load().get(T, Action.COMPACTION).state


@pytest.fixture
def setup() -> Setup:
    return Setup()


def test_published_first_then_completed_under_the_lock(setup: Setup) -> None:
    setup.sink.meanwhile = [lambda: setup.storage.stat(".hoodie/lock"), lambda: setup.storage.stat(f".hoodie/{T}.compaction.inflight")]
    setup.complete()
    assert setup.sink.seen == [T]
    assert setup.storage.read(f".hoodie/{T}.commit") == encode_commit(METADATA)
    assert not setup.storage.exists(".hoodie/lock")


def test_a_lost_claim_does_not_publish(setup: Setup) -> None:
    setup.claim.release()
    claim(setup.storage, T, setup.owner)
    with pytest.raises(ConflictError, match="taken over"):
        setup.complete()
    assert setup.sink.seen == []


def test_a_claim_lost_while_publishing_does_not_complete(setup: Setup) -> None:
    setup.sink.meanwhile = [lambda: claim(setup.storage, T, setup.owner, now=lambda: 2**40)]
    with pytest.raises(ConflictError, match="taken over"):
        setup.complete()
    assert setup.state() is State.INFLIGHT


def test_a_lock_lost_while_publishing_does_not_complete(setup: Setup) -> None:
    setup.sink.meanwhile = [lambda: setup.storage.delete(".hoodie/lock")]
    with pytest.raises(LockError):
        setup.complete()
    assert setup.state() is State.INFLIGHT


def test_only_an_inflight_instant_completes(setup: Setup) -> None:
    setup.active.remove(T, Action.COMPACTION, State.INFLIGHT)
    with pytest.raises(ConflictError, match="requested on the timeline"):
        setup.complete()
    setup.active.remove(T, Action.COMPACTION, State.REQUESTED)
    with pytest.raises(ConflictError, match="gone from the timeline"):
        setup.complete()
    assert setup.sink.seen == []


def test_a_completed_instant_is_a_conflict(setup: Setup) -> None:
    setup.active.complete(T, Action.COMPACTION, b"somebody else's")
    with pytest.raises(ConflictError, match="completed on the timeline"):
        setup.complete()


def test_a_commit_that_appears_in_the_last_moment(setup: Setup) -> None:
    """With our own bytes it was our own request, whose answer got lost; with others it is a conflict."""
    setup.sink.meanwhile = [lambda: setup.active.complete(T, Action.COMPACTION, encode_commit(METADATA))]
    setup.complete()
    other = Setup()
    other.sink.meanwhile = [lambda: other.active.complete(T, Action.COMPACTION, b"{}")]
    with pytest.raises(ConflictError, match="somebody else completed"):
        other.complete()


def test_preconditions_see_the_timeline_under_the_lock(setup: Setup) -> None:
    def refuse(timeline: Timeline) -> None:
        assert setup.storage.exists(".hoodie/lock")
        check_not_rolled_back(timeline, T, lambda rollback: T)

    setup.active.create_requested("20260103000000000", Action.ROLLBACK, b"plan")
    with pytest.raises(ConflictError, match="20260103000000000"):
        setup.completer().complete(T, Action.COMPACTION, METADATA, preconditions=(refuse,))
    assert setup.sink.seen == []
    check_not_rolled_back(setup.active.load(), T, lambda rollback: "another instant")
