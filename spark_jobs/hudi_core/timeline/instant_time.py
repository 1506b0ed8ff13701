"""Instant times: `yyyyMMddHHmmssSSS` in the table's zone, compared as text (HoodieInstantTimeGenerator of 0.15)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Final

from hudi_core.errors import ConfigError, TimelineError

DIGITS: Final = 17
_TEXT = re.compile(r"^\d+\Z", re.ASCII)
_FORMAT: Final = "%Y%m%d%H%M%S"


def zone_of(name: str) -> tzinfo | None:
    """The zone of `hoodie.table.timeline.timezone`: UTC, or None for LOCAL, which is this process's zone. Raises ConfigError."""
    upper = name.upper()
    if upper == "UTC":
        return timezone.utc
    if upper == "LOCAL":
        return None
    raise ConfigError(f"hoodie.table.timeline.timezone is {name!r}", path=".hoodie/hoodie.properties", remedy="it is LOCAL or UTC")


def format_instant(moment: datetime) -> str:
    """The 17 digits of a moment, in the moment's own zone, cut to milliseconds."""
    return f"{moment.strftime(_FORMAT)}{moment.microsecond // 1000:03d}".zfill(DIGITS)


def parse_instant(instant: str, zone: str = "LOCAL") -> datetime:
    """The moment of an instant, aware of its zone. 14 digits mean the end of that second; digits after the 17th are not part of the time.

    Raises TimelineError for text that is no date, such as the metadata table's `00000000000000010`.
    """
    digits = f"{instant}999" if len(instant) == 14 else instant
    if len(digits) < DIGITS or _TEXT.match(digits) is None:
        raise TimelineError(f"{instant!r} is not an instant time", remedy="an instant time has 14 or 17 digits")
    try:
        moment = datetime.strptime(digits[:14], _FORMAT) + timedelta(milliseconds=int(digits[14:DIGITS]))
    except ValueError as error:
        raise TimelineError(f"{instant!r} is no date") from error
    place = zone_of(zone)
    return moment.astimezone() if place is None else moment.replace(tzinfo=place)


def new_instant(after: Iterable[str], zone: str = "LOCAL", *, clock: Callable[[], datetime] | None = None) -> str:
    """A new instant time: now in the table's zone, or one millisecond past the latest of `after` when the clock is behind it.

    Larger, as text, than every given time, also than those with a suffix. `clock` gives an aware moment; the default is the system's.
    Raises TimelineError when a given time lies ahead of the clock and is no date.
    """
    now = datetime.now(timezone.utc) if clock is None else clock()
    candidate = format_instant(now.astimezone(zone_of(zone)))
    latest = max(after, default="")
    if candidate > latest:
        return candidate
    digits = latest.ljust(DIGITS, "0")[:DIGITS]
    try:
        moment = datetime.strptime(digits[:14], _FORMAT) + timedelta(milliseconds=int(digits[14:]))
        return format_instant(moment + timedelta(milliseconds=1))
    except (ValueError, OverflowError) as error:
        raise TimelineError(f"the timeline's instant {latest!r} lies ahead of the clock and is no date", remedy="check the clock") from error
