"""Finds the commits of a range of time, which incremental and change-data queries read. incremental.py says which of
their rows an incremental query returns.

Works like IncrementalQueryAnalyzer of 1.x and findInstantsInRange of 0.15. Instants are selected by
`Instant.completed_at`: completion times where the layout records them, requested times where it does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from hudi_core.config.rows_config import HOLLOW_COMMITS, SKIP_CLUSTERING, SKIP_COMPACTION
from hudi_core.errors import ConfigError, CorruptFileError, TimelineError
from hudi_core.frozen import dataclass
from hudi_core.history.archived import begin_of_writes
from hudi_core.model.names import FileGroupId
from hudi_core.model.partition import check_partition
from hudi_core.query.context import ReadContext
from hudi_core.query.request import START, ReadRequest
from hudi_core.timeline.actions.commit import CommitMetadata, Operation
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, Instant
from hudi_core.timeline.instant_time import format_instant, parse_instant
from hudi_core.timeline.pending_plans import pending_ingestion
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_group import FileSlice
from hudi_core.view.file_system_view import FileSystemView


def first_incomplete_write(active: ActiveTimeline, timeline: Timeline) -> Instant | None:
    """Returns the earliest pending commit, deltacommit or replacecommit that is no clustering
    (TimelineUtils.validateTimestampAsOf): compactions and clusterings change no row. Raises FormatError.
    """
    return next(pending_ingestion(active, timeline), None)


_LONGEST_WRITE: Final = timedelta(days=1)
"""The longest assumed time of a write: searches begin this long before a range (CompletionTimeQueryViewV2)."""


@dataclass(frozen=True, slots=True)
class CommitRange:
    """The completed commits after `begin` and up to `end` (None: the latest), in timeline order, with metadata whose
    paths are checked. `archived` are all instants that completed after `begin` and are only in the archive.
    """

    begin: str
    end: str | None
    metadata: Mapping[Instant, CommitMetadata]
    archived: tuple[Instant, ...]

    @property
    def requested_times(self) -> frozenset[str]:
        return frozenset(instant.requested_time for instant in self.metadata)

    @property
    def last(self) -> str | None:
        return max((instant.requested_time for instant in self.metadata), default=None)


def commits_in_range(context: ReadContext, timeline: Timeline, request: ReadRequest) -> CommitRange:
    """Returns the commits of the request's range. Reads the archive only when the range may reach into it. Raises
    ConfigError for a range that ends before it begins. In layout 1 also raises it for a range with a commit after an
    incomplete one, whose rows would be skipped for good. Raises FormatError and StorageError as commit files are read.
    """
    begin, end = request.begin or START, request.end
    if end is not None and end < begin:
        raise ConfigError(
            f"the range ends at {end}, before it begins at {begin}", remedy="begin is exclusive, end inclusive"
        )
    commits = [item for item in _commits(context, timeline) if end is None or item.completed_at <= end]
    read = {item: context.active.read_commit(item) for item in commits if begin < item.completed_at}
    archived: tuple[Instant, ...] = ()
    active_from = begin_of_writes(timeline)
    if active_from is None or _earliest_requested(begin, context) < active_from:
        history = context.history()
        # Archival copies instants before it removes them, so one may be in both.
        archived = tuple(
            item for item in history.completed_in(begin, None) if not timeline.find(item.requested_time, item.action)
        )
        older = (item for item in archived if end is None or item.completed_at <= end)
        read = {**dict(history.commits(older)), **read}
    metadata = {}
    for instant in sorted(read, key=lambda instant: instant.sort_key):
        commit = read[instant]
        if not _is_read(context, instant, commit):
            continue
        source = context.active.path_of(instant)
        if commit == CommitMetadata():
            raise CorruptFileError(
                f"the completed file of {instant.action} {instant.requested_time} is empty: what it changed is unknown",
                path=source,
                remedy="restore the file from a copy, or query a range without it",
            )
        commit.check_paths(source=source)
        for partition in commit.replaced_file_ids or {}:
            check_partition(partition, source=source)
        metadata[instant] = commit
    return CommitRange(begin, end, metadata, archived)


def _commits(context: ReadContext, timeline: Timeline) -> list[Instant]:
    """Returns the completed commits; in layout 1 as the option allows pending ones (handleHollowCommitIfNeeded)."""
    commits = list(timeline.commits())
    if context.config.features.completion_time_in_name:
        return commits
    hollow = first_incomplete_write(context.active, timeline)
    if hollow is None or not any(item.requested_time > hollow.requested_time for item in commits):
        return commits
    policy = HOLLOW_COMMITS.read(context.options)
    if policy == "BLOCK":
        return [item for item in commits if item.requested_time < hollow.requested_time]
    raise ConfigError(
        f"the {hollow.action} {hollow.requested_time} is not complete, and later ones are: an incremental query would "
        "skip its rows",
        path=context.active.folder,
        remedy=f"complete it or roll it back, or set {HOLLOW_COMMITS.name}=BLOCK to read only what is older",
    )


def _earliest_requested(begin: str, context: ReadContext) -> str:
    """Returns the earliest requested time that a commit completed after `begin` may have."""
    if not context.config.features.completion_time_in_name:
        return begin
    try:
        return format_instant(parse_instant(begin, context.zone) - _LONGEST_WRITE)
    except (TimelineError, OverflowError):
        return begin


def _is_read(context: ReadContext, instant: Instant, commit: CommitMetadata) -> bool:
    """Whether the options on services keep the commit in the range. Hudi 0.15 has neither option. In layout 1 a log
    file is named after the compaction or clustering of its slice: without that commit its rows would be missing.
    """
    if not context.config.features.completion_time_in_name:
        return True
    if SKIP_COMPACTION.read(context.options) and context.config.is_merge_on_read and instant.action == Action.COMMIT:
        return False
    return not (SKIP_CLUSTERING.read(context.options) and commit.operation_type == Operation.CLUSTER)


def slice_before_replacement(view: FileSystemView, group: FileGroupId, instant: Instant) -> FileSlice | None:
    """Returns the slice of a file group that a replacecommit replaced; None when its files are missing."""
    file_group = view.file_group(group)
    slices = (
        [] if file_group is None else [item for item in file_group.slices if item.base_instant < instant.requested_time]
    )
    if len(slices) > 1 and slices[0].base_file is None:
        # A compaction of the group was planned and never ran.
        return slices[1].merged_with(slices[0])
    return slices[0] if slices else None
