"""Waits in the triggerer until a condition of airflow_hudi.conditions holds on a table."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_hudi.conditions.condition import Condition, condition_of
from airflow_hudi.hooks.hudi import HudiHook
from airflow_hudi.permanent_errors import in_words, is_permanent, may_pass
from airflow_hudi.timeline_reader import Look
from airflow_hudi.triggers.shared_timeline import SharedTimeline
from hudi_core.errors import HudiError, Reminder

_SAID_EVERY = 600.0
"""Seconds between two lines of a wait that may last for days."""
MAX_ERRORS = 5
"""So many failed looks in a row end a wait."""


class HudiConditionTrigger(BaseTrigger):
    """Fires once when the condition holds, or when it can no longer be checked.

    A look is one listing, in a thread: the triggerer's event loop never waits for storage. Triggers of one table share
    their looks, and what a look shows is judged only where the timeline has changed (shared_timeline.SharedTimeline).
    A look that fails for a reason that may pass (an overloaded store, a file that a writer is at) is repeated at the
    next one, `max_errors` times in a row; every other failure is an event at once.

    :param table: the table, as HudiHook.table_uri takes it
    :param condition: condition.condition_json of what is waited for
    :param hudi_conn_id: connection of type `hudi`, or None
    :param poll_interval: seconds between two looks, and before the first one
    :param max_errors: so many failed looks in a row end the wait
    """

    def __init__(
        self,
        *,
        table: str,
        condition: Mapping[str, Any],
        hudi_conn_id: str | None = HudiHook.default_conn_name,
        poll_interval: float = 60.0,
        max_errors: int = MAX_ERRORS,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.table = table
        self.condition = condition
        self.hudi_conn_id = hudi_conn_id
        self.poll_interval = poll_interval
        self.max_errors = max_errors

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """The class and every argument of it."""
        arguments = {
            "table": self.table,
            "condition": dict(self.condition),
            "hudi_conn_id": self.hudi_conn_id,
            "poll_interval": self.poll_interval,
            "max_errors": self.max_errors,
        }
        return f"{type(self).__module__}.{type(self).__qualname__}", arguments

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """One event: `status` "success" with `table` and what the condition found, or "error" with `message` and
        `is_permanent`, whether a retry would meet the same.
        """
        errors, started, seen = 0, time.monotonic(), None
        reminder = Reminder(time.monotonic, every=_SAID_EVERY)
        # Sleep first: the sensor has just looked, and Airflow 3.3 fails a task whose trigger fires before its worker
        # has ended.
        await asyncio.sleep(self.poll_interval)
        try:
            # Not where the trigger is made: an error there would end the triggerer.
            condition = condition_of(self.condition)
        except HudiError as error:
            yield self._failed(error)
            return
        table = SharedTimeline.of(self.table, self.hudi_conn_id, condition.action)
        while True:
            found = None
            try:
                look, says = await table.look(self.poll_interval), reminder.is_due()
                if look.timeline is not seen or says:
                    found, waits = await table.in_thread(_check, condition, look, says)
                    if waits:
                        self.log.info("%s; waiting for %.0f s", waits, time.monotonic() - started)
                errors, seen = 0, look.timeline
            except Exception as error:
                # Every failure must reach the task: a trigger that dies leaves it deferred until its timeout.
                errors += 1
                if may_pass(error) or not is_permanent(error):
                    known = isinstance(error, HudiError)
                    self.log.warning("Looking at %s failed: %s", self.table, in_words(error), exc_info=not known)
                if errors >= self.max_errors or not may_pass(error):
                    yield self._failed(error)
                    return
            if found is not None:
                yield _event({"status": "success", "table": self.table, **found})
                return
            await asyncio.sleep(table.until_next(self.poll_interval))

    def _failed(self, error: Exception) -> TriggerEvent:
        said = in_words(error) if isinstance(error, HudiError) else f"{type(error).__name__}: {error}"
        permanent = is_permanent(error) and not may_pass(error)
        return _event({"status": "error", "table": self.table, "message": said, "is_permanent": permanent})


def _check(condition: Condition, look: Look, says: bool) -> tuple[dict[str, Any] | None, str]:
    """What was found, or what the wait says where that is due."""
    found = condition.check(look)
    return found, condition.waiting(look) if found is None and says else ""


def _event(payload: dict[str, Any]) -> TriggerEvent:
    return TriggerEvent(payload)  # type: ignore[no-untyped-call]
