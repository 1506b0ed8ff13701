"""Reads the clocks and zones of a table's writers: instant times compared with the times of their files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

from hudi_core.config.table_config import timeline_zone
from hudi_core.config.transaction_config import CLOCK_SKEW_MS
from hudi_core.errors import TimelineError
from hudi_core.services.context import TableContext
from hudi_core.services.doctor.observations import ClockObservations
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.instant_time import parse_instant
from hudi_core.timeline.timeline import Timeline

SAMPLES: Final = 20
"""The number of latest instants whose offsets are reported."""


def read_clocks(
    context: TableContext, timeline: Timeline, modified: Mapping[str, float], now: float
) -> ClockObservations:
    """Compares; `modified` are the times of the timeline's files by path, `now` is this process's clock, both seconds
    since the epoch.
    """
    zone = timeline_zone(context.config, context.options)
    latest = [moment for instant in timeline for moment in _moments(instant, zone)]
    newest = max(latest, default=None)
    return ClockObservations(
        zone=zone,
        recorded=context.config.timezone,
        here=str(datetime.now().astimezone().tzinfo),
        tolerated=CLOCK_SKEW_MS.read(context.options) / 1000,
        offsets=tuple(_offsets(context, timeline, modified, zone)),
        storage_ahead=max(modified.values()) - now if modified else None,
        newest_ahead=None if newest is None else newest[0] - now,
        newest=None if newest is None else newest[1],
    )


def _offsets(context: TableContext, timeline: Timeline, modified: Mapping[str, float], zone: str) -> Iterator[float]:
    """A requested file is made as soon as its instant is drawn. Savepoints bear older instants, and restores draw
    theirs long before.
    """
    drawn = [item for item in timeline if item.action != Action.SAVEPOINT]
    for instant in drawn[-SAMPLES:]:
        path = context.active.path(instant.requested_time, instant.pending_action, State.REQUESTED)
        moment = moment_of(instant.requested_time, zone)
        if path in modified and moment is not None:
            yield moment - modified[path]


def _moments(instant: Instant, zone: str) -> Iterator[tuple[float, str]]:
    for time in (instant.requested_time, instant.completion_time):
        moment = None if time is None else moment_of(time, zone)
        if time is not None and moment is not None:
            yield moment, time


def moment_of(time: str, zone: str) -> float | None:
    """Seconds since the epoch; None for an instant that is no date."""
    try:
        return parse_instant(time, zone).timestamp()
    except (TimelineError, OverflowError):
        return None  # an initial instant such as 00000000000000010 is no date
