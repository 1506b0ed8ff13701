"""Finds the files that a rollback removes, by the failed writer's markers or by listing (MarkerBasedRollbackStrategy,
ListingBasedRollbackStrategy). failed_writes.py says which writes are rolled back.

Files of the instant are deleted; from table version 8 on also log files. Up to version 6 several instants share a log
file: there a rollback command block is appended (`shared_logs`).

Without markers Hudi finds nothing, and leaves files whose rows show once the instant is archived
(containsOrBeforeTimelineStarts). This engine lists the storage. It reads log headers where Hudi's listing of version 6
relies on the writer's workload profile.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from hudi_core.codec.log.blocks import BlockType, CorruptBlock
from hudi_core.config.concurrency_config import ROLLBACK_USING_MARKERS
from hudi_core.errors import CorruptFileError, StorageNotFoundError, TimelineError
from hudi_core.filegroup.read.log_scan import CommittedInstants, has_counting_block, log_blocks
from hudi_core.filegroup.write.markers import Marker, MarkerType, list_markers
from hudi_core.filegroup.write.rollback_files import is_named_after_another
from hudi_core.frozen import dataclass
from hudi_core.model.names import BaseFileName, LogFileName, parse_data_file
from hudi_core.model.partition import join
from hudi_core.services.context import TableContext
from hudi_core.storage.base import FileInfo
from hudi_core.timeline.actions.commit import CommitMetadata, Operation, decode_commit
from hudi_core.timeline.actions.rollback import RollbackStep
from hudi_core.timeline.instant import REPLACING_ACTIONS, Action, Instant, State
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.reconcile import list_partitions
from hudi_core.view.file_group import DataFile

log = logging.getLogger(__name__)

_READERS: Final = 16
"""How many log files are looked into at a time."""
_NO_COMMIT: Final = "null"
"""The previous commit in a write stat of a new file group (HoodieWriteStat.NULL_COMMIT)."""
_PLANNED: Final = frozenset({Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING})
"""Actions whose pending files say nothing of what was written. When completed, they have another name."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The instant to roll back, and what its file says where that is commit metadata or a workload profile."""

    instant: Instant
    metadata: CommitMetadata | None = None

    @property
    def time(self) -> str:
        return self.instant.requested_time

    @property
    def is_compaction(self) -> bool:
        if Action.COMPACTION in (self.instant.action, self.instant.pending_action):
            return True
        return self.metadata is not None and self.metadata.operation_type == Operation.COMPACT


def failed_of(context: TableContext, instant: Instant) -> Failed:
    """Returns what the instant's file says of its writes. It says nothing where it is empty, belongs to a pending
    planned action, or is an inflight file that cannot be read: then markers or all file groups are searched.
    """
    if not instant.is_completed and (instant.state is State.REQUESTED or instant.action in _PLANNED):
        return Failed(instant)
    data = context.active.read_details(instant)
    try:
        return Failed(instant, decode_commit(data, path=context.active.path_of(instant)) if data else None)
    except CorruptFileError as error:
        if instant.is_completed:
            raise
        log.warning("%s %s is rolled back without its inflight file: %s", instant.action, instant.requested_time, error)
        return Failed(instant)


def rollback_steps(
    context: TableContext, target: Instant, timeline: Timeline, *, restoring: bool = False
) -> list[RollbackStep]:
    """Returns the steps that roll back the files of `target`, sorted; none for an instant that was only requested.

    A compaction that was completed, or that a restore removes (`restoring`), is deleted with its whole slice. In
    version 6 the log files on top of it carry its instant. They would become the newest slice after archival
    (HoodieTimeline.containsOrBeforeTimelineStarts), as happens in Hudi.
    """
    failed = failed_of(context, target)
    slice_goes = restoring and failed.is_compaction and not context.config.features.rollback_deletes_logs
    if target.state is State.REQUESTED and not slice_goes:
        return []
    by_markers = not (target.is_completed or restoring) and ROLLBACK_USING_MARKERS.read(context.options)
    if by_markers and (markers := list_markers(context.storage, failed.time)):
        return sorted(_by_markers(context, failed, markers), key=_order)
    return sorted(_by_listing(context, failed, timeline, restoring), key=_order)


