"""Processes that are known by a mark in their environment, which their children inherit.

A process id says nothing after the machine has restarted, or once another process has it. A mark of random letters is
in the environment of no foreign process.
"""

from __future__ import annotations

import secrets
import time

import psutil

VARIABLE = "AIRFLOW_HUDI_DEMO_MARK"


def new_mark() -> str:
    """A mark that no other process has."""
    return secrets.token_hex(16)


def variables(mark: str) -> dict[str, str]:
    """What the first process gets into its environment."""
    # Airflow names its processes by setproctitle, which would overwrite the environment that others see.
    return {VARIABLE: mark, "SPT_NOENV": "1"}


def processes(mark: str) -> list[psutil.Process]:
    """The running processes with the mark, and what they started."""
    found: dict[int, psutil.Process] = {}
    for process in psutil.process_iter():
        try:
            if process.environ().get(VARIABLE) == mark and process.status() != psutil.STATUS_ZOMBIE:
                found[process.pid] = process
                found.update({child.pid: child for child in process.children(recursive=True)})
        except psutil.Error:
            continue
    return list(found.values())


def end(mark: str, patience: float) -> int:
    """Ends them all: SIGTERM, after `patience` seconds SIGKILL, also to what started meanwhile.

    Returns how many there were. Raises TimeoutError when some are left after twice the time.
    """
    first = processes(mark)
    for process in first:
        _signal(process, kill=False)
    psutil.wait_procs(first, timeout=patience)
    deadline = time.monotonic() + patience
    while left := processes(mark):
        if time.monotonic() > deadline:
            raise TimeoutError(f"SIGKILL did not end {', '.join(str(process.pid) for process in left)}")
        for process in left:
            _signal(process, kill=True)
        psutil.wait_procs(left, timeout=1)
    return len(first)


def _signal(process: psutil.Process, *, kill: bool) -> None:
    """Sends it unless its id has become another process's, which psutil checks."""
    try:
        if kill:
            process.kill()
        else:
            process.terminate()
    except psutil.NoSuchProcess:
        return
