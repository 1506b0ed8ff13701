"""When a clean is due, up to which commit it may delete, and where it has to look. Pure (CleanPlanner, CleanerUtils of
Hudi).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from hudi_core.config.services.clean_config import (
    CLEAN_MULTIPLE,
    CLEAN_TRIGGER_COMMITS,
    KEEP_LATEST_BY_HOURS,
    KEEP_LATEST_COMMITS,
    KEEP_LATEST_FILE_VERSIONS,
    CleanConfig,
)
from hudi_core.services.service import Nothing
from hudi_core.timeline.actions.clean import LastClean
from hudi_core.timeline.actions.commit import CommitMetadata
from hudi_core.timeline.instant import COMMIT_ACTIONS, Action, Instant
from hudi_core.timeline.instant_time import format_instant, zone_of
from hudi_core.timeline.timeline import Timeline

_RETAINING = COMMIT_ACTIONS | {Action.COMPACTION, Action.CLUSTERING}
"""The pending actions that hold the earliest commit to retain back (getCommitsAndCompactionTimeline)."""


@dataclass(frozen=True, slots=True)
class RetentionInputs:
    """What decides a clean before any file is looked at.

    `timeline` is the whole active timeline, `now` an aware moment, `zone` the timeline's (instant_time.zone_of).
    `last_clean` is the last completed clean whose metadata is not empty. `savepoints` are the requested times of
    completed savepoints.
    """

    timeline: Timeline
    now: datetime
    zone: str = "UTC"
    last_clean: LastClean | None = None
    savepoints: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a clean looks. `commits` are those whose partitions changed since the last clean; None: in every
    partition.
    """

    earliest: Instant | None
    commits: tuple[Instant, ...] | None = None


def retention(inputs: RetentionInputs, config: CleanConfig) -> Scope | Nothing:
    """Whether a clean is due and where it looks."""
    pending = inputs.timeline.pending().of_actions(Action.CLEAN)
    if pending.instants and not config.multiple:
        first = pending.instants[0].requested_time
        return Nothing(f"clean {first} is pending: run it first, or set {CLEAN_MULTIPLE.name}=true")
    since = commits_since(inputs)
    if since < config.trigger_commits:
        return Nothing(
            f"{since} commits since the last clean, but {CLEAN_TRIGGER_COMMITS.name} is {config.trigger_commits}"
        )
    if config.policy == KEEP_LATEST_FILE_VERSIONS:
        return Scope(None)
    earliest = earliest_to_retain(inputs, config)
    if earliest is None:
        return Nothing(_all_retained(inputs, config))
    return Scope(earliest, _changed(inputs, config, earliest))


def commits_since(inputs: RetentionInputs) -> int:
    """The completed commits since the last clean (CleanPlanActionExecutor.getCommitsSinceLastCleaning)."""
    commits = inputs.timeline.commits()
    return len(commits if inputs.last_clean is None else commits.after(inputs.last_clean.last_completed))


def earliest_to_retain(inputs: RetentionInputs, config: CleanConfig) -> Instant | None:
    """The earliest commit whose files are kept (CleanerUtils.getEarliestCommitToRetain); None when all of them are."""
    commits = inputs.timeline.commits()
    found = _by_commits(inputs.timeline, config.commits_retained) if config.policy == KEEP_LATEST_COMMITS else None
    if config.policy == KEEP_LATEST_BY_HOURS:
        since = format_instant((inputs.now - timedelta(hours=config.hours_retained)).astimezone(zone_of(inputs.zone)))
        found = next((instant for instant in commits if instant.requested_time >= since), None)
    previous = "" if inputs.last_clean is None else inputs.last_clean.earliest
    if found is None or config.max_commits is None or not previous:
        return found
    passed = [instant for instant in commits.before(found.requested_time) if instant.requested_time >= previous]
    return passed[config.max_commits] if len(passed) > config.max_commits else found


def _by_commits(timeline: Timeline, retained: int) -> Instant | None:
    """The oldest of the commits to keep, but not later than the last one completed before the earliest pending one."""
    commits = timeline.commits()
    if len(commits) <= retained:
        return None
    nth = commits.instants[len(commits) - retained]
    pending = timeline.pending().of_actions(*_RETAINING).first()
    if pending is None or nth.sort_key <= pending.sort_key:
        return nth
    return commits.before(pending.requested_time).last()


def _changed(inputs: RetentionInputs, config: CleanConfig, earliest: Instant) -> tuple[Instant, ...] | None:
    """The commits since the last clean's earliest; None where files to delete may be in any partition: there was no
    clean, its earliest commit is not on the timeline, or a savepoint of that time is deleted.
    """
    last = inputs.last_clean
    if not config.incremental or last is None or not last.earliest or last.savepoints - inputs.savepoints:
        return None
    commits = inputs.timeline.commits()
    if not commits.contains(last.earliest):
        return None
    # A commit that completed after the last clean was planned is looked at, however old its instant: by hours, pending
    # ones hold nothing back.
    return tuple(
        instant
        for instant in commits.before(earliest.requested_time)
        if instant.requested_time >= last.earliest or instant.completed_at > last.requested_time
    )


def partitions_of(metadata: CommitMetadata) -> set[str]:
    """The partitions that a commit changed: written or with replaced file groups. Unchecked names."""
    return {*metadata.partition_to_write_stats, *(metadata.replaced_file_ids or {})}


def _all_retained(inputs: RetentionInputs, config: CleanConfig) -> str:
    commits = len(inputs.timeline.commits())
    if config.policy == KEEP_LATEST_BY_HOURS:
        return (
            f"no commit of the last {config.hours_retained} hours: by hours, a clean keeps all until there is one "
            f"({config.retention.name})"
        )
    if commits <= config.commits_retained:
        return f"the timeline has {commits} commits and {config.retention.name} keeps {config.commits_retained}"
    pending = inputs.timeline.pending().of_actions(*_RETAINING).first()
    held = (
        ""
        if pending is None
        else f"{pending.action} {pending.requested_time} is pending, and a clean deletes nothing that is newer"
    )
    return f"{held}; complete it or roll it back ({config.retention.name} is {config.commits_retained})"
