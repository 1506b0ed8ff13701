"""When a compaction is due (ScheduleCompactionActionExecutor.needCompact). Pure."""

from __future__ import annotations

from hudi_core.config.services.compaction_config import (
    COMPACTION_DELTA_COMMITS,
    COMPACTION_DELTA_SECONDS,
    COMPACTION_TRIGGER,
    CompactionConfig,
    Trigger,
)
from hudi_core.errors import TimelineError
from hudi_core.services.service import NO_OPTION
from hudi_core.timeline.instant import Action, Instant
from hudi_core.timeline.instant_time import parse_instant
from hudi_core.timeline.timeline import Timeline


def why_not_due(
    timeline: Timeline, instant: str, config: CompactionConfig, *, by_completion: bool, zone: str = "UTC"
) -> str | None:
    """Why a compaction at `instant` is not due, and which option would change that; None when it is due.

    With `by_completion`, as in layout 2, those delta commits count that completed after the last compaction was
    requested (CompactionUtils.getCompletedDeltaCommitsSinceLatestCompaction of 1.x); else those that were requested
    after it, also pending ones (getDeltaCommitsSinceLatestCompaction of 0.15). NUM_COMMITS_AFTER_LAST_REQUEST counts as
    the latter in every release, from the newest pending compaction or, without one, the last completed
    (getDeltaCommitsSinceLatestCompactionRequest). Without a compaction time counts from the first delta commit,
    whatever its state. `zone` is the timeline's.
    """
    deltas = timeline.of_actions(Action.DELTA_COMMIT)
    of_requests = config.trigger is Trigger.NUM_COMMITS_AFTER_LAST_REQUEST
    last = timeline.completed().of_actions(Action.COMMIT).last()
    if of_requests:
        last = timeline.pending_compactions().last() or last
    since = last or deltas.first()
    if since is None:
        return f"the table has no delta commit{NO_OPTION}"
    completes = by_completion and not of_requests
    if completes:
        deltas = deltas.completed()
    if last is not None:
        deltas = deltas.filter(lambda item: is_after(item, last, by_completion=completes))
    what = "plan" if of_requests else "compaction"
    after = f"the last {what} ({last.requested_time})" if last else f"the first one ({since.requested_time})"
    seconds = _seconds_between(since.requested_time, instant, zone)
    by_number = len(deltas) >= config.delta_commits
    by_time = seconds is None or seconds >= config.delta_seconds
    number = f"{len(deltas)} delta commits since {after}, but {COMPACTION_DELTA_COMMITS.name} is {config.delta_commits}"
    time = f"{seconds} s since {after}, but {COMPACTION_DELTA_SECONDS.name} is {config.delta_seconds}"
    match config.trigger:
        case Trigger.TIME_ELAPSED:
            lacks = [] if by_time else [time]
        case Trigger.NUM_OR_TIME:
            lacks = [] if by_number or by_time else [number, time]
        case Trigger.NUM_AND_TIME:
            lacks = [*([] if by_number else [number]), *([] if by_time else [time])]
        case _:
            lacks = [] if by_number else [number]
    return f"{'; '.join(lacks)} ({COMPACTION_TRIGGER.name}={config.trigger.value})" if lacks else None


def _seconds_between(since: str, instant: str, zone: str) -> int | None:
    """None where `since` is no date, as that of a bootstrap: it is older than any time that a trigger waits for."""
    try:
        began = parse_instant(since, zone)
    except TimelineError:
        return None
    return int(parse_instant(instant, zone).timestamp()) - int(began.timestamp())


def last_request(timeline: Timeline) -> Instant | None:
    """The latest compaction that was planned, in whatever state."""
    return timeline.filter(
        lambda item: item.pending_action == Action.COMPACTION or (item.is_completed and item.action == Action.COMMIT)
    ).last()


def is_after(delta: Instant, last: Instant, *, by_completion: bool) -> bool:
    """Whether a commit came after `last`; with `by_completion`, a completed one by when it completed."""
    if by_completion:
        return delta.completed_at > last.requested_time
    return delta.requested_time > last.requested_time
