"""The conditions of sensors and their triggers. Also chooses the pending instant that a task takes."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import fields
from datetime import datetime, timedelta, timezone
from typing import Any, ClassVar, Final

from airflow_hudi.results import instant_named, pending_named
from airflow_hudi.timeline_reader import Look
from hudi_core.errors import ConfigError
from hudi_core.frozen import dataclass
from hudi_core.request.texts import one_of, seconds_of
from hudi_core.timeline.instant import KNOWN_ACTIONS, Action, Instant, State
from hudi_core.timeline.instant_time import format_instant, zone_of
from hudi_core.timeline.timeline import Timeline, age_of, age_shown


class Condition(ABC):
    """The condition of one wait. A subclass is a dataclass that takes the rendered arguments, and raises ConfigError
    for invalid ones. It may remember what it read, so two waits never share an object. It depends only on the timeline:
    a condition that did not hold cannot hold before the timeline changes.
    """

    kind: ClassVar[str]
    action: str
    """The action for which the timeline is read (TimelineReader); `""` for any action."""

    @abstractmethod
    def check(self, look: Look) -> dict[str, Any] | None:
        """Returns what the condition found, as JSON, or None if it does not hold. It may read files that the look
        names. Raises StorageError, FormatError, TimelineError.
        """

    @abstractmethod
    def unmet(self) -> str:
        """Returns, for messages, what a table shows as long as the condition does not hold."""

    def waiting(self, look: Look) -> str:
        """Returns the log's text for a look where the condition did not hold. Raises the errors of `check`."""
        return f"{look.uri} shows {self.unmet()} yet"

    def to_json(self) -> dict[str, Any]:
        """Returns `kind` and the arguments, from which the class can be made again."""
        document: dict[str, Any] = {"kind": self.kind}
        for field in fields(self):  # type: ignore[arg-type]
            if field.init:
                value = getattr(self, field.name)
                document[field.name] = [*value] if isinstance(value, tuple) else value
        return document


def at_work_on(look: Look, instant: Instant) -> str:
    return look.reader.at_work(instant.requested_time) or "claimed by no process now"


def bound_of(given: str | datetime | None) -> str | None:
    """Returns the time after which instants must complete, or None if empty: an ISO 8601 date or date-time (UTC without
    an offset), or the digits of an instant or completion time in the timeline's zone. Raises ConfigError for others.
    """
    text = given.isoformat() if isinstance(given, datetime) else (given or "").strip()
    if text and not _is_time(text):
        _moment(text)
    return text or None


def is_later(look: Look, instant: Instant, bound: str | None) -> bool:
    """Returns whether an instant completed later than the bound. Raises ConfigError for a bound outside of the years 1
    to 9999 in the timeline's zone.
    """
    if bound is None:
        return True
    if not _is_time(bound):
        try:
            bound = format_instant(_moment(bound).astimezone(zone_of(look.zone)))
        except (OverflowError, ValueError) as error:
            said = f"{bound!r} is outside of the years 1 to 9999 in the timeline's zone"
            raise ConfigError(said, remedy="give a time between them") from error
    return look.completed_at(instant) > bound


def later_shown(bound: str | None) -> str:
    return f" completed after {bound}" if bound else ""


def _is_time(text: str) -> bool:
    return text.isascii() and text.isdecimal()


def _moment(text: str) -> datetime:
    # Python 3.10 does not parse Z.
    iso = f"{text[:-1]}+00:00" if text.endswith(("Z", "z")) else text
    try:
        moment = datetime.fromisoformat(iso)
    except ValueError as error:
        raise ConfigError(
            f"{text!r} is neither a date nor an instant time",
            remedy="such as 2026-01-02, 2026-01-02 03:04:05+00:00 or 20260102030405678; omit it to mean any time",
        ) from error
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)


