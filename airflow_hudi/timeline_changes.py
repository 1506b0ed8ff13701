"""What is new on a timeline since it was looked at last: pure rules of the triggers that make asset events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from airflow_hudi.conditions.writes import may_be_write
from hudi_core.errors import ConfigError
from hudi_core.timeline.instant import COMMIT_ACTIONS, Instant
from hudi_core.timeline.timeline import Timeline

PENDING: Final = "pending"
COMPLETED: Final = "completed"

REPEAT_SECONDS: Final = 900.0

Mark = dict[str, Any]
"""Where a watcher is, as JSON: of pending instants those that it reported, and when, in seconds since the epoch; of
completed ones (`at`) all that are on the timeline, with the newest write there (`newest`). Completion times are not
compared: a writer's clock may be behind, and local time goes back an hour when summer time ends.
"""


@dataclass(frozen=True, slots=True)
class Watch:
    """Which instants are looked for: those that are `pending`, as long as they are, or that are `completed` since. By
    the names of `actions` on pending or completed files; without any, every table service that is pending, and every
    completed write as HudiCommitSensor counts them: compactions and clusterings are none. What is still pending
    `repeat_seconds` after it was reported is reported once more: the run that took it may have failed for good. Raises
    ConfigError for another state.
    """

    state: str
    actions: tuple[str, ...] = ()
    repeat_seconds: float = REPEAT_SECONDS

    def __post_init__(self) -> None:
        if self.state not in (PENDING, COMPLETED):
            raise ConfigError(f"unknown state {self.state!r} to watch", remedy=f"{PENDING} or {COMPLETED}")

    def holds(self, instant: Instant) -> bool:
        """Whether an instant is one of them."""
        if instant.is_completed != (self.state == COMPLETED):
            return False
        if self.actions:
            return bool({instant.action, instant.pending_action} & {*self.actions})
        return may_be_write(instant) if instant.is_completed else instant.action not in COMMIT_ACTIONS

    def start(self, timeline: Timeline) -> Mark:
        """Where a watcher begins that has no mark: with what is pending, and behind what is completed."""
        if self.state == PENDING:
            return {"reported": {}}
        return _behind(timeline, [item for item in timeline if self.holds(item)])

    def changes(self, timeline: Timeline, mark: Mark, now: float) -> tuple[list[Instant], Mark]:
        """The instants since a mark, oldest first, and the mark behind them; `now` in seconds since the epoch. A mark
        of another form is one of no instant: everything is reported once more.
        """
        found = [item for item in timeline if self.holds(item)]
        if self.state == PENDING:
            given = mark.get("reported")
            reported = given if isinstance(given, dict) else {}
            times = {item.requested_time: reported.get(item.requested_time, 0.0) for item in found}
            new = [item for item in found if now - times[item.requested_time] >= self.repeat_seconds]
            return new, {"reported": times | {item.requested_time: now for item in new}}
        at = {str(time) for time in mark.get("at") or ()}
        new = [item for item in found if item.requested_time not in at]
        return sorted(new, key=lambda item: (item.completed_at, item.requested_time)), _behind(timeline, found)

    def gap(self, timeline: Timeline, mark: Mark) -> tuple[str, str] | None:
        """The requested times between which writes may have been archived that no look has seen: the newest write of
        the mark, and the first one that is still on the timeline where all of the mark are archived. Else None.
        """
        newest, first = str(mark.get("newest") or ""), min(timeline.commits().requested_times, default="")
        return (newest, first) if self.state == COMPLETED and "" < newest < first else None


def _behind(timeline: Timeline, found: Sequence[Instant]) -> Mark:
    newest = max(timeline.commits().requested_times, default="")
    return {"newest": newest, "at": [item.requested_time for item in found]}
