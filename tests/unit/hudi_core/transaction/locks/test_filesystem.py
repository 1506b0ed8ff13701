from __future__ import annotations

import dataclasses
import json
import logging
import os
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from hudi_core.config.concurrency_config import HeartbeatConfig
from hudi_core.errors import CorruptFileError, LockError, StorageError
from hudi_core.storage.local import LocalStorage
from hudi_core.transaction.locks.filesystem import BREAKS, LOCK_PATH, FileSystemLock
from hudi_core.transaction.owner import Owner
from tests.support.fault_storage import MUTATIONS, FaultPlan, FaultStorage, InjectedCrash
from tests.support.memory_storage import MemoryStorage
from tests.support.racing_processes import Holder

HERE = Owner.current("here")
DEAD = dataclasses.replace(HERE, text="dag dead", process_start="1")
REMOTE = dataclasses.replace(HERE, text="dag remote", host="elsewhere", boot_id="another")


def put_lock(storage: MemoryStorage | LocalStorage, owner: Owner | None, token: str = "abc") -> None:
    content = b"" if owner is None else json.dumps({"version": 1, "token": token, "owner": owner.to_json()}).encode()
    storage.write(LOCK_PATH, content)


def take(root: str) -> FileSystemLock:
    lock = FileSystemLock(LocalStorage(root), Owner.current("child"))
    lock.acquire()
    return lock


def left_over(storage: MemoryStorage | LocalStorage) -> bool:
    return storage.exists(LOCK_PATH) or bool(storage.list_files(BREAKS))


def test_it_is_a_file_while_it_is_held() -> None:
    storage = MemoryStorage()
    lock = FileSystemLock(storage, HERE)
    with lock:
        found = lock.holder()
        assert found is not None
        assert found.owner == HERE
        lock.check()
    assert not left_over(storage)
    assert lock.release() is False
    with pytest.raises(LockError, match="free now"):
        lock.check()


def test_the_end_of_the_wait_names_the_holder() -> None:
    storage = MemoryStorage()
    with FileSystemLock(storage, dataclasses.replace(HERE, text="dag first")), pytest.raises(LockError) as caught:
        FileSystemLock(storage, HERE, wait_ms=30).acquire()
    assert caught.value.path == LOCK_PATH
    assert "dag first" in str(caught.value)
    assert str(os.getpid()) in str(caught.value)
    assert LOCK_PATH in (caught.value.remedy or "")
    assert caught.value.exit_code == 3


def test_taking_it_twice_is_an_error() -> None:
    with FileSystemLock(MemoryStorage(), HERE) as lock, pytest.raises(LockError, match="already"):
        lock.acquire()


def test_a_waiter_gets_it_when_it_is_released() -> None:
    storage = MemoryStorage()
    first = FileSystemLock(storage, HERE)
    first.acquire()
    timer = threading.Timer(0.1, first.release)
    timer.start()
    with FileSystemLock(storage, HERE, wait_ms=20_000):
        assert first.holder() is not None
    timer.join()
    assert not left_over(storage)


def test_a_lock_of_hudi_is_respected_and_named_until_it_expires() -> None:
    time = [1000.0]
    storage = MemoryStorage(clock=lambda: time[0])
    put_lock(storage, None)
    with pytest.raises(LockError, match="Hudi writer") as caught:
        FileSystemLock(storage, HERE, wait_ms=0, now=lambda: 1090.0).acquire()
    assert "90 s" in str(caught.value)
    with pytest.raises(LockError):
        FileSystemLock(storage, HERE, wait_ms=0, expire_minutes=1, now=lambda: 1059.0).acquire()
    with FileSystemLock(storage, HERE, wait_ms=0, expire_minutes=1, now=lambda: 1061.0) as lock:
        lock.check()
    assert not left_over(storage)


def test_the_lock_info_of_hudi_is_a_lock_of_hudi() -> None:
    storage = MemoryStorage()
    storage.write(LOCK_PATH, b'{"lockCreateTime": "1", "lockThreadName": "main"}')
    holder = FileSystemLock(storage, HERE).holder()
    assert holder is not None
    assert holder.owner is None


