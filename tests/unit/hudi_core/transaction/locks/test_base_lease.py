"""What locks have in common that their holder renews, over a state that is a value in memory."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field, replace

import pytest

from hudi_core.errors import LockError, StorageError
from hudi_core.transaction.locks.base import LeasedLock, LockHolder
from hudi_core.transaction.owner import Owner, is_left_behind

HERE = Owner.current("here")
ELSEWHERE = replace(HERE, text="elsewhere", boot_id="of another machine")


@dataclass(frozen=True)
class Lease:
    token: str
    owner: Owner = HERE
    released: bool = False


@dataclass
class Store:
    lease: Lease | None = None
    renewals: list[str] = field(default_factory=list)
    renewed: threading.Event = field(default_factory=threading.Event)


class Lock(LeasedLock[Lease]):
    def __init__(self, store: Store, *, wait_ms: int = 0, lease_seconds: float = 60.0) -> None:
        super().__init__("a lease", HERE, wait_ms, lease_seconds=lease_seconds, renew_seconds=0.01)
        self.store = store
        self.failure: Exception | None = None

    def _read(self) -> Lease | None:
        return self.store.lease

    def _write_first(self, token: str, current: Lease | None) -> bool:
        if self.failure is not None:
            raise self.failure
        if self.store.lease != current:
            return False
        self.store.lease = Lease(token)
        self._alive_until = time.monotonic() + self._lease_seconds
        return True

    def _extend(self) -> bool:
        lease = self.store.lease
        if lease is None or lease.token != self._token:
            self._taken_away = True
            self.store.renewed.set()
            return False
        self.store.renewals.append(lease.token)
        self.store.renewed.set()
        return True

    def _give_back(self) -> bool:
        if self.failure is not None:
            raise self.failure
        lease = self.store.lease
        if lease is None or not self._is_ours(lease):
            return False
        self.store.lease = None
        return True

    def _is_ours(self, current: Lease) -> bool:
        return current.token == self._token and not current.released

    def _holder_of(self, current: Lease) -> LockHolder:
        return LockHolder(current.token, current.owner, time.time())

    def how_to_break(self, holder: LockHolder) -> str:
        return "wait"


def test_it_is_renewed_while_it_is_held_and_no_longer() -> None:
    store = Store()
    with Lock(store) as lock:
        assert store.renewed.wait(20)
        lock.check()
        assert lock.holder() is not None
    count = len(store.renewals)
    time.sleep(0.05)
    assert (store.lease, lock.holder(), len(store.renewals)) == (None, None, count)


def test_a_holder_that_may_live_is_waited_for() -> None:
    with pytest.raises(LockError, match="held by elsewhere"):
        Lock(Store(Lease("theirs", ELSEWHERE))).acquire()


@pytest.mark.parametrize("left", [Lease("theirs", ELSEWHERE, released=True), Lease("of an earlier run", HERE)])
def test_a_released_lease_and_one_of_a_dead_run_are_taken(left: Lease) -> None:
    store = Store(left)
    with Lock(store):
        assert store.lease is not None
        assert store.lease.token != left.token


def test_a_renewal_that_finds_another_holder_loses_the_lock() -> None:
    store = Store()
    lock = Lock(store)
    lock.acquire()
    store.renewed.clear()
    store.lease = Lease("theirs", ELSEWHERE)
    assert store.renewed.wait(20)
    with pytest.raises(LockError, match=r"another took it.*held by elsewhere"):
        lock.check()
    assert not lock.release()
    assert store.lease == Lease("theirs", ELSEWHERE)


def test_a_lease_that_ended_is_lost_though_no_other_process_took_it() -> None:
    lock = Lock(Store(), lease_seconds=0.0)
    lock.acquire()
    with pytest.raises(LockError, match="not renewed for 0 s"):
        lock.check()
    assert lock.release()


def test_a_failed_try_or_release_leaves_no_token_behind() -> None:
    """Else a later run of this process would take the lease for that of a live thread."""
    store = Store()
    lock = Lock(store)
    lock.acquire()
    token = store.lease.token if store.lease is not None else ""
    assert not is_left_behind(HERE, token)
    lock.failure = StorageError("no answer")
    with pytest.raises(StorageError):
        lock.release()
    assert is_left_behind(HERE, token)
    with pytest.raises(StorageError):
        lock.acquire()
    lock.failure = None
    with lock:
        lock.check()
