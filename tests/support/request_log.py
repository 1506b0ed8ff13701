"""The requests of a run on a local table, by every storage that it opens: as an object store would count them."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

import pytest

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
    within: threading.local = field(default_factory=threading.local)

    def of(self, *kinds: str, folder: str = "") -> list[str]:
        """The paths of requests of these kinds, of those whose path starts with `folder`."""
        return [path for kind, path in self.requests if kind in kinds and path.startswith(folder)]


def log_requests(patch: pytest.MonkeyPatch) -> RequestLog:
    """Logs the requests of local storages from now on, until `patch` is over."""
    log = RequestLog()

    def logged(kind: str, method: Any) -> Any:
        @wraps(method)
        def request(self: LocalStorage, path: str, *rest: Any, **named: Any) -> Any:
            if getattr(log.within, "answer", False):
                return method(self, path, *rest, **named)
            log.requests.append((kind, path))
            log.within.answer = True
            try:
                return method(self, path, *rest, **named)
            finally:
                log.within.answer = False

        return request

    for kind in KINDS:
        patch.setattr(LocalStorage, kind, logged(kind, getattr(LocalStorage, kind)))
    return log