@pytest.mark.parametrize(
    "content", [b"PAR1", b'{"token": "../x", "owner": {}}', b'{"token": 1, "owner": {}}', b'{"token": "a"}']
)
def test_an_unreadable_lock_is_not_broken(content: bytes) -> None:
    storage = MemoryStorage()
    storage.write(LOCK_PATH, content)
    with pytest.raises(CorruptFileError) as caught:
        FileSystemLock(storage, HERE, wait_ms=0, expire_minutes=1, now=lambda: 1e12).acquire()
    assert caught.value.path == LOCK_PATH
    assert storage.read(LOCK_PATH) == content


def test_the_lock_of_a_dead_process_is_broken_and_one_that_cannot_be_proven_dead_is_not() -> None:
    storage = MemoryStorage()
    put_lock(storage, DEAD)
    with FileSystemLock(storage, HERE, wait_ms=0) as lock:
        lock.check()
    put_lock(storage, REMOTE)
    with pytest.raises(LockError, match="dag remote"):
        FileSystemLock(storage, HERE, wait_ms=0).acquire()


def test_the_lock_of_a_killed_process_is_broken_but_not_while_it_lives(tmp_path: Path) -> None:
    child = Holder(partial(take, str(tmp_path)))
    storage = LocalStorage(tmp_path)
    with pytest.raises(LockError, match="child"):
        FileSystemLock(storage, HERE, wait_ms=50).acquire()
    child.kill(reap=False)
    with FileSystemLock(storage, HERE, wait_ms=0) as lock:
        lock.check()
    assert not left_over(storage)
    child.process.join(30)


def test_a_holder_that_lost_the_lock_detects_it_and_leaves_the_new_one_alone(caplog: pytest.LogCaptureFixture) -> None:
    storage = MemoryStorage()
    with caplog.at_level(logging.WARNING), FileSystemLock(storage, HERE) as lock:
        storage.delete(LOCK_PATH)
        put_lock(storage, REMOTE, "other")
        with pytest.raises(LockError, match="dag remote"):
            lock.check()
    assert "taken away" in caplog.text
    holder = lock.holder()
    assert holder is not None
    assert holder.token == "other"


def test_of_two_breakers_the_slow_one_leaves_the_next_lock_alone() -> None:
    """The slow breaker has judged the dead lock; before it acts, another breaks it and takes the lock."""
    inner = MemoryStorage()
    put_lock(inner, DEAD)
    fast = FileSystemLock(inner, HERE, wait_ms=0)

    def overtake(path: str) -> bool:
        if path.startswith(BREAKS) and fast._token is None:
            fast.acquire()
        return False

    plan = FaultPlan(when=lambda operation: operation.kind == "create_exclusive" and overtake(operation.path))
    slow = FileSystemLock(FaultStorageOutsideLock(inner, plan), HERE, wait_ms=0)
    with pytest.raises(LockError):
        slow.acquire()
    fast.check()
    assert fast.release()
    assert not left_over(inner)


class FaultStorageOutsideLock(FaultStorage):
    """Asks `when` before the operation without the plan's lock, so that it may use the storage itself."""

    def create_exclusive(self, path: str, data: bytes) -> None:
        when = self.plan._when
        if when is not None:
            from tests.support.fault_storage import Operation

            when(Operation("create_exclusive", path))
        self.inner.create_exclusive(path, data)


@pytest.mark.parametrize("timing", ["before", "after"])
def test_a_breaker_or_holder_that_is_killed_anywhere_blocks_no_process(timing: str) -> None:
    mutations = 6
    for number in range(mutations):
        inner = MemoryStorage()
        put_lock(inner, DEAD)
        plan = FaultPlan(kill_at=number, counts=MUTATIONS, timing="before" if timing == "before" else "after")
        died = _try_and_die(FaultStorage(inner, plan))
        with FileSystemLock(inner, HERE, wait_ms=0) as lock:
            lock.check()
        assert not inner.exists(LOCK_PATH)
        assert died == plan.crashed
    assert not plan.crashed or plan.counted >= mutations


