"""The clocks and zones of the table's writers. All instants must be in one zone, and in the order in which the work was
done (HUDI-7507, HUDI-9127).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

from hudi_core.config.concurrency_config import CLOCK_SKEW_MS
from hudi_core.config.rows_config import TIMELINE_ZONE
from hudi_core.errors import TimelineError
from hudi_core.frozen import dataclass
from hudi_core.services.context import TableContext
from hudi_core.timeline.instant import Action, State
from hudi_core.timeline.instant_time import parse_instant
from hudi_core.timeline.timeline import Timeline
from hudi_health.doctor.findings import Finding

SAMPLES: Final = 20
"""The number of latest instants whose offsets are reported."""
_QUARTER: Final = 900
"""Seconds of a quarter of an hour. Zones differ by whole quarters."""
_MAX_QUARTERS: Final = 14 * 4
_NEAR: Final = 60.0
"""The most seconds from an instant to its requested file. A longer time means a copy of the table, or a slow writer."""
_ENOUGH: Final = 3
_COARSE: Final = 2.0
"""Seconds to which some storages round file times down: object stores to one, archives and old file systems to two."""


@dataclass(frozen=True, slots=True)
class ClockObservations:
    """The observed clocks and zones. `zone` is the timeline's zone in this run, `recorded` the zone in
    hoodie.properties, and `here` the zone of LOCAL. `offsets` are the seconds by which the latest instants, read in
    `zone`, are later than their requested files. `storage_ahead` and `newest_ahead` are the seconds by which the newest
    file and the newest instant are ahead of this process's clock; None if there is none.
    """

    zone: str
    recorded: str
    here: str
    tolerated: float
    offsets: tuple[float, ...] = ()
    storage_ahead: float | None = None
    newest_ahead: float | None = None
    newest: str | None = None


def read_clocks(
    context: TableContext, timeline: Timeline, modified: Mapping[str, float], now: float
) -> ClockObservations:
    """Reads the clocks. `modified` has times of timeline files by path; `now` is this process's, both epoch seconds."""
    zone = context.zone
    times = {time for instant in timeline for time in (instant.requested_time, instant.completion_time) if time}
    moments = ((moment_of(time, zone), time) for time in times)
    newest = max(((moment, time) for moment, time in moments if moment is not None), default=None)
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
    """Yields the seconds by which instants are later than their requested files. A writer makes the requested file when
    it draws the instant. Savepoints and indexings are omitted, because they are planned under earlier times.
    """
    drawn = [instant for instant in timeline if instant.action not in (Action.SAVEPOINT, Action.INDEXING)]
    for instant in drawn[-SAMPLES:]:
        path = context.active.path(instant.requested_time, instant.pending_action, State.REQUESTED)
        moment = moment_of(instant.requested_time, zone)
        if path in modified and moment is not None:
            yield moment - modified[path]


def moment_of(time: str, zone: str) -> float | None:
    """Returns the seconds since the epoch; None for an instant that is not a date."""
    try:
        return parse_instant(time, zone).timestamp()
    except (TimelineError, OverflowError):
        return None  # An initial instant such as 00000000000000010 is not a date.


def timeline_zone(clock: ClockObservations) -> Iterator[Finding]:
    """Reports instants that were written in another zone than they are read in. They differ from their files' times by
    whole quarters of an hour.
    """
    shifts = _shifts(clock.offsets)
    if len(shifts) > 1:
        yield Finding(
            "mixed_zones",
            "error",
            f"the latest instants were drawn in different zones ({', '.join(_hours(shift) for shift in shifts)} "
            f"beside {clock.zone}): a later write may have the older instant",
            "give all writers one zone: hoodie.table.timeline.timezone=UTC, or the same time zone of their "
            "processes; stop the others meanwhile",
        )
    elif shifts and shifts != (0,):
        yield Finding(
            "timeline_zone",
            "warning",
            f"the table's instants are {_hours(shifts[0])} beside the times of their files when they are read in "
            f"{clock.zone} (LOCAL is {clock.here} here)",
            f"set {TIMELINE_ZONE.name} to the zone of the writers",
        )


def _shifts(offsets: tuple[float, ...]) -> tuple[int, ...]:
    """Returns the different shifts of the offsets, in quarters of an hour. Returns none if there are too few offsets,
    or if an offset is not near a whole quarter.
    """
    quarters = [round(offset / _QUARTER) for offset in offsets]
    near = all(abs(offset - quarter * _QUARTER) < _NEAR for offset, quarter in zip(offsets, quarters, strict=True))
    if len(offsets) < _ENOUGH or not near or max(map(abs, quarters)) > _MAX_QUARTERS:
        return ()
    return tuple(sorted(set(quarters)))


def _hours(quarters: int) -> str:
    return f"{quarters / 4:+g} h"


def clock_skew(clock: ClockObservations) -> Iterator[Finding]:
    """Reports clocks that differ by more seconds than the table's writers wait."""
    skews = []
    if clock.storage_ahead is not None and clock.storage_ahead > clock.tolerated:
        what = f"the storage's clock is {clock.storage_ahead:.1f} s or more ahead of this process's"
        skews.append((what, clock.storage_ahead))
    ahead = max((offset for offset in clock.offsets if offset < _NEAR), default=0.0)
    # A file is made after its instant is drawn. So if an instant is later than its file, the writer's clock is ahead.
    if _shifts(clock.offsets) == (0,) and ahead > clock.tolerated + _COARSE:
        skews.append((f"a writer's clock was {ahead:.1f} s ahead of the storage's", ahead))
    for what, seconds in skews:
        what = f"{what}; {clock.tolerated:g} s are waited for"
        fix = f"synchronise the clocks (NTP), or set {CLOCK_SKEW_MS.name} to {int(seconds * 1000) + 1} on every writer"
        yield Finding("clock_skew", "warning", what, fix)


def instant_ahead(clock: ClockObservations) -> Iterator[Finding]:
    """Reports an instant in the future. Every later instant must be larger, but Hudi's writers do not ensure that."""
    if clock.newest_ahead is not None and clock.newest_ahead > clock.tolerated:
        yield Finding(
            "instant_ahead",
            "warning",
            f"the newest instant, {clock.newest}, lies {clock.newest_ahead:.1f} s in the future of this "
            f"process, read in {clock.zone}",
            f"check the clock and the zone of its writer ({TIMELINE_ZONE.name}); until then let no other "
            "writer draw instants",
            clock.newest,
        )
