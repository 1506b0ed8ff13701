from __future__ import annotations

from contextlib import suppress

import pytest

from hudi_core.errors import LockError, StorageError
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.instant_generator import InstantClock
from hudi_core.transaction.locks import base
from hudi_core.transaction.locks.base import LockHolder, PolledLock, lost
from hudi_core.transaction.owner import Owner

OWNER = Owner.current("this run")
OTHER = LockHolder("t", None, 0.0, "another writer")


class Scripted(PolledLock):
    """A lock whose tries and blockers are given; the last ones go on for ever."""

    def __init__(
        self, tries: list[bool | StorageError], blockers: list[LockHolder | None], wait_ms: int = 60_000
    ) -> None:
        super().__init__("the lock", OWNER, wait_ms)
        self.tries, self.blockers, self.calls, self.released = tries, blockers, 0, True

    def _try(self, token: str) -> bool:
        self.calls += 1
        found = self.tries.pop(0) if len(self.tries) > 1 else self.tries[0]
        self._failure = found if isinstance(found, StorageError) else None
        self._token = token if found is True else None
        return found is True

    def _blocker(self) -> LockHolder | None:
        return self.blockers.pop(0) if len(self.blockers) > 1 else self.blockers[0]

    def _release(self, token: str) -> bool:
        return self.released

    def check(self) -> None:
        raise AssertionError("not called")

    def holder(self) -> LockHolder | None:
        return None

    def how_to_break(self, holder: LockHolder) -> str:
        return f"delete what {holder.describe()} left"


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    slept: list[float] = []
    monkeypatch.setattr(base, "pause", slept.append)
    return slept


def test_a_lock_is_waited_for_with_growing_pauses(pauses: list[float]) -> None:
    with Scripted([False] * 8 + [True], [OTHER]) as lock:
        assert lock.calls == 9
    assert len(pauses) == 8
    assert max(pauses) <= 0.5 < sum(pauses)


def test_a_long_wait_is_told_of_each_half_minute(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock = [1000.0]
    monkeypatch.setattr(base.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(base, "pause", lambda seconds: clock.__setitem__(0, clock[0] + 1.0))
    with pytest.raises(LockError):
        Scripted([False], [OTHER], wait_ms=45_000).acquire()
    assert [record.getMessage().partition(" for ")[0] for record in caplog.records] == ["waiting"] * 2
    assert "the lock the lock, held by another writer for" in caplog.text
    assert caplog.text.count("more") == 2
    assert "for up to 43 s more" in caplog.text


def test_a_lock_that_became_free_is_tried_at_once(pauses: list[float]) -> None:
    Scripted([False, True], [None]).acquire()
    assert pauses == []


def test_a_lock_is_not_taken_twice() -> None:
    lock = Scripted([True], [OTHER])
    with lock, pytest.raises(LockError, match="holds the lock already"):
        lock.acquire()


def test_the_error_names_the_holder_and_the_way_out() -> None:
    with pytest.raises(LockError, match="held by another writer") as caught:
        Scripted([False], [OTHER], wait_ms=0).acquire()
    assert caught.value.path == "the lock"
    assert "delete what another writer left" in str(caught.value.remedy)


def test_the_failure_of_a_try_is_the_error() -> None:
    with pytest.raises(StorageError, match="no answer"):
        Scripted([StorageError("no answer")], [None], wait_ms=0).acquire()


def test_a_lock_that_was_lost_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    lock = Scripted([True], [OTHER])
    lock.released = False
    with lock:
        pass
    assert "the lock was taken away from this run" in caplog.text
    assert "held by another writer" in lost("the lock", OTHER, "expired").message


@pytest.mark.parametrize("fails", [False, True])
def test_a_lock_is_kept_until_the_times_that_were_drawn_under_it_have_passed(fails: bool) -> None:
    events: list[str] = []

    class Noting(Scripted):
        def _release(self, token: str) -> bool:
            events.append("released")
            return True

    clock = InstantClock("UTC", 10_000, sleep=lambda _: events.append("passed"))
    with suppress(ZeroDivisionError), Noting([True], [None]):
        clock.next(Timeline())
        events.append("worked")
        if fails:
            raise ZeroDivisionError
    assert events == ["worked", "passed", "released"]
