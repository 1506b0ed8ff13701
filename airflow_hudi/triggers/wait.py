"""A wait in the triggerer: look after look until something is there, or can no longer be looked at."""

from __future__ import annotations

import asyncio
import time
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Final

from airflow.sdk.exceptions import AirflowFailException
from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_hudi.exceptions import HudiSensorFailed
from airflow_hudi.task_fate import in_words, is_permanent, may_pass
from hudi_core.errors import HudiError, Reminder

_SAID_EVERY = 600.0
"""Seconds between two lines of a wait that may last for days."""
MAX_ERRORS: Final = 5
"""So many failed looks in a row end a wait."""


class BaseWaitTrigger(BaseTrigger):
    """Fires once when what is waited for is there, or when it can no longer be looked at.

    A look that fails for a reason that may pass (an overloaded store, a file that a writer is at) is repeated at the
    next one, `max_errors` times in a row; every other failure is an event at once.

    :param poll_interval: seconds between two looks, and before the first one
    :param max_errors: so many failed looks in a row end the wait
    """

    def __init__(self, *, poll_interval: float = 60.0, max_errors: int = MAX_ERRORS) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.poll_interval = poll_interval
        self.max_errors = max_errors

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """The class and every argument of it."""
        arguments = {**self.arguments, "poll_interval": self.poll_interval, "max_errors": self.max_errors}
        return f"{type(self).__module__}.{type(self).__qualname__}", arguments

    @property
    @abstractmethod
    def arguments(self) -> dict[str, Any]:
        """Those of the class itself, as JSON."""

    @property
    @abstractmethod
    def named(self) -> dict[str, str]:
        """What is looked at: the one member of every event that says so."""

    @abstractmethod
    async def look(self, is_due: Callable[[], bool]) -> tuple[Mapping[str, Any] | None, str]:
        """What was found, as JSON, else None; and where `is_due`, what the log says of the wait. Never blocks the
        triggerer's event loop: storage is looked at in a thread.
        """

    def until_next(self) -> float:
        """Seconds from now until the next look."""
        return self.poll_interval

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """One event: `status` "success" with `named` and what was found, or "error" with `message` and `is_permanent`,
        whether a retry would meet the same.
        """
        errors, started = 0, time.monotonic()
        reminder = Reminder(time.monotonic, every=_SAID_EVERY)
        # Sleep first: the task has just looked, and Airflow 3.3 fails a task whose trigger fires before its worker has
        # ended.
        await asyncio.sleep(self.poll_interval)
        while True:
            found = None
            try:
                found, waits = await self.look(reminder.is_due)
                if waits:
                    self.log.info("%s; waiting for %.0f s", waits, time.monotonic() - started)
                errors = 0
            except Exception as error:
                # Every failure must reach the task: a trigger that dies leaves it deferred until its timeout.
                errors += 1
                if may_pass(error) or not is_permanent(error):
                    known = isinstance(error, HudiError)
                    self.log.warning(
                        "Looking at %s failed: %s", *self.named.values(), in_words(error), exc_info=not known
                    )
                if errors >= self.max_errors or not may_pass(error):
                    yield self._failed(error)
                    return
            if found is not None:
                yield self._event({"status": "success", **self.named, **found})
                return
            await asyncio.sleep(self.until_next())

    def _failed(self, error: Exception) -> TriggerEvent:
        said = in_words(error) if isinstance(error, HudiError) else f"{type(error).__name__}: {error}"
        permanent = is_permanent(error) and not may_pass(error)
        return self._event({"status": "error", **self.named, "message": said, "is_permanent": permanent})

    @staticmethod
    def _event(payload: dict[str, Any]) -> TriggerEvent:
        return TriggerEvent(payload)  # type: ignore[no-untyped-call]


def found_in(event: Mapping[str, Any], path: str, logger: Any) -> dict[str, Any]:
    """What a wait found, by the event of its trigger. Raises HudiSensorFailed when the trigger met an error, and
    AirflowFailException for one that no retry repairs.
    """
    if event.get("status") != "success":
        said = str(event.get("message", "the trigger fired without saying why"))
        if event.get("is_permanent"):
            logger.error("%s", said)
            raise AirflowFailException(said)
        raise HudiSensorFailed(said, path=path)
    return {name: value for name, value in event.items() if name != "status"}
