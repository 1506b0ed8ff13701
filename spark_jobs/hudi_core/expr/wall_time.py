"""Local time of timestamps and dates in any year, and the reading of both from text as in Spark's casts
(SparkDateTimeUtils).

Arrow keeps years in 16 bits, and expression indexes are also built over milliseconds taken for seconds. So times
outside of the years 1 to 9999 are moved by cycles of 400 years, after which days, weekdays and the rules of zones
recur.
"""

from __future__ import annotations

import datetime as dt
import re
from contextlib import suppress
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hudi_core.errors import ConfigError
from hudi_core.frozen import dataclass
from hudi_core.request.texts import region

_DAY: Final = 86_400
_CYCLE_YEARS: Final = 400
_CYCLE_DAYS: Final = 146_097
_FIRST: Final = -62_135_596_800 + 2 * _DAY
_END: Final = 253_402_300_800 - 2 * _DAY
"""Between these seconds since 1970, no zone leaves the years 1 to 9999."""
_BASE: Final = 946_684_800
_JAVA_FORMAT: Final = re.compile(r"yyyy|MM|dd|HH|mm|ss|'((?:[^']|'')*)'|[^A-Za-z']")
_STRFTIME: Final = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S", "%": "%%"}
_DATE: Final = re.compile(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?", re.DOTALL)
_TIMESTAMP: Final = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?\s*([A-Za-z+-][\w:/+-]*)?)?"
)
_OFFSET: Final = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?(\d{2}))?")
_UNITS: Final = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


