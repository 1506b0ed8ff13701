"""Instant and completion times that no other writer gets: `SkewAdjustingTimeGenerator` of Hudi 1.x, for both layouts.

The caller holds the table lock. It generates a time and keeps the lock until every clock that is at most `skew_ms`
behind ours has passed this time. So the next holder of the lock, on any machine, generates a later time.

A writer of Hudi that takes no lock draws its completion time, waits as long, and creates the completed file. So while
such a writer may be at work, a time is used only when it has passed: what completed earlier can be seen then.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from itertools import chain, count

from hudi_core.timeline.instant import State
from hudi_core.timeline.instant_time import earlier, new_instant, of_epoch_seconds
from hudi_core.timeline.timeline import Timeline

SKEW_MS = 200
"""`hoodie.time.generator.max_expected_clock_skew_ms`."""
_FAR_AHEAD_SECONDS = 60
_BEFORE_MS = 1000
"""`before` draws a time at most so long before the instant, if such a time is free."""
_guard = threading.Lock()
_last_read = datetime.min.replace(tzinfo=timezone.utc)

log = logging.getLogger(__name__)


Due = tuple[float, Callable[[float], None]]
"""By the monotonic clock, when a time has passed; and the function that sleeps."""
_held = threading.local()
"""`due` of this thread while it is within times_pass_at_end."""


@contextmanager
def times_pass_at_end() -> Iterator[None]:
    """Lets the times that this thread generates within the block pass while the block goes on, at the latest at its
    end. A table lock does so before its release (locks/base.py).
    """
    outer, due = getattr(_held, "due", None), list[Due]()
    _held.due = due
    try:
        yield
    finally:
        _held.due = outer
        for moment, sleep in due:
            left = moment - time.monotonic()
            if left > 0:
                sleep(left)


class InstantClock:
    """Draws the times of one table, as 17 digits in the table's zone (timeline.instant_time.zone_of)."""

    def __init__(
        self,
        zone: str,
        skew_ms: int = SKEW_MS,
        *,
        now: Callable[[], datetime] | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Takes `now`, which returns an aware moment (None: the system's clock), and `sleep`, which takes seconds."""
        self.zone = zone
        self._skew_seconds = skew_ms / 1000
        self._now = now or _system_time
        self._sleep = sleep
        self._given = ""

    def next(self, timeline: Timeline, *, minimum: str = "") -> str:
        """Returns a time larger, as text, than `minimum`, all requested and completion times on `timeline`, and this
        clock's earlier times. `timeline` was loaded under the lock. Where it shows another inflight instant than
        `minimum`, the time has passed. No two calls in this process read the same millisecond. Raises TimelineError
        when the latest of those times is ahead of the clock and is no date.
        """
        moment = _read_once(self._now)
        taken = max(
            (*timeline.requested_times, *(instant.completed_at for instant in timeline), minimum, self._given),
            default="",
        )
        if taken > of_epoch_seconds(moment.timestamp() + _FAR_AHEAD_SECONDS, self.zone):
            log.warning(
                "the table's time %s is ahead of this machine's clock in the zone %s: check the clocks and the zone",
                taken,
                self.zone,
            )
        self._given = new_instant((taken,), self.zone, clock=lambda: moment)
        due: list[Due] | None = getattr(_held, "due", None)
        if due is None or _others_at_work(timeline, minimum):
            self._sleep(self._skew_seconds)
        else:
            due.append((time.monotonic() + self._skew_seconds, self._sleep))
        return self._given

    def before(self, instant: str, timeline: Timeline, taken: Collection[str] = ()) -> str:
        """Returns a time earlier than `instant`, as text, that neither `timeline` nor `taken` has. Where there is room,
        the time is within a second before `instant`, and later than the previous instant on `timeline`. The clock
        chooses the millisecond, so that a time of an abandoned attempt is hardly drawn again: files of its dead owner
        would pass for files of the new owner. Raises TimelineError where `instant` is no date.
        """
        others = timeline.requested_times.union(taken)
        previous = max((time for time in timeline.requested_times if time < instant), default="")
        room = 1
        while room < _BEFORE_MS and earlier(instant, room + 1) > previous:
            room += 1
        first = 1 + int(_read_once(self._now).timestamp() * 1000) % room
        times = (earlier(instant, millis) for millis in chain(range(first, room + 1), count(1)))
        return next(time for time in times if time not in others)


def _others_at_work(timeline: Timeline, own: str) -> bool:
    return any(instant.state is State.INFLIGHT and instant.requested_time != own for instant in timeline)


def _system_time() -> datetime:
    return datetime.now(timezone.utc)


def _read_once(now: Callable[[], datetime]) -> datetime:
    """Reads the clock; returns one millisecond later where another thread has read the same time."""
    global _last_read  # all clocks of a process share it
    with _guard:
        moment = now()
        if now is _system_time:
            _last_read = moment = max(moment, _last_read + timedelta(milliseconds=1))
        return moment
