"""What a sensor or a trigger waits for, as one pure rule over a timeline that both call."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_hudi.service_instants import of_action
from hudi_core.errors import ConfigError
from hudi_core.timeline.instant import Instant, State
from hudi_core.timeline.timeline import Timeline

PENDING = "pending"
"""Requested or inflight: an instant of a dead attempt counts as much as one that was never started."""

_STATES = {
    "requested": frozenset({State.REQUESTED}),
    "inflight": frozenset({State.INFLIGHT}),
    "completed": frozenset({State.COMPLETED}),
    PENDING: frozenset({State.REQUESTED, State.INFLIGHT}),
}


@dataclass(frozen=True, slots=True)
class InstantCondition:
    """The timeline holds an instant of `action` in `state`: the one at `instant`, or any later than `after`, if given.

    `action` is the name on the pending files (`compaction`) or on the completed one (`commit`, which a completed
    compaction is, too). Pending rollbacks of a pending restore do not count. `state` is requested, inflight, completed
    or pending. Times are compared as text, as Hudi does. Raises ConfigError for anything else.
    """

    action: str
    state: str = PENDING
    instant: str | None = None
    after: str | None = None

    def __post_init__(self) -> None:
        if self.state not in _STATES:
            raise ConfigError(f"unknown instant state {self.state!r}", remedy=f"one of {', '.join(_STATES)}")
        if not self.action:
            raise ConfigError("no action to wait for", remedy="compaction, for instance")
        for name, time in (("instant", self.instant), ("after", self.after)):
            if time is not None and not (time.isascii() and time.isdecimal()):
                raise ConfigError(
                    f"{name}={time!r} is no instant time",
                    remedy="an instant consists of digits; omit it to mean any",
                )

    def find(self, timeline: Timeline) -> Instant | None:
        """The oldest instant that the condition holds for, or None."""
        return next((instant for instant in of_action(timeline, self.action) if self._holds(instant)), None)

    def _holds(self, instant: Instant) -> bool:
        return (
            instant.state in _STATES[self.state]
            and (self.instant is None or instant.requested_time == self.instant)
            and (self.after is None or instant.requested_time > self.after)
        )
