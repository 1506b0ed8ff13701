"""Rules about zones and clocks (HUDI-7507, HUDI-9127): instants must be in one zone, and their order must be that of
the work.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hudi_core.config.read_config import TIMELINE_ZONE
from hudi_core.config.transaction_config import CLOCK_SKEW_MS
from hudi_core.services.doctor.finding import Finding
from hudi_core.services.doctor.observations import Observations

_QUARTER: Final = 900
"""Seconds: zones differ by whole quarters of an hour."""
_MAX_QUARTERS: Final = 14 * 4
_NEAR: Final = 60.0
"""Seconds within which a requested file follows its instant; more than that is a copy of the table, or a slow
writer.
"""
_ENOUGH: Final = 3
_COARSE: Final = 2.0
"""Seconds to which some storages cut the times of files: object stores to one, archives and old file systems to two."""


def timeline_zone(observed: Observations) -> Iterator[Finding]:
    """Instants that lie whole quarters of an hour beside their files' times: written in another zone than they are read
    in.
    """
    shifts = _shifts(observed.clock.offsets)
    if len(shifts) > 1:
        yield Finding(
            "mixed_zones",
            "error",
            "the latest instants were drawn in different zones "
            f"({', '.join(_hours(shift) for shift in shifts)} beside {observed.clock.zone}): "
            "a later write may have the older instant",
            "give all writers one zone: hoodie.table.timeline.timezone=UTC, or the same time zone of their "
            "processes; stop the others meanwhile",
        )
    elif shifts and shifts != (0,):
        yield Finding(
            "timeline_zone",
            "warning",
            f"the table's instants are {_hours(shifts[0])} beside the times of their files when they are read "
            f"in {observed.clock.zone} "
            f"(LOCAL is {observed.clock.here} here)",
            f"set {TIMELINE_ZONE.name} to the zone of the writers",
        )


def _shifts(offsets: tuple[float, ...]) -> tuple[int, ...]:
    """The shifts in quarters of an hour that the offsets agree on; empty where they agree on none."""
    quarters = [round(offset / _QUARTER) for offset in offsets]
    near = all(abs(offset - quarter * _QUARTER) < _NEAR for offset, quarter in zip(offsets, quarters, strict=True))
    if len(offsets) < _ENOUGH or not near or max(map(abs, quarters)) > _MAX_QUARTERS:
        return ()
    return tuple(sorted(set(quarters)))


def _hours(quarters: int) -> str:
    return f"{quarters / 4:+g} h"


def clock_skew(observed: Observations) -> Iterator[Finding]:
    """Clocks that disagree by more than the table's writers wait for."""
    clock = observed.clock
    if clock.storage_ahead is not None and clock.storage_ahead > clock.tolerated:
        yield _skew(
            f"the storage's clock is {clock.storage_ahead:.1f} s or more ahead of this process's",
            clock.storage_ahead,
            clock.tolerated,
        )
    ahead = max((offset for offset in clock.offsets if offset < _NEAR), default=0.0)
    # A file is made after its instant is drawn, so an instant later than its file can only be a clock that is ahead.
    if _shifts(clock.offsets) == (0,) and ahead > clock.tolerated + _COARSE:
        yield _skew(f"a writer's clock was {ahead:.1f} s ahead of the storage's", ahead, clock.tolerated)


def _skew(what: str, seconds: float, tolerated: float) -> Finding:
    need = int(seconds * 1000) + 1
    return Finding(
        "clock_skew",
        "warning",
        f"{what}; {tolerated:g} s are waited for",
        f"synchronise the clocks (NTP), or set {CLOCK_SKEW_MS.name} to {need} on every writer",
    )


def instant_ahead(observed: Observations) -> Iterator[Finding]:
    """An instant of the future: whatever is drawn until then has to go beyond it, and Hudi's writers do not."""
    clock = observed.clock
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
