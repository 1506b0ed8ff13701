"""Waits in the triggerer until instant_condition.InstantCondition holds on a timeline."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_hudi.hooks.hudi import HudiHook
from airflow_hudi.instant_condition import PENDING, InstantCondition
from airflow_hudi.timeline_reader import TimelineReader
from hudi_core.errors import Reminder, StorageError, StorageNotFoundError
from hudi_core.timeline.instant import Instant
from hudi_core.timeline.timeline import Timeline

_SAID_EVERY = 600.0
"""Seconds between two lines of a wait that may last for days."""


def instant_event(table: str, instant: Instant) -> dict[str, Any]:
    """What a trigger fires and a sensor returns: JSON with `status`, `table`, `instant`, `action` and `state`.

    `action` is the one on the pending files, as far as they are still there: `compaction` also for a completed
    compaction.
    """
    return {
        "status": "success",
        "table": table,
        "instant": instant.requested_time,
        "action": instant.pending_action,
        "state": instant.state.value,
    }


def not_yet(reader: TimelineReader, condition: InstantCondition, timeline: Timeline) -> str:
    """What a wait says: what it is for, and who is at work on the instant that comes nearest to it."""
    shown = f"{reader.storage.uri} shows no {condition.describe()} yet"
    nearest = condition.nearest(timeline)
    if nearest is None:
        return shown
    at_work = reader.at_work(nearest.requested_time) or "claimed by no process now"
    return f"{shown}: {nearest.pending_action} {nearest.requested_time} is {nearest.state.value}, {at_work}"


class HudiInstantTrigger(BaseTrigger):
    """Fires once when the condition holds, or when it can no longer be checked.

    A check is one listing, in a thread: the triggerer's event loop never waits for storage. A check that fails for a
    reason that may pass (an overloaded store) is repeated at the next one, `max_errors` times in a row; every other
    failure is an event at once.

    :param table: the table, as HudiHook.table_uri takes it
    :param hudi_conn_id: connection of type `hudi`, or None
    :param action: see InstantCondition, as `state`, `instant` and `after`
    :param poll_interval: seconds before each check
    :param max_errors: so many failed checks in a row end the wait
    """

    def __init__(
        self,
        *,
        table: str,
        action: str,
        state: str = PENDING,
        instant: str | None = None,
        after: str | None = None,
        hudi_conn_id: str | None = HudiHook.default_conn_name,
        poll_interval: float = 60.0,
        max_errors: int = 5,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.table = table
        self.condition = InstantCondition(action, state, instant, after)
        self.hudi_conn_id = hudi_conn_id
        self.poll_interval = poll_interval
        self.max_errors = max_errors
        self._reader: TimelineReader | None = None

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """The class and every argument of it."""
        arguments = {
            "table": self.table,
            "action": self.condition.action,
            "state": self.condition.state,
            "instant": self.condition.instant,
            "after": self.condition.after,
            "hudi_conn_id": self.hudi_conn_id,
            "poll_interval": self.poll_interval,
            "max_errors": self.max_errors,
        }
        return f"{type(self).__module__}.{type(self).__qualname__}", arguments

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """One event: see instant_event; or `status` "error" with `message`."""
        errors, started = 0, time.monotonic()
        reminder = Reminder(time.monotonic, every=_SAID_EVERY)
        while True:
            # Sleep first: the sensor has just checked, and Airflow 3.3 fails a task whose trigger fires before its
            # worker has ended.
            await asyncio.sleep(self.poll_interval)
            try:
                found, waits = await asyncio.to_thread(self._look, reminder)
                errors = 0
                if waits:
                    self.log.info("%s; waiting for %.0f s", waits, time.monotonic() - started)
            except Exception as error:
                # Every failure must reach the task: a trigger that dies leaves it deferred until its timeout.
                errors += 1
                self.log.warning("Reading the timeline of %s failed", self.table, exc_info=True)
                if errors >= self.max_errors or not _may_pass(error):
                    yield _event(
                        {"status": "error", "table": self.table, "message": f"{type(error).__name__}: {error}"}
                    )
                    return
                found = None
            if found is not None:
                yield _event(instant_event(self.table, found))
                return

    def _look(self, reminder: Reminder) -> tuple[Instant | None, str]:
        """The instant, or what the wait says where that is due."""
        if self._reader is None:
            self._reader = HudiHook(self.hudi_conn_id).timeline(self.table, self.condition.action)
        timeline = self._reader.load()
        found = self.condition.find(timeline)
        return found, not_yet(self._reader, self.condition, timeline) if found is None and reminder.is_due() else ""


def _event(payload: dict[str, Any]) -> TriggerEvent:
    return TriggerEvent(payload)  # type: ignore[no-untyped-call]


def _may_pass(error: Exception) -> bool:
    return isinstance(error, StorageError) and not isinstance(error, StorageNotFoundError)
