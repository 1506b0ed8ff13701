"""Checks before a planned clean deletes files: they must still be unneeded, since the table may have changed since the
plan.

A savepoint may have been made, a plan that real Hudi wrote may name files that a pending compaction needs (hudi#19290),
and a rollback or restore may have made an older slice the newest one again, or be about to.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from hudi_core.errors import ConflictError
from hudi_core.model.partition import join
from hudi_core.services.clean.kept_files import TablePartitions
from hudi_core.services.clean.slices_to_delete import PartitionState
from hudi_core.services.context import TableContext
from hudi_core.timeline.actions.clean import CleanPlan
from hudi_core.timeline.pending_plans import without_undone
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.slicing import PENDING_WRITES


def check_recordable(context: TableContext) -> None:
    """Raises where the metadata table cannot record what a clean deletes: MetadataPublisher.check."""
    publisher = context.metadata_publisher()
    if publisher is not None:
        publisher.check()


def check_abandoned(context: TableContext, timeline: Timeline, plan: CleanPlan, *, path: str) -> None:
    """Raises ConflictError naming the plan's file (`path`) and the first of its files that is still needed.

    Reads one of the plan's partitions at a time, as planning does. A file of a pending write is known by its name, as
    the metadata table does not list it; Hudi's planner takes files of completed instants only. In layout 1 the name of
    a log file tells its slice, and not its writers.
    """
    _refuse_pending(timeline, plan, path, by_log_names=context.active.layout != 1)
    for seen in dict.fromkeys((timeline, without_undone(context.active, timeline))):
        for inputs in TablePartitions.open(context, seen).inputs(plan.files):
            names = frozenset(plan.files[inputs.partition])
            for what, needed, remedy in _REQUESTED:
                requested = names & frozenset(needed(inputs))
                if requested:
                    raise ConflictError(
                        f"the clean's plan names {join(inputs.partition, min(requested))}, which {what}",
                        path=path,
                        remedy=remedy,
                    )


def _refuse_pending(timeline: Timeline, plan: CleanPlan, path: str, *, by_log_names: bool) -> None:
    pending = timeline.pending().of_actions(*PENDING_WRITES).requested_times
    if not pending:
        return
    for partition, names in plan.files.items():
        # By text: a plan may have a million names, and each was parsed already.
        by_name = (name for name in names if by_log_names or name[0] != ".")
        found = next((name for name in by_name if _instant_of(name) in pending), None)
        if found is not None:
            raise ConflictError(
                f"the clean's plan names {join(partition, found)}, of {_instant_of(found)}, which is pending",
                path=path,
                remedy=f"run the clean when it is completed or rolled back, or {_AGAIN}",
            )


def _instant_of(name: str) -> str:
    """Of a base file, `<file id>_<token>_<instant>.parquet`, or a log file, `.<file id>_<instant>.log.<version>`."""
    return name.partition(".log.")[0].rpartition("_")[2].partition(".")[0]


def latest_files(inputs: PartitionState) -> set[str]:
    """What a snapshot query reads: the files of the newest slice of each group that is not replaced, and while a
    compaction of it is pending or nothing was compacted yet, of the slices before it down to one with a base file.
    """
    found: set[str] = set()
    for group in inputs.groups:
        if group.id in inputs.replaced:
            continue
        for item in group.slices:
            found.update(file.name for file in item.data_files)
            if item.base_file is not None or not (item.is_empty or group.id in inputs.compacting):
                break
    return found


_AGAIN = "give this clean up with `hudictl unschedule` and plan a new one"
_REQUESTED: tuple[tuple[str, Callable[[PartitionState], Collection[str]], str], ...] = (
    ("a savepoint keeps", lambda inputs: inputs.kept, f"delete the savepoint, or {_AGAIN}"),
    ("a pending plan needs", lambda inputs: inputs.needed, f"run that plan first, or {_AGAIN}"),
    ("readers of the latest state need", latest_files, f"a rollback or restore brings it back: {_AGAIN}"),
)
