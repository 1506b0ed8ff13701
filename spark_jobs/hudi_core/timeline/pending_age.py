"""Which instants are pending for too long."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from hudi_core.timeline.instant import Instant
from hudi_core.timeline.instant_time import parse_instant
from hudi_core.timeline.timeline import Timeline


def pending_longer_than(timeline: Timeline, seconds: int, now: datetime, zone: str) -> Iterator[tuple[Instant, int]]:
    """The instants that were requested more than `seconds` before `now` and are not completed, oldest first, each with
    its age in seconds. `zone` is the timeline's (instant_time.zone_of).
    """
    for item in timeline.pending():
        age = int((now - parse_instant(item.requested_time, zone)).total_seconds())
        if age > seconds:
            yield item, age


def age_shown(instant: Instant, age: int) -> str:
    """For messages."""
    return f"{instant.pending_action} {instant.requested_time} is {instant.state.value} for {age} s"
