"""The table's lock in ZooKeeper: Curator's InterProcessMutex, which Hudi's ZookeeperBasedLockProvider uses, over kazoo.

Each contender makes an ephemeral sequential node `_c_<uuid>-lock-<sequence>` below the lock's path. The node with the
lowest sequence has the lock; each other contender watches the node before its own. A node disappears with its session,
so the lock of a dead holder becomes free by itself. config/concurrency_config.py says how long a session is.
"""

from __future__ import annotations

import json
import logging
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KazooState
from kazoo.retry import KazooRetry

from hudi_core.config.concurrency_config import ZookeeperConfig
from hudi_core.errors import CorruptFileError, LockError, StorageError
from hudi_core.transaction.heartbeat_thread import pause
from hudi_core.transaction.locks.base import LockHolder, TableLock, lost
from hudi_core.transaction.owner import Owner

_NAME = "lock-"
_PROTECTED = "_c_"
_RETRIES = 3
_MAX_TEXT = 200
_LOOK_SECONDS = 0.5
"""The seconds between two looks of a waiting contender whether its job is stopped."""
_FAILURES = (KazooException, KazooTimeoutError)

log = logging.getLogger(__name__)


class ZookeeperLock(TableLock):
    """The mutex at `config.path`. Each acquire() opens a new session, which release() closes."""

    def __init__(
        self, config: ZookeeperConfig, owner: Owner, *, connect: Callable[[ZookeeperConfig], KazooClient] | None = None
    ) -> None:
        """Takes `connect`, which makes a client that is not started; tests cut the client's connection."""
        super().__init__(f"zookeeper:{config.path}", owner, config.wait_ms)
        self._config = config
        self._connect = connect or _client
        self._client: KazooClient | None = None
        self._node: str | None = None
        self._expired = threading.Event()

    def acquire(self) -> None:
        """Waits for the lock and takes it (TableLock.acquire). Raises StorageError when ZooKeeper does not answer."""
        if self._client is not None:
            raise LockError(f"{self._owner.describe()} holds the lock already", path=self.name)
        deadline = time.monotonic() + self._wait_seconds
        client = self._connect(self._config)
        self._expired = threading.Event()
        expired = self._expired
        client.add_listener(lambda state: expired.set() if state == KazooState.LOST else None)
        try:
            client.start(timeout=self._config.connection_ms / 1000)
            self._node = self._enqueue(client)
            self._wait(client, self._node, deadline)
        except BaseException as error:
            self._node = None
            _close(client)
            if isinstance(error, _FAILURES):
                raise self._unreachable(error) from error
            raise
        self._client = client

    def check(self) -> None:
        """Raises LockError unless the session lives and our node is first (TableLock.check); mostly one request."""
        client, node = self._client, self._node
        if client is None or node is None:
            raise lost(self.name, self.holder())
        try:
            children = self._children(client)
            holder = self._holder_of(client, children[0]) if children and children[0] != node else None
        except _FAILURES as error:
            raise lost(self.name, None, f"ZooKeeper does not answer: {error}") from error
        reason = "its session expired" if self._expired.is_set() or node not in children else ""
        if reason or children[0] != node:
            raise lost(self.name, holder, reason)

    def release(self) -> bool:
        """Removes our node and ends the session (TableLock.release), which alone would remove the node as well."""
        client, node = self._client, self._node
        if client is None or node is None:
            return False
        self._client = self._node = None
        try:
            self._call(client.delete_async(f"{self._config.path}/{node}"))
        except NoNodeError:
            return False
        except _FAILURES as error:
            log.warning("%s: the node is left to its session: %s", self.name, error)
            return not self._expired.is_set()
        finally:
            _close(client)  # ends the session, which sets _expired
        return True

    def holder(self) -> LockHolder | None:
        """Returns the present holder (TableLock.holder). Opens a session unless this object holds the lock."""
        if self._client is not None:
            return self._first(self._client)
        client = self._connect(self._config)
        try:
            client.start(timeout=self._config.connection_ms / 1000)
            return self._first(client)
        except _FAILURES as error:
            raise self._unreachable(error) from error
        finally:
            _close(client)

    def _enqueue(self, client: KazooClient) -> str:
        """Makes our node and returns its name. After a lost answer, the next try finds it by its name's unique part."""
        prefix = f"{_PROTECTED}{uuid.uuid4()}-{_NAME}"
        data = json.dumps({"version": 1, "owner": self._owner.to_json()}).encode()

        def create() -> str:
            for name in self._children(client):
                if name.startswith(prefix):
                    return name
            path = f"{self._config.path}/{prefix}"
            made: str = self._call(client.create_async(path, data, ephemeral=True, sequence=True, makepath=True))
            return made.rsplit("/", 1)[1]

        name: str = client.retry(create)
        return name

    def _wait(self, client: KazooClient, node: str, deadline: float) -> None:
        while True:
            children = client.retry(self._children, client)
            if self._expired.is_set() or node not in children:
                raise lost(self.name, None, "the session expired while it waited")
            position = children.index(node)
            if position == 0:
                return
            left = deadline - time.monotonic()
            if left <= 0:
                raise self._timeout(self._holder_of(client, children[0]))
            if client.retry(self._watch, client, children[position - 1], changed := threading.Event()):
                while not changed.wait(min(left, _LOOK_SECONDS)) and (left := deadline - time.monotonic()) > 0:
                    pause(0)

    def _watch(self, client: KazooClient, node: str, changed: threading.Event) -> bool:
        answer = client.exists_async(f"{self._config.path}/{node}", watch=lambda _: changed.set())
        return self._call(answer) is not None

    def _call(self, answer: Any) -> Any:
        """Returns the result of a request. Waits for at most the time for a connection."""
        return answer.get(timeout=self._config.connection_ms / 1000)

    def _children(self, client: KazooClient) -> list[str]:
        """Returns the contenders in their order. All nodes count, as in Curator (StandardLockInternalsDriver)."""
        try:
            return sorted(self._call(client.get_children_async(self._config.path)), key=_sequence)
        except NoNodeError:
            return []

    def _first(self, client: KazooClient) -> LockHolder | None:
        children = client.retry(self._children, client)
        return self._holder_of(client, children[0]) if children else None

    def _holder_of(self, client: KazooClient, name: str) -> LockHolder | None:
        try:
            data, stat = client.retry(lambda: self._call(client.get_async(f"{self._config.path}/{name}")))
        except NoNodeError:
            return None
        return LockHolder(name, _owner_in(data, self.name), stat.ctime / 1000, _text_of(data))

    def how_to_break(self, holder: LockHolder) -> str:
        by_itself = "a dead holder loses it when its session ends"
        return f"{by_itself}; else, when it is proven dead, delete the node {self._config.path}/{holder.token}"

    def _unreachable(self, error: Exception) -> StorageError:
        message = f"ZooKeeper at {self._config.url} failed: {type(error).__name__} {error}"
        remedy = "check hoodie.write.lock.zookeeper.url, and that the servers run"
        return StorageError(message, path=self.name, remedy=remedy)


