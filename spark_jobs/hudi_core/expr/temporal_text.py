"""Dates and timestamps from text, in the forms of Spark's casts (SparkDateTimeUtils).

As stringToDate and stringToTimestamp.
"""

from __future__ import annotations

import datetime as dt
import re
import zoneinfo
from typing import Final

from hudi_core.errors import ConfigError

_DATE: Final = re.compile(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?", re.DOTALL)
_TIMESTAMP: Final = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?\s*([A-Za-z+-][\w:/+-]*)?)?"
)
_OFFSET: Final = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?(\d{2}))?")


def parse_date(text: str) -> dt.date:
    """`yyyy`, `yyyy-M` or `yyyy-M-d`, and what follows a blank or a T is left aside. Raises ConfigError."""
    found = _DATE.fullmatch(text.strip())
    if found is None:
        raise _no_date(text)
    try:
        return dt.date(int(found[1]), int(found[2] or 1), int(found[3] or 1))
    except ValueError as error:
        raise _no_date(text) from error


def parse_timestamp(text: str) -> dt.datetime:
    """`yyyy-M-d`, then optionally a time down to nanoseconds and a zone; naive without one.

    Nanoseconds are cut to microseconds. Raises ConfigError.
    """
    found = _TIMESTAMP.fullmatch(text.strip())
    if found is None:
        raise _no_timestamp(text)
    year, month, day, hour, minute, second = (int(part or 0) for part in found.groups()[:6])
    micros = int((found[7] or "0").ljust(6, "0")[:6])
    try:
        return dt.datetime(year, month, day, hour, minute, second, micros, zone_of(found[8]) if found[8] else None)
    except ValueError as error:
        raise _no_timestamp(text) from error


def zone_of(name: str) -> dt.tzinfo:
    """The zone of a name such as `UTC`, `Z`, `+02:00` or `Europe/Berlin`. Raises ConfigError for an unknown one."""
    if name in ("Z", "UTC", "GMT"):
        return dt.timezone.utc
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        span = dt.timedelta(hours=int(offset[2]), minutes=int(offset[3] or 0))
        if span <= dt.timedelta(hours=18):
            return dt.timezone(-span if offset[1] == "-" else span)
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ConfigError(
            f"{name!r} is no time zone", remedy="use a region such as Europe/Berlin, or an offset such as +02:00"
        ) from error


def _no_date(text: str) -> ConfigError:
    return ConfigError(f"{text!r} is no date", remedy="write dates as 2024-01-31")


def _no_timestamp(text: str) -> ConfigError:
    return ConfigError(
        f"{text!r} is no timestamp",
        remedy="write timestamps as 2024-01-31 23:59:59.123, with a zone such as +02:00 if it matters",
    )
