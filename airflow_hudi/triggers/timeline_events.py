"""Makes an asset event of the new instants of a timeline: pending table services, or completed writes."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Hashable, Sequence
from typing import Any, Final

from airflow.triggers.base import BaseEventTrigger, TriggerEvent

from airflow_hudi.arguments import suggests_names
from airflow_hudi.conditions.condition import ACTIONS
from airflow_hudi.conditions.writes import is_of_writer, may_be_write, written
from airflow_hudi.hooks import HudiHook
from airflow_hudi.results import instant_named
from airflow_hudi.task_fate import may_pass
from airflow_hudi.timeline_reader import TimelineReader
from airflow_hudi.triggers.shared_timeline import SharedTimeline
from hudi_core.errors import ConfigError, FormatError, HudiError, StorageError, StorageNotFoundError
from hudi_core.request.texts import check_choice
from hudi_core.timeline.actions.commit import CommitMetadata
from hudi_core.timeline.instant import COMMIT_ACTIONS, Instant
from hudi_core.timeline.timeline import Timeline

log = logging.getLogger(__name__)

PENDING: Final = "pending"
COMPLETED: Final = "completed"

REPEAT_SECONDS: Final = 900.0

Mark = dict[str, Any]
"""The position of a watcher, as JSON: the reported pending instants with the report's time in epoch seconds, or all
completed instants (`at`) and the newest write (`newest`). Completion times are not compared: a writer's clock may be
behind, and local time goes back an hour when summer time ends.
"""
_MARK: Final = "airflow_hudi_mark"
_UNCHANGED_SECONDS: Final = 30.0
"""Seconds until the stream yields an unchanged timeline again: pending instants may be due for another report."""
_STORED_AFTER_SECONDS: Final = 10.0
"""Seconds between an event and the storing of its mark. The triggerer writes an event to the database about two seconds
later. With a mark stored earlier, a triggerer that ends in between would lose the event.
"""
_LONGEST_PAUSE: Final = 300.0
"""The most seconds between two looks for a table that does not exist, unless the trigger's interval is longer."""


def _behind(timeline: Timeline, found: Sequence[Instant]) -> Mark:
    newest = max(timeline.commits().requested_times, default="")
    return {"newest": newest, "at": [item.requested_time for item in found]}


