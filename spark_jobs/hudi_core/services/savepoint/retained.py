"""From which commit on the files are all there, by what cleans say of themselves (SavepointActionExecutor.getLastCommitRetained)."""

from __future__ import annotations

from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import WRITE_ACTIONS, Action, State
from hudi_core.timeline.plan_fields import text
from hudi_core.timeline.pretty_json import member
from hudi_core.timeline.query import Timeline


def last_commit_retained(active: ActiveTimeline, timeline: Timeline) -> str | None:
    """The oldest commit that no clean, completed or pending, has taken files from; None where none has run and there is no commit.

    A clean by file versions names no commit: then it is the last write before it (Hudi 1.2; 0.15 fails there).
    """
    cleans = timeline.of_actions(Action.CLEAN)
    latest = cleans.last()
    if latest is None:
        first = timeline.commits().first()
        return None if first is None else first.requested_time
    if latest.is_completed:
        earliest = text(active.read_of(latest), "earliestCommitToRetain", path=active.path_of(latest))
    else:
        path = active.path(latest.requested_time, Action.CLEAN, State.REQUESTED)
        plan = active.read_any(latest.requested_time, Action.CLEAN, State.REQUESTED)
        earliest = text(member(plan, "earliestInstantToRetain", dict, path=path, default={}), "timestamp", path=path)
    if earliest:
        return earliest
    before = timeline.completed().filter(lambda instant: instant.action in WRITE_ACTIONS).up_to(latest.requested_time).last()
    return latest.requested_time if before is None else before.requested_time
