"""Decides whether an earlier owner's decision to complete an instant may still be carried out, for all services
(docs/decisions/0023). transaction/claim_file.py defines a decision, transaction/commit.py carries it out.

The preconditions held under the lock when the decision was made. The owner may have died long before the next owner
claims the instant. Actions that began or completed in between have not seen the decision.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from hudi_core.codec.avro.arrow import arrow_schema
from hudi_core.codec.avro.schema import parse_schema, without_meta_fields
from hudi_core.errors import ConflictError
from hudi_core.filegroup.read.schema_resolver import table_schema
from hudi_core.filegroup.write.buckets import BUCKET_ID, BUCKETS_FOLDER, are_by_hash, place_of_bucket
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.metadata_table.write.restore_reach import initialized_since
from hudi_core.model.names import CLAIMS, FileGroupId, parse_log_file
from hudi_core.model.partition import join
from hudi_core.services.concurrent_changes import Groups, check_no_plans, check_not_changed, commit_with_token
from hudi_core.services.context import TableContext
from hudi_core.timeline.actions.commit import CommitMetadata, Operation, decode_commit
from hudi_core.timeline.actions.replacecommit import TOKEN_KEY
from hudi_core.timeline.actions.rollback import decode_savepoint
from hudi_core.timeline.actions.write_stats import NULL_COMMIT, sizes_of
from hudi_core.timeline.instant import COMMIT_ACTIONS, Action, Instant, State, completed_action
from hudi_core.timeline.pending_plans import pending_plan_on, read_clean_plan, without_rolled_back
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim_file import Decision
from hudi_core.transaction.concurrent_operations import changed_groups
from hudi_core.transaction.reconcile import list_partitions


def why_not_completed(context: TableContext, instant: str, decision: Decision, timeline: Timeline) -> str | None:
    """Returns why completing would lose rows on `timeline`, or None. Raises CorruptFileError, FormatError."""
    action, path = completed_action(decision.action), f"{CLAIMS}/{instant}"
    if action == Action.SAVEPOINT:
        return _why_not_kept(context, instant, decode_savepoint(decision.content, path=path).files, timeline)
    if action not in COMMIT_ACTIONS:
        return None
    metadata = decode_commit(decision.content, path=path)
    metadata.check_paths(source=path)
    sizes = sizes_of(metadata.write_stats())
    there = _sizes(context, metadata.partition_to_write_stats)
    gone = next((file for file, size in sizes.items() if there.get(file) != size), None)
    if gone is not None:
        return f"{gone} was deleted or changed since, as by a rollback of another engine"
    reason = None
    if action == Action.REPLACE_COMMIT:
        reason = _why_not_replaced(context, instant, decision, metadata, timeline)
    elif decision.action == action:  # a compaction is pending under a name of its own
        reason = _why_not_written(context, instant, decision, metadata, timeline)
    if reason is not None:
        return reason
    late = _indexes_since(context, Instant(instant, action, State.COMPLETED, decision.completion_time))
    return f"{', '.join(sorted(late))} of the metadata table began since, without its files" if late else None


def _why_not_kept(
    context: TableContext, instant: str, kept: Mapping[str, Collection[str]], timeline: Timeline
) -> str | None:
    """Returns why a savepoint does not keep its commit: the commit is gone or being rolled back, or one of the files
    `kept` is deleted or in the plan of a pending clean.
    """
    if instant not in without_rolled_back(context.active, timeline).commits().requested_times:
        return "its commit is gone from the timeline, or is being rolled back"
    for clean in timeline.pending().of_actions(Action.CLEAN):
        pending = read_clean_plan(context.active, clean.requested_time)
        if pending is None:
            continue
        for partition, names in pending[0].files.items():
            taken = set(names).intersection(kept.get(partition, ()))
            if taken:
                return f"clean {clean.requested_time} is going to delete {join(partition, min(taken))}"
    there = _sizes(context, kept)
    files = (join(partition, name) for partition, names in kept.items() for name in names)
    gone = next((file for file in files if file not in there), None)
    return None if gone is None else f"{gone}, which it keeps, was deleted since"


def _sizes(context: TableContext, partitions: Iterable[str]) -> dict[str, int]:
    """Returns the sizes in bytes of the files in the folders of `partitions`, by path."""
    listed = list_partitions(context.storage, partitions)
    return {info.path: info.size for _, files in listed for info in files}


def _why_not_replaced(
    context: TableContext, instant: str, decision: Decision, metadata: CommitMetadata, timeline: Timeline
) -> str | None:
    """Returns what stops a clustering or overwrite."""
    change = _written_since(context, instant, decision, metadata, timeline)
    if change is not None:
        return f"{change.action} {change.requested_time} has changed since what that replaces"
    rolled_back = context.rolled_back_among(decision.known, timeline)
    if rolled_back is not None:
        return f"commit {rolled_back}, whose rows it may hold or have replaced, was rolled back since"
    if metadata.operation_type == Operation.CLUSTER:
        return None
    return _why_too_late(context, instant, decision, metadata, timeline)


def _why_not_written(
    context: TableContext, instant: str, decision: Decision, metadata: CommitMetadata, timeline: Timeline
) -> str | None:
    """Returns what stops a write of rows: most of what its preconditions would find by now (services/write/job.py)."""
    groups = _groups_of(context, metadata)
    try:
        check_not_changed(context, timeline, instant, groups, decision.known)
        check_no_plans(context, timeline, groups)
    except ConflictError as error:
        return error.message
    return _why_too_late(context, instant, decision, metadata, timeline)


def _groups_of(context: TableContext, metadata: CommitMetadata) -> Groups:
    """Returns the file groups of a write of rows. New ones count as merged: no earlier commit has them."""
    written = [(FileGroupId(stat.partition_path, stat.file_id), stat) for stat in metadata.write_stats()]
    based = {group: stat.prev_commit for group, stat in written if stat.log_version is None}
    new_buckets = (group for group, before in based.items() if before == NULL_COMMIT and BUCKET_ID.match(group.file_id))
    by_hash = are_by_hash(context.storage.list_folders(BUCKETS_FOLDER))
    return Groups(
        frozenset(based),
        {group: parse_log_file(stat.name).instant for group, stat in written if stat.log_version is not None},
        frozenset(place_of_bucket(group, by_hash=False) for group in new_buckets),
        hashed=frozenset(metadata.partition_to_write_stats if by_hash else ()),
    )


def _why_too_late(
    context: TableContext, instant: str, decision: Decision, metadata: CommitMetadata, timeline: Timeline
) -> str | None:
    """Returns what stops new rows of any file group: another run of the token's work wrote them, readers have passed
    them, or they have an old schema.
    """
    token = metadata.extra_metadata.get(TOKEN_KEY)
    same_work = commit_with_token(context, timeline, token, decision.known)
    if same_work is not None:
        return f"{same_work.action} {same_work.requested_time} has done the work of its token {token!r} since"
    later = _completed_since(decision, timeline)
    if later is not None:
        return f"{later.action} {later.requested_time} completed since, which incremental queries may have passed"
    if _schema_changed(context, instant, decision, metadata, timeline):
        return "another schema was written since: that of the table would change back, or lack new columns"
    return None


def _written_since(
    context: TableContext, instant: str, decision: Decision, metadata: CommitMetadata, timeline: Timeline
) -> Instant | None:
    """Returns a commit, unknown to the decision, that changed a file group which the decision writes or replaces. For
    an overwrite whole partitions are compared, and a pending plan there counts too: it would bring rows back.
    """
    mine = changed_groups(metadata, Instant(instant, Action.REPLACE_COMMIT, State.COMPLETED))
    partitions = {*metadata.partition_to_write_stats, *(metadata.replaced_file_ids or {})}
    is_overwrite = metadata.operation_type != Operation.CLUSTER

    def is_touched(group: FileGroupId) -> bool:
        return group.partition in partitions if is_overwrite else group in mine

    for item in timeline.commits():
        if item.requested_time in decision.known:
            continue
        if any(map(is_touched, changed_groups(context.active.read_commit(item), item))):
            return item
    pending = pending_plan_on(context.active, timeline, is_touched) if is_overwrite else None
    return None if pending is None else pending[0]


def _schema_changed(
    context: TableContext, instant: str, decision: Decision, metadata: CommitMetadata, timeline: Timeline
) -> bool:
    """Whether a commit of an earlier instant, unknown to the decision, changed the columns, or one of a later instant
    does not have the columns that the decision adds. Layout 1, see _completed_since.
    """
    known = timeline.filter(lambda item: item.requested_time in decision.known)
    below = timeline.before(instant)
    if known.commits() == timeline.commits():
        return False
    path = context.config.path
    was, now = (
        arrow_schema(table_schema(context.storage, context.config, seen), path=path)
        for seen in (known.before(instant), below)
    )
    if metadata.schema_text and timeline.commits() != below.commits():
        decided = without_meta_fields(parse_schema(metadata.schema_text, path=path))
        if not was.equals(arrow_schema(decided, path=path)):
            return True
    return not was.equals(now)


def _completed_since(decision: Decision, timeline: Timeline) -> Instant | None:
    """Returns a commit with a later completion time than the decision (layout 2): a reader that has read up to that
    time would not see rows that appear before it.
    """
    if decision.completion_time is None:
        return None
    return next((item for item in timeline.commits() if item.completed_at > decision.completion_time), None)


def _indexes_since(context: TableContext, decided: Instant) -> frozenset[str]:
    """Returns the metadata partitions that were initialized after the decision, without its files; none in layout 1."""
    current = context.reloaded()
    names = current.config.metadata_partitions | current.config.metadata_partitions_inflight
    if decided.completion_time is None or not names:
        return frozenset()
    metadata_timeline = MetadataTimeline(current.storage, current.config)
    return initialized_since(current.storage, current.config, metadata_timeline, decided)