def plan_rollback(context: TableContext, timeline: Timeline, target: Instant) -> list[RollbackStep]:
    """Returns the steps. Raises TimelineError for log files with rows of another completed instant (used_log_file)."""
    steps = rollback_steps(context, target, timeline)
    used = used_log_file(context, timeline, target.requested_time, steps)
    if used is not None:
        raise TimelineError(
            f"{target.action} {target.requested_time} cannot be rolled back: another completed write has rows in the "
            f"log file {used}, which would go with it",
            path=context.active.path_of(target),
            remedy="restore the table to a commit before both: `hudictl restore TABLE --dry-run` lists them",
        )
    return steps


def deletion_of(info: FileInfo) -> RollbackStep:
    return RollbackStep(info.path.rpartition("/")[0], delete=(info.name,))


def _order(step: RollbackStep) -> tuple[str, str, tuple[str, ...]]:
    return step.partition, step.file_id, step.delete


def _by_markers(context: TableContext, failed: Failed, markers: Iterable[Marker]) -> Iterator[RollbackStep]:
    partitions = sorted({marker.partition for marker in markers if marker.kind == MarkerType.APPEND.value})
    listed = {path: {info.name: info for info in files} for path, files in list_partitions(context.storage, partitions)}
    appended: dict[tuple[str, str, str], dict[str, int]] = {}
    shared_logs = not context.config.features.rollback_deletes_logs
    for marker in markers:
        parsed = parse_data_file(marker.file_name)
        is_own = parsed is not None and parsed.instant == failed.time
        may_be = is_own or shared_logs
        if not may_be and is_named_after_another(context.storage, failed.time, marker.partition, marker.file_name):
            yield RollbackStep(marker.partition, delete=(marker.file_name,))
        elif parsed is None or not may_be:
            named = f"{marker.partition}/{marker.file_name}"
            log.warning("marker of %s for %s: that is no file of this instant, it is left alone", failed.time, named)
        elif isinstance(parsed, LogFileName) and is_own and shared_logs:
            yield RollbackStep(marker.partition, delete=(marker.file_name,))
        elif isinstance(parsed, BaseFileName) and is_own and marker.kind == MarkerType.APPEND.value:
            here = listed.get(marker.partition, {}).values()
            yield from (deletion_of(info) for info in here if _is_log_of(info, parsed))
        elif is_own:
            yield RollbackStep(marker.partition, parsed.file_id, failed.time, (marker.file_name,))
        elif isinstance(parsed, LogFileName):
            info = listed.get(marker.partition, {}).get(marker.file_name)
            if info is not None:
                # A writer that dies as it creates a log file leaves no byte. Hudi does not run a plan with size 0: it
                # passes the size to its metadata table, which refuses 0 (MarkerBasedRollbackStrategy stubs 1).
                sizes = appended.setdefault((marker.partition, parsed.file_id, parsed.instant), {})
                sizes[marker.file_name] = max(info.size, 1)
        else:
            # Before HUDI-1517 the marker of an append was named after the slice's base file.
            here = listed.get(marker.partition, {}).values()
            logs = [DataFile(marker.partition, info.name, info.size) for info in here if _is_log_of(info, parsed)]
            blocks = _files_with_blocks(context, logs, failed.time, torn=True)
            if blocks:
                appended.setdefault((marker.partition, parsed.file_id, parsed.instant), {}).update(blocks)
    for (partition, file_id, base_instant), blocks in appended.items():
        yield RollbackStep(partition, file_id, base_instant, log_blocks=blocks)


def _is_log_of(info: FileInfo, base: BaseFileName) -> bool:
    parsed = parse_data_file(info.name)
    return isinstance(parsed, LogFileName) and (parsed.file_id, parsed.instant) == (base.file_id, base.instant)


def _by_listing(context: TableContext, failed: Failed, timeline: Timeline, restoring: bool) -> Iterator[RollbackStep]:
    shared_logs = not context.config.features.rollback_deletes_logs
    base_files_only = shared_logs and failed.is_compaction and not restoring and not failed.instant.is_completed
    # The clusterings that may have given their name to log files of the instant (is_named_after_another).
    replacing = Timeline() if shared_logs else timeline.of_actions(*REPLACING_ACTIONS)
    clusterings = frozenset(item.requested_time for item in replacing if item.requested_time < failed.time)
    for partition, files in list_partitions(context.storage, _partitions(context, failed, timeline)):
        for info in files:
            name = parse_data_file(info.name)
            if name is None:
                continue
            if name.instant == failed.time:
                goes = not (base_files_only and isinstance(name, LogFileName))
            else:
                may_be = isinstance(name, LogFileName) and name.instant in clusterings
                goes = may_be and is_named_after_another(context.storage, failed.time, partition, info.name)
            if goes:
                yield deletion_of(info)
    appends = failed.instant.action in (Action.DELTA_COMMIT, Action.LOG_COMPACTION)
    if shared_logs and appends and not failed.is_compaction:
        yield from _blocks_to_roll_back(context, failed, timeline)


