"""From which commit on the files are all there, by what cleans say of themselves
(SavepointActionExecutor.getLastCommitRetained).
"""

from __future__ import annotations

from hudi_core.timeline.actions.plan_fields import text
from hudi_core.timeline.actions.pretty_json import member
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import WRITE_ACTIONS, Action, Instant, State
from hudi_core.timeline.timeline import Timeline


def last_commit_retained(active: ActiveTimeline, timeline: Timeline) -> str | None:
    """The oldest commit that no clean, completed or pending, has taken files from; None where none has run and there is
    no commit.

    A clean by file versions names no commit: then it is the last write before it (Hudi 1.2; 0.15 fails there).
    """
    cleans = timeline.of_actions(Action.CLEAN)
    if not len(cleans):
        first = timeline.commits().first()
        return None if first is None else first.requested_time
    # All of them: one by file versions may have gone further than a later one by commits.
    return max(_retained_by(active, timeline, clean) for clean in cleans)


def _retained_by(active: ActiveTimeline, timeline: Timeline, clean: Instant) -> str:
    if clean.is_completed:
        earliest = text(active.read_of(clean), "earliestCommitToRetain", path=active.path_of(clean))
    else:
        path = active.path(clean.requested_time, Action.CLEAN, State.REQUESTED)
        plan = active.read_any(clean.requested_time, Action.CLEAN, State.REQUESTED)
        earliest = text(member(plan, "earliestInstantToRetain", dict, path=path, default={}), "timestamp", path=path)
    if earliest:
        return earliest
    before = (
        timeline.completed().filter(lambda instant: instant.action in WRITE_ACTIONS).up_to(clean.requested_time).last()
    )
    return clean.requested_time if before is None else before.requested_time
