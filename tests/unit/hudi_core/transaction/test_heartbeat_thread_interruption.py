"""Waits of the threads of a job end when it is stopped."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from hudi_core.config.concurrency_config import ZookeeperConfig
from hudi_core.services.waiting import may_be_at_work, wait_for_writers
from hudi_core.storage.local import LocalStorage
from hudi_core.transaction.heartbeat_thread import is_stopped, pause, stop_with
from hudi_core.transaction.locks.filesystem import LOCK_PATH, FileSystemLock
from hudi_core.transaction.locks.zookeeper import ZookeeperLock
from hudi_core.transaction.owner import Owner
from tests.support.changed_tables import open_context, pending_write
from tests.support.fake_zookeeper import FakeClient, FakeServer, Node
from tests.support.golden_data import GoldenCase

Golden = Callable[[str, str], GoldenCase]
OWNER = Owner.current("a run")


def assert_ends(wait: Callable[[], object]) -> None:
    """That `wait`, which takes a minute, ends soon after its job was stopped."""
    stopped = threading.Event()
    with ThreadPoolExecutor(1, initializer=stop_with, initargs=(stopped,)) as pool:
        waiting = pool.submit(wait)
        time.sleep(0.3)
        assert not waiting.done()
        started = time.monotonic()
        stopped.set()
        with pytest.raises(KeyboardInterrupt):
            waiting.result(30)
        assert time.monotonic() - started < 10


def test_a_pause() -> None:
    assert_ends(lambda: pause(60))
    pause(0.001)
    assert not is_stopped()


def test_a_wait_for_a_lock(tmp_path: Path) -> None:
    (tmp_path / LOCK_PATH).parent.mkdir()
    (tmp_path / LOCK_PATH).touch()
    assert_ends(FileSystemLock(LocalStorage(tmp_path), OWNER).acquire)


def test_a_wait_for_a_lock_in_zookeeper_leaves_the_queue() -> None:
    server = FakeServer()
    server.nodes["/t/_c_x-lock-0000000000"] = Node(b"", -1)
    server.sequence = 1

    def connect(_: ZookeeperConfig) -> Any:
        return FakeClient(server)

    assert_ends(ZookeeperLock(ZookeeperConfig("zk:2181", "/t", 60_000, 15_000, 60_000), OWNER, connect=connect).acquire)
    assert list(server.nodes) == ["/t/_c_x-lock-0000000000"]


def test_a_wait_for_writers(golden: Golden) -> None:
    table = golden("9", "failed_inflight_cow").table
    context, write = open_context(table), pending_write(table)
    held = context.claim(write, OWNER)
    assert_ends(lambda: wait_for_writers(context, {write}, rule=may_be_at_work))
    held.release()
