"""Says whether an instant may be rolled back: by Hudi's rules (BaseRollbackActionExecutor), and by further ones that
prevent the loss of rows. metadata_table/write/rollback.py says what the metadata table no longer allows. verb.py checks
that the instant is a write at all.

Hudi checks the order of commits only where the failed-writes policy is EAGER. A completed commit is checked under every
policy: later commits were written on top of its rows.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from hudi_core.config.concurrency_config import HeartbeatConfig
from hudi_core.errors import (
    ConflictError,
    CorruptFileError,
    HudiError,
    StorageNotFoundError,
    TimelineError,
    UnsupportedError,
)
from hudi_core.frozen import dataclass
from hudi_core.metadata_table.partition_type import FILES_PARTITION
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.metadata_table.write.restore_reach import initialized_since
from hudi_core.model.names import HUDI_HEARTBEATS, FileGroupId, parse_data_file
from hudi_core.services.context import TableContext
from hudi_core.services.rollback.execution import is_planned
from hudi_core.services.rollback.files_to_roll_back import failed_of
from hudi_core.timeline.actions.content import record_map, texts
from hudi_core.timeline.instant import COMMIT_ACTIONS, Action, Instant, State
from hudi_core.timeline.pending_plans import may_be_written, read_clean_plan, read_clustering_plans
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction import writer_heartbeats
from hudi_core.transaction.writer_heartbeats import FailedWrites, failed_writes_policy

_SERVICES: Final = (Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING)


@dataclass(frozen=True, slots=True)
class RollbackInputs:
    """What the rules need besides the timeline and the instant. `clusterings` are the pending ones of layout 1.
    `heartbeat`: the instant has a heartbeat file, left by a LAZY writer. `cleaned` are cleans of older files.
    """

    eager: bool
    clusterings: frozenset[str] = frozenset()
    heartbeat: bool = False
    cleaned: tuple[str, ...] = ()


def check_may_roll_back(timeline: Timeline, target: Instant, inputs: RollbackInputs) -> None:
    """Raises TimelineError that says what to do first, or UnsupportedError for an instant that another layout wrote."""
    saved = timeline.find(target.requested_time, Action.SAVEPOINT)
    if saved is not None and (saved.is_completed or target.is_completed):
        raise _refused(
            target,
            "is savepointed" if saved.is_completed else "has an unfinished savepoint, which may yet be completed",
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
        why = f"is followed by {later[-1].action} {later[-1].requested_time}"
        raise _refused(target, why, "roll the later ones back first, or restore the table")
    _check_pending(timeline, target, inputs)
    plans = [item for item in timeline.pending().after(target.requested_time) if _is_service(item, inputs)]
    if plans:
        why = f"is what {plans[-1].action} {plans[-1].requested_time} was planned on"
        raise _refused(target, why, "unschedule that plan first, or run it")
    if inputs.cleaned:
        why = f"cannot be rolled back: clean {inputs.cleaned[-1]} removes what its file groups held before"
        raise _refused(target, why, "write the rows again; a savepoint before the next write keeps such files")


def _is_later(instant: Instant, target: Instant) -> bool:
    if instant.requested_time >= target.requested_time:
        return instant.requested_time > target.requested_time
    # A compaction works on what was there when it was requested, however late it completes.
    return instant.completed_at > target.completed_at and instant.pending_action != Action.COMPACTION


def _check_order(timeline: Timeline, target: Instant, inputs: RollbackInputs) -> None:
    """Raises an error where a later commit is completed or pending (validateRollbackCommitSequence)."""
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
        # That write may end by itself and make the rollback possible: unlike the other refusals, this one passes.
        raise ConflictError(
            f"{target.action} {target.requested_time} has {last.action} {last.requested_time} pending beside it",
            remedy=(
                "wait for that write; when its writer is dead, roll it back first: `hudictl rollback TABLE --instant "
                f"{last.requested_time}`"
            ),
        )


def _is_service(instant: Instant, inputs: RollbackInputs) -> bool:
    return instant.pending_action in _SERVICES or (
        not instant.is_completed and instant.requested_time in inputs.clusterings
    )


def _refused(target: Instant, why: str, remedy: str) -> TimelineError:
    return TimelineError(f"{target.action} {target.requested_time} {why}", remedy=remedy)


def check_rollback(context: TableContext, timeline: Timeline, target: Instant, *, dry_run: bool = False) -> None:
    """Raises, before any write, where `target` may not be rolled back; ConflictError for a live writer."""
    if target.state is State.REQUESTED and is_planned(context, target):
        what = f"{target.action} {target.requested_time} is only planned: there is nothing to roll back"
        remedy = f"drop the plan: `hudictl unschedule TABLE {target.requested_time}`"
        raise TimelineError(what, path=context.active.path_of(target), remedy=remedy)
    context.check_recordable()
    guard(context, timeline, target)
    if not target.is_completed:
        refuse_live_writer(context, target.requested_time, dry_run=dry_run)


def guard(context: TableContext, timeline: Timeline, target: Instant) -> None:
    """Raises an error where these rules, or the metadata table's own, forbid a rollback of the instant."""
    try:
        check_may_roll_back(timeline, target, read_inputs(context, timeline, target))
    except HudiError as error:
        error.path = error.path or context.active.path_of(target)  # the rules, being pure, do not know it
        raise
    current = context.reloaded()
    check_not_initialized_since(current, target)
    publisher = current.metadata_publisher()
    if publisher is not None and publisher.footprint(target.requested_time):
        publisher.check_roll_back(target.requested_time)


