"""One listing for the triggers of a process that look at one table at about the same time, and the threads of a place.
Airflow shares streams among the watchers of assets alone (BaseEventTrigger), not among triggers of deferred tasks.
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
"""Looks at a time at one bucket or host, whose threads are its own: one that does not answer keeps no others waiting.
The event loop's threads, few more than there are processors, are for every trigger of the triggerer.
"""
_POOLS: Final[dict[str, ThreadPoolExecutor]] = {}
_SLOW_POLLS: Final = 3
_SLOW_SECONDS: Final = 10.0
"""A look that takes longer than so many intervals, and so many seconds, is warned of."""


class SharedTimeline:
    """A table, as the triggers of this process see it. To be used on their event loop.

    A look is joined while it is under way, and counts for as long as it is younger than half of the interval of the
    trigger that asks. Triggers sleep until an interval after the look that they saw: so those of a table fall into
    step, and each interval takes one listing.
    """

    _known: ClassVar[WeakValueDictionary[tuple[str, str | None, str], SharedTimeline]] = WeakValueDictionary()

    def __init__(self, table: str, hudi_conn_id: str | None, action: str = "") -> None:
        self._table = table
        self._hudi_conn_id = hudi_conn_id
        self._action = action
        self.place = _place_of(table, hudi_conn_id)
        self._reader: TimelineReader | None = None
        self._metrics: metrics.LookMetrics  # made with the reader
        self._looking: asyncio.Future[Look] | None = None
        self._warned = False
        self._looked_at = 0.0

    @classmethod
    def of(cls, table: str, hudi_conn_id: str | None, action: str = "") -> SharedTimeline:
        """The table for triggers that look for `action`. Opens nothing yet."""
        # To a reader all other actions are one: see TimelineReader.
        action = action if action == Action.CLUSTERING else ""
        key = (table, hudi_conn_id or None, action)
        shared = cls._known.get(key)
        if shared is None:
            shared = cls._known[key] = cls(table, hudi_conn_id or None, action)
        return shared

    async def look(self, interval: float) -> Look:
        """The table as it is, or was less than half of `interval` seconds ago. Raises as HudiHook and TimelineReader;
        the next look then begins anew, with the connection as it is.
        """
        if self._looking is None or (self._looking.done() and not self._is_young(self._looking, interval / 2)):
            self._looking, self._warned = self.in_thread(self._read), False
        looking, slow = self._looking, max(_SLOW_POLLS * interval, _SLOW_SECONDS)
        # A trigger that is cancelled does not take the look away from others.
        await asyncio.wait({looking}, timeout=slow)
        if not looking.done() and not self._warned:
            self._warned = True
            log.warning(
                "A look at %s is not done after %g s: its storage does not answer, or many other looks at %s wait",
                *(self._table, slow, self.place),
            )
        return await asyncio.shield(looking)

    def in_thread(self, work: Callable[..., T], *arguments: Any) -> asyncio.Future[T]:
        """Runs `work` in a thread of the place, with the context of the caller, to which log lines go."""
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
    """Scheme and bucket or host; of a table below a connection's base path, which is not known here, the connection."""
    if not is_absolute(table):
        return f"the connection {hudi_conn_id}"
    scheme, is_uri, rest = table.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}" if is_uri else "file://"