def _partitions(context: TableContext, failed: Failed, timeline: Timeline) -> list[str]:
    """Returns the partitions to list. A pending write may have more partitions than its profile says."""
    if failed.instant.is_completed and failed.metadata is not None and failed.metadata.operation_type is not None:
        failed.metadata.check_paths(source=context.active.path_of(failed.instant))
        return sorted(failed.metadata.partition_to_write_stats)
    return context.view(timeline, "off").partitions()


def _blocks_to_roll_back(context: TableContext, failed: Failed, timeline: Timeline) -> Iterator[RollbackStep]:
    """Yields steps for the log files of older slices that hold blocks of the instant by their headers, in table version
    6 (getRollbackRequestToAppend). The instant's metadata or profile names the file groups; else all are.
    """
    view = context.view(timeline, "off")
    stats = None if failed.metadata is None else failed.metadata.partition_to_write_stats
    if stats is not None and failed.metadata is not None:
        failed.metadata.check_paths(source=context.active.path_of(failed.instant))
    for partition in view.partitions() if stats is None else sorted(stats):
        appended = None
        if stats is not None:
            appended = {stat.file_id for stat in stats[partition] if stat.prev_commit not in ("", _NO_COMMIT)}
            if not appended:
                continue
        for item in view.latest_slices_up_to(partition, failed.time):
            if item.base_instant < failed.time and (appended is None or item.file_group.file_id in appended):
                blocks = _files_with_blocks(
                    context, item.log_files, failed.time, torn=appended is not None and not failed.instant.is_completed
                )
                if blocks:
                    yield RollbackStep(partition, item.file_group.file_id, item.base_instant, log_blocks=blocks)


def _files_with_blocks(context: TableContext, files: Iterable[DataFile], instant: str, *, torn: bool) -> dict[str, int]:
    """Returns log files with blocks of `instant`, and their sizes; with `torn` also those with a damaged block."""
    return {file.name: file.size for file in files if _has_block(context, file, instant, torn)}


def _has_block(context: TableContext, file: DataFile, instant: str, torn: bool) -> bool:
    try:
        for block in log_blocks(context.storage, [file]):
            if isinstance(block, CorruptBlock):
                if torn:
                    return True
            elif block.type is not BlockType.COMMAND and block.instant_time == instant:
                return True
    except StorageNotFoundError:
        return False  # cleaned since the listing
    return False


def sizes_of(context: TableContext, steps: Iterable[RollbackStep]) -> Mapping[str, int]:
    """Returns the files that `steps` delete and that are there now, by path, with their sizes in bytes."""
    deleted = {(step.partition, name) for step in steps for name in step.delete}
    listed = list_partitions(context.storage, {partition for partition, _ in deleted})
    return {info.path: info.size for partition, files in listed for info in files if (partition, info.name) in deleted}


def used_log_file(
    context: TableContext,
    timeline: Timeline,
    instant: str,
    steps: Iterable[RollbackStep],
    rolled_back: Collection[str] = (),
) -> str | None:
    """Returns the path of a log file that `steps`, which roll back `instant`, delete although it holds rows of another
    completed instant. Instants in `rolled_back` do not count. Returns None where there is no such file.

    In layout 1 other writers append to the slice that a log file is named after. Real Hudi plans to delete the logs of
    a compaction's slice while no later deltacommit is completed (ListingBasedRollbackStrategy).
    """
    if context.active.layout != 1:
        return None
    logs = {join(step.partition, name) for step in steps for name in step.delete if name.startswith(".")}
    there = [
        DataFile(partition, info.name, info.size)
        for partition, files in list_partitions(context.storage, {path.rpartition("/")[0] for path in logs})
        for info in files
        if info.path in logs
    ]
    committed = CommittedInstants.of(timeline)

    def is_other(time_of: str) -> bool:
        return time_of != instant and time_of not in rolled_back and committed(time_of)

    def is_used(file: DataFile) -> bool:
        return has_counting_block(context.storage, file, is_other)

    with ThreadPoolExecutor(max_workers=_READERS, thread_name_prefix="planned") as pool:
        return next((file.path for file, used in zip(there, pool.map(is_used, there), strict=True) if used), None)
