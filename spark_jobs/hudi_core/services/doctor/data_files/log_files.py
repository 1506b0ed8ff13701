"""Finds what queries skip in log files: corrupt blocks, and files that are no log files; and the rule on them."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

from hudi_core.codec.log.blocks import CorruptBlock
from hudi_core.errors import FormatError, StorageNotFoundError
from hudi_core.filegroup.read.log_scan import (
    CommittedInstants,
    ScanCounts,
    ScanResult,
    latest_read_instant,
    scan_log_files,
)
from hudi_core.filegroup.read.torn_tails import CompletedWrites
from hudi_core.services.context import TableContext
from hudi_core.services.doctor.finding import KEPT, DamagedLog, Finding, LogObservations, Observations
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_group import FileSlice
from hudi_core.view.listing import StorageListing

_THREADS: Final = 16
_LOST: Final = (
    "restore the file from a copy, or write the rows again. A compaction refuses the file slice; `hudictl run "
    "compaction --allow-corrupt-log-blocks` compacts it without the block"
)
_TORN: Final = (
    "no row of a completed commit is in it: `hudictl run compaction --schedule` merges the file slice without it"
)
_UNREADABLE: Final = "restore the file from a copy; queries and compactions of its file slice fail"


def find_damaged_logs(context: TableContext, timeline: Timeline) -> LogObservations:
    """Scans the log files of the slices that a snapshot query reads now, as it does. Of corrupt blocks that a rollback
    cancelled only those with bytes of a completed commit count. Nothing of a copy-on-write table, or beside a pending
    plan that cannot be read.

    Costs one request for each log block, of 64 KiB at its end; contents are not read, nor decoded: a block whose frame
    is whole may still be damaged inside. Memory: the slices of one partition.
    """
    found = LogObservations()
    if not context.config.is_merge_on_read:
        return found
    try:
        view = context.view(timeline, listing=StorageListing(context.storage))
    except (FormatError, StorageNotFoundError):
        return found  # a pending plan that cannot be read, which has a rule of its own
    scan = partial(_scan, context, CommittedInstants.of(timeline), latest_read_instant(timeline))
    writes = CompletedWrites(context.active, timeline, context.history)
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="log-files") as pool:
        for partition in view.partitions():
            slices = [item for item in view.latest_merged_slices(partition) if item.log_files]
            for scanned in pool.map(scan, slices):
                for damaged in [scanned] if isinstance(scanned, DamagedLog) else _judged_blocks(scanned, writes):
                    (found.torn if damaged.is_torn else found.damaged).add(damaged)
    return found


def _judged_blocks(scan: ScanResult, writes: CompletedWrites) -> Iterator[DamagedLog]:
    for block in scan.corrupt:
        yield _judged(block, writes.why_not_torn(block))
    for block in scan.corrupt_removed:
        covered = writes.why_lost(block)
        if covered is not None:
            yield _judged(block, covered)


def _judged(block: CorruptBlock, covered: str | None) -> DamagedLog:
    place = f"{block.path}: corrupt log block of {block.length} bytes at byte {block.offset}"
    if covered is None:
        return DamagedLog(block.path, f"{place} is the torn end of a write that died", is_readable=True, is_torn=True)
    return DamagedLog(block.path, f"{place} is skipped, rows are missing: {block.reason}; {covered}", is_readable=True)


def _scan(
    context: TableContext, committed: CommittedInstants, latest: str | None, item: FileSlice
) -> ScanResult | DamagedLog:
    stop = not context.config.features.completion_time_in_name
    try:
        return scan_log_files(context.storage, item.log_files, committed, latest_instant=latest, stop_at_newer=stop)
    except StorageNotFoundError:  # removed since it was listed; a file that is listed and gone has a rule of its own
        return ScanResult((), (), ScanCounts())
    except FormatError as error:
        return DamagedLog(error.path or item.log_files[0].path, str(error), is_readable=False)


def damaged_logs(observed: Observations) -> Iterator[Finding]:
    """Corrupt log blocks of completed commits, whose rows queries miss, and log files that no query can read; torn ends
    of log files, which hold no row.
    """
    damaged, torn = observed.logs.damaged, observed.logs.torn
    for item in damaged.first:
        fix = _LOST if item.is_readable else _UNREADABLE
        yield Finding("corrupt_log_block", "error", item.what, fix, path=item.path)
    if damaged.count > KEPT:
        yield Finding("corrupt_log_block", "error", f"{damaged.count - KEPT} more log blocks are corrupt", _LOST)
    for item in torn.first:
        yield Finding("torn_log_tail", "info", item.what, _TORN, path=item.path)
    if torn.count > KEPT:
        yield Finding("torn_log_tail", "info", f"{torn.count - KEPT} more log files have a torn end", _TORN)
