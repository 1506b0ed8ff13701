"""What every lock provider promises (hudi_core.transaction.locks.base.TableLock), run over all of them."""

from __future__ import annotations

import itertools
import logging
import multiprocessing
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from hudi_core.config.concurrency_config import ZookeeperConfig
from hudi_core.config.table_config import TableConfig
from hudi_core.errors import EXIT_RETRY, LockError, StorageError
from hudi_core.storage.registry import open_storage
from hudi_core.transaction.locks.registry import table_lock
from hudi_core.transaction.locks.zookeeper import ZookeeperLock
from hudi_core.transaction.owner import Owner
from tests.contract.lock_providers import HUDI_NAME, LockSpec, hold_until_killed
from tests.contract.racing_servers import RacingServer
from tests.contract.zookeeper_server import zookeeper_process

PROVIDERS = [
    "default-local",
    "default-s3",
    "filesystem-local",
    "filesystem-s3",
    "lease-local",
    "lease-s3",
    "zookeeper",
    "dynamodb",
]
SPAWN = multiprocessing.get_context("spawn")
_tables = itertools.count()


@pytest.fixture
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], LockSpec]:
    def make_spec(name: str) -> LockSpec:
        if name == "zookeeper":
            return LockSpec(name, request.getfixturevalue("zookeeper"))
        if name == "dynamodb":
            return LockSpec(name, request.getfixturevalue("dynamodb"))
        provider, where = name.split("-")
        if where == "local":
            return LockSpec(provider, str(tmp_path))
        server = request.getfixturevalue("s3")
        return LockSpec(provider, f"s3://bucket/locks/t{next(_tables)}", server.options)

    return make_spec


@pytest.fixture(params=PROVIDERS)
def spec(request: pytest.FixtureRequest, make: Callable[[str], LockSpec]) -> LockSpec:
    return make(request.param)


def test_one_holder_at_a_time_and_the_error_names_it_its_age_and_the_remedy(spec: LockSpec) -> None:
    first, second = spec.lock("dag first"), spec.lock("dag second", wait_ms=200 if spec.provider != "dynamodb" else 0)
    assert first.holder() is None
    with first:
        first.check()
        with pytest.raises(LockError) as caught:
            second.acquire()
        assert caught.value.exit_code == EXIT_RETRY
        assert caught.value.path == first.name == second.name
        assert re.search(r"held by dag first \(process \d+ on \S+\) for \d+ s", str(caught.value)), caught.value
        assert "delete" in (caught.value.remedy or "")
        for lock in (first, second):
            holder = lock.holder()
            assert holder is not None
            assert holder.owner is not None
            assert holder.owner.text == "dag first"
            assert abs(holder.since - time.time()) < 30
        first.check()
    assert first.holder() is None


def test_a_lock_is_released_and_acquired_again(spec: LockSpec) -> None:
    first, second = spec.lock("first"), spec.lock("second")
    for _ in range(3):
        for lock in (first, second):
            lock.acquire()
            lock.check()
            assert lock.release() is True
            assert lock.release() is False
    assert first.holder() is None


def test_what_was_not_taken_can_be_neither_checked_nor_released(spec: LockSpec) -> None:
    lock = spec.lock()
    with pytest.raises(LockError, match="lost"):
        lock.check()
    assert lock.release() is False


def test_a_lock_is_not_taken_twice_by_its_holder(spec: LockSpec) -> None:
    with spec.lock("holder") as lock:
        with pytest.raises(LockError, match="already"):
            lock.acquire()
        lock.check()


def test_a_waiting_process_gets_the_lock_when_it_is_released(spec: LockSpec) -> None:
    first, second = spec.lock("first"), spec.lock("second")
    taken = threading.Event()

    def wait() -> None:
        with second:
            taken.set()

    first.acquire()
    waiting = threading.Thread(target=wait)
    waiting.start()
    assert not taken.wait(0.4)
    assert first.release()
    assert taken.wait(15)
    waiting.join()


def test_a_failed_block_gives_the_lock_back(spec: LockSpec) -> None:
    lock = spec.lock()
    with pytest.raises(ZeroDivisionError), lock:
        raise ZeroDivisionError
    with spec.lock("next", wait_ms=2000):
        pass


def test_a_lock_of_hudi_is_respected_and_named(spec: LockSpec) -> None:
    lock = spec.lock(wait_ms=0)
    with spec.held_by_hudi():
        holder = lock.holder()
        assert holder is not None
        assert holder.owner is None
        if spec.provider not in ("filesystem", "default"):  # whose file is empty
            assert HUDI_NAME in holder.describe()
        with pytest.raises(LockError, match="a Hudi writer"):
            lock.acquire()
    with lock:
        lock.check()


def test_a_lock_that_was_taken_away_is_seen_and_left_to_its_new_holder(
    spec: LockSpec, caplog: pytest.LogCaptureFixture
) -> None:
    lock = spec.lock("loser", lease_ms=1000)
    with caplog.at_level(logging.WARNING):
        lock.acquire()
        with spec.held_by_hudi():
            with pytest.raises(LockError, match="lost") as caught:
                lock.check()
            assert "a Hudi writer" in str(caught.value)
            assert "run the service again" in str(caught.value)
            lock.__exit__(None, None, None)
            assert any("taken away" in record.message for record in caplog.records)
            holder = lock.holder()
            assert holder is not None
            assert holder.owner is None
        with lock:
            lock.check()


