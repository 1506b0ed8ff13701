"""Processes that run functions for this one and end with it, however it ends."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing.connection import wait
from multiprocessing.context import SpawnContext
from typing import Any, TypeVar

from hudi_core.errors import ExecutionError, HudiError, LogFormatter

T = TypeVar("T")

_LOGGER = "hudi_core"


class Processes:
    """Up to `count` processes, started when there is work and kept for more.

    They are spawned, not forked: this process has threads of Arrow, of heartbeats and of its caller. What is submitted
    and what it returns is pickled. An error of it is a HudiError: of any other, its text in an ExecutionError.
    """

    def __init__(self, count: int) -> None:
        self._context = _Recorder()
        self._pool = ProcessPoolExecutor(
            count, mp_context=self._context, initializer=_start, initargs=(logging.getLogger(_LOGGER).level,)
        )

    def submit(self, function: Callable[[], T]) -> Future[T]:
        """Runs `function` in one of the processes."""
        return self._pool.submit(_call, function)

    def close(self) -> None:
        """Ends the processes, and with them what they are doing."""
        for process in self._context.started:
            process.terminate()
        self._pool.shutdown(wait=True, cancel_futures=True)


class _Recorder(SpawnContext):
    """Knows the processes that it started: a pool does not end one before its work is done."""

    def __init__(self) -> None:
        self.started: list[Any] = []

    def Process(self, *arguments: Any, **named: Any) -> Any:  # type: ignore[override]
        process = SpawnContext.Process(*arguments, **named)
        self.started.append(process)
        return process


def _start(level: int) -> None:
    """Sets a process up: it logs as its parent does, leaves interrupts to it, and ends when it is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogFormatter("%(levelname)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger(_LOGGER).setLevel(level)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _call(function: Callable[[], T]) -> T:
    try:
        return function()
    except HudiError:
        raise
    except Exception as error:  # noqa: BLE001  it need not be one that can be pickled
        raise ExecutionError(f"{type(error).__name__}: {error}") from None
