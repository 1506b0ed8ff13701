"""What a sensor waits for, itself or by its trigger: one rule for both, made of its arguments. What asset events are
about: triggers/timeline_events.py.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from datetime import datetime, timedelta, timezone
from typing import Any

from airflow_hudi.timeline_reader import Look
from hudi_core.errors import ConfigError
from hudi_core.request.texts import seconds_of
from hudi_core.timeline.instant import Instant
from hudi_core.timeline.instant_time import format_instant, zone_of


class Condition(ABC):
    """What one wait is for: a dataclass. It may remember what it read, so no two waits share one. It depends on the
    timeline only: while looks show the same one, a condition that did not hold does not hold. `action` is the one that
    the timeline is read for (TimelineReader); `""` for any.
    """

    action: str

    @abstractmethod
    def check(self, look: Look) -> dict[str, Any] | None:
        """What was found, as JSON; else None. May read files that the look names. Raises StorageError, FormatError,
        TimelineError.
        """

    @abstractmethod
    def unmet(self) -> str:
        """What a table shows as long as the condition does not hold, for messages."""

    def waiting(self, look: Look) -> str:
        """What the log says of a look that was not enough. May read storage, and raises as `check`."""
        return f"{look.uri} shows {self.unmet()} yet"

    def as_json(self) -> dict[str, Any]:
        """The arguments by which the class makes it again."""
        given = {field.name: getattr(self, field.name) for field in fields(self) if field.init}  # type: ignore[arg-type]
        return {name: [*value] if isinstance(value, tuple) else value for name, value in given.items()}


def at_work_on(look: Look, instant: Instant) -> str:
    return look.reader.at_work(instant.requested_time) or "claimed by no process now"


@dataclass(frozen=True, slots=True)
class CompletedAfter:
    """Instants that completed later than an ISO 8601 date or date-time, such as `2026-01-02`, `2026-01-02
    03:04:05+00:00` or `2026-01-02T03:04:05Z`, or than an instant or completion time of the timeline, a run of digits in
    the timeline's zone. Without an offset a date is in UTC, as Airflow's own are. Raises ConfigError for anything else,
    and, when it is compared, for a moment outside of the years 1 to 9999 in that zone.
    """

    text: str

    def __post_init__(self) -> None:
        if self.text and not _is_time(self.text):
            _moment(self.text)

    @staticmethod
    def of(given: str | datetime | None) -> CompletedAfter:
        """Of a sensor's argument; where that is empty, all are later. Raises ConfigError."""
        return CompletedAfter(given.isoformat() if isinstance(given, datetime) else (given or "").strip())

    def holds(self, look: Look, instant: Instant) -> bool:
        return not self.text or look.completed_at(instant) > self._as_time(look.zone)

    def __str__(self) -> str:
        return f" completed after {self.text}" if self.text else ""

    def _as_time(self, zone: str) -> str:
        if _is_time(self.text):
            return self.text
        try:
            return format_instant(_moment(self.text).astimezone(zone_of(zone)))
        except (OverflowError, ValueError) as error:
            said = f"{self.text!r} is outside of the years 1 to 9999 in the timeline's zone"
            raise ConfigError(said, remedy="give a time between them") from error


def bound_of(given: str | datetime | None) -> str | None:
    """The text of a bound, as a condition takes it. Raises ConfigError."""
    return CompletedAfter.of(given).text or None


def _is_time(text: str) -> bool:
    return text.isascii() and text.isdecimal()


def _moment(text: str) -> datetime:
    # Python 3.10 knows no Z.
    iso = f"{text[:-1]}+00:00" if text.endswith(("Z", "z")) else text
    try:
        moment = datetime.fromisoformat(iso)
    except ValueError as error:
        raise ConfigError(
            f"{text!r} is neither a date nor an instant time",
            remedy="such as 2026-01-02, 2026-01-02 03:04:05+00:00 or 20260102030405678; omit it to mean any time",
        ) from error
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)


def seconds_in(given: float | str | timedelta) -> int:
    """Rounded up, of a number, a timedelta, or a text such as `90s`, `30m`, `6h` or `2d`. Raises ConfigError."""
    try:
        if isinstance(given, str):
            return int(given) if given.strip().isdecimal() else seconds_of(given)
        if isinstance(given, bool):
            raise ValueError("is no number")
        seconds = given.total_seconds() if isinstance(given, timedelta) else given
        if seconds < 0:
            raise ValueError("is below 0")
        return math.ceil(seconds)
    except (ValueError, OverflowError) as error:
        raise ConfigError(f"{given!r} {error}", remedy="give seconds, or such a text") from error
