"""Shares one listing among the triggers of a process that look at one table at about the same time, and has the threads
of each bucket or host. Airflow shares streams only among watchers of assets (BaseEventTrigger), not deferred tasks.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, ClassVar, Final, TypeVar
from weakref import WeakValueDictionary

from airflow_hudi import metrics
from airflow_hudi.hooks import HudiHook, is_absolute
from airflow_hudi.timeline_reader import Look, TimelineReader
from hudi_core.timeline.instant import Action

T = TypeVar("T")
log = logging.getLogger(__name__)

THREADS: Final = 16
"""The number of looks at the same time at one bucket or host. Each has its own threads, so a storage that does not
answer delays no others. The event loop's own threads are few, and all triggers of the triggerer share them.
"""
_POOLS: Final[dict[str, ThreadPoolExecutor]] = {}
_SLOW_POLLS: Final = 3
_SLOW_SECONDS: Final = 10.0
"""Seconds after which the log warns of a slow look; it also must take longer than _SLOW_POLLS intervals."""


class SharedTimeline:
    """A table for all triggers of this process. Use it only on their event loop. A trigger joins a look that another
    started, and uses a look that is younger than half of its own interval. Triggers sleep until one interval after the
    look that they saw. So they look at the same time, and each interval takes one listing.
    """

    _known: ClassVar[WeakValueDictionary[tuple[str, str | None, str], SharedTimeline]] = WeakValueDictionary()

    def __init__(self, table: str, hudi_conn_id: str | None, action: str = "") -> None:
        self._table = table
        self._hudi_conn_id = hudi_conn_id
        self._action = action
        self.place = _place_of(table, hudi_conn_id)
        self._reader: TimelineReader | None = None
        self._metrics: metrics.LookMetrics  # Made together with the reader.
        self._looking: asyncio.Future[Look] | None = None
        self._warned = False
        self._looked_at = 0.0

    @classmethod
    def of(cls, table: str, hudi_conn_id: str | None, action: str = "") -> SharedTimeline:
        """Returns the shared table for triggers that look for `action`. It opens nothing yet."""
        # TimelineReader treats all other actions alike.
        action = action if action == Action.CLUSTERING else ""
        key = (table, hudi_conn_id or None, action)
        shared = cls._known.get(key)
        if shared is None:
            shared = cls._known[key] = cls(table, hudi_conn_id or None, action)
        return shared

    async def look(self, interval: float) -> Look:
        """Returns the table as it is now, or was less than half of `interval` seconds ago. Raises the errors of
        HudiHook and TimelineReader. After an error the next look asks for the connection again.
        """
        if self._looking is None or (self._looking.done() and not self._is_young(self._looking, interval / 2)):
            self._looking, self._warned = self.in_thread(self._read), False
        looking, slow = self._looking, max(_SLOW_POLLS * interval, _SLOW_SECONDS)
        # A cancelled trigger must not cancel the look of the others.
        await asyncio.wait({looking}, timeout=slow)
        if not looking.done() and not self._warned:
            self._warned = True
            log.warning(
                "A look at %s is not done after %g s: its storage does not answer, or many other looks at %s wait",
                *(self._table, slow, self.place),
            )
        return await asyncio.shield(looking)

    def in_thread(self, work: Callable[..., T], *arguments: Any) -> asyncio.Future[T]:
        """Runs `work` in a thread of the bucket or host, with the caller's context, which directs the log lines."""
        pool = _POOLS.get(self.place)
        if pool is None:
            pool = _POOLS[self.place] = ThreadPoolExecutor(THREADS, thread_name_prefix="hudi-look")
        run = contextvars.copy_context().run
        return asyncio.get_running_loop().run_in_executor(pool, partial(run, work, *arguments))

    def until_next(self, interval: float) -> float:
        return max(interval / 2, self._looked_at + interval - time.monotonic())

    def _is_young(self, looked: asyncio.Future[Look], most: float) -> bool:
        return looked.exception() is None and time.monotonic() - self._looked_at < most

    def _read(self) -> Look:
        self._looked_at = time.monotonic()
        try:
            if self._reader is None:
                hook = HudiHook(self._hudi_conn_id)
                self._reader, self._metrics = hook.timeline(self._table, self._action), metrics.LookMetrics(hook)
                metrics.start_in_triggerer()
            look = self._reader.look()
            self._metrics.report(look)
            return look
        except BaseException:
            self._reader = None
            raise


def _place_of(table: str, hudi_conn_id: str | None) -> str:
    """Returns the scheme and the bucket or host of a table. For a table below a connection's base path, which is not
    known here, returns the connection.
    """
    if not is_absolute(table):
        return f"the connection {hudi_conn_id}"
    scheme, is_uri, rest = table.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}" if is_uri else "file://"
