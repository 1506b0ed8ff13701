"""What a sensor waits for, itself or by its trigger: one rule for both, whose fields are the sensor's arguments. What
asset events are about: triggers/timeline_events.py.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import fields
from datetime import datetime, timedelta, timezone
from typing import Any, ClassVar

from airflow_hudi.timeline_reader import Look
from hudi_core.errors import ConfigError
from hudi_core.request.texts import seconds_of
from hudi_core.timeline.instant import Instant
from hudi_core.timeline.instant_time import format_instant, zone_of


class Condition(ABC):
    """What one wait is for: a dataclass, which takes its arguments as they are rendered and raises ConfigError for what
    means nothing. It may remember what it read, so no two waits share one. It depends on the timeline only: while looks
    show the same one, a condition that did not hold does not hold.
    """

    kind: ClassVar[str]
    action: str
    """The one that the timeline is read for (TimelineReader); `""` for any."""

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

    def to_json(self) -> dict[str, Any]:
        """`kind` and the arguments by which the class makes it again."""
        document: dict[str, Any] = {"kind": self.kind}
        for field in fields(self):  # type: ignore[arg-type]
            if field.init:
                value = getattr(self, field.name)
                document[field.name] = [*value] if isinstance(value, tuple) else value
        return document


def at_work_on(look: Look, instant: Instant) -> str:
    return look.reader.at_work(instant.requested_time) or "claimed by no process now"


def bound_of(given: str | datetime | None) -> str | None:
    """The bound of instants that completed later than an ISO 8601 date or date-time, such as `2026-01-02`, `2026-01-02
    03:04:05+00:00` or `2026-01-02T03:04:05Z`, or than an instant or completion time of the timeline, a run of digits in
    the timeline's zone; None of an empty one. Without an offset a date is in UTC, as Airflow's own are. Raises
    ConfigError for anything else.
    """
    text = given.isoformat() if isinstance(given, datetime) else (given or "").strip()
    if text and not _is_time(text):
        _moment(text)
    return text or None


def is_later(look: Look, instant: Instant, bound: str | None) -> bool:
    """Raises ConfigError for a bound outside of the years 1 to 9999 in the timeline's zone."""
    if bound is None:
        return True
    if not _is_time(bound):
        try:
            bound = format_instant(_moment(bound).astimezone(zone_of(look.zone)))
        except (OverflowError, ValueError) as error:
            said = f"{bound!r} is outside of the years 1 to 9999 in the timeline's zone"
            raise ConfigError(said, remedy="give a time between them") from error
    return look.completed_at(instant) > bound


def later_shown(bound: str | None) -> str:
    return f" completed after {bound}" if bound else ""


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