def _try_and_die(storage: FaultStorage) -> bool:
    try:
        with FileSystemLock(storage, HERE, wait_ms=0):
            return False
    except InjectedCrash:
        return True


def test_a_guard_that_a_dead_breaker_left_does_not_block() -> None:
    storage = MemoryStorage()
    put_lock(storage, DEAD)
    guard = json.dumps({"version": 1, "token": "b1", "owner": DEAD.to_json()}).encode()
    storage.write(f"{BREAKS}/abc-000000.json", guard)
    storage.write(f"{BREAKS}/abc-000001.json", guard)
    with FileSystemLock(storage, HERE, wait_ms=0) as lock:
        lock.check()
    assert not left_over(storage)


def test_a_guard_of_a_live_breaker_is_waited_for() -> None:
    storage = MemoryStorage()
    put_lock(storage, DEAD)
    storage.write(
        f"{BREAKS}/abc-000000.json", json.dumps({"version": 1, "token": "b1", "owner": REMOTE.to_json()}).encode()
    )
    with pytest.raises(LockError):
        FileSystemLock(storage, HERE, wait_ms=30).acquire()
    assert storage.exists(LOCK_PATH)


def test_a_failed_create_is_an_error_and_leaves_no_belief_to_hold_it() -> None:
    inner = MemoryStorage()
    plan = FaultPlan(kill_at=0, timing="after", error=lambda operation: StorageError("timeout", path=operation.path))
    with pytest.raises(StorageError, match="timeout"):
        FileSystemLock(FaultStorage(inner, plan), HERE, wait_ms=0).acquire()
    assert inner.exists(LOCK_PATH), "the store created it although it did not say so"
    with FileSystemLock(inner, HERE, wait_ms=0) as lock:
        lock.check()


