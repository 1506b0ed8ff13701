"""That an instant is there, or none pending for too long; which instants of a timeline are a service's to run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from airflow_hudi.conditions.condition import Condition, at_work_on, bound_of, is_later, later_shown, seconds_in
from airflow_hudi.results import instant_named, pending_named
from airflow_hudi.timeline_reader import Look
from hudi_core.errors import ConfigError
from hudi_core.request.texts import one_of
from hudi_core.timeline.instant import KNOWN_ACTIONS, Action, Instant, State
from hudi_core.timeline.timeline import Timeline, age_of, age_shown

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
    """In any state, oldest first; `compaction` is also the completed commit that it became. Pending rollbacks of a
    pending restore are omitted: only the restore can finish and remove them.
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
    """The mark by which first_planned tells an instant that is planned from now on: the newest time; of indexing
    actions, which are planned under earlier times, all that there are, each behind a comma.
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
    """The newest requested or completion time, or of those before `before`; "0" without."""
    times = (time for instant in timeline for time in (instant.requested_time, instant.completion_time or ""))
    return max((time for time in times if time and (before is None or time < before)), default="0")


@dataclass
class InstantCondition(Condition):
    """The timeline holds an instant of `action` in `state`: the one at `instant`, or any later than `after`, if given;
    one that completed later than `completed_after`, if that is. Pending rollbacks of a pending restore do not count.
    Times are compared as text, as Hudi does.
    """

    kind = "instant"
    action: str = Action.COMPACTION
    state: str = PENDING
    instant: str | None = None
    after: str | None = None
    completed_after: str | datetime | None = None

    def __post_init__(self) -> None:
        self.instant, self.after = self.instant or None, self.after or None
        if self.state not in STATES:
            raise ConfigError(f"unknown instant state {self.state!r}", remedy=one_of(self.state, STATES))
        if not self.action:
            raise ConfigError("no action to wait for", remedy="compaction, for instance")
        for name, time in (("instant", self.instant), ("after", self.after)):
            if time is not None and not (time.isascii() and time.isdecimal()):
                remedy = "an instant consists of digits; omit it to mean any"
                raise ConfigError(f"{name}={time!r} is no instant time", remedy=remedy)
        self._bound = self.completed_after = bound_of(self.completed_after)
        if self._bound and self.state != State.COMPLETED.value:
            said = f"an instant that is {self.state} has no completion time"
            raise ConfigError(said, remedy="with completed_after the state is completed")

    def find(self, look: Look) -> Instant | None:
        fitting = filter(self._holds, of_action(look.timeline, self.action))
        return next((instant for instant in fitting if is_later(look, instant, self._bound)), None)

    def check(self, look: Look) -> dict[str, Any] | None:
        instant = self.find(look)
        return None if instant is None else instant_named(instant)

    def unmet(self) -> str:
        instant = f" {self.instant}" if self.instant else ""
        after = f" after {self.after}" if self.after else ""
        return f"no {self.state} {self.action}{instant}{after}{later_shown(self._bound)}"

    def waiting(self, look: Look) -> str:
        shown = super().waiting(look)
        nearest = InstantCondition(self.action, PENDING, self.instant, self.after).find(look)
        if nearest is None:
            return shown
        named = f"{nearest.pending_action} {nearest.requested_time} is {nearest.state.value}"
        return f"{shown}: {named}, {at_work_on(look, nearest)}"

    def _holds(self, instant: Instant) -> bool:
        return (
            instant.state in STATES[self.state]
            and (self.instant is None or instant.requested_time == self.instant)
            and (self.after is None or instant.requested_time > self.after)
        )


@dataclass
class NoPendingCondition(Condition):
    """No instant, or none of `action`, is pending for longer than `pending_age` since it was requested; with 0 none is
    pending. Rollbacks are counted as by InstantCondition.
    """

    kind = "no_pending"
    pending_age: float | str | timedelta = 0
    action: str = ""

    def __post_init__(self) -> None:
        self._seconds = self.pending_age = seconds_in(self.pending_age)
        self.action = self.action or ""

    def check(self, look: Look) -> dict[str, Any] | None:
        """`{"pending", "oldest": {"instant", "action", "state", "age_seconds"}}`: how many, and the oldest or None."""
        pending = self._pending(look)
        if not pending:
            return {"pending": 0, "oldest": None}
        age = age_of(pending[0], look.at, look.zone)
        if not self._seconds or age > self._seconds:
            return None
        return {"pending": len(pending), "oldest": pending_named(pending[0], age)}

    def unmet(self) -> str:
        too_long = f" for longer than {self._seconds} s" if self._seconds else ""
        return f"a pending {self.action or 'instant'}{too_long}"

    def waiting(self, look: Look) -> str:
        oldest = self._pending(look)[0]
        age = age_of(oldest, look.at, look.zone)
        return f"{look.uri} shows {self.unmet()}: {age_shown(oldest, age)}, {at_work_on(look, oldest)}"

    def _pending(self, look: Look) -> list[Instant]:
        instants = of_action(look.timeline, self.action) if self.action else look.timeline
        return [instant for instant in instants if not instant.is_completed]
