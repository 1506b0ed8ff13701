"""Reads what archival is decided by: the timeline and its cleans, the metadata table, and the files of the table."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone

from hudi_core.config.services.archive_config import IGNORE_ORPHANS, ArchiveConfig
from hudi_core.config.services.clean_config import KEEP_LATEST_BY_HOURS, CleanConfig
from hudi_core.history.archiving import archive_writer
from hudi_core.services.archive.instants_to_retain import NOT_LISTED, ArchiveInputs, Findings
from hudi_core.services.archive.listing import Partition, Search, appended_log_bytes, search
from hudi_core.services.archive.planner import ArchivePlan, plan_archival, start_after
from hudi_core.services.clean.earliest_commit import RetentionInputs, earliest_to_retain
from hudi_core.services.clean.planner import last_clean
from hudi_core.services.context import TableContext
from hudi_core.services.rollback.failed_writes import pending_rollbacks
from hudi_core.timeline.actions.commit import CommitMetadata, replaced_file_groups
from hudi_core.timeline.instant import COMMIT_ACTIONS, REPLACING_ACTIONS, Action, Instant
from hudi_core.timeline.instant_time import parse_instant
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.listing import walk_partitions


def read_inputs(context: TableContext, timeline: Timeline, config: ArchiveConfig) -> ArchiveInputs:
    """The inputs of the timeline. Raises FormatError naming a damaged clean, rollback, or file of the archive."""
    clean = CleanConfig.of(context.options)
    publisher = context.metadata_publisher()
    pending = pending_rollbacks(context.active, timeline).values()
    return ArchiveInputs(
        timeline=timeline,
        merge_on_read=context.config.is_merge_on_read,
        counts_cleans=not context.config.features.completion_time_in_name,
        clean_policy=clean.policy,
        cleaner_keeps=_cleaner_keeps(context, timeline, clean),
        last_clean=last_clean(context.active, timeline),
        has_metadata_table=publisher is not None,
        metadata_compaction=None if publisher is None else publisher.latest_compaction(),
        rolling_back=frozenset(target for target in pending if target is not None),
        interrupted=archive_writer(
            context.storage, context.config.features, context.config.history_folder, config, lambda: None
        ).held(timeline.completed().instants),
    )


def find(
    context: TableContext, timeline: Timeline, inputs: ArchiveInputs, config: ArchiveConfig
) -> tuple[ArchivePlan, Findings]:
    """The most that may be archived by the timeline, and what the files of the table say against it.

    The whole table is listed, its storage and not the metadata table, which knows no orphans; where orphans are
    ignored, only partitions with replaced file groups. Without a lock: files of replaced groups only become fewer, and
    an orphan may come to be at any time.
    """
    most = plan_archival(inputs, config)
    if not most.commits:
        return most, NOT_LISTED  # cleans and rollbacks alone do not move the timeline's start
    replaced = replaced_file_groups(Timeline(most.commits), lambda instant: _read_checked(context, instant))
    searched = Search(None, None, frozenset(), replaced)
    if config.orphans != IGNORE_ORPHANS:
        searched = Search(
            begin=start_after(timeline, frozenset()),
            end=start_after(timeline, frozenset(item.requested_time for item in most.commits))
            or timeline.commits().instants[-1].requested_time,
            committed=timeline.commits().requested_times,
            replaced=replaced,
            written=appended_log_bytes(context, timeline),
            hidden=_hidden(context, timeline, most),
            clusterings=timeline.of_actions(*REPLACING_ACTIONS).requested_times,
        )
    return most, search(context.storage, _partitions(context, searched), searched)


def _partitions(context: TableContext, searched: Search) -> Iterator[Partition]:
    if searched.begin is not None:
        yield from walk_partitions(context.storage, context.storage.list_files)
        return
    for partition in sorted({group.partition for group in searched.replaced}):
        yield partition, context.storage.list_files(partition)


def _read_checked(context: TableContext, instant: Instant) -> CommitMetadata:
    metadata = context.active.read_commit(instant)
    metadata.check_paths(source=context.active.path_of(instant))
    return metadata


def _hidden(context: TableContext, timeline: Timeline, plan: ArchivePlan) -> dict[str, str]:
    """The files of the plan's commits behind the first savepoint, by path, with the commit's requested time."""
    first = min(timeline.savepoints(), default=None)
    behind = [item for item in plan.commits if first is not None and item.requested_time > first]
    return {
        stat.path: item.requested_time for item in behind for stat in context.active.read_commit(item).write_stats()
    }


def _cleaner_keeps(context: TableContext, timeline: Timeline, clean: CleanConfig) -> str | None:
    """The earliest commit that the cleaner keeps; by hours, as of the last commit and not of now (ArchivalUtils).

    Pending compactions hold it back in the cleaner's own plans only: ArchivalUtils asks getCommitsTimeline.
    """
    last = timeline.commits().last()
    now = datetime.now(timezone.utc)
    if clean.policy == KEEP_LATEST_BY_HOURS and last is not None:
        now = parse_instant(last.requested_time, context.zone)
    writes = timeline.of_actions(*COMMIT_ACTIONS, Action.CLUSTERING)
    found = earliest_to_retain(RetentionInputs(writes, now, context.zone), clean)
    return None if found is None else found.requested_time
