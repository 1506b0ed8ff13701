"""Applies the actions of the data table that the metadata table lacks, in the order of their completion, under the
table lock. Also mends what Hudi's writers left out of indexes (metadata_table.read.completeness).
docs/guarantees/metadata-table.md, "Catching up with missing commits", says what can be applied late, and what cannot.

Every block of such an instant counts as soon as it is there. So it can be written at any later time, as one deltacommit
under the action's instant (action_updates). After a restore keys may have been written again. This possibility alone
does not justify the cost of a new record index.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from hudi_core.config.metadata_config import REBUILD_ROW_INDEXES
from hudi_core.config.table_config import update_properties
from hudi_core.errors import ConflictError, TimelineError, UnsupportedError
from hudi_core.history.archived import load_history
from hudi_core.metadata_table.initialize.initialize import refuse_building
from hudi_core.metadata_table.instants import data_instant, is_solo, marks, rolled_back_by
from hudi_core.metadata_table.partition_type import PARTITION_STATS, RECORD_INDEX, is_secondary_index, moves_rows
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.metadata_table.write.staged_logs import Workers, forget_staged, staged_instants
from hudi_core.model.names import FileGroupId
from hudi_core.services.context import TableContext
from hudi_core.services.metadata.action_updates import ActionUpdates
from hudi_core.services.metadata.row_changes import REBUILD_ROW_LEVEL, RowsUnknownError
from hudi_core.timeline.instant import COMMIT_ACTIONS, Action, Instant
from hudi_core.timeline.timeline import Timeline

log = logging.getLogger(__name__)

REBUILD: Final = (
    "run `hudictl metadata drop TABLE`, then `hudictl metadata create TABLE` with the partitions that it had"
)
_RECORDED: Final = COMMIT_ACTIONS | {Action.CLEAN}
"""Actions that have a deltacommit of the same instant in the metadata table."""

Doubts = Mapping[str, frozenset[FileGroupId] | None]


def catch_up(context: TableContext, workers: Workers, guard: Callable[[], None], applied: list[str]) -> None:
    """Applies the missing actions in order; `applied` receives each instant when it is recorded. The caller holds the
    table lock and loaded `context.config` under it; `guard` raises when the lock is lost. Raises, before anything is
    written, TimelineError for actions that can no longer be applied (an archived action; a restore that later actions
    followed; RowsUnknownError for rows whose later changes the row-level indexes have), ConflictError while a restore
    is pending or an indexing builds, UnsupportedError for an index without partition type. Raises, during the run,
    RowsUnknownError for rows whose older files were cleaned, and the errors of reading the files.
    """
    metadata_timeline = MetadataTimeline(context.storage, context.config, context.clock())
    _forget_recorded(context, metadata_timeline)
    missing = missing_actions(context, metadata_timeline)
    if not missing:
        return
    updates = ActionUpdates(context, workers, metadata_timeline)
    _check_pending(updates)
    _check_restores(updates, missing)
    commits = [item for item in missing if item.action in COMMIT_ACTIONS]
    if commits:
        updates.partition_types.requirements()
    _check_rows(updates, commits)
    _widen_partition_ranges(updates, commits)
    for item in missing:
        guard()
        log.warning("%s %s was missing in the metadata table and is applied", item.action, item.requested_time)
        updates.apply(item)
        applied.append(item.requested_time)


def _check_pending(updates: ActionUpdates) -> None:
    active = updates.context.active
    restoring = updates.timeline.pending().of_actions(Action.RESTORE).first()
    if restoring is not None:
        message = f"restore {restoring.requested_time} of the table is pending"
        remedy = "run the restore to its end first"
        raise ConflictError(message, path=active.path_of(restoring), remedy=remedy)
    # Updates only listed indexes: Hudi's indexer would take a deltacommit for an update of the index it builds.
    refuse_building(updates.timeline, active.path_of)


def _check_restores(updates: ActionUpdates, missing: Sequence[Instant]) -> None:
    newest = max((item.requested_time for item in updates.timeline.completed()), default="")
    for item in missing:
        if item.action == Action.RESTORE and (item.requested_time != newest or not updates.restore_target(item)):
            message = (
                f"the metadata table lacks restore {item.requested_time}, and other actions followed it or its plan "
                "names no instant"
            )
            raise TimelineError(message, path=updates.metadata_timeline.active.folder, remedy=REBUILD)


def _check_rows(updates: ActionUpdates, commits: Sequence[Instant]) -> None:
    """Raises RowsUnknownError where row-level indexes have later records of rows that a missing commit may move."""
    first = next((item for item in commits if updates.changed_row_indexes(updates.commit(item))), None)
    if first is None:
        return
    missing = {item.requested_time for item in commits}
    later = (
        item
        for item in updates.timeline.completed().of_actions(*COMMIT_ACTIONS)
        if item.completed_at > first.completed_at
        and item.requested_time not in missing
        and moves_rows(updates.commit(item).operation_type)
    )
    known = next(later, None) or _archived_behind(updates.context, first)
    if known is not None:
        raise RowsUnknownError(
            f"{', '.join(sorted(updates.row_indexes))} have {known.action} {known.requested_time}, but not "
            f"{first.action} {first.requested_time} before it: which of their rows are wrong is not known",
            path=updates.metadata_timeline.active.folder,
            remedy=f"{REBUILD_ROW_LEVEL}, or set {REBUILD_ROW_INDEXES.name} to true",
        )


def _archived_behind(context: TableContext, commit: Instant) -> Instant | None:
    """Returns an archived commit with rows that was requested before `commit` and completed after it."""
    history = context.history()
    for item in history.completed_in(commit.completed_at, None):
        if item.action in COMMIT_ACTIONS and item.requested_time < commit.requested_time:
            metadata = history.commit(item.requested_time)
            if metadata is None or moves_rows(metadata.operation_type):
                return item
    return None


def _widen_partition_ranges(updates: ActionUpdates, commits: Sequence[Instant]) -> None:
    """Writes the missing ranges of the partitions that the missing `commits` touched, under a new instant of the
    metadata table. This happens before any of these commits is applied. They are valid before and after these.
    """
    recorded = updates.metadata_timeline.active.load().completed().of_actions(Action.DELTA_COMMIT)
    first = min((item.requested_time for item in commits), default="")
    is_late = any(item.requested_time > first for item in recorded) or any(map(updates.has_overtaken, commits))
    if not commits or not is_late:
        return
    partitions: set[str] = set()
    for metadata in map(updates.commit, commits):
        partitions.update(metadata.partition_to_write_stats, metadata.replaced_file_ids or ())
    updates.widen_ranges(partitions, updates.context.config.metadata_partitions)


def _forget_recorded(context: TableContext, metadata_timeline: MetadataTimeline) -> None:
    """Deletes what dead attempts staged whose deltacommit is complete: such an instant is not run again."""
    staged = staged_instants(context.storage)
    if staged:
        done = context.active.load().completed().requested_times
        for instant in sorted(staged & done & metadata_timeline.active.load().completed().requested_times):
            forget_staged(context.storage, instant)


def missing_actions(context: TableContext, metadata_timeline: MetadataTimeline) -> list[Instant]:
    """Returns the completed actions that the metadata table lacks, in the order of their completion. Older actions are
    in it by its initialization. The caller holds the table lock, or only looks. Raises TimelineError for a missing
    action that the data table has archived: blocks of archived instants do not count.
    """
    data, recorded = context.active.load(), metadata_timeline.active.load()
    suspects = [item for item in data.completed() if _is_unrecorded(item, metadata_timeline, recorded)]
    known = recorded.completed().requested_times
    archived = [item for item in _archived(context, recorded) if item.requested_time not in known]
    if suspects or archived:
        older = load_history(context.storage, metadata_timeline.config, ROOT).timeline()
        by_completion = metadata_timeline.features.completion_time_in_name

        def order(item: Instant) -> str:
            return item.completed_at if by_completion else item.requested_time

        # The start of the metadata table, which contains everything completed by then.
        deltacommits = (item for item in [*older, *recorded.completed()] if item.action == Action.DELTA_COMMIT)
        start = min(data_instant(order(item)) for item in deltacommits)
        suspects, archived = (
            [item for item in items if not _is_known(item, older) and order(item) > start]
            for items in (suspects, archived)
        )
    if archived:
        message = (
            f"the metadata table lacks {archived[0].action} {archived[0].requested_time}, and the table has archived it"
        )
        raise TimelineError(message, path=ROOT, remedy=REBUILD)
    rollbacks = [
        item
        for item in data.completed().of_actions(Action.ROLLBACK)
        if metadata_timeline.features.rollback_deletes_logs and _lacks_rollback(item, context, data, recorded)
    ]
    return sorted({*suspects, *rollbacks}, key=lambda item: (item.completed_at, item.requested_time))


def _is_known(item: Instant, recorded: Timeline) -> bool:
    """Whether the metadata table recorded an action. For a restore it does so by a later restore of its own."""
    if item.action == Action.RESTORE:
        restores = recorded.completed().of_actions(Action.RESTORE)
        return any(other.requested_time > item.requested_time for other in restores)
    return item.requested_time in recorded.requested_times


def _is_unrecorded(item: Instant, metadata_timeline: MetadataTimeline, recorded: Timeline) -> bool:
    actions = {*_RECORDED, Action.RESTORE}
    if not metadata_timeline.features.rollback_deletes_logs:
        actions.add(Action.ROLLBACK)  # in version 6 it has a deltacommit, too
    return item.action in actions and not _is_known(item, recorded.completed())


def _archived(context: TableContext, recorded: Timeline) -> list[Instant]:
    """Returns archived actions of the data table that the metadata table's active timeline should have."""
    times = [item.requested_time for item in recorded.completed() if not is_solo(item.requested_time)]
    if not times:
        return []
    return [item for item in context.history().instants(data_instant(min(times))) if item.action in _RECORDED]


