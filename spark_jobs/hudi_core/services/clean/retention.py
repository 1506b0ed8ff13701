"""Decides when a clean is due, up to which commit it may delete, where it looks, and which slices of a file group go.
Pure (CleanPlanner, CleanerUtils of Hudi). kept_files.py finds the files that savepoints and pending plans keep. job.py
drops a clean that no run would finish.

A slice is deleted as a whole: base file, log files, change-data logs. It stays when a savepoint names one of its files,
when it is the newest, when a query at the earliest retained commit may read it, and when a pending plan needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import field
from datetime import datetime, timedelta

from hudi_core.config.services.retention_config import (
    CLEAN_MULTIPLE,
    CLEAN_TRIGGER_COMMITS,
    KEEP_LATEST_BY_HOURS,
    KEEP_LATEST_COMMITS,
    KEEP_LATEST_FILE_VERSIONS,
    CleanConfig,
)
from hudi_core.frozen import dataclass
from hudi_core.model.names import FileGroupId
from hudi_core.services.service import Nothing
from hudi_core.timeline.actions.clean import LastClean
from hudi_core.timeline.actions.commit import CommitMetadata
from hudi_core.timeline.instant import COMMIT_ACTIONS, Action, Instant
from hudi_core.timeline.instant_time import format_instant, zone_of
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_group import DataFile, FileGroup, FileSlice

_RETAINING = COMMIT_ACTIONS | {Action.COMPACTION, Action.CLUSTERING}
"""The earliest commit to retain is not after the first pending one of these actions (getCommitsAndCompactionTimeline).
"""


@dataclass(frozen=True, slots=True)
class RetentionInputs:
    """The inputs that decide a clean before any file is looked at: the whole active timeline, an aware time, the
    timeline's zone, the last completed clean with content, and completed savepoints.
    """

    timeline: Timeline
    now: datetime
    zone: str = "UTC"
    last_clean: LastClean | None = None
    savepoints: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a clean looks: at partitions that `commits` changed; None: at all. `earliest` is the first one to keep."""

    earliest: Instant | None
    commits: tuple[Instant, ...] | None = None


def retention(inputs: RetentionInputs, config: CleanConfig) -> Scope | Nothing:
    pending = inputs.timeline.pending().of_actions(Action.CLEAN)
    if pending.instants and not config.multiple:
        first = pending.instants[0].requested_time
        return Nothing(f"clean {first} is pending: run it first, or set {CLEAN_MULTIPLE.name}=true")
    since = commits_since(inputs)
    if since < config.trigger_commits:
        option = f"{CLEAN_TRIGGER_COMMITS.name} is {config.trigger_commits}"
        return Nothing(f"{since} commits since the last clean, but {option}")
    if config.policy == KEEP_LATEST_FILE_VERSIONS:
        return Scope(None)
    earliest = earliest_to_retain(inputs, config)
    if earliest is None:
        return Nothing(_all_retained(inputs, config))
    return Scope(earliest, _changed(inputs, config, earliest))


def commits_since(inputs: RetentionInputs) -> int:
    """The number of completed commits since the last clean (CleanPlanActionExecutor.getCommitsSinceLastCleaning)."""
    commits = inputs.timeline.commits()
    return len(commits if inputs.last_clean is None else commits.after(inputs.last_clean.last_completed))


def earliest_to_retain(inputs: RetentionInputs, config: CleanConfig) -> Instant | None:
    """The earliest commit whose files are kept (CleanerUtils.getEarliestCommitToRetain); None when all are kept."""
    commits = inputs.timeline.commits()
    earliest = _by_commits(inputs.timeline, config.commits_retained) if config.policy == KEEP_LATEST_COMMITS else None
    if config.policy == KEEP_LATEST_BY_HOURS:
        since = format_instant((inputs.now - timedelta(hours=config.hours_retained)).astimezone(zone_of(inputs.zone)))
        earliest = next((instant for instant in commits if instant.requested_time >= since), None)
    previous = "" if inputs.last_clean is None else inputs.last_clean.earliest
    if earliest is None or config.max_commits is None or not previous:
        return earliest
    passed = [instant for instant in commits.before(earliest.requested_time) if instant.requested_time >= previous]
    return passed[config.max_commits] if len(passed) > config.max_commits else earliest


def _by_commits(timeline: Timeline, retained: int) -> Instant | None:
    """The oldest of the commits to keep, but not later than the last completed one before the earliest pending one."""
    commits = timeline.commits()
    if len(commits) <= retained:
        return None
    nth = commits.instants[len(commits) - retained]
    pending = timeline.pending().of_actions(*_RETAINING).first()
    if pending is None or nth.sort_key <= pending.sort_key:
        return nth
    return commits.before(pending.requested_time).last()


