"""A bound on completion times, as a sensor is given it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone

from airflow_hudi.timeline_reader import Look
from hudi_core.errors import ConfigError
from hudi_core.timeline.instant import Instant
from hudi_core.timeline.instant_time import format_instant, zone_of


@dataclass(frozen=True, slots=True)
class CompletedAfter:
    """Instants that completed later than a moment.

    `text` is an ISO 8601 date or date-time such as `2026-01-02`, `2026-01-02 03:04:05+00:00` or `2026-01-02T03:04:05Z`,
    or an instant or completion time of the timeline: a run of digits. Without an offset a date is in UTC, as Airflow's
    own are; digits are in the timeline's zone. Raises ConfigError for anything else, and, when it is compared, for a
    moment outside of the years 1 to 9999 in that zone.
    """

    text: str

    def __post_init__(self) -> None:
        if not _is_time(self.text):
            _moment(self.text)

    @staticmethod
    def of(given: str | datetime | None) -> CompletedAfter | None:
        """Of a sensor's argument; None where it is empty. Raises ConfigError."""
        text = given.isoformat() if isinstance(given, datetime) else (given or "").strip()
        return CompletedAfter(text) if text else None

    def holds(self, look: Look, instant: Instant) -> bool:
        """Whether a completed instant is later."""
        return look.completed_at(instant) > self._as_time(look.zone)

    def __str__(self) -> str:
        return f"completed after {self.text}"

    def _as_time(self, zone: str) -> str:
        if _is_time(self.text):
            return self.text
        try:
            return format_instant(_moment(self.text).astimezone(zone_of(zone)))
        except (OverflowError, ValueError) as error:
            raise ConfigError(
                f"{self.text!r} is outside of the years 1 to 9999 in the timeline's zone",
                remedy="give a time between them",
            ) from error


def is_after(bound: CompletedAfter | None, look: Look, instant: Instant) -> bool:
    """Whether a completed instant is later than the bound, if there is one."""
    return bound is None or bound.holds(look, instant)


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
