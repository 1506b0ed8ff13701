"""The owner of a lock or a claim, and whether its process is provably dead. Also the JSON files that our processes
write for each other (claims, decisions, locks): a damaged file is refused.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import uuid
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hudi_core.errors import CorruptFileError
from hudi_core.frozen import dataclass

_DEAD_STATES = frozenset("ZXx")
_held: set[str] = set()
"""The tokens of the locks and claims that this process holds; an earlier run may have left others behind."""
_guard = threading.Lock()


def parse_own(data: bytes, what: str, *, path: str) -> dict[str, Any]:
    """Returns the JSON object in `data`, the content of `what`. Raises CorruptFileError with `path` for other data."""
    try:
        value: Any = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise damaged(f"{what} is not JSON", path) from error
    if not isinstance(value, dict):
        raise damaged(f"{what} is not a JSON object", path)
    return value


def damaged(reason: str, path: str) -> CorruptFileError:
    """Returns the error for a file whose content none of our processes writes."""
    return CorruptFileError(
        reason,
        path=path,
        remedy="find out which process wrote it; delete it when no process of ours, and no writer of the table, runs",
    )


@dataclass(frozen=True, slots=True)
class Owner:
    """A process; `text` is for messages. Boot id and PID namespace name one running kernel and one view of its
    processes (proc(5)). The start time in clock ticks detects a reused PID. Each is empty where the system lacks it.
    """

    text: str
    host: str
    pid: int
    boot_id: str
    pid_namespace: str
    process_start: str
    run_id: str = ""
    """The id of the requesting run (Airflow's run id); a random id where the caller has none."""

    @staticmethod
    def current(text: str = "", run_id: str = "") -> Owner:
        pid = os.getpid()
        return Owner(
            text=text or f"process {pid}",
            host=socket.gethostname(),
            pid=pid,
            boot_id=_read_line("/proc/sys/kernel/random/boot_id"),
            pid_namespace=_namespace(),
            process_start=_start_in(_read_line(f"/proc/{pid}/stat")) or "",
            run_id=run_id or uuid.uuid4().hex,
        )

    @property
    def is_this_process(self) -> bool:
        here = Owner.current()
        return self._same_process_table(here) and (self.pid, self.process_start) == (here.pid, here.process_start)

    def is_provably_dead(self) -> bool:
        """Returns True only when we see the owner's process table, without the owner: containers share host names."""
        if not self._same_process_table(Owner.current()) or not self.process_start:
            return False
        status = _read_line(f"/proc/{self.pid}/stat")
        if not status:
            return not _exists(self.pid)  # /proc may hide the processes of others (hidepid)
        return _start_in(status) != self.process_start

    def describe(self) -> str:
        return f"{self.text} (process {self.pid} on {self.host})"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(value: Mapping[str, Any], *, path: str) -> Owner:
        """Reads the value of `to_json`. Raises CorruptFileError with `path` for any other value."""
        names = ("text", "host", "boot_id", "pid_namespace", "process_start", "run_id")
        texts, pid = {name: value.get(name) for name in names}, value.get("pid")
        if not all(isinstance(text, str) for text in texts.values()) or not isinstance(pid, int) or not 0 < pid < 2**31:
            raise damaged("the owner in it is not one", path)
        return Owner(pid=pid, **{name: str(text) for name, text in texts.items()})

    def _same_process_table(self, here: Owner) -> bool:
        known = bool(self.boot_id and self.pid_namespace)
        return known and (self.boot_id, self.pid_namespace) == (here.boot_id, here.pid_namespace)


def _namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""  # no Linux: such an owner is never provably dead


def _start_in(status: str) -> str | None:
    """Returns the start time in clock ticks since boot; None for a zombie (fields 3 and 22 of /proc/<pid>/stat)."""
    fields = status.rpartition(")")[2].split()  # the command, before these fields, may hold blanks and parentheses
    if len(fields) < 20 or fields[0] in _DEAD_STATES:
        return None
    return fields[19]


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _read_line(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except (FileNotFoundError, NotADirectoryError, ProcessLookupError, PermissionError):
        return ""


def hold_token(token: str) -> None:
    """Notes that this process holds the lock or claim named `token`. Called before its file shows."""
    with _guard:
        _held.add(token)


def drop_token(token: str) -> None:
    """Notes that this process dropped `token`, after it tried to delete its file: it is free even if that failed."""
    with _guard:
        _held.discard(token)


def is_left_behind(owner: Owner, token: str) -> bool:
    """Returns whether `token` has no holder: the owner is provably dead, or is this process, which has dropped it."""
    if owner.is_this_process:
        with _guard:
            return token not in _held
    return owner.is_provably_dead()