def seconds_in(given: float | str | timedelta) -> int:
    """Returns the seconds of a number, a timedelta, or a text such as `90s` or `2d`, rounded up. Raises ConfigError."""
    try:
        if isinstance(given, str):
            return int(given) if given.strip().isdecimal() else seconds_of(given)
        if isinstance(given, bool):
            raise ValueError("is no number")
        seconds = given.total_seconds() if isinstance(given, timedelta) else given
        if seconds < 0:
            raise ValueError("is below 0")
        return math.ceil(seconds)
    except (ValueError, OverflowError) as error:
        raise ConfigError(f"{given!r} {error}", remedy="give seconds, or such a text") from error


PENDING = "pending"
"""Requested or inflight. An inflight instant may belong to a dead attempt, so it counts like one that never started."""

STATES = {
    "requested": frozenset({State.REQUESTED}),
    "inflight": frozenset({State.INFLIGHT}),
    "completed": frozenset({State.COMPLETED}),
    PENDING: frozenset({State.REQUESTED, State.INFLIGHT}),
}
ACTIONS: Final = tuple(sorted(KNOWN_ACTIONS))


def of_action(timeline: Timeline, action: str) -> Iterator[Instant]:
    """Returns the instants of an action in any state, oldest first. `compaction` includes the completed commits of
    compactions. Pending rollbacks of a pending restore are omitted: only the restore can finish and remove them.
    """
    restore = timeline.pending().of_actions(Action.RESTORE).first()
    for instant in timeline:
        of_restore = (
            restore is not None and not instant.is_completed and instant.requested_time > restore.requested_time
        )
        if action in (instant.action, instant.pending_action) and not (of_restore and action == Action.ROLLBACK):
            yield instant


def oldest_pending(timeline: Timeline, action: str) -> Instant | None:
    """Returns the instant that a run takes if no instant is named: the oldest pending one, or None."""
    return next((instant for instant in of_action(timeline, action) if not instant.is_completed), None)


def mark_before_planning(timeline: Timeline, action: str) -> str:
    """Returns the mark by which first_planned finds instants planned from now on: the newest time of the timeline. For
    indexing, which is planned under earlier times, it is the list of all indexing instants, each after a comma.
    """
    if action != Action.INDEXING:
        return newest_time(timeline)
    return "," + ",".join(instant.requested_time for instant in of_action(timeline, action))


def first_planned(timeline: Timeline, action: str, mark: str) -> Instant | None:
    """Returns the oldest instant of `action` that was planned after the `mark` was made, or None."""
    newest, *others = mark.split(",")
    found = of_action(timeline, action)
    if others:
        return next((instant for instant in found if instant.requested_time not in others), None)
    return next((instant for instant in found if instant.requested_time > newest), None)


def newest_time(timeline: Timeline, before: str | None = None) -> str:
    """Returns the newest requested or completion time of the timeline, if given only before `before`; else "0"."""
    times = (time for instant in timeline for time in (instant.requested_time, instant.completion_time or ""))
    return max((time for time in times if time and (before is None or time < before)), default="0")


@dataclass
class InstantCondition(Condition):
    """Holds when the timeline has an instant of `action` in `state`. If given, `instant` is the instant's time, the
    instant is later than `after`, and it completed later than `completed_after`. Pending rollbacks of a pending restore
    do not count. Times are compared as text, as in Hudi.
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
    """Holds when no instant, or no instant of `action`, is pending for longer than `pending_age`. The age counts from
    the requested time. With 0 no instant may be pending. With an `action`, rollbacks count as in InstantCondition.
    """

    kind = "no_pending"
    pending_age: float | str | timedelta = 0
    action: str = ""

    def __post_init__(self) -> None:
        self._seconds = self.pending_age = seconds_in(self.pending_age)
        self.action = self.action or ""

    def check(self, look: Look) -> dict[str, Any] | None:
        """Returns `{"pending": number, "oldest": {"instant", "action", "state", "age_seconds"} or None}`."""
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
