"""A policy, as values: when services of a table are due, in which order they run, and within which bounds.
config/policy_file.py reads policies from YAML; services/policy.py decides by them. Needs only the standard library.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from datetime import date, datetime, time, timedelta, timezone
from typing import Final
from zoneinfo import ZoneInfo

from hudi_core.frozen import dataclass
from hudi_core.request.services import SERVICES, Conditions
from hudi_core.request.texts import region

MAX_MINUTES: Final = 10**6
"""The longest time of a run, in minutes."""
PLAN_MAX_BYTES: Final = "airflow_hudi.plan.max.bytes"
"""The option that cuts a plan."""
DEFAULT_SERVICES: Final = ("rollback", "compaction", "clean", "archive")
"""The order counts: a failed write holds up archival, and archived instants can no longer be rolled back."""
_DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAY: Final = f"(?:{'|'.join(_DAYS)})"
_WEEK: Final = 7 * 86_400
_ZONE: Final = "[A-Z][A-Za-z0-9_+/-]*"
_HOURS: Final = re.compile(rf"(\d\d):(\d\d)-(\d\d):(\d\d)(?: ({_ZONE}))?(?: ({_DAY}(?:,{_DAY})*))?")


@dataclass(frozen=True, slots=True)
class QuietHours:
    """Hours of the day in which nothing is started, in a zone, on some days of the week. On these days they begin."""

    text: str
    begin: time
    end: time
    zone: str = "UTC"
    days: frozenset[int] = frozenset(range(7))

    @staticmethod
    def parse(text: str) -> QuietHours:
        """Reads `08:00-18:00`, or with a zone and days `22:00-06:00 Europe/Berlin sat,sun`. Hours that end where they
        begin are 24 hours. Raises ValueError, also where these leave no hour of the week.
        """
        found = _HOURS.fullmatch(text.strip())
        try:
            if found is None or region(found[5] or "UTC") is None:
                raise ValueError
            begin, end = time(int(found[1]), int(found[2])), time(int(found[3]), int(found[4]))
        except ValueError:
            raise ValueError("are no hours such as `08:00-18:00 Europe/Berlin mon,tue`") from None
        if begin == end != time() and not found[6]:
            raise ValueError("end where they begin: name the days, or write `00:00-00:00` for all hours")
        days = frozenset(map(_DAYS.index, found[6].split(","))) if found[6] else frozenset(range(7))
        return QuietHours(text.strip(), begin, end, found[5] or "UTC", days)

    def holds(self, now: datetime) -> bool:
        """Whether `now`, which has a zone, is in these hours. Hours that end before they begin go on the next day."""
        local = now.astimezone(ZoneInfo(self.zone))
        at, day = local.time(), local.weekday()
        if self.begin < self.end:
            return day in self.days and self.begin <= at < self.end
        before = (local - timedelta(days=1)).weekday()
        return (day in self.days and at >= self.begin) or (before in self.days and at < self.end)

    def next_begin(self, now: datetime) -> datetime:
        """Returns when the hours begin next after `now`, which has a zone, or begin again as clocks go back."""
        today = now.astimezone(ZoneInfo(self.zone)).date()
        days = (today + timedelta(days=number) for number in range(9))
        begins = (begin for day in days for begin in sorted([*self._begins_on(day), *self._resumed_on(day)]))
        return next(begin for begin in begins if begin > now)

    def _begins_on(self, day: date) -> list[datetime]:
        """Returns in UTC when the hours begin on a day: twice where clocks go back over that time. Where clocks go
        forward over it, returns the moment when they do: the next time of day that there is, is one of the hours.
        """
        if day.weekday() not in self.days:
            return []
        zone = ZoneInfo(self.zone)
        first, second = (datetime.combine(day, self.begin.replace(fold=fold), zone) for fold in (0, 1))
        begin, again = first.astimezone(timezone.utc), second.astimezone(timezone.utc)
        if again < begin:  # in the gap; fold 0 has the offset before it (PEP 495)
            return [_change_after(again, zone)]
        return [begin, again]

    def _resumed_on(self, day: date) -> list[datetime]:
        """Returns in UTC the moment when clocks go back into the hours, which had ended before."""
        zone = ZoneInfo(self.zone)
        midnight, next_one = (
            datetime.combine(at, time(), zone).astimezone(timezone.utc) for at in (day, day + timedelta(days=1))
        )
        if next_one - midnight <= timedelta(days=1):
            return []
        change = _change_after(midnight, zone)
        return [change] if self.holds(change) and not self.holds(change - timedelta(minutes=1)) else []


def _change_after(moment: datetime, zone: ZoneInfo) -> datetime:
    change, offset = moment, moment.astimezone(zone).utcoffset()
    while change.astimezone(zone).utcoffset() == offset:
        change += timedelta(minutes=1)
    return change


@dataclass(frozen=True, slots=True)
class ServicePolicy:
    """One service: its conditions as texts, and its options by Hudi's names."""

    service: str
    when: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        Conditions.of(self.service, self.when)


@dataclass(frozen=True, slots=True)
class Policy:
    """The policy of a table: its services in their order, with `options` of all of them. A service starts nothing after
    `minutes`, and reads at most `size` bytes at a time. Nothing is started in `quiet_hours`. An instant that is pending
    for longer than `pending_age` seconds outside of these hours is to be reported. `pool` is Airflow's.
    """

    services: tuple[ServicePolicy, ...] = tuple(map(ServicePolicy, DEFAULT_SERVICES))
    options: Mapping[str, str] = field(default_factory=dict)
    minutes: int | None = None
    size: int | None = None
    quiet_hours: tuple[QuietHours, ...] = ()
    pending_age: int | None = None
    pool: str | None = None

    def quiet(self, now: datetime) -> str | None:
        return next((hours.text for hours in self.quiet_hours if hours.holds(now)), None)

    def quiet_from(self, now: datetime) -> int | None:
        """Returns when the next quiet hours begin, in seconds since the epoch; None without any."""
        return min((int(hours.next_begin(now).timestamp()) for hours in self.quiet_hours), default=None)

    def is_overdue(self, age: int, now: datetime) -> bool:
        """Whether an instant that is pending for `age` seconds at `now` is to be reported. The seconds in quiet hours,
        in which it may not run, do not count. Counts minutes, for an older instant by the hours of last week.
        """
        if self.pending_age is None or age <= self.pending_age:
            return False
        if not self.quiet_hours:
            return True

        def outside(seconds: int) -> int:
            moments = (now - timedelta(seconds=at) for at in range(0, seconds, 60))
            return 60 * sum(self.quiet(moment) is None for moment in moments)

        weeks, rest = divmod(age, _WEEK)
        return outside(rest) + (weeks * outside(_WEEK) if weeks else 0) > self.pending_age

    def options_of(self, service: ServicePolicy, given: Mapping[str, str]) -> dict[str, str]:
        """Returns the options of a service. Those `given` come first, then its own, then those of all."""
        size = {} if self.size is None else {PLAN_MAX_BYTES: str(self.size)}
        return {**size, **self.options, **service.options, **given}


def services_named(names: Iterable[str]) -> Policy:
    """Returns the policy of services that decide by themselves. Raises UnsupportedError for an unknown one."""
    return Policy(tuple(map(ServicePolicy, names)))


ALL_SERVICES: Final = services_named((*DEFAULT_SERVICES, *sorted(SERVICES.keys() - {*DEFAULT_SERVICES})))
"""Every service, by its own triggers."""