def _changed(inputs: RetentionInputs, config: CleanConfig, earliest: Instant) -> tuple[Instant, ...] | None:
    """Returns the commits since the earliest one that the last clean retained. None means everywhere: the options ask
    for it, there is no last clean, its earliest commit is gone, or one of its savepoints is gone.
    """
    last = inputs.last_clean
    if not config.incremental or last is None or not last.earliest or last.savepoints - inputs.savepoints:
        return None
    commits = inputs.timeline.commits()
    if not commits.contains(last.earliest):
        return None
    # A commit completed since the last plan counts, however old: by hours, pending commits hold nothing back.
    return tuple(
        instant
        for instant in commits.before(earliest.requested_time)
        if instant.requested_time >= last.earliest or instant.completed_at > last.requested_time
    )


def partitions_of(metadata: CommitMetadata) -> set[str]:
    """The partitions that a commit wrote to, or whose file groups it replaced. Their names are not checked."""
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
    cause = ""
    if pending is not None:
        cause = f"{pending.action} {pending.requested_time} is pending, and a clean deletes nothing that is newer"
    return f"{cause}; complete it or roll it back ({config.retention.name} is {config.commits_retained})"


@dataclass(frozen=True, slots=True)
class PartitionState:
    """The state of a partition. `groups` contains replaced file groups; `replaced` maps these to their replacecommits.
    `compacting` maps a file group in pending compactions or log compactions to the base instants of their operations.
    `kept` are the files that savepoints keep, `needed` those of pending plans. `stored` lists all data files in the
    folder, committed or not; it is called only where no file group remains.
    """

    partition: str
    groups: tuple[FileGroup, ...]
    replaced: Mapping[FileGroupId, Instant] = field(default_factory=dict)
    compacting: Mapping[FileGroupId, tuple[str, ...]] = field(default_factory=dict)
    kept: frozenset[str] = frozenset()
    needed: frozenset[str] = frozenset()
    stored: Callable[[], Iterable[str]] = tuple


@dataclass(frozen=True, slots=True)
class PartitionDeletes:
    """The files that a clean deletes in one partition. With `drop` it deletes the whole partition."""

    partition: str
    files: tuple[DataFile, ...]
    drop: bool = False


def deletes(inputs: PartitionState, config: CleanConfig, earliest: str | None) -> PartitionDeletes:
    """Returns what a clean deletes. `earliest` is the earliest commit to retain, None for the policy by versions."""
    files: list[DataFile] = []
    needed = inputs.kept | inputs.needed
    live = False
    for group in inputs.groups:
        by = inputs.replaced.get(group.id)
        live = live or by is None
        expired: Iterable[FileSlice] = ()
        if by is None:
            expired = _expired(group, inputs.compacting.get(group.id, ()), config, earliest)
        elif earliest is None or by.requested_time < earliest:  # the policy by versions takes every replaced group
            expired = group.slices
        for item in expired:
            if not is_needed(item, needed):
                files.extend(item.files)
    drop = not live and _may_drop(inputs, {file.name for file in files}, earliest)
    return PartitionDeletes(inputs.partition, tuple(files), drop)


def is_needed(item: FileSlice, needed: Collection[str]) -> bool:
    """Whether a file of the slice is among `needed`, the files of savepoints and pending plans. Hudi compares the base
    instants of plans. That fails where its view disagrees about a log file (hudi#19290), and omits clusterings.
    """
    return any(file.name in needed for file in item.files)


def _expired(
    group: FileGroup, operations: tuple[str, ...], config: CleanConfig, earliest: str | None
) -> Iterator[FileSlice]:
    """Yields the slices that the policy deletes of a file group that is not replaced."""
    if config.policy == KEEP_LATEST_FILE_VERSIONS:
        # The slices that a pending compaction needs count as one version.
        free = [item for item in group.slices if not _compacts(item, operations)]
        yield from free[max(0, config.versions_retained - (1 if operations else 0)) :]
    elif earliest is not None and group.slices:
        yield from _before(group, operations, earliest)


def _before(group: FileGroup, operations: tuple[str, ...], earliest: str) -> Iterator[FileSlice]:
    """Yields the slices that the policies by commits and by hours delete. One slice before `earliest` stays: a query
    that started right before it may read that slice (HUDI-7226).
    """
    newest = group.slices[0].base_instant
    in_use = next((item.base_instant for item in group.slices if item.base_instant < earliest), None)
    for item in group.slices:
        is_old = item.base_instant < earliest and item.base_instant not in (newest, in_use)
        if is_old and not _compacts(item, operations):
            yield item


def _compacts(item: FileSlice, operations: tuple[str, ...]) -> bool:
    """Whether a pending (log) compaction starts at or before the slice (isFileSliceNeededForPendingCompaction)."""
    return any(item.base_instant >= base for base in operations)


def _may_drop(inputs: PartitionState, deleted: set[str], earliest: str | None) -> bool:
    """Whether no file would remain. Hudi checks file groups alone, and also deletes savepointed files."""
    if not inputs.partition:
        return False  # a table without partitions is not deleted
    by = (inputs.replaced.get(group.id) for group in inputs.groups)
    if earliest is not None and any(instant is not None and instant.requested_time >= earliest for instant in by):
        return False  # queries as of an earlier instant still read its files
    return all(name in deleted for name in inputs.stored())
