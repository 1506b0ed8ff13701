"""What a piece of work takes of anonymous memory at its peak, for probes that run in a process of their own.

The pages of memory-mapped files are not counted: the system drops them when it needs room.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

INTERVAL_SECONDS = 0.004


def anonymous() -> int:
    """Bytes of anonymous memory now."""
    found = anonymous_of("self")
    if found is None:
        raise RuntimeError("the kernel does not report RssAnon")
    return found


def anonymous_of(process: int | str) -> int | None:
    """Those of a process; None where it has ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:")), None)


def measured(work: Callable[[], Any]) -> tuple[Any, int, float]:
    """The result of `work`, the peak of memory above what there was before it, in bytes, and its seconds."""
    done, before = threading.Event(), anonymous()
    peak = [before]

    def watch() -> None:
        while not done.wait(INTERVAL_SECONDS):
            peak[0] = max(peak[0], anonymous())

    watcher = threading.Thread(target=watch)
    watcher.start()
    started = time.perf_counter()
    try:
        result = work()
    finally:
        done.set()
        watcher.join()
    return result, max(peak[0], anonymous()) - before, time.perf_counter() - started
