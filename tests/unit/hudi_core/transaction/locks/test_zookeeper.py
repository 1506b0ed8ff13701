from __future__ import annotations

import json
import logging
import threading
from typing import Any, cast

import pytest
from kazoo.protocol.states import KazooState

from hudi_core.config.concurrency_config import ZookeeperConfig
from hudi_core.errors import LockError, StorageError
from hudi_core.transaction.locks.zookeeper import ZookeeperLock
from hudi_core.transaction.owner import Owner
from tests.support.fake_zookeeper import FakeClient, FakeServer, Node

HERE = Owner.current("dag here")
PATH = "/hudi/locks/t"


class Table:
    """A server and the clients that connected to it."""

    def __init__(self) -> None:
        self.server = FakeServer()
        self.clients: list[FakeClient] = []

    def lock(self, who: Owner = HERE, *, wait_ms: int = 0) -> ZookeeperLock:
        def connect(_: ZookeeperConfig) -> Any:
            self.clients.append(FakeClient(self.server))
            return self.clients[-1]

        return ZookeeperLock(ZookeeperConfig("zk:2181", PATH, 60_000, 15_000, wait_ms), who, connect=connect)

    def foreign(self, name: str, data: bytes = b"application_id=app-1") -> str:
        path = f"{PATH}/{name}"
        self.server.nodes[path] = Node(data, -1)
        return path


def test_a_node_is_named_as_curator_names_it_and_says_who() -> None:
    table = Table()
    with table.lock() as lock:
        (name,) = table.server.names()
        prefix, uuid, sequence = name[:3], name[3:39], name[39:]
        assert (prefix, uuid.count("-"), sequence) == ("_c_", 4, "-lock-0000000000")
        assert Owner.from_json(json.loads(table.server.nodes[f"{PATH}/{name}"].data)["owner"], path="x") == HERE
        holder = lock.holder()
        assert holder is not None
        assert (holder.owner, holder.token) == (HERE, name)
    assert table.server.names() == []
    assert all(client.closed for client in table.clients)


def test_the_lowest_sequence_has_the_lock_whatever_its_unique_part() -> None:
    table = Table()
    table.server.sequence = 5
    path = table.foreign("_c_ffffffff-0000-0000-0000-000000000000-lock-0000000004")
    with pytest.raises(LockError, match=r"a Hudi writer \(application_id=app-1\) for 0 s"):
        table.lock().acquire()
    assert table.server.names() == [path.rsplit("/", 1)[1]], "who stopped waiting left no node"
    table.server.remove(path)
    table.foreign("_c_00000000-0000-0000-0000-000000000000-lock-0000000099")
    with table.lock() as lock:
        lock.check()


def test_each_contender_watches_the_one_before_it() -> None:
    table = Table()
    first = table.lock()
    first.acquire()
    second, third = table.lock(wait_ms=20_000), table.lock(wait_ms=20_000)
    order: list[str] = []

    def wait(name: str, lock: ZookeeperLock) -> None:
        with lock:
            order.append(name)

    waiting = []
    for count, (name, lock) in enumerate((("second", second), ("third", third)), start=2):
        waiting.append(threading.Thread(target=wait, args=(name, lock)))
        waiting[-1].start()
        while len(table.server.watches) < count - 1:
            pass
    names = sorted(table.server.names(), key=lambda name: name[-10:])
    assert sorted(table.server.watches) == sorted(f"{PATH}/{name}" for name in names[:2])
    assert first.release()
    for thread in waiting:
        thread.join()
    assert order == ["second", "third"]


def test_a_create_whose_answer_was_lost_is_found_again() -> None:
    table = Table()
    table.server.lose_answer["create"] = 1
    with table.lock() as lock:
        assert len(table.server.names()) == 1
        lock.check()


def test_connections_that_break_are_tried_again_and_reported_when_they_stay_broken() -> None:
    table = Table()
    table.server.fail = {"create": 1, "get_children": 1}
    with table.lock():
        pass
    for verb in ("start", "create"):
        table.server.fail = {verb: 9}
        with pytest.raises(StorageError, match="ZooKeeper at zk:2181 failed") as caught:
            table.lock().acquire()
        assert "hoodie.write.lock.zookeeper.url" in (caught.value.remedy or "")
        table.server.fail = {}
        assert table.server.names() == []
        assert table.clients[-1].closed
    table.server.fail = {"start": 9}
    with pytest.raises(StorageError, match="failed"):
        table.lock().holder()


