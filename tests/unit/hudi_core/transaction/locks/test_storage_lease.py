from __future__ import annotations

import dataclasses
import json
import logging
import threading
import time
from collections.abc import Callable
from typing import Any, cast

import pytest

from hudi_core.errors import (
    ConfigError,
    CorruptFileError,
    LockError,
    StorageConflictError,
    StorageError,
    StorageNotFoundError,
)
from hudi_core.storage.base import Storage
from hudi_core.transaction.locks.storage_lease import LEASE_PATH, StorageLease
from hudi_core.transaction.owner import Owner
from tests.support.fault_storage import FaultPlan, FaultStorage, InjectedCrash
from tests.support.memory_storage import MemoryStorage

HERE = Owner.current("dag here")
ELSEWHERE = dataclasses.replace(HERE, text="dag elsewhere", boot_id="another")
DEAD = dataclasses.replace(HERE, text="dag dead", pid=2**22 + 7, process_start="1")


class Clock:
    """A clock to be set."""

    def __init__(self, now: float = 1_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def body(storage: Storage) -> dict[str, Any]:
    return cast("dict[str, Any]", json.loads(storage.read(LEASE_PATH)))


def put(storage: Storage, **changes: Any) -> None:
    storage.write(
        LEASE_PATH, json.dumps({"expired": False, "validUntil": 1_000_300_000, "owner": "hudi-1"} | changes).encode()
    )


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_the_object_is_that_of_hudi_and_is_never_deleted() -> None:
    storage, clock = MemoryStorage(), Clock()
    lock = StorageLease(storage, HERE, now=clock)
    with lock:
        found = body(storage)
        assert (found["expired"], found["validUntil"]) == (False, 1_000_300_000)
        assert len(found["owner"]) == 36
        holder = lock.holder()
        assert holder is not None
        assert (holder.token, holder.owner, holder.since) == (found["owner"], HERE, clock.now)
    after = body(storage)
    assert (after["expired"], after["validUntil"], after["owner"]) == (True, 1_000_300_000, found["owner"])
    assert lock.holder() is None
    with StorageLease(storage, ELSEWHERE, now=clock, wait_ms=0):
        assert body(storage)["owner"] != found["owner"]


def test_hudis_lease_is_respected_until_its_time_and_the_drift_are_over() -> None:
    storage, clock = MemoryStorage(), Clock()
    put(storage)
    for now in (1_000_000.0, 1_000_300.0, 1_000_300.5):
        clock.now = now
        with pytest.raises(LockError, match=r"a Hudi writer \(lease of hudi-1\)") as caught:
            StorageLease(storage, HERE, now=clock, wait_ms=0).acquire()
        assert "automatically" in (caught.value.remedy or "")
    clock.now = 1_000_300.6
    with StorageLease(storage, HERE, now=clock, wait_ms=0) as lock:
        lock.check()
    put(storage, expired=True)
    with StorageLease(storage, HERE, now=clock, wait_ms=0) as lock:
        lock.check()


def test_the_lease_of_a_process_that_is_provably_dead_is_taken_at_once() -> None:
    storage, clock = MemoryStorage(), Clock()
    put(storage, owner="token", airflow_hudi={"owner": DEAD.to_json(), "acquired": 1_000_000_000})
    with StorageLease(storage, HERE, now=clock, wait_ms=0) as lock:
        lock.check()
    put(storage, owner="token", airflow_hudi={"owner": ELSEWHERE.to_json(), "acquired": 999_990_000})
    with pytest.raises(LockError, match=r"held by dag elsewhere \(process \d+ on \S+\) for 10 s"):
        StorageLease(storage, HERE, now=clock, wait_ms=0).acquire()


def test_a_lease_is_renewed_and_a_silent_one_is_lost() -> None:
    storage = MemoryStorage()
    with StorageLease(storage, HERE, validity_seconds=1.5, renew_seconds=0.05) as lock:
        first = body(storage)["validUntil"]
        time.sleep(1.8)
        lock.check()
        assert body(storage)["validUntil"] > first
    silent = StorageLease(storage, HERE, validity_seconds=0.2, renew_seconds=60)
    silent.acquire()
    time.sleep(0.3)
    with pytest.raises(LockError, match=r"not renewed for 0\.2 s"):
        silent.check()
    assert silent.release() is True, "no process took it meanwhile"


def test_a_clock_that_jumps_ends_the_lease_too() -> None:
    storage, clock = MemoryStorage(), Clock()
    with StorageLease(storage, HERE, now=clock) as lock:
        clock.now += 301
        with pytest.raises(LockError, match="not renewed"):
            lock.check()
        clock.now -= 301
        lock.check()


def test_a_lease_that_another_took_is_lost_for_good(caplog: pytest.LogCaptureFixture) -> None:
    storage = MemoryStorage()
    with caplog.at_level(logging.WARNING), StorageLease(storage, HERE, validity_seconds=10, renew_seconds=0.02) as lock:
        put(storage, validUntil=int(time.time() * 1000) + 60_000)
        wait_until(lambda: lock._taken_away)
        with pytest.raises(LockError, match="another took it"):
            lock.check()
    assert "taken away" in caplog.text
    assert body(storage)["owner"] == "hudi-1"


class Faulty:
    """A storage whose conditional writes fail by a script, one after the other: `lost` took effect, `refused` did not,
    `late` lands later.
    """

    def __init__(self, inner: Storage) -> None:
        self.inner = inner
        self.script: list[str] = []
        self.late: list[Callable[[], object]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def write_if(self, path: str, data: bytes, *, version: str | None) -> str:
        kind = self.script.pop(0) if self.script else "fine"
        if kind == "refused":
            raise StorageError("timeout", path=path)
        if kind == "late":
            self.late.append(lambda: self.inner.write_if(path, data, version=version))
            raise StorageError("timeout", path=path)
        found = self.inner.write_if(path, data, version=version)
        if kind == "lost":
            raise StorageError("timeout", path=path)
        return found

    def land(self) -> None:
        """Lets the late writes arrive; a condition that no longer holds keeps them out."""
        for write in self.late:
            try:
                write()
            except StorageError:
                continue
        self.late.clear()


@pytest.fixture
def faulty() -> Faulty:
    return Faulty(MemoryStorage())


def lease(faulty: Faulty, owner: Owner = HERE, *, wait_ms: int = 0, renew_seconds: float = 60) -> StorageLease:
    return StorageLease(cast(Storage, faulty), owner, wait_ms=wait_ms, renew_seconds=renew_seconds)


def test_an_answer_that_was_lost_is_found_by_reading_again(faulty: Faulty) -> None:
    faulty.script = ["lost"]
    lock = lease(faulty)
    lock.acquire()
    lock.check()
    faulty.script = ["lost"]
    assert lock.release() is True
    assert body(faulty.inner)["expired"] is True


def test_a_write_that_failed_is_tried_again_and_raised_in_the_end(faulty: Faulty) -> None:
    faulty.script = ["refused"]
    with lease(faulty, wait_ms=5000) as lock:
        lock.check()
    faulty.script = ["refused"] * 5
    with pytest.raises(StorageError, match="timeout") as caught:
        lease(faulty).acquire()
    assert not isinstance(caught.value, LockError)


def test_a_late_write_of_an_abandoned_try_holds_nothing(faulty: Faulty) -> None:
    faulty.script = ["late"]
    with pytest.raises(StorageError, match="timeout"):
        lease(faulty).acquire()
    faulty.land()
    assert body(faulty.inner)["expired"] is False
    with lease(faulty) as lock:
        lock.check()


def test_a_late_write_cannot_replace_the_lease_of_who_came_after(faulty: Faulty) -> None:
    faulty.script = ["late"]
    with pytest.raises(StorageError, match="timeout"):
        lease(faulty).acquire()
    with lease(faulty, ELSEWHERE) as lock:
        faulty.land()
        lock.check()


def test_renewals_with_lost_answers_keep_the_lease(faulty: Faulty) -> None:
    lock = lease(faulty, renew_seconds=0.02)
    lock.acquire()
    faulty.script = ["lost", "refused", "fine", "late", "fine"]
    wait_until(lambda: not faulty.script)
    faulty.land()
    lock.check()
    assert lock.release() is True
    assert lock.holder() is None


def test_a_release_that_cannot_be_written_lets_the_next_run_of_this_process_in(faulty: Faulty) -> None:
    lock = lease(faulty)
    lock.acquire()
    faulty.script = ["refused"] * 9
    with pytest.raises(StorageError, match="timeout"):
        lock.release()
    faulty.script = []
    assert body(faulty.inner)["expired"] is False
    with lease(faulty) as after:
        after.check()


def test_a_renewal_of_our_own_that_lands_late_does_not_revive_a_released_lease(faulty: Faulty) -> None:
    lock = lease(faulty, renew_seconds=0.02)
    lock.acquire()
    faulty.script = ["late"]
    wait_until(lambda: faulty.late and not faulty.script)
    assert lock.release() is True
    faulty.land()
    assert body(faulty.inner)["expired"] is True


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b'{"expired": 1, "validUntil": 1, "owner": "x"}',
        b'{"expired": false, "validUntil": "1", "owner": "x"}',
        b'{"expired": false, "validUntil": true, "owner": "x"}',
        b'{"expired": false, "validUntil": -1, "owner": "x"}',
        b'{"expired": false, "validUntil": 1, "owner": ""}',
        b'{"expired": false, "validUntil": 1, "owner": "a\\nb"}',
        b'{"expired": false, "validUntil": 1, "owner": "x", "airflow_hudi": {"owner": {}}}',
        b'{"expired": false, "validUntil": 1, "owner": "x", "airflow_hudi": {"owner": {}, "acquired": 1}}',
        b" " * (1 << 17),
    ],
)
def test_what_is_no_lease_is_refused_and_left_alone(content: bytes) -> None:
    storage = MemoryStorage()
    storage.write(LEASE_PATH, content)
    with pytest.raises(CorruptFileError) as caught:
        StorageLease(storage, HERE, wait_ms=0).acquire()
    assert caught.value.path == LEASE_PATH
    assert storage.read(LEASE_PATH) == content


