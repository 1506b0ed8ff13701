"""Instant times: `yyyyMMddHHmmssSSS` in the table's zone, compared as text (HoodieInstantTimeGenerator of 0.15)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Final

from hudi_core.errors import ConfigError, TimelineError
from hudi_core.request.texts import region

DIGITS: Final = 17
_TEXT = re.compile(r"^\d+\Z", re.ASCII)
_FORMAT: Final = "%Y%m%d%H%M%S"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)
_DATE = re.compile(
    r"^(?P<date>\d{4}-\d{2}-\d{2})(?:[ T](?P<time>\d{2}:\d{2}:\d{2})(?:\.(?P<fraction>\d{1,6}))?)?"
    r"(?P<offset>Z|[+-]\d{2}:\d{2})?\Z",
    re.ASCII,
)
_NO_DATE = "0000000000000"
"""The prefix of the instants that precede a table's first commit (HoodieTimeline.INIT_INSTANT_TS and others)."""
_AS_OF_REMEDY: Final = (
    "give an instant (14 or 17 digits), or a date such as 2026-11-20, 2026-11-20 22:33:44 or 2026-11-20 22:33:44.123"
)


def zone_of(name: str) -> tzinfo | None:
    """Returns the timeline's zone: UTC, None for LOCAL (this process's), or an IANA zone. Raises ConfigError."""
    upper = name.upper()
    if upper == "UTC":
        return timezone.utc
    if upper == "LOCAL":
        return None
    found = region(name)
    if found is None:
        raise ConfigError(f"there is no time zone {name!r}", remedy="write UTC, LOCAL, or a name such as Europe/Berlin")
    return found


def zone_text(name: str) -> str:
    """Returns the zone as messages name it. `LOCAL (here CET)` gives the zone of this process."""
    zone = zone_of(name)
    return f"LOCAL (here {datetime.now().astimezone().tzname()})" if zone is None else str(zone)


def format_instant(moment: datetime) -> str:
    """Returns the 17 digits of a moment, in the moment's own zone, cut to milliseconds."""
    return f"{moment.strftime(_FORMAT)}{moment.microsecond // 1000:03d}".zfill(DIGITS)


def of_epoch_seconds(seconds: float, zone: str = "LOCAL") -> str:
    """Returns the instant time of a moment given in seconds since 1970, such as a file's modification time."""
    return format_instant(datetime.fromtimestamp(seconds, timezone.utc).astimezone(zone_of(zone)))


def of_epoch_millis(millis: int, zone: str = "LOCAL") -> str:
    """Returns the instant time of whole milliseconds since 1970. It is exact in every year, unlike that of a float."""
    return format_instant((_EPOCH + timedelta(milliseconds=millis)).astimezone(zone_of(zone)))


def parse_instant(instant: str, zone: str = "LOCAL") -> datetime:
    """Returns the moment of an instant, aware of its zone.

    14 digits mean the end of that second; digits after the 17th are not part of the time. Raises TimelineError for text
    that is no date, such as the metadata table's `00000000000000010`, and for a moment that LOCAL does not have: the
    hours at the ends of the years 1 and 9999.
    """
    digits = f"{instant}999" if len(instant) == 14 else instant
    if len(digits) < DIGITS or _TEXT.match(digits) is None:
        raise TimelineError(f"{instant!r} is not an instant time", remedy="an instant time has 14 or 17 digits")
    place = zone_of(zone)
    try:
        moment = _moment(digits)
        return moment.astimezone() if place is None else moment.replace(tzinfo=place)
    except (ValueError, OverflowError) as error:
        raise TimelineError(f"{instant!r} is no date in the time zone {zone_text(zone)}") from error


def _moment(digits: str) -> datetime:
    return datetime.strptime(digits[:14], _FORMAT) + timedelta(milliseconds=int(digits[14:DIGITS]))


def resolve_as_of(text: str, zone: str = "LOCAL") -> str:
    """Returns the instant that a time-travel text means (HoodieSqlCommonUtils.formatQueryInstant). Digits are an
    instant as it is: 14, 17, or more with a suffix. A date means its midnight. A date with a time to the second means
    the whole second, since Hudi adds `.999`. Dates are in the timeline's zone, so their digits stay as they are; with
    `Z` or an offset, they are converted to `zone`. Raises ConfigError naming the zone.
    """
    cleaned = text.strip()
    if _TEXT.match(cleaned) is not None:
        try:
            if not cleaned.startswith(_NO_DATE):
                parse_instant(cleaned, "UTC")  # it is compared only as text, so every date will do
        except TimelineError as error:
            message = f"{text!r} is not an instant in the time zone {zone_text(zone)}"
            raise ConfigError(message, remedy=_AS_OF_REMEDY) from error
        return cleaned
    match = _DATE.match(cleaned)
    if match is None:
        raise ConfigError(f"{text!r} is neither an instant nor a date", remedy=_AS_OF_REMEDY)
    fraction = (match["fraction"] or ("999" if match["time"] else "0")).ljust(6, "0")
    try:
        moment = datetime.strptime(f"{match['date']} {match['time'] or '00:00:00'}.{fraction}", "%Y-%m-%d %H:%M:%S.%f")
        if match["offset"]:
            offset = datetime.strptime(match["offset"].replace("Z", "+00:00"), "%z").tzinfo
            moment = moment.replace(tzinfo=offset).astimezone(zone_of(zone))
    except (ValueError, OverflowError) as error:
        raise ConfigError(f"{text!r} is no date in the time zone {zone_text(zone)}", remedy=_AS_OF_REMEDY) from error
    return format_instant(moment)


def earlier(instant: str, millis: int) -> str:
    """Returns the instant time `millis` before, as 17 digits; its text is smaller. Raises TimelineError for no date."""
    try:
        return format_instant(_moment(_padded(instant)) - timedelta(milliseconds=millis))
    except (ValueError, OverflowError) as error:
        raise TimelineError(f"{instant!r} is no date, so that no instant precedes it") from error


def _padded(instant: str) -> str:
    return instant.ljust(DIGITS, "0")[:DIGITS]


def new_instant(after: Iterable[str], zone: str = "LOCAL", *, clock: Callable[[], datetime] | None = None) -> str:
    """Returns a new instant time: now in the table's zone, or one millisecond after the latest of `after` if that is
    later. As text it is larger than every given time, also than those with a suffix. Raises TimelineError when a given
    time is ahead of the clock and is no date.
    """
    now = datetime.now(timezone.utc) if clock is None else clock()
    candidate = format_instant(now.astimezone(zone_of(zone)))
    latest = max(after, default="")
    if candidate > latest:
        return candidate
    try:
        return format_instant(_moment(_padded(latest)) + timedelta(milliseconds=1))
    except (ValueError, OverflowError) as error:
        raise TimelineError(
            f"the timeline's instant {latest!r} lies ahead of the clock and is no date", remedy="check the clock"
        ) from error
