"""Which instants are pending for too long."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from hudi_core.errors import TimelineError
from hudi_core.timeline.instant import Instant
from hudi_core.timeline.instant_time import parse_instant
from hudi_core.timeline.timeline import Timeline

LONG_AGO: Final = 10**10
"""The seconds since a time that is no date, as that of a bootstrap: 317 years."""


def seconds_since(time: str, now: datetime, zone: str) -> int:
    """The seconds since an instant time or completion time of a timeline in `zone` (instant_time.zone_of); LONG_AGO
    where it is no date.
    """
    try:
        return int((now - parse_instant(time, zone)).total_seconds())
    except TimelineError:
        return LONG_AGO


def age_of(instant: Instant, now: datetime, zone: str) -> int:
    """The seconds since an instant was requested; see seconds_since."""
    return seconds_since(instant.requested_time, now, zone)


def pending_longer_than(timeline: Timeline, seconds: int, now: datetime, zone: str) -> Iterator[tuple[Instant, int]]:
    """The instants that were requested more than `seconds` before `now` and are not completed, oldest first, each with
    its age in seconds; see age_of.
    """
    for item in timeline.pending():
        age = age_of(item, now, zone)
        if age > seconds:
            yield item, age


def age_shown(instant: Instant, age: int) -> str:
    """For messages."""
    shown = "long: its time is no date" if age == LONG_AGO else f"{age} s"
    return f"{instant.pending_action} {instant.requested_time} is {instant.state.value} for {shown}"