@dataclass(frozen=True, slots=True)
class WallTime:
    """Whole seconds of local time as `timestamp[s]`, and by how many cycles each was moved back, if any was."""

    seconds: pa.Array
    cycles: pa.Array | None

    @staticmethod
    def of(array: pa.Array, zone: str) -> WallTime:
        """Returns local time of dates and timestamps, in `zone` if they have one. Raises ConfigError for others."""
        if pa.types.is_date32(array.type):
            return WallTime._of_seconds(pc.multiply(array.cast(pa.int32()).cast(pa.int64()), _DAY), None)
        if not pa.types.is_timestamp(array.type):
            remedy = "correct the expression"
            raise ConfigError(f"a function of dates cannot be computed of {array.type}", remedy=remedy)
        seconds = _floor_divided(array.cast(pa.int64()), _UNITS[array.type.unit])
        return WallTime._of_seconds(seconds, None if array.type.tz is None else zone)

    @staticmethod
    def of_unix_seconds(array: pa.Array, zone: str) -> WallTime:
        return WallTime._of_seconds(array.cast(pa.int64()), zone)

    @staticmethod
    def _of_seconds(seconds: pa.Array, zone: str | None) -> WallTime:
        values: NDArray[np.int64] = seconds.fill_null(0).to_numpy(zero_copy_only=False)
        outside = (values < _FIRST) | (values >= _END)
        cycles = None
        if outside.any():
            moved = np.where(outside, (values - _BASE) // (_CYCLE_DAYS * _DAY), 0)
            cycles = pa.array(moved, pa.int64())
            seconds = _where_valid(seconds, pa.array(values - moved * (_CYCLE_DAYS * _DAY)))
        if zone is None:
            return WallTime(seconds.cast(pa.timestamp("s")), cycles)
        return WallTime(pc.local_timestamp(seconds.cast(pa.timestamp("s", zone))), cycles)

    def year(self) -> pa.Array:
        """Returns the year as int32; 0 and below are before our era."""
        return pc.cast(self.years(), pa.int32(), safe=False)

    def date(self) -> pa.Array:
        days = _floor_divided(self.seconds.cast(pa.int64()), _DAY)
        days = days if self.cycles is None else pc.add(days, pc.multiply(self.cycles, _CYCLE_DAYS))
        return pc.cast(days, pa.int32(), safe=False).cast(pa.date32())

    def format(self, pattern: str) -> pa.Array:
        """Returns text by a Java pattern of yyyy MM dd HH mm ss and quoted text. Raises ConfigError for others."""
        parts = strftime_parts(pattern)
        if self.cycles is None:
            return pc.strftime(self.seconds, format="".join(parts))
        texts = [self._year_text() if part == "%Y" else pc.strftime(self.seconds, format=part) for part in parts]
        return pc.binary_join_element_wise(*texts, "") if texts else pc.strftime(self.seconds, format="")

    def years(self) -> pa.Array:
        """Returns the years as int64."""
        years = pc.year(self.seconds)
        return years if self.cycles is None else pc.add(years, pc.multiply(self.cycles, _CYCLE_YEARS))

    def _year_text(self) -> pa.Array:
        """Returns Java's year of era: with a sign when it has more than four digits; 1 is also the year before 1."""
        years: NDArray[np.int64] = self.years().fill_null(0).to_numpy(zero_copy_only=False)
        era = pa.array(np.where(years > 0, years, 1 - years))
        text = pc.utf8_lpad(era.cast(pa.string()), 4, "0")
        signed = pc.binary_join_element_wise("+", text, "")
        return _where_valid(self.seconds, pc.if_else(pc.greater(era, 9999), signed, text))


def strftime_parts(pattern: str) -> list[str]:
    """Returns a Java date pattern as pieces of Arrow's, the year on its own. Raises ConfigError for other letters."""
    parts: list[str] = []
    position = 0
    while position < len(pattern):
        match = _JAVA_FORMAT.match(pattern, position)
        if match is None:
            message = f"the date pattern {pattern!r} is not supported from {pattern[position:]!r} on"
            raise ConfigError(message, remedy="supported are yyyy MM dd HH mm ss and 'text'")
        quoted = match[1]
        text = match[0] if quoted is None else quoted.replace("''", "'") or "'"
        piece = _STRFTIME.get(text, text) if quoted is None else text.replace("%", "%%")
        if parts and "%Y" not in (piece, parts[-1]):
            parts[-1] += piece
        else:
            parts.append(piece)
        position = match.end()
    return parts


def _floor_divided(array: pa.Array, divisor: int) -> pa.Array:
    """Divides towards the past; Arrow's division goes towards zero."""
    if divisor == 1:
        return array
    values: NDArray[np.int64] = array.fill_null(0).to_numpy(zero_copy_only=False)
    return _where_valid(array, pa.array(values // divisor))


def _where_valid(array: pa.Array, values: pa.Array) -> pa.Array:
    return pc.if_else(array.is_valid(), values, pa.scalar(None, values.type))


def parse_date(text: str) -> dt.date:
    """Reads `yyyy`, `yyyy-M` or `yyyy-M-d`. Ignores what follows a blank or a T. Raises ConfigError."""
    match = _DATE.fullmatch(text.strip())
    with suppress(ValueError):
        if match is not None:
            return dt.date(int(match[1]), int(match[2] or 1), int(match[3] or 1))
    raise ConfigError(f"{text!r} is no date", remedy="write dates as 2024-01-31")


def parse_timestamp(text: str) -> dt.datetime:
    """Reads `yyyy-M-d`, a time cut to microseconds, and a zone; naive without a zone. Raises ConfigError."""
    match = _TIMESTAMP.fullmatch(text.strip())
    with suppress(ValueError):
        if match is not None:
            year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
            micros = int((match[7] or "0").ljust(6, "0")[:6])
            zone = zone_of(match[8]) if match[8] else None
            return dt.datetime(year, month, day, hour, minute, second, micros, zone)
    remedy = "write timestamps as 2024-01-31 23:59:59.123, with a zone such as +02:00 if it matters"
    raise ConfigError(f"{text!r} is no timestamp", remedy=remedy)


def zone_of(name: str) -> dt.tzinfo:
    """Returns the zone of a name such as `UTC`, `Z`, `+02:00` or `Europe/Berlin`. Raises ConfigError for others."""
    if name in ("Z", "UTC", "GMT"):
        return dt.timezone.utc
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        span = dt.timedelta(hours=int(offset[2]), minutes=int(offset[3] or 0))
        if span <= dt.timedelta(hours=18):
            return dt.timezone(-span if offset[1] == "-" else span)
    zone = region(name)
    if zone is None:
        remedy = "use a region such as Europe/Berlin, or an offset such as +02:00"
        raise ConfigError(f"{name!r} is no time zone", remedy=remedy)
    return zone
