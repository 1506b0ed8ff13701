"""The requests of a run on a local table, by every storage that it opens: as an object store would count them, and as
it would make a run wait for them.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

import pytest

from hudi_core.storage import overlapped
from hudi_core.storage.local import LocalStorage

KINDS = (
    "stat",
    "list_files",
    "list_names",
    "list_folders",
    "list_tree",
    "read",
    "read_range",
    "read_versioned",
    "write",
    "create_exclusive",
    "write_if",
    "delete",
    "delete_folder",
    "open_input",
    "open_output",
)


@dataclass
class RequestLog:
    """Kind and path of each request; one that a storage makes on its way to answer another is not counted."""

    requests: list[tuple[str, str]] = field(default_factory=list)
    spans: list[tuple[float, float]] = field(default_factory=list)
    """When each request began and ended."""
    within: threading.local = field(default_factory=threading.local)

    def of(self, *kinds: str, folder: str = "") -> list[str]:
        """The paths of requests of these kinds, of those whose path starts with `folder`."""
        return [path for kind, path in self.requests if kind in kinds and path.startswith(folder)]


def log_requests(patch: pytest.MonkeyPatch, *, seconds: float = 0.0) -> RequestLog:
    """Logs the requests of local storages from now on, until `patch` is over. With `seconds` each takes so long, and
    the storages count as remote.
    """
    log = RequestLog()
    if seconds:
        patch.setattr(overlapped, "is_remote", lambda _: True)

    def logged(kind: str, method: Any) -> Any:
        @wraps(method)
        def request(self: LocalStorage, path: str, *rest: Any, **named: Any) -> Any:
            if getattr(log.within, "answer", False):
                return method(self, path, *rest, **named)
            log.requests.append((kind, path))
            log.within.answer = True
            begun = time.monotonic()
            try:
                time.sleep(seconds)
                return method(self, path, *rest, **named)
            finally:
                log.within.answer = False
                log.spans.append((begun, time.monotonic()))

        return request

    for kind in KINDS:
        patch.setattr(LocalStorage, kind, logged(kind, getattr(LocalStorage, kind)))
    return log
