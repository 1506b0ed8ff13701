"""Finds the files that a clean must keep, partition by partition: those of savepoints and of pending plans.

retention.py leaves the slices of these files out of the plan. Before a clean deletes files, it checks again that
nothing needs them (check_not_needed). A savepoint may have been made since. A plan of real Hudi may name files that a
pending compaction needs (hudi#19290). A rollback or restore may have made an older slice the newest one again, or may
be about to. Partitions are read one after the other. Those that a clean leaves empty are deleted.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from itertools import chain

from hudi_core.errors import ConflictError, StorageNotFoundError
from hudi_core.history.archived import CompletionTimes
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.model.names import FileGroupId, parse_data_file
from hudi_core.model.partition import check_partition, join
from hudi_core.services.clean.retention import PartitionState
from hudi_core.services.context import TableContext
from hudi_core.storage.base import FileInfo, Storage
from hudi_core.timeline.actions.clean import CleanPlan
from hudi_core.timeline.actions.commit import replaced_file_groups
from hudi_core.timeline.actions.rollback import decode_savepoint
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import COMMIT_ACTIONS, Action
from hudi_core.timeline.pending_plans import without_rolled_back
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_system_view import PendingWork
from hudi_core.view.listing import walk_partitions
from hudi_core.view.slicing import PENDING_WRITES, build_file_groups, slicing_for

log = logging.getLogger(__name__)


def partition_states(
    context: TableContext, timeline: Timeline, partitions: Iterable[str] | None = None
) -> Iterator[PartitionState]:
    """Yields the state of each of `partitions`, by default of all. Nothing of a partition stays in memory once the
    caller goes on to the next one. Raises FormatError naming a pending plan, savepoint or replacecommit that is unsafe.
    """
    pending = PendingWork.read(context.active, timeline)
    pending.check_complete(timeline)
    base_instants: dict[FileGroupId, tuple[str, ...]] = {}
    by_plans: dict[str, set[str]] = defaultdict(set)
    for group, (_, operation) in chain(pending.compacting.items(), pending.log_compacting.items()):
        base_instants[group] = (*base_instants.get(group, ()), operation.base_instant)
        names = (operation.base_file, *operation.log_files, *operation.cdc_files)
        by_plans[operation.partition].update(filter(None, names))
    for plan in pending.read_clusterings().values():
        for item in plan.slices:
            by_plans[item.partition].update(filter(None, (item.base_file, *item.log_files)))
    metadata = context.metadata_table("auto", timeline)
    slicing = slicing_for(context.active.layout, timeline, CompletionTimes(timeline, context.history).of)
    replaced = replaced_file_groups(timeline, context.active.read_commit)
    by_savepoints = _savepointed_files(context.active, timeline)
    for partition, files in _files(context.storage, metadata, partitions):
        compactions = pending.compacting_by_partition.get(partition, ())
        yield PartitionState(
            partition,
            tuple(build_file_groups(partition, files, slicing, compactions=compactions)),
            replaced,
            base_instants,
            frozenset(by_savepoints.get(partition, ())),
            frozenset(by_plans.get(partition, ())),
            partial(stored_data_files, context.storage, partition),
        )


def _files(
    storage: Storage, metadata: MetadataTable | None, partitions: Iterable[str] | None
) -> Iterator[tuple[str, list[FileInfo]]]:
    """Yields the files of each partition as readers find them: by the metadata table where the table has one."""
    files: Callable[[str], list[FileInfo]] = storage.list_files
    if metadata is not None:
        files = metadata.files
        partitions = metadata.partitions() if partitions is None else partitions
    elif partitions is None:
        yield from walk_partitions(storage, files)
        return
    for partition in sorted(partitions):
        yield partition, files(check_partition(partition, source="partition to clean"))


def _savepointed_files(active: ActiveTimeline, timeline: Timeline) -> dict[str, set[str]]:
    """Returns the files that savepoints keep, by partition. A savepoint deleted meanwhile keeps none."""
    kept: dict[str, set[str]] = defaultdict(set)
    for instant in timeline.completed().of_actions(Action.SAVEPOINT):
        try:
            data = active.read_details(instant)
        except StorageNotFoundError:
            continue
        if data:
            for partition, names in decode_savepoint(data, path=active.path_of(instant)).files.items():
                kept[partition].update(names)
    return kept


def stored_data_files(storage: Storage, partition: str) -> list[str]:
    """The names of the base and log files in a partition's folder, committed or not."""
    return [name for name in storage.list_names(partition) if parse_data_file(name) is not None]


