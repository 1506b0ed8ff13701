"""One listing for the triggers of a process that look at one table at about the same time, and the threads of all.

Airflow shares streams among the watchers of assets alone (BaseEventTrigger), not among the triggers of deferred tasks.
So what the last look at a table showed is kept here, as long as there is a trigger of the table.
"""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, ClassVar, Final, TypeVar
from weakref import WeakValueDictionary

from airflow_hudi.hooks.hudi import HudiHook
from airflow_hudi.timeline_reader import Look, TimelineReader
from hudi_core.timeline.instant import Action

T = TypeVar("T")
THREADS: Final = 32
"""Looks at a time. The event loop's own threads, few more than there are processors, are for every trigger of the
triggerer: a thousand listings of a store that takes its time would keep the others waiting.
"""
_POOL: Final = ThreadPoolExecutor(THREADS, thread_name_prefix="hudi-look")


def in_thread(work: Callable[..., T], *arguments: Any) -> asyncio.Future[T]:
    """Runs `work` in a thread of this provider's triggers, with the context of the caller, to which log lines go."""
    run = contextvars.copy_context().run
    return asyncio.get_running_loop().run_in_executor(_POOL, partial(run, work, *arguments))


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
        self._reader: TimelineReader | None = None
        self._looking: asyncio.Future[Look] | None = None
        self._looked_at = 0.0
        """When the last listing began, by the monotonic clock."""

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
        """The table as it is, or was less than half of `interval` seconds ago.

        Raises what HudiHook and TimelineReader raise; the next look then begins anew, with the connection as it is.
        """
        if self._looking is None or (self._looking.done() and not self._is_young(self._looking, interval / 2)):
            self._looking = in_thread(self._read)
        # A trigger that is cancelled does not take the look away from others.
        return await asyncio.shield(self._looking)

    def until_next(self, interval: float) -> float:
        """The seconds from now until the next look of a trigger with that interval."""
        return max(interval / 2, self._looked_at + interval - time.monotonic())

    def _is_young(self, looked: asyncio.Future[Look], most: float) -> bool:
        return looked.exception() is None and time.monotonic() - self._looked_at < most

    def _read(self) -> Look:
        self._looked_at = time.monotonic()
        try:
            if self._reader is None:
                self._reader = HudiHook(self._hudi_conn_id).timeline(self._table, self._action)
            return self._reader.look()
        except BaseException:
            self._reader = None
            raise
