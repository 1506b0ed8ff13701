"""Reads what the guards of a rollback go by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hudi_core.errors import ConflictError
from hudi_core.model.claim_names import HUDI_HEARTBEATS
from hudi_core.model.names import FileGroupId, parse_data_file
from hudi_core.services.context import TableContext
from hudi_core.services.rollback.checks import RollbackInputs
from hudi_core.services.rollback.failed_writes import heartbeats_of
from hudi_core.services.rollback.strategies import Failed
from hudi_core.timeline.actions.clean import decode_clean_plan
from hudi_core.timeline.actions.plan_fields import texts
from hudi_core.timeline.actions.pretty_json import member
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.pending_plans import read_clustering_plans
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim_file import current_claim, has_let_go
from hudi_core.transaction.writer_heartbeats import FailedWrites, failed_writes_policy


def read_inputs(context: TableContext, timeline: Timeline, failed: Failed) -> RollbackInputs:
    """The inputs for rolling `failed` back now."""
    return RollbackInputs(
        eager=failed_writes_policy(context.options) is FailedWrites.EAGER,
        clusterings=frozenset(read_clustering_plans(context.active, timeline)),
        heartbeat=context.storage.exists(f"{HUDI_HEARTBEATS}/{failed.time}"),
        cleaned=_cleans_since(context, timeline, failed) if failed.instant.is_completed else (),
    )


def refuse_live_writer(context: TableContext, target: str, *, dry_run: bool = False) -> None:
    """Raises ConflictError while a heartbeat shows a writer on `target`, unless a claim of ours decides that."""
    if current_claim(context.storage, target) is not None and not has_let_go(context.storage, target):
        return
    if target in heartbeats_of(context, dry_run).live():
        raise ConflictError(
            f"a writer is at work on instant {target}",
            path=f"{HUDI_HEARTBEATS}/{target}",
            remedy="wait for it, or stop it and wait until its heartbeat expires",
        )


def _cleans_since(context: TableContext, timeline: Timeline, failed: Failed) -> tuple[str, ...]:
    """The cleans after the instant that delete its replaced files, or the previous slice of a file it wrote."""
    if failed.metadata is None:
        return ()
    previous = {
        FileGroupId(stat.partition_path, stat.file_id): stat.prev_commit for stat in failed.metadata.write_stats()
    }
    replaced = frozenset(failed.metadata.replaced_file_groups())
    return tuple(
        clean.requested_time
        for clean in timeline.of_actions(Action.CLEAN).after(failed.time)
        if any(group in replaced or previous.get(group) == instant for group, instant in _deleted_by(context, clean))
    )


def _deleted_by(context: TableContext, clean: Instant) -> Iterator[tuple[FileGroupId, str]]:
    """File group and instant of each data file that a completed clean deleted, or the plan of a pending one names."""
    deleted: Mapping[str, Sequence[str]]
    if clean.is_completed:
        path = context.active.path_of(clean)
        done = member(context.active.read_of(clean), "partitionMetadata", dict, path=path, default={})
        deleted = {partition: texts(raw, "successDeleteFiles", path=path) for partition, raw in done.items()}
    else:
        path = context.active.path(clean.requested_time, Action.CLEAN, State.REQUESTED)
        data = context.active.read_requested(clean.requested_time, Action.CLEAN)
        deleted = decode_clean_plan(data, path=path).files
    for partition, names in deleted.items():
        for name in names:
            parsed = parse_data_file(name.rpartition("/")[2])
            if parsed is not None:
                yield FileGroupId(partition, parsed.file_id), parsed.instant