def drop_partitions(storage: Storage, plan: CleanPlan, timeline: Timeline) -> frozenset[str]:
    """Deletes the folders of the partitions that the plan deletes. Returns those that are gone by now. A partition
    stays that is in use again: it has a data file or a folder, or a write is pending. Hudi deletes all.
    """
    if timeline.pending().of_actions(*COMMIT_ACTIONS).instants:
        log.info("%d empty partitions are left: a writer is at work", len(plan.dropped_partitions))
        return frozenset(partition for partition in plan.dropped_partitions if not storage.list_names(partition))
    return frozenset(partition for partition in plan.dropped_partitions if _drop(storage, partition))


def _drop(storage: Storage, partition: str) -> bool:
    if not (stored_data_files(storage, partition) or storage.list_folders(partition)):
        # By name: a file that a writer creates meanwhile must not go with the folder.
        for info in storage.list_files(partition):
            if parse_data_file(info.name) is None:
                storage.delete(info.path)
        if not storage.list_names(partition):
            storage.delete_folder(partition)
            return True
    log.warning("partition %s is in use again and was left", partition)
    return False


def check_not_needed(context: TableContext, timeline: Timeline, plan: CleanPlan, *, path: str) -> None:
    """Raises ConflictError naming the plan's file (`path`) and the first of its files that is still needed. Reads one
    partition at a time. The name of a file says whether a pending write wrote it, since the metadata table does not
    list such a file. In layout 1 the name of a log file says its slice, and not its writers.
    """
    _refuse_pending(timeline, plan, path, by_log_names=context.active.layout != 1)
    for seen in dict.fromkeys((timeline, without_rolled_back(context.active, timeline))):
        for inputs in partition_states(context, seen, plan.files):
            names = frozenset(plan.files[inputs.partition])
            for what, needed, remedy in _REQUESTED:
                requested = names.intersection(needed(inputs))
                if requested:
                    first = join(inputs.partition, min(requested))
                    raise ConflictError(f"the clean's plan names {first}, which {what}", path=path, remedy=remedy)


def _refuse_pending(timeline: Timeline, plan: CleanPlan, path: str, *, by_log_names: bool) -> None:
    pending = timeline.pending().of_actions(*PENDING_WRITES).requested_times
    if not pending:
        return
    for partition, names in plan.files.items():
        # The names are compared as text: a plan may have a million names, and each was parsed already.
        by_name = (name for name in names if by_log_names or name[0] != ".")
        written = next((name for name in by_name if _instant_of(name) in pending), None)
        if written is not None:
            raise ConflictError(
                f"the clean's plan names {join(partition, written)}, of {_instant_of(written)}, which is pending",
                path=path,
                remedy=f"run the clean when it is completed or rolled back, or {_AGAIN}",
            )


def _instant_of(name: str) -> str:
    """Returns the instant in `<file id>_<token>_<instant>.parquet` or in `.<file id>_<instant>.log.<version>`."""
    return name.partition(".log.")[0].rpartition("_")[2].partition(".")[0]


def latest_files(inputs: PartitionState) -> set[str]:
    """Returns the files that a snapshot query reads: those of the newest slice of each file group that is not replaced.
    Where that slice has no base file, and is empty or a compaction of the file group is pending, the slices before it
    count too, down to one with a base file.
    """
    names: set[str] = set()
    for group in inputs.groups:
        if group.id in inputs.replaced:
            continue
        for item in group.slices:
            names.update(file.name for file in item.data_files)
            if item.base_file is not None or not (item.is_empty or group.id in inputs.compacting):
                break
    return names


_AGAIN = "abandon this clean with `hudictl unschedule` and plan a new one"
_REQUESTED: tuple[tuple[str, Callable[[PartitionState], Collection[str]], str], ...] = (
    ("a savepoint keeps", lambda inputs: inputs.kept, f"delete the savepoint, or {_AGAIN}"),
    ("a pending plan needs", lambda inputs: inputs.needed, f"run that plan first, or {_AGAIN}"),
    ("readers of the latest state need", latest_files, f"a rollback or restore brings it back: {_AGAIN}"),
)