def test_threads_exclude_each_other(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    inside, most = [0], [0]

    def work() -> None:
        with FileSystemLock(storage, HERE, wait_ms=60_000):
            inside[0] += 1
            most[0] = max(most[0], inside[0])
            time.sleep(0.005)
            inside[0] -= 1

    _run_threads(16, work)
    assert most == [1]
    assert not left_over(storage)


def _run_threads(count: int, work: Callable[[], None]) -> None:
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


BEATS = HeartbeatConfig(60_000, 2)


def put_renewed(storage: MemoryStorage, owner: Owner, **changed: object) -> None:
    """A lock whose holder renews it."""
    content = {"version": 1, "token": "abc", "owner": owner.to_json(), "tolerance_ms": 120_000, **changed}
    storage.write(LOCK_PATH, json.dumps(content).encode())


def test_the_lock_of_a_silent_holder_elsewhere_is_broken() -> None:
    """Lock and heartbeat are signs of life, by the storage's clock as well."""
    now, here = [1000.0], [1119.0]
    storage = MemoryStorage(clock=lambda: now[0])
    put_renewed(storage, REMOTE)

    def lock() -> FileSystemLock:
        return FileSystemLock(storage, HERE, wait_ms=0, heartbeat=BEATS, now=lambda: here[0])

    def refused() -> None:
        with pytest.raises(LockError, match="dag remote") as caught:
            lock().acquire()
        assert "free 120 s after its last sign of life" in (caught.value.remedy or "")

    refused()
    now[0], here[0] = 1119.0, 2.0**40
    refused()
    now[0] = 1100.0
    storage.write(f"{BREAKS}/abc.heartbeat", b"")
    now[0] = 1219.0
    refused()
    now[0] = 1221.0
    here[0] = 1000.0
    refused()
    here[0] = 1221.0
    with lock() as taken:
        taken.check()
    assert not left_over(storage)


def test_the_lock_of_an_earlier_release_is_never_silent() -> None:
    storage = MemoryStorage(clock=lambda: 0.0)
    put_lock(storage, REMOTE)
    with pytest.raises(LockError, match="dag remote"):
        FileSystemLock(storage, HERE, wait_ms=0, heartbeat=BEATS).acquire()


@pytest.mark.parametrize("tolerance", [0, -1, "120", 1.5, []])
def test_a_lock_that_says_nonsense_of_its_heartbeat_is_not_broken(tolerance: object) -> None:
    storage = MemoryStorage(clock=lambda: 0.0)
    put_renewed(storage, REMOTE, tolerance_ms=tolerance)
    with pytest.raises(CorruptFileError):
        FileSystemLock(storage, HERE, wait_ms=0, heartbeat=BEATS).acquire()


def test_a_stopped_breaker_keeps_its_guard() -> None:
    """It may be stopped right before it deletes the lock file, which may be another lock's by then."""
    storage = MemoryStorage(clock=lambda: 0.0)
    put_renewed(storage, REMOTE)
    guard = json.dumps({"version": 1, "token": "b1", "owner": REMOTE.to_json()}).encode()
    storage.write(f"{BREAKS}/abc-000000.json", guard)
    with pytest.raises(LockError, match="dag remote"):
        FileSystemLock(storage, HERE, wait_ms=0, heartbeat=BEATS).acquire()
    assert storage.exists(LOCK_PATH)


def test_a_holder_that_was_stopped_too_long_leaves_the_next_lock_alone() -> None:
    now = [1000.0]
    storage = MemoryStorage(clock=lambda: now[0])
    slow = FileSystemLock(storage, REMOTE, heartbeat=BEATS)
    slow.acquire()
    now[0] = 1121.0
    with FileSystemLock(storage, HERE, wait_ms=0, heartbeat=BEATS) as lock:
        with pytest.raises(LockError, match="here"):
            slow.check()
        assert slow.release() is False
        lock.check()
    assert not left_over(storage)


def test_a_holder_renews_its_lock_and_leaves_nothing(tmp_path: Path) -> None:
    storage, quick = LocalStorage(tmp_path), HeartbeatConfig(50, 100)
    with FileSystemLock(storage, REMOTE, heartbeat=quick) as lock:
        deadline = time.monotonic() + 20
        while not storage.list_files(BREAKS) and time.monotonic() < deadline:
            time.sleep(0.02)
        (heartbeat,) = storage.list_files(BREAKS)
        assert heartbeat.name.endswith(".heartbeat")
        lock.check()
    assert not left_over(storage)


class Unwritable(MemoryStorage):
    """Takes no heartbeat."""

    def write(self, path: str, data: bytes) -> None:
        if path.endswith(".heartbeat"):
            raise StorageError("no answer", path=path)
        super().write(path, data)


def test_a_holder_that_cannot_renew_its_lock_has_lost_it() -> None:
    with FileSystemLock(Unwritable(), HERE, heartbeat=HeartbeatConfig(20, 5)) as lock:
        lock.check()
        time.sleep(0.5)
        with pytest.raises(LockError, match="no answer"):
            lock.check()


class DeletedOnce(MemoryStorage):
    """Hudi's writers delete the lock file a second time when they close the lock, right after they gave it back."""

    def __init__(self) -> None:
        super().__init__()
        self.deletes = 1

    def create_exclusive(self, path: str, data: bytes) -> None:
        super().create_exclusive(path, data)
        if path == LOCK_PATH and self.deletes:
            self.deletes -= 1
            self.delete(path)


def test_a_lock_that_hudi_deletes_as_it_closes_its_own_is_taken_again() -> None:
    with FileSystemLock(DeletedOnce(), HERE, settle_ms=10) as lock:
        lock.check()
    hasty = FileSystemLock(DeletedOnce(), HERE)
    hasty.acquire()
    with pytest.raises(LockError, match="lost"):
        hasty.check()


def test_a_lock_and_heartbeat_from_the_future_hold_nothing() -> None:
    storage = MemoryStorage(clock=lambda: 900_000.0)
    put_renewed(storage, REMOTE)
    storage.write(f"{BREAKS}/abc.heartbeat", b"")
    storage._clock = lambda: 1000.0
    with FileSystemLock(storage, HERE, wait_ms=0, heartbeat=BEATS, now=lambda: 1000.0) as taken:
        taken.check()
