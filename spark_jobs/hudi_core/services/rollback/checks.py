"""Whether an instant may be rolled back: Hudi's rules (BaseRollbackActionExecutor), and further ones that prevent the
loss of rows.

Pure: inputs in, error out. Hudi checks the order of commits only where the failed-writes policy is EAGER. A completed
commit is checked under every policy: later commits were written on top of its rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hudi_core.errors import TimelineError, UnsupportedError
from hudi_core.timeline.instant import COMMIT_ACTIONS, Action, Instant
from hudi_core.timeline.timeline import Timeline

_SERVICES: Final = (Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING)


@dataclass(frozen=True, slots=True)
class RollbackInputs:
    """What the rules go by, besides the timeline and the instant.

    `clusterings`: the pending replacecommits of layout 1 that are clusterings. `heartbeat`: whether the instant has a
    heartbeat file, which a writer with the LAZY policy left. `cleaned`: cleans that removed, or are going to remove,
    what the file groups that the instant wrote or replaced held before.
    """

    eager: bool
    clusterings: frozenset[str] = frozenset()
    heartbeat: bool = False
    cleaned: tuple[str, ...] = ()


def check_may_roll_back(timeline: Timeline, target: Instant, inputs: RollbackInputs) -> None:
    """Raises TimelineError, saying what to do first, or UnsupportedError for an instant that another layout wrote."""
    if timeline.of_actions(Action.SAVEPOINT).completed().contains(target.requested_time):
        raise _refused(
            target,
            "is savepointed",
            f"delete the savepoint first: `hudictl savepoint delete TABLE --instant {target.requested_time}`",
        )
    if target.is_legacy:
        raise UnsupportedError(
            f"{target.action} {target.requested_time} was written before the table's upgrade; its log blocks follow "
            "other rules",
            remedy="no engine rolls it back: write the rows again",
        )
    if target.is_completed:
        _check_completed(timeline, target, inputs)
    elif inputs.eager and not _is_service(target, inputs):
        _check_order(timeline, target, inputs)


def _check_completed(timeline: Timeline, target: Instant, inputs: RollbackInputs) -> None:
    later = [instant for instant in timeline.commits() if _is_later(instant, target)]
    if later:
        raise _refused(
            target,
            f"is followed by {later[-1].action} {later[-1].requested_time}",
            "roll the later ones back first, or restore the table",
        )
    _check_pending(timeline, target, inputs)
    plans = [item for item in timeline.pending().after(target.requested_time) if _is_service(item, inputs)]
    if plans:
        raise _refused(
            target,
            f"is what {plans[-1].action} {plans[-1].requested_time} was planned on",
            "unschedule that plan first, or run it",
        )
    if inputs.cleaned:
        raise _refused(
            target,
            f"cannot be undone: clean {inputs.cleaned[-1]} removes what its file groups held before",
            "write the rows again; a savepoint before the next write keeps such files",
        )


def _is_later(instant: Instant, target: Instant) -> bool:
    if instant.requested_time >= target.requested_time:
        return instant.requested_time > target.requested_time
    # A compaction works on what was there when it was requested, however late it completes.
    return instant.completed_at > target.completed_at and instant.pending_action != Action.COMPACTION


def _check_order(timeline: Timeline, target: Instant, inputs: RollbackInputs) -> None:
    """validateRollbackCommitSequence."""
    later = timeline.commits().last()
    if later is not None and later.requested_time > target.requested_time and not inputs.heartbeat:
        raise _refused(
            target,
            f"is older than the completed {later.action} {later.requested_time}",
            "its writer may be alive; when no writer is, set hoodie.cleaner.policy.failed.writes=LAZY",
        )
    _check_pending(timeline, target, inputs)


def _check_pending(timeline: Timeline, target: Instant, inputs: RollbackInputs) -> None:
    others = [
        item
        for item in timeline.pending().of_actions(*COMMIT_ACTIONS)
        if item.requested_time != target.requested_time and not _is_service(item, inputs)
    ]
    if others and (target.is_completed or others[-1].requested_time > target.requested_time):
        last = others[-1]
        raise _refused(
            target,
            f"has {last.action} {last.requested_time} pending beside it",
            "roll that one back first, or wait for it",
        )


def _is_service(instant: Instant, inputs: RollbackInputs) -> bool:
    return instant.pending_action in _SERVICES or (
        not instant.is_completed and instant.requested_time in inputs.clusterings
    )


def _refused(target: Instant, why: str, remedy: str) -> TimelineError:
    return TimelineError(f"{target.action} {target.requested_time} {why}", remedy=remedy)