def lost_by(specs: Sequence[LockSpec], lease_ms: int) -> list[str]:
    """How holders that renew their leases have lost them after two leases."""
    found = []
    with ExitStack() as stack:
        locks = [stack.enter_context(spec.lock("holder", lease_ms=lease_ms)) for spec in specs]
        time.sleep(2.2 * lease_ms / 1000)
        for spec, lock in zip(specs, locks, strict=True):
            try:
                lock.check()
            except LockError as error:
                found.append(f"{spec.provider}: {error}")
                continue
            try:
                with spec.lock("other", wait_ms=0, elsewhere=True):
                    found.append(f"{spec.provider}: another takes it")
            except LockError as error:
                if "held by holder" not in str(error):
                    found.append(f"{spec.provider}: {error}")
    return found


def test_a_renewed_lock_outlives_its_lease(make: Callable[[str], LockSpec]) -> None:
    specs = [make(name) for name in ("default-local", "lease-local", "lease-s3", "zookeeper", "dynamodb")]
    # A busy machine may renew a short one too late.
    assert lost_by(specs, 1000) == [] or lost_by(specs, 8000) == []


def kill_a_holder(spec: LockSpec, *, lease_ms: int, elsewhere: bool) -> None:
    ready = SPAWN.Queue()
    process = SPAWN.Process(target=hold_until_killed, args=(spec, lease_ms, elsewhere, ready), daemon=True)
    process.start()
    assert ready.get(timeout=60)
    process.kill()
    process.join()


@pytest.mark.parametrize(
    "spec",
    [pytest.param(name, marks=pytest.mark.conformance) if name.endswith("-s3") else name for name in PROVIDERS],
    indirect=True,
)
def test_a_killed_holder_on_another_machine_is_succeeded_when_its_time_is_over(spec: LockSpec) -> None:
    for lease_ms in (1000, 4000, 16_000, 48_000):  # a busy machine may come too late for a short one
        started_at = time.monotonic()
        kill_a_holder(spec, lease_ms=lease_ms, elsewhere=True)
        early = spec.lock("early", wait_ms=0, lease_ms=60_000)
        try:
            early.acquire()
        except LockError as error:
            refusal = str(error)
            break
        early.__exit__(None, None, None)
        assert time.monotonic() - started_at > lease_ms / 1000, "the killed holder's time was not over"
    else:
        pytest.fail("no holder was met in its time")
    assert "killed" in refusal
    with spec.lock("late", wait_ms=5 * lease_ms, lease_ms=lease_ms) as lock:
        lock.check()


@pytest.mark.parametrize("provider", [None, "FileSystemBasedLockProvider", "StorageBasedLockProvider"])
def test_a_table_on_s3_is_locked_by_the_same_options(s3: RacingServer, provider: str | None) -> None:
    uri = f"s3://bucket/locks/t{next(_tables)}"
    storage = open_storage(uri, s3.options)
    options = {"hoodie.write.lock.wait_time_ms": "0"}
    if provider is not None:
        options["hoodie.write.lock.provider"] = f"org.apache.hudi.client.transaction.lock.{provider}"
    config = TableConfig.of(
        {"hoodie.table.name": "t", "hoodie.table.type": "MERGE_ON_READ", "hoodie.table.version": "6"}
    )
    first, second = (
        table_lock(storage, config, options, Owner.current(who), storage_options=s3.options)
        for who in ("first", "second")
    )
    with first:
        first.check()
        with pytest.raises(LockError, match="held by first"):
            second.acquire()
    with second:
        second.check()
    outside = options | {"hoodie.write.lock.filesystem.path": f"{uri}-locks"}
    if provider == "FileSystemBasedLockProvider":
        with table_lock(storage, config, outside, Owner.current("outside"), storage_options=s3.options) as lock:
            assert open_storage(f"{uri}-locks", s3.options).exists("lock")
            lock.check()


@pytest.mark.parametrize(
    "name",
    [
        "filesystem-local",
        "lease-s3",
        "dynamodb",
        *(pytest.param(name, marks=pytest.mark.conformance) for name in ("filesystem-s3", "lease-local")),
    ],
)
def test_a_killed_holder_on_this_machine_is_succeeded_at_once(make: Callable[[str], LockSpec], name: str) -> None:
    spec = make(name)
    kill_a_holder(spec, lease_ms=600_000, elsewhere=False)
    with spec.lock("next", wait_ms=0, lease_ms=600_000) as lock:
        lock.check()


def stop(process: subprocess.Popen[bytes]) -> None:
    """Stops a process, and returns when all its threads stand: on a busy machine one may still answer."""
    process.send_signal(signal.SIGSTOP)
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)


def test_a_zookeeper_that_pauses_loses_nothing_and_one_that_is_gone_keeps_no_process_waiting() -> None:
    with zookeeper_process() as (address, server):
        spec = LockSpec("zookeeper", address)
        patient = spec.lock("patient", lease_ms=20_000)
        with patient:
            stop(server)
            time.sleep(0.7)
            server.send_signal(signal.SIGCONT)
            patient.check()
        lock = ZookeeperLock(ZookeeperConfig(address, "/hudi/locks/gone", 1000, 1000, 20_000), Owner.current("hasty"))
        lock.acquire()
        stop(server)
        started = time.monotonic()
        with pytest.raises(LockError, match="ZooKeeper does not answer"):
            lock.check()
        assert time.monotonic() - started < 10
        server.send_signal(signal.SIGCONT)
        lock.release()
    with pytest.raises(StorageError, match="ZooKeeper at"):
        lock.acquire()
