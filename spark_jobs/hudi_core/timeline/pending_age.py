"""Which instants are pending for too long."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from hudi_core.timeline.instant import Instant
from hudi_core.timeline.instant_time import parse_instant
from hudi_core.timeline.timeline import Timeline


def age_of(instant: Instant, now: datetime, zone: str) -> int:
    """The seconds since an instant was requested. `zone` is the timeline's (instant_time.zone_of). Raises TimelineError
    for an instant that is no date.
    """
    return int((now - parse_instant(instant.requested_time, zone)).total_seconds())


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
    return f"{instant.pending_action} {instant.requested_time} is {instant.state.value} for {age} s"
