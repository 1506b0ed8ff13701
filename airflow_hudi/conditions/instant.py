"""The instant that a sensor or a trigger waits for, and which instants of a timeline are a service's to run.

Pure rules over a timeline that operators, sensors and triggers share. What else is waited for is in condition.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final

from airflow_hudi.conditions.completed_after import CompletedAfter, is_after
from airflow_hudi.results import instant_named
from airflow_hudi.timeline_reader import Look
from hudi_core.errors import ConfigError
from hudi_core.request.texts import one_of
from hudi_core.timeline.instant import KNOWN_ACTIONS, Action, Instant, State
from hudi_core.timeline.timeline import Timeline

PENDING = "pending"
"""Requested or inflight: an instant of a dead attempt counts as much as one that was never started."""

STATES = {
    "requested": frozenset({State.REQUESTED}),
    "inflight": frozenset({State.INFLIGHT}),
    "completed": frozenset({State.COMPLETED}),
    PENDING: frozenset({State.REQUESTED, State.INFLIGHT}),
}
ACTIONS: Final = tuple(sorted(KNOWN_ACTIONS))


def of_action(timeline: Timeline, action: str) -> Iterator[Instant]:
    """The instants of `action` in any state, oldest first; `compaction` also finds the completed commit that it became.

    Pending rollbacks of a pending restore are omitted: only the restore can finish and remove them.
    """
    restore = timeline.pending().of_actions(Action.RESTORE).first()
    for instant in timeline:
        of_restore = (
            restore is not None and not instant.is_completed and instant.requested_time > restore.requested_time
        )
        if action in (instant.action, instant.pending_action) and not (of_restore and action == Action.ROLLBACK):
            yield instant


def oldest_pending(timeline: Timeline, action: str) -> Instant | None:
    """The instant that a run without a name takes."""
    return next((instant for instant in of_action(timeline, action) if not instant.is_completed), None)


def mark_before_planning(timeline: Timeline, action: str) -> str:
    """What first_planned needs to tell an instant of `action` that is planned from now on from the earlier ones: the
    newest time; of indexing actions, which are planned under times before the latest write, all that there are, each
    behind a comma.
    """
    if action != Action.INDEXING:
        return newest_time(timeline)
    return "," + ",".join(instant.requested_time for instant in of_action(timeline, action))


def first_planned(timeline: Timeline, action: str, mark: str) -> Instant | None:
    """The oldest instant of `action` that was planned after the `mark` was made."""
    newest, *others = mark.split(",")
    found = of_action(timeline, action)
    if others:
        return next((instant for instant in found if instant.requested_time not in others), None)
    return next((instant for instant in found if instant.requested_time > newest), None)


def newest_time(timeline: Timeline, before: str | None = None) -> str:
    """The newest of all requested and completion times, or of those earlier than `before`; "0" when there is none.

    Whatever is planned from now on is later than the newest, but for indexing actions.
    """
    times = (time for instant in timeline for time in (instant.requested_time, instant.completion_time or ""))
    return max((time for time in times if time and (before is None or time < before)), default="0")


@dataclass(frozen=True, slots=True)
class InstantCondition:
    """The timeline holds an instant of `action` in `state`: the one at `instant`, or any later than `after`, if given;
    one that completed later than `completed_after`, if that is.

    `action` is the name on the pending files (`compaction`) or on the completed one (`commit`, which a completed
    compaction is, too). Pending rollbacks of a pending restore do not count. An indexing action is requested at a time
    before the latest write of the moment when it is planned (services.indexing.planner). `state` is requested,
    inflight, completed or pending. Times are compared as text, as Hudi does. Raises ConfigError for anything else.
    """

    action: str
    state: str = PENDING
    instant: str | None = None
    after: str | None = None
    completed_after: str | None = None

    def __post_init__(self) -> None:
        if self.state not in STATES:
            raise ConfigError(f"unknown instant state {self.state!r}", remedy=one_of(self.state, STATES))
        if not self.action:
            raise ConfigError("no action to wait for", remedy="compaction, for instance")
        for name, time in (("instant", self.instant), ("after", self.after)):
            if time is not None and not (time.isascii() and time.isdecimal()):
                raise ConfigError(
                    f"{name}={time!r} is no instant time",
                    remedy="an instant consists of digits; omit it to mean any",
                )
        if CompletedAfter.of(self.completed_after) and self.state != State.COMPLETED.value:
            raise ConfigError(
                f"an instant that is {self.state} has no completion time",
                remedy="with completed_after the state is completed",
            )

    def find(self, look: Look) -> Instant | None:
        """The oldest instant that the condition holds for, or None."""
        bound = CompletedAfter.of(self.completed_after)
        return next(
            (
                item
                for item in of_action(look.timeline, self.action)
                if self._holds(item) and is_after(bound, look, item)
            ),
            None,
        )

    def check(self, look: Look) -> dict[str, Any] | None:
        """results.instant_named of the oldest instant that fits; see condition.Condition."""
        found = self.find(look)
        return None if found is None else instant_named(found)

    def unmet(self) -> str:
        return f"no {self._described()}"

    def waiting(self, look: Look) -> str:
        """See condition.Condition: also who is at work on the instant that comes nearest."""
        shown = f"{look.uri} shows {self.unmet()} yet"
        nearest = InstantCondition(self.action, PENDING, self.instant, self.after).find(look)
        if nearest is None:
            return shown
        at_work = look.reader.at_work(nearest.requested_time) or "claimed by no process now"
        return f"{shown}: {nearest.pending_action} {nearest.requested_time} is {nearest.state.value}, {at_work}"

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def _described(self) -> str:
        instant = f" {self.instant}" if self.instant else ""
        bounds = [f" after {self.after}"] if self.after else []
        if bound := CompletedAfter.of(self.completed_after):
            bounds.append(f" {bound}")
        return f"{self.state} {self.action}{instant}{''.join(bounds)}"

    def _holds(self, instant: Instant) -> bool:
        return (
            instant.state in STATES[self.state]
            and (self.instant is None or instant.requested_time == self.instant)
            and (self.after is None or instant.requested_time > self.after)
        )