def _client(config: ZookeeperConfig) -> KazooClient:
    forever = KazooRetry(max_tries=-1, delay=0.1, max_delay=2.0)  # a session outlives a server that restarts
    commands = KazooRetry(max_tries=_RETRIES, delay=0.1, max_delay=2.0)
    return KazooClient(
        hosts=config.url, timeout=config.session_ms / 1000, connection_retry=forever, command_retry=commands
    )


def _close(client: KazooClient) -> None:
    try:
        client.stop()
        client.close()
    except _FAILURES as error:
        log.debug("a ZooKeeper session was not closed cleanly: %s", error)


def _sequence(name: str) -> str:
    """Returns the text that Curator sorts by (StandardLockInternalsDriver): what follows the last `lock-`, or all."""
    return name[name.rindex(_NAME) + len(_NAME) :] if _NAME in name else name


def _owner_in(data: bytes, path: str) -> Owner | None:
    """Returns the owner that a node of ours names; None for a node of Hudi or Curator."""
    with suppress(ValueError, RecursionError, CorruptFileError):
        value: Any = json.loads(data)
        if isinstance(value, dict) and isinstance(value.get("owner"), dict):
            return Owner.from_json(value["owner"], path=path)
    return None


def _text_of(data: bytes) -> str:
    text = "".join(char if char.isprintable() else "?" for char in data[:_MAX_TEXT].decode("utf-8", "replace"))
    return f"a Hudi writer ({text})" if text else "a Hudi writer (its node has no owner's name)"