class HudiTimelineEventTrigger(BaseEventTrigger):
    """Fires one event for all instants that are new at a look, and later another for those that stay pending. It is for
    the AssetWatcher of an asset.

    An event's payload is `{"table", "state", "instants": [{"instant", "action", "state", "completed", "operation",
    "partitions", "rows"}]}`; only completed writes have the last three members. The asset's state store keeps the
    position of the watcher, once the event is in Airflow's database. Events of completed writes begin with the writes
    that complete after the first look. Watchers of one table with the same interval share one stream
    (docs/use/fleets.md#events).

    :param table: the table, as HudiHook.table_uri takes it
    :param hudi_conn_id: connection of type `hudi`, or None
    :param state: `pending`: table services that are planned and not completed, or `completed`: writes as
        HudiCommitSensor counts them
    :param actions: the actions to watch instead of these, by their names on the timeline; `commit`, `deltacommit` and
        `replacecommit` are all actions that write files, with those of services
    :param poll_interval: seconds between two looks
    :param repeat_seconds: seconds from an event to the next event of instants that are still pending then, for instance
        because the run that the event started has failed
    """

    @suggests_names
    def __init__(
        self,
        *,
        table: str,
        hudi_conn_id: str | None = HudiHook.default_conn_name,
        state: str = PENDING,
        actions: Sequence[str] = (),
        poll_interval: float = 10.0,
        repeat_seconds: float = REPEAT_SECONDS,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        try:
            check_choice("state", state, (PENDING, COMPLETED))
            for action in actions:
                check_choice("an action", action, ACTIONS)
        except ConfigError as error:
            # The error may come from a stored trigger, too. On a TypeError the triggerer fails that trigger; any other
            # error ends the triggerer.
            raise TypeError(str(error)) from error
        self.table = table
        self.hudi_conn_id = hudi_conn_id
        self.state = state
        self.actions = [*actions]
        self.poll_interval = poll_interval
        self.repeat_seconds = repeat_seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        names = ("table", "hudi_conn_id", "state", "actions", "poll_interval", "repeat_seconds")
        return f"{type(self).__module__}.{type(self).__qualname__}", {name: getattr(self, name) for name in names}

    def holds(self, instant: Instant) -> bool:
        """Returns whether the trigger watches an instant."""
        if instant.is_completed != (self.state == COMPLETED):
            return False
        if self.actions:
            return instant.action in self.actions or instant.pending_action in self.actions
        return may_be_write(instant) if instant.is_completed else instant.action not in COMMIT_ACTIONS

    def start(self, timeline: Timeline) -> Mark:
        if self.state == PENDING:
            return {"reported": {}}
        return _behind(timeline, [item for item in timeline if self.holds(item)])

    def changes(self, timeline: Timeline, mark: Mark, now: float) -> tuple[list[Instant], Mark]:
        """Returns the instants since a mark, oldest first, and the next mark. A mark in another form counts as
        empty.
        """
        found = [item for item in timeline if self.holds(item)]
        if self.state == PENDING:
            given = mark.get("reported")
            reported = given if isinstance(given, dict) else {}
            times = {item.requested_time: reported.get(item.requested_time, 0.0) for item in found}
            new = [item for item in found if now - times[item.requested_time] >= self.repeat_seconds]
            return new, {"reported": times | {item.requested_time: now for item in new}}
        at = {str(time) for time in mark.get("at") or ()}
        new = [item for item in found if item.requested_time not in at]
        return sorted(new, key=lambda item: (item.completed_at, item.requested_time)), _behind(timeline, found)

    def gap(self, timeline: Timeline, mark: Mark) -> tuple[str, str] | None:
        """Returns the requested times between which writes may have been archived unseen: the newest write of the mark,
        and the first write on the timeline. Returns None unless all writes of the mark are archived.
        """
        newest, first = str(mark.get("newest") or ""), min(timeline.commits().requested_times, default="")
        return (newest, first) if self.state == COMPLETED and "" < newest < first else None

    def shared_stream_key(self) -> Hashable | None:
        return ("hudi-timeline", self.hudi_conn_id, self.table, self.poll_interval)

    @classmethod
    async def open_shared_stream(cls, kwargs: dict[str, Any]) -> AsyncIterator[Timeline]:
        """Yields the table's timeline whenever it has changed, and every _UNCHANGED_SECONDS. Clusterings have their own
        name in it. After a failure of the storage or a damaged file it looks again at the next interval. If there is no
        table, the pause doubles each time, up to _LONGEST_PAUSE. The stream does not raise, because the triggerer would
        start it again at once, endlessly.
        """
        table, interval = SharedTimeline.of(kwargs["table"], kwargs["hudi_conn_id"]), kwargs["poll_interval"]
        seen: Timeline | None = None
        yielded_at, pause, said = 0.0, 0.0, ""
        while True:
            try:
                look, now = await table.look(interval), time.monotonic()
                changed = look.timeline != seen or now - yielded_at >= _UNCHANGED_SECONDS
                timeline = await table.in_thread(look.reader.named_by_plans, look.timeline) if changed else None
            except Exception as error:
                if may_pass(error):
                    pause = 0.0
                    log.warning("%s cannot be looked at, and will be in %s s: %s", kwargs["table"], interval, error)
                else:
                    pause = max(interval, min(2 * pause, _LONGEST_PAUSE))
                    if said != repr(error):
                        said = repr(error)
                        log.warning(
                            "%s cannot be looked at, and will be looked for again, at last every %.0f s: %s: %s",
                            *(kwargs["table"], max(interval, _LONGEST_PAUSE), type(error).__name__, error),
                            exc_info=not isinstance(error, HudiError),
                        )
            else:
                pause, said = 0.0, ""
                if timeline is not None:
                    seen, yielded_at = look.timeline, now
                    yield timeline
            await asyncio.sleep(pause or table.until_next(interval))

    async def filter_shared_stream(self, shared_stream: AsyncIterator[Any]) -> AsyncIterator[TriggerEvent]:
        table = SharedTimeline.of(self.table, self.hudi_conn_id)
        mark = stored = await self._stored()
        to_store: Mark | None = None
        since = 0.0
        async for timeline in shared_stream:
            if to_store is not None and time.monotonic() - since >= _STORED_AFTER_SECONDS:
                await self._store(to_store)
                stored, to_store = to_store, None
            if mark is None:
                mark = self.start(timeline)
                if self.state == COMPLETED:
                    # With this mark, a write that completes while the triggerer restarts is new afterwards.
                    await self._store(mark)
                    stored = mark
            if gap := self.gap(timeline, mark):
                log.warning(
                    "Writes of %s from %s to %s may have been archived while nothing looked: they have no event",
                    self.table,
                    *gap,
                )
            new, behind = self.changes(timeline, mark, time.time())
            if new:
                try:
                    payload = await table.in_thread(self._payload, new)
                except StorageError as error:
                    log.warning("What is new on %s cannot be read, and will be later: %s", self.table, error)
                    continue
                if payload["instants"]:
                    yield TriggerEvent(payload)  # type: ignore[no-untyped-call]
            mark = behind
            # A newer mark does not replace a waiting one: with constant changes, no mark would ever be stored.
            if to_store is None and mark != stored:
                to_store, since = mark, time.monotonic()

    async def run(self) -> AsyncIterator[TriggerEvent]:
        async for event in self.filter_shared_stream(type(self).open_shared_stream(self.serialize()[1])):
            yield event

    async def _stored(self) -> Mark | None:
        """Returns the stored mark of the asset, or None. Raises ConfigError if several assets share the trigger."""
        try:
            found = None if self.asset_state_store is None else await self.asset_state_store.aget(_MARK)
        except ValueError as error:  # Airflow's accessor works only for one asset.
            # The triggerer starts a trigger that raises again at once, endlessly.
            await asyncio.sleep(_LONGEST_PAUSE)
            raise ConfigError(
                f"several assets watch {self.table} by equal arguments, which makes them one trigger: {error}",
                remedy="give each of them another poll_interval, or schedule the DAGs by one asset",
            ) from error
        return dict(found) if isinstance(found, dict) else None

    async def _store(self, mark: Mark) -> None:
        if self.asset_state_store is not None:
            await self.asset_state_store.aset(_MARK, mark)

    def _payload(self, new: Sequence[Instant]) -> dict[str, Any]:
        """Returns the payload of an event of instants, without the services among writes, unless actions are named."""
        reader = HudiHook(self.hudi_conn_id or None).timeline(self.table)
        found = [(item, _metadata(reader, item)) for item in new]
        instants = [
            _details(item, metadata)
            for item, metadata in found
            if metadata is None or self.actions or is_of_writer(metadata)
        ]
        return {"table": self.table, "state": self.state, "instants": instants}


def instant_details(reader: TimelineReader, instant: Instant) -> dict[str, Any]:
    """Returns an instant's members of an event. A completed write has those of its file, if that can be read."""
    return _details(instant, _metadata(reader, instant))


def _details(instant: Instant, metadata: CommitMetadata | None) -> dict[str, Any]:
    found = {**instant_named(instant), "completed": instant.completion_time}
    return found if metadata is None else {**found, **written(metadata)}


def _metadata(reader: TimelineReader, instant: Instant) -> CommitMetadata | None:
    if not instant.is_completed or instant.action not in COMMIT_ACTIONS:
        return None
    try:
        return reader.active().read_commit(instant)
    except (StorageNotFoundError, FormatError) as error:
        log.warning(
            "%s %s of %s is not described: %s", instant.action, instant.requested_time, reader.storage.uri, error
        )
        return None