def test_keys_that_others_add_are_let_be() -> None:
    storage = MemoryStorage()
    put(storage, expired=True, more={"a": 1})
    with StorageLease(storage, HERE, wait_ms=0) as lock:
        lock.check()


def test_what_was_not_taken_cannot_be_checked() -> None:
    lock = StorageLease(MemoryStorage(), HERE)
    with pytest.raises(LockError, match="free now"):
        lock.check()
    assert lock.release() is False


def test_a_lease_that_always_changes_hands_ends_the_waiting() -> None:
    class Busy(MemoryStorage):
        def write_if(self, path: str, data: bytes, *, version: str | None) -> str:
            raise StorageConflictError("changed", path=path)

    with pytest.raises(LockError, match="from hand to hand"):
        StorageLease(Busy(), HERE, wait_ms=0).acquire()


def test_a_storage_without_conditional_writes_is_refused() -> None:
    storage = MemoryStorage()
    storage.supports_conditional_write = False
    with pytest.raises(ConfigError, match="conditionally"):
        StorageLease(storage, HERE)


@pytest.mark.parametrize("timing", ["before", "after"])
def test_a_process_killed_at_any_operation_leaves_a_lease_that_runs_out_or_none(timing: Any) -> None:
    reached = set()
    for kill_at in range(20):
        storage, clock = MemoryStorage(), Clock()
        plan = FaultPlan(kill_at=kill_at, timing=timing)

        def run(storage: Storage = storage, plan: FaultPlan = plan, clock: Clock = clock) -> None:
            with StorageLease(FaultStorage(storage, plan), ELSEWHERE, now=clock, wait_ms=0) as lock:
                lock.check()

        try:
            run()
        except InjectedCrash:
            reached.add(plan.fired.kind if plan.fired else None)
        else:
            break
        clock.now += 301
        with StorageLease(storage, HERE, now=clock, wait_ms=0) as lock:
            lock.check()
    assert reached == {"read_versioned", "write_if"}


def test_a_lease_that_was_removed_by_hand_is_lost() -> None:
    storage = MemoryStorage()
    lock = StorageLease(storage, HERE)
    lock.acquire()
    storage.delete(LEASE_PATH)
    with pytest.raises(LockError, match="free now"):
        lock.check()
    assert lock.release() is False
    with pytest.raises(StorageNotFoundError):
        storage.read(LEASE_PATH)


def test_no_thread_is_left_behind() -> None:
    before = threading.active_count()
    with StorageLease(MemoryStorage(), HERE):
        assert threading.active_count() == before + 1
    assert threading.active_count() == before