def test_a_session_that_expired_has_lost_the_lock(caplog: pytest.LogCaptureFixture) -> None:
    table = Table()
    lock = table.lock()
    with caplog.at_level(logging.WARNING), lock:
        client = table.clients[-1]
        table.server.expire(client.session)
        client.notify(KazooState.LOST)
        with pytest.raises(LockError, match="its session expired"):
            lock.check()
        with table.lock(Owner.current("next")) as after:
            with pytest.raises(LockError, match="held by next"):
                lock.check()
            after.check()
    assert "taken away from dag here" in caplog.text
    with lock:
        lock.check()


def test_a_check_without_an_answer_fails() -> None:
    table = Table()
    with table.lock() as lock:
        table.server.fail = {"get_children": 9}
        with pytest.raises(LockError, match="does not answer"):
            lock.check()
        table.server.fail = {}


def test_what_was_not_taken_cannot_be_checked_and_what_was_is_not_taken_twice() -> None:
    table = Table()
    lock = table.lock()
    with pytest.raises(LockError, match="free now"):
        lock.check()
    assert lock.release() is False
    with lock, pytest.raises(LockError, match="already"):
        lock.acquire()


def test_a_holder_that_leaves_during_the_look_is_none() -> None:
    table = Table()

    class Leaving(FakeClient):
        def get(self, path: str) -> tuple[bytes, Node]:
            table.server.remove(path)
            return super().get(path)

    table.foreign("_c_x-lock-0000000000")
    config = ZookeeperConfig("zk:2181", PATH, 60_000, 15_000, 0)
    lock = ZookeeperLock(config, HERE, connect=lambda _: cast(Any, Leaving(table.server)))
    assert lock.holder() is None
    table.foreign("_c_x-lock-0000000000")
    table.server.sequence = 1
    with pytest.raises(LockError, match="from hand to hand"):
        lock.acquire()


def test_a_suspended_connection_alone_loses_nothing() -> None:
    table = Table()
    with table.lock() as lock:
        table.clients[-1].notify(KazooState.SUSPENDED)
        table.clients[-1].notify(KazooState.CONNECTED)
        lock.check()
        assert lock.release() is True


def test_a_node_that_cannot_be_deleted_goes_with_its_session(caplog: pytest.LogCaptureFixture) -> None:
    table = Table()
    lock = table.lock()
    lock.acquire()
    table.server.fail = {"delete": 1}
    with caplog.at_level(logging.WARNING):
        assert lock.release() is True
    assert "left to its session" in caplog.text
    assert table.server.names() == []


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "no owner's name"),
        (b"10.0.0.1", "10.0.0.1"),
        (b"[1]", "[1]"),
        (b'{"owner": {"text": 1}}', "owner"),
        (b"\xff\x00\n" + b"x" * 1000, "xxx"),
    ],
)
def test_whatever_another_wrote_into_its_node_is_only_shown(data: bytes, text: str) -> None:
    table = Table()
    table.foreign("_c_x-lock-0000000000", data)
    holder = table.lock().holder()
    assert holder is not None
    assert holder.owner is None
    assert text in holder.describe()
    assert holder.describe().isprintable()
    assert len(holder.describe()) < 300


def test_a_session_that_expires_while_it_waits_is_an_error() -> None:
    table = Table()
    table.foreign("_c_x-lock-0000000000")
    table.server.sequence = 1
    lock = table.lock(wait_ms=20_000)
    failures: list[LockError] = []

    def wait() -> None:
        try:
            lock.acquire()
        except LockError as error:
            failures.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    while not table.server.watches:
        pass
    session = table.clients[-1].session
    own = next(path for path, node in table.server.nodes.items() if node.session == session)
    del table.server.nodes[own]
    table.server.remove(f"{PATH}/_c_x-lock-0000000000")
    waiting.join()
    assert "expired while it waited" in str(failures[0])
