"""Answers questions about a timeline from its instants alone, without storage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import cached_property
from typing import Final

from hudi_core.errors import TimelineError
from hudi_core.timeline.instant import COMMIT_ACTIONS, Action, Instant, completed_action
from hudi_core.timeline.instant_time import parse_instant

LONG_AGO: Final = 10**10
"""The seconds since a time that is no date, such as that of a bootstrap: 317 years."""


class Timeline:
    """Instants in timeline order, one per instant time and action class (HoodieDefaultTimeline, BaseTimelineV2)."""

    def __init__(self, instants: Iterable[Instant] = ()) -> None:
        self.instants: tuple[Instant, ...] = tuple(sorted(instants, key=lambda instant: instant.sort_key))

    @classmethod
    def in_order(cls, instants: Iterable[Instant]) -> Timeline:
        """Returns the timeline of instants that are in timeline order already."""
        timeline = cls()
        timeline.instants = tuple(instants)
        return timeline

    def __iter__(self) -> Iterator[Instant]:
        return iter(self.instants)

    def __len__(self) -> int:
        return len(self.instants)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Timeline) and self.instants == other.instants

    def __hash__(self) -> int:
        return hash(self.instants)

    def __repr__(self) -> str:
        return f"Timeline({list(self.instants)!r})"

    @cached_property
    def requested_times(self) -> frozenset[str]:
        return frozenset(instant.requested_time for instant in self.instants)

    def filter(self, keep: Callable[[Instant], bool]) -> Timeline:
        return Timeline.in_order(instant for instant in self.instants if keep(instant))

    def of_actions(self, *actions: str) -> Timeline:
        requested = frozenset(actions)
        return self.filter(lambda instant: instant.action in requested)

    def completed(self) -> Timeline:
        return self.filter(lambda instant: instant.is_completed)

    def pending(self) -> Timeline:
        return self.filter(lambda instant: not instant.is_completed)

    def pending_changes(self) -> Timeline:
        """Returns the pending instants without savepoints, which have the requested times of their commits."""
        return self.pending().filter(lambda instant: instant.action != Action.SAVEPOINT)

    def commits(self) -> Timeline:
        """Returns completed commits, deltacommits and replacecommits, with completed compactions and clusterings."""
        return self.filter(lambda instant: instant.is_completed and instant.action in COMMIT_ACTIONS)

    def pending_compactions(self) -> Timeline:
        return self.pending().of_actions(Action.COMPACTION)

    def pending_log_compactions(self) -> Timeline:
        return self.pending().of_actions(Action.LOG_COMPACTION)

    def visible_writes(self) -> Timeline:
        """Returns what makes slices visible: completed commits, pending compactions (AbstractTableFileSystemView)."""
        pending = {Action.COMPACTION}
        return self.filter(lambda instant: instant.action in (COMMIT_ACTIONS if instant.is_completed else pending))

    def savepoints(self) -> frozenset[str]:
        """Returns the requested times of the commits that completed savepoints keep."""
        return self.completed().of_actions(Action.SAVEPOINT).requested_times

    def before(self, time: str) -> Timeline:
        return self.filter(lambda instant: instant.requested_time < time)

    def up_to(self, time: str) -> Timeline:
        return self.filter(lambda instant: instant.requested_time <= time)

    def after(self, time: str) -> Timeline:
        return self.filter(lambda instant: instant.requested_time > time)

    def first(self) -> Instant | None:
        return self.instants[0] if self.instants else None

    def last(self) -> Instant | None:
        return self.instants[-1] if self.instants else None

    def last_completed(self) -> Instant | None:
        """Returns the latest completed instant, by requested time."""
        return self.completed().last()

    def find(self, requested_time: str, action: str) -> Instant | None:
        """Returns the instant at `requested_time` in the class of `action`: `compaction` also finds a `commit`."""
        return self._by_class.get((requested_time, completed_action(action)))

    @cached_property
    def _by_class(self) -> dict[tuple[str, str], Instant]:
        instants: dict[tuple[str, str], Instant] = {}
        for instant in self.instants:
            instants.setdefault((instant.requested_time, completed_action(instant.action)), instant)
        return instants

    def get(self, requested_time: str, action: str) -> Instant:
        """Returns the instant that find does. Raises TimelineError when there is none."""
        instant = self.find(requested_time, action)
        if instant is None:
            message = f"the timeline holds no {action} at instant {requested_time}"
            raise TimelineError(message, remedy="list the instants with `hudictl timeline TABLE`")
        return instant

    def contains(self, requested_time: str) -> bool:
        return requested_time in self.requested_times

    @cached_property
    def start(self) -> str | None:
        """The start of the timeline: its first instant that no savepoint holds (findFirstNonSavepointCommit)."""
        saved = {instant.requested_time for instant in self.instants if instant.action == Action.SAVEPOINT}
        return next((instant.requested_time for instant in self.instants if instant.requested_time not in saved), None)

    def contains_or_before_start(self, requested_time: str) -> bool:
        """Whether an instant is on the timeline, or before its start and so archived (containsOrBeforeTimelineStarts).
        In `commits()`, that means whether it is committed.
        """
        return requested_time in self.requested_times or (self.start is not None and requested_time < self.start)


def seconds_since(time: str, now: datetime, zone: str) -> int:
    """Returns the seconds since a time of a timeline in `zone` (instant_time.zone_of); LONG_AGO when it is no date."""
    try:
        return int((now - parse_instant(time, zone)).total_seconds())
    except TimelineError:
        return LONG_AGO


def age_of(instant: Instant, now: datetime, zone: str) -> int:
    """Returns the seconds since an instant was requested; see seconds_since."""
    return seconds_since(instant.requested_time, now, zone)


def pending_longer_than(timeline: Timeline, seconds: int, now: datetime, zone: str) -> Iterator[tuple[Instant, int]]:
    """Yields the pending instants requested more than `seconds` before `now`, oldest first, with their ages."""
    for instant in timeline.pending():
        age = age_of(instant, now, zone)
        if age > seconds:
            yield instant, age


def age_shown(instant: Instant, age: int) -> str:
    shown = "long: its time is no date" if age == LONG_AGO else f"{age} s"
    return f"{instant.pending_action} {instant.requested_time} is {instant.state.value} for {shown}"
