"""Our locks against Curator in a Spark JVM, and against real Hudi's own lock providers: each keeps the other out."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hudi_core.config.table_config import TableConfig
from hudi_core.errors import LockError
from hudi_core.storage.local import LocalStorage
from hudi_core.transaction.locks.base import TableLock
from hudi_core.transaction.locks.registry import implicit_key, table_lock
from hudi_core.transaction.locks.storage_lease import LEASE_PATH, StorageLease
from hudi_core.transaction.owner import Owner
from tests.contract.lock_providers import LockSpec
from tests.contract.zookeeper_server import zookeeper_server
from tests.interop.real_hudi import RealHudi

CLIENT = "org.apache.hudi.client.transaction.lock."
CONFIG = TableConfig.of(
    {"hoodie.table.name": "trips", "hoodie.table.type": "MERGE_ON_READ", "hoodie.table.version": "6"}
)
CONTENDERS = 4
TURNS = 15


@pytest.fixture(scope="module")
def zookeeper() -> Iterator[str]:
    with zookeeper_server() as address:
        yield address


class Inside:
    """Counts who is inside the lock."""

    def __init__(self) -> None:
        self.now = 0
        self.most = 0
        self.turns: dict[str, int] = {}

    def visit(self, who: str) -> None:
        """A turn inside, long enough for another to come in."""
        self.now += 1
        self.most = max(self.most, self.now)
        time.sleep(0.003)
        self.turns[who] = self.turns.get(who, 0) + 1
        self.now -= 1


def take_turns(turn: Callable[[], None], failures: list[BaseException]) -> None:
    try:
        for _ in range(TURNS):
            turn()
    except BaseException as error:  # noqa: BLE001 (raised by the test)
        failures.append(error)


def curator_client(spark: Any, address: str) -> Any:
    curator = spark._jvm.org.apache.curator
    client = curator.framework.CuratorFrameworkFactory.newClient(address, curator.retry.ExponentialBackoffRetry(200, 3))
    client.start()
    return client


@pytest.mark.spark
def test_curator_in_a_spark_jvm_and_ours_contend_for_one_mutex(spark: Any, zookeeper: str) -> None:
    spec = LockSpec("zookeeper", zookeeper)
    path = f"/hudi/locks/{spec.key}"
    jvm = spark._jvm
    clients = [curator_client(spark, zookeeper) for _ in range(CONTENDERS)]
    inside, failures = Inside(), []

    def with_curator(client: Any) -> Callable[[], None]:
        mutex = jvm.org.apache.curator.framework.recipes.locks.InterProcessMutex(client, path)

        def turn() -> None:
            assert mutex.acquire(60, jvm.java.util.concurrent.TimeUnit.SECONDS)
            inside.visit("curator")
            mutex.release()

        return turn

    def with_ours(number: int) -> Callable[[], None]:
        lock = spec.lock(f"ours {number}", wait_ms=60_000)

        def turn() -> None:
            with lock:
                inside.visit("ours")
                lock.check()

        return turn

    turns = [with_curator(client) for client in clients] + [with_ours(number) for number in range(CONTENDERS)]
    threads = [threading.Thread(target=take_turns, args=(turn, failures)) for turn in turns]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for client in clients:
        client.close()
    assert not failures, failures[0]
    assert inside.most == 1
    assert inside.turns == {"curator": CONTENDERS * TURNS, "ours": CONTENDERS * TURNS}


@pytest.mark.spark
def test_curator_and_ours_wait_for_each_other(spark: Any, zookeeper: str) -> None:
    spec = LockSpec("zookeeper", zookeeper)
    seconds = spark._jvm.java.util.concurrent.TimeUnit.MILLISECONDS
    client = curator_client(spark, zookeeper)
    mutex = spark._jvm.org.apache.curator.framework.recipes.locks.InterProcessMutex(client, f"/hudi/locks/{spec.key}")
    assert mutex.acquire(5000, seconds)
    with pytest.raises(LockError, match="a Hudi writer"):
        spec.lock("ours", wait_ms=300).acquire()
    mutex.release()
    with spec.lock("ours", wait_ms=5000):
        assert not mutex.acquire(300, seconds)
    assert mutex.acquire(5000, seconds)
    mutex.release()
    client.close()


def ours(options: dict[str, str], table: Path, *, wait_ms: int = 300) -> TableLock:
    return table_lock(
        LocalStorage(table), CONFIG, options | {"hoodie.write.lock.wait_time_ms": str(wait_ms)}, Owner.current("ours")
    )


def check_exclusion(hudi: RealHudi, options: dict[str, str], table: Path) -> None:
    """The holder of the lock excludes the other process, which gets it after the release."""
    given = {"hoodie.base.path": str(table), "hoodie.write.lock.wait_time_ms": "300", **options}
    for _ in range(2):
        assert hudi.ask("lock", options=given) is True
        with pytest.raises(LockError, match="a Hudi writer"):
            ours(options, table).acquire()
        hudi.ask("unlock")
        lock = ours(options, table, wait_ms=5000)
        with lock:
            assert hudi.ask("lock", options=given) is False
            lock.check()
    assert hudi.ask("lock", options=given) is True
    hudi.ask("unlock")


def zookeeper_options(address: str) -> dict[str, str]:
    return {
        "hoodie.write.lock.provider": f"{CLIENT}ZookeeperBasedLockProvider",
        "hoodie.write.lock.zookeeper.url": address,
        "hoodie.write.lock.zookeeper.base_path": "/hudi/real",
        "hoodie.write.lock.zookeeper.lock_key": uuid.uuid4().hex,
    }


@pytest.mark.hudi
@pytest.mark.parametrize("version", ["hudi_0_15", pytest.param("hudi_1_2", marks=pytest.mark.conformance)])
def test_real_hudis_zookeeper_lock_and_ours_exclude_each_other(
    request: pytest.FixtureRequest, zookeeper: str, tmp_path: Path, version: str
) -> None:
    check_exclusion(request.getfixturevalue(version), zookeeper_options(zookeeper), tmp_path)


@pytest.mark.hudi
@pytest.mark.parametrize("version", ["hudi_1_2", pytest.param("hudi_0_15", marks=pytest.mark.conformance)])
def test_real_hudis_file_system_lock_and_ours_exclude_each_other(
    request: pytest.FixtureRequest, tmp_path: Path, version: str
) -> None:
    hudi = request.getfixturevalue(version)
    options = {"hoodie.write.lock.provider": f"{CLIENT}FileSystemBasedLockProvider"}
    (tmp_path / "inside" / ".hoodie").mkdir(parents=True)
    check_exclusion(hudi, options, tmp_path / "inside")
    (tmp_path / "outside").mkdir()
    check_exclusion(
        hudi, options | {"hoodie.write.lock.filesystem.path": str(tmp_path / "outside")}, tmp_path / "inside"
    )


@pytest.mark.hudi
@pytest.mark.parametrize("version", ["hudi_0_15", pytest.param("hudi_1_2", marks=pytest.mark.conformance)])
def test_real_hudi_and_ours_contend_for_one_lock_file(
    request: pytest.FixtureRequest, tmp_path: Path, version: str
) -> None:
    hudi = request.getfixturevalue(version)
    options = {"hoodie.write.lock.provider": f"{CLIENT}FileSystemBasedLockProvider"}
    (tmp_path / ".hoodie").mkdir()
    counter = tmp_path / "counter"
    counter.write_text("0")
    failures: list[BaseException] = []

    def with_hudi() -> None:
        try:
            given = {"hoodie.base.path": str(tmp_path), "hoodie.write.lock.wait_time_ms": "300", **options}
            hudi.ask("count_under_lock", options=given, counter=str(counter), turns=TURNS * 2)
        except BaseException as error:  # noqa: BLE001 (raised below)
            failures.append(error)

    def turn(lock: TableLock) -> Callable[[], None]:
        def count() -> None:
            with lock:
                value = int(counter.read_text())
                time.sleep(0.005)
                lock.check()
                counter.write_text(str(value + 1))

        return count

    locks = [ours(options, tmp_path, wait_ms=120_000) for _ in range(2)]
    threads = [threading.Thread(target=with_hudi)] + [
        threading.Thread(target=take_turns, args=(turn(lock), failures)) for lock in locks
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]
    assert counter.read_text() == str(TURNS * 4)


@pytest.mark.hudi
def test_real_hudi_names_the_implicit_lock_as_we_do(hudi_1_2: RealHudi, zookeeper: str, tmp_path: Path) -> None:
    for address in ("s3a://bucket/a/table", "S3A://bucket/t", "s3://bucket/t", "/data/trips", "file:///data/trips/"):
        assert hudi_1_2.ask("implicit_lock_path", address=address) == f"/tmp/{implicit_key({}, address)}"
    options = {
        "hoodie.write.lock.provider": f"{CLIENT}ZookeeperBasedImplicitBasePathLockProvider",
        "hoodie.write.lock.zookeeper.url": zookeeper,
    }
    check_exclusion(hudi_1_2, options, tmp_path)


@pytest.mark.hudi
def test_real_hudi_reads_our_lease_and_we_read_its(hudi_1_2: RealHudi, tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    lock = StorageLease(storage, Owner.current("ours"), wait_ms=0)
    with lock:
        mine = json.loads(storage.read(LEASE_PATH))
        seen = hudi_1_2.ask("read_lease", text=storage.read(LEASE_PATH).decode())
        assert seen == {"expired": False, "validUntil": mine["validUntil"], "owner": mine["owner"]}
    assert hudi_1_2.ask("read_lease", text=storage.read(LEASE_PATH).decode())["expired"] is True
    until = int(time.time() * 1000) + 60_000
    storage.write(LEASE_PATH, hudi_1_2.ask("write_lease", expired=False, valid_until=until, owner="hudi-1").encode())
    with pytest.raises(LockError, match=r"a Hudi writer \(lease of hudi-1\)"):
        lock.acquire()
    storage.write(LEASE_PATH, hudi_1_2.ask("write_lease", expired=True, valid_until=until, owner="hudi-1").encode())
    with lock:
        lock.check()