def check_not_initialized_since(context: TableContext, target: Instant) -> None:
    """Raises TimelineError where metadata partitions were initialized after `target`. Runs under the table lock."""
    if not target.is_completed or not context.has_metadata_table:
        return
    metadata_timeline = MetadataTimeline(context.storage, context.config)
    late = sorted(initialized_since(context.storage, context.config, metadata_timeline, target))
    if late:
        options = "" if FILES_PARTITION in late else "".join(f" --partition {name}" for name in late)
        drop = f"hudictl metadata drop TABLE{options}"
        raise TimelineError(
            f"{', '.join(late)} of the metadata table began after {target.action} {target.requested_time}, which "
            "cannot be taken out of that",
            path=context.active.path_of(target),
            remedy=f"drop it with `{drop}`, roll the instant back again, then create it again",
        )


def read_inputs(context: TableContext, timeline: Timeline, target: Instant) -> RollbackInputs:
    return RollbackInputs(
        eager=failed_writes_policy(context.options) is FailedWrites.EAGER,
        clusterings=frozenset(read_clustering_plans(context.active, timeline)),
        heartbeat=context.storage.exists(f"{HUDI_HEARTBEATS}/{target.requested_time}"),
        cleaned=cleans_since(context, timeline, target) if target.is_completed else (),
    )


def refuse_live_writer(context: TableContext, target: str, *, dry_run: bool = False) -> None:
    """Raises ConflictError where a writer of Hudi is at work on the instant."""
    now = time.time if dry_run else None  # a dry run writes nothing to read the storage's clock
    writer_heartbeats.refuse_live_writer(context.storage, target, HeartbeatConfig.of(context.options), now=now)


def cleans_since(
    context: TableContext,
    timeline: Timeline,
    target: Instant,
    *,
    going: Collection[str] = (),
    kept: Collection[FileGroupId] = (),
    archived: Iterable[Instant] = (),
) -> tuple[str, ...]:
    """Returns the later cleans, also `archived`, that delete its replaced files, or the previous slice of a file it
    wrote. Previous slices of instants in `going` do not count. Files of file groups in `kept` stay.
    """
    metadata = failed_of(context, target).metadata
    if metadata is None:
        return ()
    previous = {
        FileGroupId(stat.partition_path, stat.file_id): stat.prev_commit
        for stat in metadata.write_stats()
        if stat.prev_commit not in going
    }
    replaced = frozenset(metadata.replaced_file_groups()).difference(kept)
    return tuple(
        clean.requested_time
        for clean in (*archived, *timeline.of_actions(Action.CLEAN))
        if clean.requested_time > target.requested_time
        and any(group in replaced or previous.get(group) == instant for group, instant in _deleted_by(context, clean))
    )


def _deleted_by(context: TableContext, clean: Instant) -> Iterator[tuple[FileGroupId, str]]:
    """Yields file group and instant of each data file that a clean deleted, or that a pending one plans."""
    deleted: Mapping[str, Sequence[str]]
    if clean.is_completed:
        path = context.active.path_of(clean)
        try:
            raw = context.active.read_of(clean)
        except StorageNotFoundError:
            raw = context.history().content(clean)
        done = record_map(raw, "partitionMetadata", path=path)
        deleted = {partition: texts(raw, "successDeleteFiles", path=path) for partition, raw in done.items()}
    else:
        plan = read_clean_plan(context.active, clean.requested_time)
        deleted = _of_empty_plan(context, clean) if plan is None else plan[0].files
    for partition, names in deleted.items():
        for name in names:
            parsed = parse_data_file(name.rpartition("/")[2])
            if parsed is not None:
                yield FileGroupId(partition, parsed.file_id), parsed.instant


def _of_empty_plan(context: TableContext, clean: Instant) -> Mapping[str, Sequence[str]]:
    """Returns no files, for a clean that cannot have started. Raises CorruptFileError where it may have."""
    path = context.active.path(clean.requested_time, Action.CLEAN, State.REQUESTED)
    if clean.state is State.REQUESTED and not may_be_written(context.active, path):
        return {}
    raise CorruptFileError(
        "the plan of the clean is empty: it is not known which files it deletes",
        path=path,
        remedy=f"bring the file back from a copy, or take the clean off the timeline: `hudictl run clean TABLE "
        f"--instant {clean.requested_time}`",
    )