def _lacks_rollback(rollback: Instant, context: TableContext, data: Timeline, recorded: Timeline) -> bool:
    """Whether the metadata table still has a deltacommit of an instant that `rollback` rolled back. One that was run
    again since does not count: some of its files may be valid.
    """
    failed = rolled_back_by(context.active, rollback)
    return any(recorded.find(time, Action.DELTA_COMMIT) is not None and not data.contains(time) for time in failed)


def doubts_of(metadata: MetadataTable) -> Doubts:
    """Returns the file groups whose rows the record index and the secondary indexes may lack, by index; None: all."""
    return {
        name: metadata.groups_in_doubt(name)
        for name in sorted(metadata.partition_types)
        if (name == RECORD_INDEX or is_secondary_index(name)) and metadata.has_index(name)
    }


def complete_indexes(
    context: TableContext, workers: Workers, rebuilt: Collection[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Widens ranges of partitions that are too narrow, and marks complete indexes. Returns the data partitions of these
    ranges, and row-level indexes that may lack rows. `rebuilt` are indexes that were just built. The caller has loaded
    `context.config` under the table lock. Raises RowsUnknownError for indexes to rebuild, and as widen_ranges.
    """
    data = context.active.load()
    metadata = MetadataTable(context.storage, context.config, data)
    doubts = doubts_of(metadata)
    may_lack = {name for name, groups in doubts.items() if groups is None or groups} - set(rebuilt)
    if metadata.completeness.has_true_locations:
        may_lack.discard(RECORD_INDEX)
    incomplete = tuple(sorted(may_lack))
    if metadata.completeness.uncommitted:
        log.warning(
            "row-level indexes and ranges of partitions hold rows of %s, which is not committed: no query uses them "
            "until it is rolled back",
            ", ".join(sorted(metadata.completeness.uncommitted)),
        )
        return (), incomplete
    if incomplete and REBUILD_ROW_INDEXES.read(context.options):
        error = RowsUnknownError(
            f"{', '.join(incomplete)} may lack rows that writers of Hudi did not record", path=ROOT, remedy="rebuild it"
        )
        error.indexes = frozenset(incomplete)
        raise error
    for name in incomplete:
        log.warning("%s may lack rows; %s=true rebuilds it", name, REBUILD_ROW_INDEXES.name)
    whole = [name for name, groups in doubts.items() if groups == frozenset() or name in rebuilt]
    widened: set[str] = set()
    if metadata.indexes_in_doubt:
        metadata_timeline = MetadataTimeline(context.storage, context.config, context.clock())
        updates = ActionUpdates(context, workers, metadata_timeline)
        for name in sorted(metadata.indexes_in_doubt):
            try:
                found = updates.widen_ranges(metadata.partitions(), {name})
            except UnsupportedError as error:
                if name == PARTITION_STATS:
                    raise
                log.warning("the ranges of %s, an index that is not kept here, are not compared: %s", name, error)
                continue
            for partition in found:
                log.warning("the ranges of partition %r in %s were too narrow and were widened", partition, name)
            widened.update(found)
    if metadata.has_index(PARTITION_STATS):
        whole.append(PARTITION_STATS)
    update_properties(
        context.storage, marks(data, {name: context.storage.list_files(f"{ROOT}/{name}") for name in whole})
    )
    return tuple(sorted(widened)), incomplete
