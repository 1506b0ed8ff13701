"""ZooKeeper in memory, as much of kazoo's client as the lock uses, with faults on demand."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kazoo.exceptions import ConnectionLoss, NoNodeError
from kazoo.protocol.states import KazooState


@dataclass
class Node:
    data: bytes
    session: int
    ctime: int = field(default_factory=lambda: int(time.time() * 1000))


class FakeServer:
    """One lock's nodes. `fail` names a verb whose next calls lose the connection: before or after they took effect."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.sequence = 0
        self.sessions = 0
        self.guard = threading.RLock()
        self.watches: dict[str, list[Callable[[Any], None]]] = {}
        self.fail: dict[str, int] = {}
        self.lose_answer: dict[str, int] = {}

    def remove(self, path: str) -> None:
        """Deletes a node and calls who watches it."""
        with self.guard:
            if path not in self.nodes:
                raise NoNodeError
            del self.nodes[path]
            called = self.watches.pop(path, [])
        for watch in called:
            watch(None)

    def expire(self, session: int) -> None:
        """What the server does to a session that was silent for too long."""
        for path in [path for path, node in self.nodes.items() if node.session == session]:
            self.remove(path)

    def names(self) -> list[str]:
        """The contenders."""
        return [path.rsplit("/", 1)[1] for path in self.nodes]


class Answer:
    """What kazoo's `…_async` calls give: the request is made when its result is read."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self.call = call

    def get(self, timeout: float) -> Any:
        assert timeout > 0
        return self.call()


class FakeClient:
    """A session."""

    def __init__(self, server: FakeServer) -> None:
        self.server = server
        self.session = 0
        self.listeners: list[Callable[[str], None]] = []
        self.closed = False

    def __getattr__(self, name: str) -> Any:
        verb, _, suffix = name.rpartition("_")
        if suffix != "async":
            raise AttributeError(name)
        return lambda *arguments, **named: Answer(lambda: getattr(self, verb)(*arguments, **named))

    def add_listener(self, listener: Callable[[str], None]) -> None:
        self.listeners.append(listener)

    def start(self, timeout: float) -> None:
        assert timeout > 0
        self._fault("start")
        self.server.sessions += 1
        self.session = self.server.sessions

    def stop(self) -> None:
        self.server.expire(self.session)
        self.notify(KazooState.LOST)

    def close(self) -> None:
        self.closed = True

    def notify(self, state: str) -> None:
        """Notifies the listeners of a state."""
        for listener in self.listeners:
            listener(state)

    def retry(self, call: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        for _ in range(3):
            try:
                return call(*arguments, **named)
            except ConnectionLoss:
                continue
        raise ConnectionLoss

    def get_children(self, path: str) -> list[str]:
        self._fault("get_children")
        return [name for name in self.server.names() if f"{path}/{name}" in self.server.nodes]

    def create(self, path: str, data: bytes, *, ephemeral: bool, sequence: bool, makepath: bool) -> str:
        assert (ephemeral, sequence, makepath) == (True, True, True)
        self._fault("create")
        with self.server.guard:
            made = f"{path}{self.server.sequence:010d}"
            self.server.sequence += 1
            self.server.nodes[made] = Node(data, self.session)
        self._fault("create", self.server.lose_answer)
        return made

    def exists(self, path: str, watch: Callable[[Any], None]) -> Node | None:
        self._fault("exists")
        with self.server.guard:
            if path in self.server.nodes:
                self.server.watches.setdefault(path, []).append(watch)
            return self.server.nodes.get(path)

    def get(self, path: str) -> tuple[bytes, Node]:
        self._fault("get")
        node = self.server.nodes.get(path)
        if node is None:
            raise NoNodeError
        return node.data, node

    def delete(self, path: str) -> None:
        self._fault("delete")
        self.server.remove(path)

    def _fault(self, verb: str, faults: dict[str, int] | None = None) -> None:
        left = self.server.fail if faults is None else faults
        if left.get(verb, 0) > 0:
            left[verb] -= 1
            raise ConnectionLoss(verb)
