"""Which instants of a timeline are a service's to run: pure rules that operators, sensors and triggers share."""

from __future__ import annotations

from collections.abc import Iterator

from hudi_core.timeline.instant import Action, Instant
from hudi_core.timeline.timeline import Timeline


def of_action(timeline: Timeline, action: str) -> Iterator[Instant]:
    """The instants of `action` in any state, oldest first; `compaction` also finds the completed commit that it became.

    Pending rollbacks of a pending restore are omitted: only the restore can finish and remove them.
    """
    restore = timeline.pending().of_actions(Action.RESTORE).first()
    for instant in timeline:
        of_restore = (
            restore is not None and not instant.is_completed and instant.requested_time > restore.requested_time
        )
        if action in (instant.action, instant.pending_action) and not (of_restore and action == Action.ROLLBACK):
            yield instant


def oldest_pending(timeline: Timeline, action: str) -> Instant | None:
    """The instant that a run without a name takes."""
    return next((instant for instant in of_action(timeline, action) if not instant.is_completed), None)


def first_after(timeline: Timeline, action: str, time: str) -> Instant | None:
    """The oldest instant of `action` that was requested later than `time`."""
    return next((instant for instant in of_action(timeline, action) if instant.requested_time > time), None)


def newest_time(timeline: Timeline, before: str | None = None) -> str:
    """The newest of all requested and completion times, or of those earlier than `before`; "0" when there is none.

    Whatever is planned from now on is later than the newest.
    """
    times = (time for instant in timeline for time in (instant.requested_time, instant.completion_time or ""))
    return max((time for time in times if time and (before is None or time < before)), default="0")
