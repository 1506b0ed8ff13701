"""What a sensor waits for, itself or by its trigger: one rule for both, which travels to the triggerer as JSON.

Here: that nothing is pending for too long. The others are in instant.py, writes.py and partitions.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any, Final, Protocol

from airflow_hudi.conditions.instant import InstantCondition, of_action
from airflow_hudi.conditions.partitions import PartitionCondition
from airflow_hudi.conditions.writes import CommitCondition
from airflow_hudi.results import pending_named
from airflow_hudi.timeline_reader import Look
from hudi_core.errors import ConfigError
from hudi_core.request.texts import seconds_of
from hudi_core.timeline.instant import Instant
from hudi_core.timeline.timeline import age_of, age_shown


class Condition(Protocol):
    """What one wait is for. It may remember what it read, so no two waits share one.

    It depends on the timeline only: while looks show the same timeline, a condition that did not hold does not hold.
    """

    @property
    def action(self) -> str:
        """The action that the timeline is read for (timeline_reader.TimelineReader); `""` for any."""
        ...

    def check(self, look: Look) -> dict[str, Any] | None:
        """What was found, as JSON, when the condition holds; else None. May read files that the look names.

        Raises StorageError, FormatError, TimelineError.
        """
        ...

    def unmet(self) -> str:
        """What a table shows as long as the condition does not hold, for messages."""
        ...

    def waiting(self, look: Look) -> str:
        """What the log says of a look that was not enough. May read storage, and raises as `check`."""
        ...

    def as_json(self) -> dict[str, Any]:
        """The arguments by which the class makes it again."""
        ...


@dataclass(frozen=True, slots=True)
class NoPendingCondition:
    """No instant, or none of `action`, is pending for longer than `pending_age` seconds; with 0 none is pending.

    The age is the time since the instant was requested. As for InstantCondition, pending rollbacks of a pending restore
    are no rollbacks to wait for. Raises ConfigError for a negative age.
    """

    pending_age: int = 0
    action: str = ""

    def __post_init__(self) -> None:
        if self.pending_age < 0:
            raise ConfigError(f"pending_age is {self.pending_age} s", remedy="say how old a pending instant may be")

    def check(self, look: Look) -> dict[str, Any] | None:
        """`{"pending", "oldest": {"instant", "action", "state", "age_seconds"}}`; see Condition: how many instants are
        pending, none of them for too long, and the oldest of them or None.
        """
        pending = self._pending(look)
        if not pending:
            return {"pending": 0, "oldest": None}
        oldest = pending[0]
        age = age_of(oldest, look.at, look.zone)
        if not self.pending_age or age > self.pending_age:
            return None
        return {"pending": len(pending), "oldest": pending_named(oldest, age)}

    def unmet(self) -> str:
        too_long = f" for longer than {self.pending_age} s" if self.pending_age else ""
        return f"a pending {self.action or 'instant'}{too_long}"

    def waiting(self, look: Look) -> str:
        """See Condition: also who is at work on the oldest."""
        oldest = self._pending(look)[0]
        at_work = look.reader.at_work(oldest.requested_time) or "claimed by no process now"
        age = age_of(oldest, look.at, look.zone)
        return f"{look.uri} shows {self.unmet()}: {age_shown(oldest, age)}, {at_work}"

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def _pending(self, look: Look) -> list[Instant]:
        found = of_action(look.timeline, self.action) if self.action else look.timeline
        return [item for item in found if not item.is_completed]


def seconds_in(given: float | str | timedelta) -> int:
    """Of an age: seconds as a number or text, a timedelta, or a text such as `90s`, `30m`, `6h` or `2d`; a part of a
    second is a whole one. Raises ConfigError, also for one below 0.
    """
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


_KINDS: Final[Mapping[str, type[InstantCondition | NoPendingCondition | CommitCondition | PartitionCondition]]] = {
    "instant": InstantCondition,
    "no_pending": NoPendingCondition,
    "commit": CommitCondition,
    "partition": PartitionCondition,
}


def condition_json(condition: Condition) -> dict[str, Any]:
    """A condition's `kind` and arguments, as JSON. Raises ConfigError for one of another class."""
    for kind, known in _KINDS.items():
        if isinstance(condition, known):
            return {"kind": kind, **condition.as_json()}
    raise ConfigError(f"{type(condition).__name__} is no known condition")


def condition_of(found: Mapping[str, Any]) -> Condition:
    """The condition of its JSON. Raises ConfigError."""
    arguments = dict(found)
    kind = arguments.pop("kind", None)
    if kind not in _KINDS:
        raise ConfigError(f"unknown condition {kind!r}", remedy=f"one of {', '.join(_KINDS)}")
    try:
        return _KINDS[kind](**arguments)
    except TypeError as error:
        raise ConfigError(
            f"a condition {kind} has other arguments: {error}",
            remedy="let the sensor make the trigger; where the provider was updated, clear the task",
        ) from error
