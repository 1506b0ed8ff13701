"""Waits in the triggerer until a condition holds, or looks fail; also the condition for the source of a write."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import field
from typing import Any, Final

from airflow.sdk.exceptions import AirflowFailException
from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_hudi.conditions.condition import Condition, InstantCondition, NoPendingCondition
from airflow_hudi.conditions.writes import CommitCondition, PartitionCondition
from airflow_hudi.hooks import HudiHook, is_absolute
from airflow_hudi.task_fate import HudiSensorFailed, in_words, is_permanent, may_pass
from airflow_hudi.timeline_reader import Look
from airflow_hudi.triggers.shared_timeline import SharedTimeline
from hudi_core.errors import ConfigError, HudiError, Reminder, StorageNotFoundError
from hudi_core.frozen import dataclass
from hudi_core.storage.base import FileInfo
from hudi_core.storage.local import followed
from hudi_core.timeline.timeline import Timeline

_SAID_EVERY = 600.0
MAX_ERRORS: Final = 5


@dataclass
class AwaitedSource(Condition):
    """Holds when the source of a write has arrived: a Parquet file, or a folder with a file that ends in .parquet
    or, with `marker`, the marker file. The operator and its trigger share this condition.
    """

    kind = "source"
    action = ""
    address: str
    marker: str
    hudi_conn_id: str | None
    _seen: list[FileInfo] = field(default_factory=list, init=False)

    def is_there(self) -> bool:
        """Returns whether the source exists, by one listing of the folder and, without a marker, a request for a file.
        Raises the errors of HudiHook.storage.
        """
        return bool(self._files())

    def check(self, look: Look | None = None) -> dict[str, Any] | None:
        """Checks the source at each look of a wait. Without a marker two looks in a row must show the same files,
        because files grow while they are copied.
        """
        before, self._seen = self._seen, self._files()
        return {} if self._seen and (self.marker or self._seen == before) else None

    def unmet(self) -> str:
        return f"no {self.marker} in it" if self.marker else "no Parquet files, or not the same at two looks,"

    def waiting(self, look: Look) -> str:
        return f"{self.address} is not there yet"

    def _files(self) -> list[FileInfo]:
        hook, address = HudiHook(self.hudi_conn_id), followed(self.address.rstrip("/"))
        files = hook.storage(address).list_files("")
        if self.marker:
            return [info for info in files if info.name == self.marker]
        if any(info.name.endswith(".parquet") and not info.name.startswith(("_", ".")) for info in files):
            return files
        folder, _, name = address.rpartition("/")
        if not is_absolute(folder):
            return []  # A bucket has no parent folder.
        try:
            return [hook.storage(folder).stat(name)]
        except StorageNotFoundError:
            return []


_KINDS: Final[Mapping[str, type[Condition]]] = {
    condition.kind: condition
    for condition in (InstantCondition, NoPendingCondition, CommitCondition, PartitionCondition, AwaitedSource)
}


def condition_of(document: Mapping[str, Any]) -> Condition:
    """Makes a condition from its JSON. Raises ConfigError."""
    arguments = dict(document)
    kind = arguments.pop("kind", None)
    if kind not in _KINDS:
        raise ConfigError(f"unknown condition {kind!r}", remedy=f"one of {', '.join(_KINDS)}")
    try:
        return _KINDS[kind](**arguments)
    except TypeError as error:
        raise ConfigError(
            f"a condition {kind} has other arguments: {error}",
            remedy="let the sensor make the trigger; where the provider was updated, clear the task",
        ) from error


class HudiConditionTrigger(BaseTrigger):
    """Fires once when the condition holds, or can no longer be checked. A failed look is repeated if the reason may
    pass, such as an overloaded storage or a file that a writer is writing; every other failure is an event at once.
    Triggers of one table share their looks (SharedTimeline); each look is one listing in a thread. The condition is
    checked only if the timeline has changed.

    :param table: the table, as HudiHook.table_uri takes it, or the address of a source
    :param condition: Condition.to_json of the condition to wait for
    :param hudi_conn_id: connection of type `hudi`, or None
    :param poll_interval: seconds between two looks, and before the first one
    :param max_errors: the number of failed looks in a row that ends the wait
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
        self.condition = dict(condition)
        self.hudi_conn_id = hudi_conn_id
        self.poll_interval = poll_interval
        self.max_errors = max_errors
        self._waited: tuple[Condition, SharedTimeline] | None = None
        self._seen: Timeline | None = None

    def serialize(self) -> tuple[str, dict[str, Any]]:
        names = ("table", "condition", "hudi_conn_id", "poll_interval", "max_errors")
        return f"{type(self).__module__}.{type(self).__qualname__}", {name: getattr(self, name) for name in names}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yields one event: `status` "success", `table` and what the condition found, or `status` "error", `table`,
        `message` and `is_permanent`.
        """
        errors, started = 0, time.monotonic()
        reminder = Reminder(time.monotonic, every=_SAID_EVERY)
        # Sleep first: the task has just looked, and Airflow 3.3 fails a task whose trigger fires before its worker has
        # ended.
        await asyncio.sleep(self.poll_interval)
        while True:
            found = None
            try:
                found, waits = await self._look(reminder)
                if waits:
                    self.log.info("%s; waiting for %.0f s", waits, time.monotonic() - started)
                errors = 0
            except Exception as error:
                # Every failure must reach the task: a trigger that dies leaves it deferred until its timeout.
                errors += 1
                known = isinstance(error, HudiError)
                if may_pass(error) or not is_permanent(error):
                    self.log.warning("Looking at %s failed: %s", self.table, in_words(error), exc_info=not known)
                if errors >= self.max_errors or not may_pass(error):
                    said = in_words(error) if known else f"{type(error).__name__}: {error}"
                    permanent = is_permanent(error) and not may_pass(error)
                    yield self._event("error", {"message": said, "is_permanent": permanent})
                    return
            if found is not None:
                yield self._event("success", found)
                return
            await asyncio.sleep(self._until_next())

    async def _look(self, reminder: Reminder) -> tuple[Mapping[str, Any] | None, str]:
        """Returns what was found, or None, and the log's text if one is due. It looks at storage in a thread."""
        if self._waited is None:
            # The condition is made here, and not in the constructor: an error there would end the triggerer.
            condition = condition_of(self.condition)
            self._waited = condition, SharedTimeline.of(self.table, self.hudi_conn_id, condition.action)
        condition, table = self._waited
        if isinstance(condition, AwaitedSource):
            return await table.in_thread(_check, condition, None, reminder.is_due())
        look, says = await table.look(self.poll_interval), reminder.is_due()
        found: tuple[Mapping[str, Any] | None, str] = (None, "")
        if look.timeline is not self._seen or says:
            found = await table.in_thread(_check, condition, look, says)
        self._seen = look.timeline
        return found

    def _until_next(self) -> float:
        if self._waited is None or isinstance(self._waited[0], AwaitedSource):
            return self.poll_interval
        return self._waited[1].until_next(self.poll_interval)

    def _event(self, status: str, said: Mapping[str, Any]) -> TriggerEvent:
        return TriggerEvent({"status": status, "table": self.table, **said})  # type: ignore[no-untyped-call]


def _check(condition: Condition, look: Any, says: bool) -> tuple[dict[str, Any] | None, str]:
    found = condition.check(look)
    return found, condition.waiting(look) if found is None and says else ""


def found_in(event: Mapping[str, Any], path: str, logger: Any) -> dict[str, Any]:
    """Returns what a wait found, by its event. Raises HudiSensorFailed, or AirflowFailException if no retry helps."""
    if event.get("status") != "success":
        said = str(event.get("message", "the trigger fired without saying why"))
        if event.get("is_permanent"):
            logger.error("%s", said)
            raise AirflowFailException(said)
        raise HudiSensorFailed(said, path=path)
    return {name: value for name, value in event.items() if name != "status"}
