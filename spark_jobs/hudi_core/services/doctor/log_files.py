"""What queries skip in log files, corrupt blocks, and files that are no log files."""

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
from hudi_core.services.doctor.data_files import DataFiles
from hudi_core.services.doctor.finding import Counted, Finding, each_of
from hudi_core.view.file_group import FileSlice

_THREADS: Final = 16
_LOST: Final = (
    "restore the file from a copy, or write the rows again. A compaction refuses the file slice; `hudictl run "
    "compaction --allow-corrupt-log-blocks` compacts it without the block"
)
_TORN: Final = (
    "no row of a completed commit is in it: `hudictl run compaction --schedule` merges the file slice without it"
)
_UNREADABLE: Final = "restore the file from a copy; queries and compactions of its file slice fail"


def damaged_logs(files: DataFiles) -> Iterator[Finding]:
    """Corrupt log blocks of completed commits, whose rows queries miss, and log files that no query can read; torn ends
    of log files, which hold no row. Of corrupt blocks that a rollback cancelled only those with bytes of a completed
    commit count.

    The log files of the slices that a snapshot query reads now are scanned as it scans them; those of a copy-on-write
    table are not. Costs one request for each log block, of 64 KiB at its end; contents are not read, nor decoded: a
    block whose frame is whole may still be damaged inside.
    """
    if not files.context.config.is_merge_on_read or files.view is None:
        return
    damaged: Counted[Finding] = Counted()
    torn: Counted[Finding] = Counted()
    scan = partial(_scan, files, CommittedInstants.of(files.timeline), latest_read_instant(files.timeline))
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="log-files") as pool:
        for partition in files.view.partitions():
            slices = [item for item in files.view.latest_merged_slices(partition) if item.log_files]
            for scanned in pool.map(scan, slices):
                for finding in [scanned] if isinstance(scanned, Finding) else _judged_blocks(scanned, files.writes):
                    (torn if finding.severity == "info" else damaged).add(finding)
    yield from each_of(damaged, "more log blocks are corrupt", _LOST)
    yield from each_of(torn, "more log files have a torn end", _TORN)


def _scan(files: DataFiles, committed: CommittedInstants, latest: str | None, item: FileSlice) -> ScanResult | Finding:
    stop = not files.context.config.features.completion_time_in_name
    try:
        return scan_log_files(files.storage, item.log_files, committed, latest_instant=latest, stop_at_newer=stop)
    except StorageNotFoundError:  # removed since it was listed; a file that is listed and gone has a rule of its own
        return ScanResult((), (), ScanCounts())
    except FormatError as error:
        path = error.path or item.log_files[0].path
        return Finding("corrupt_log_block", "error", str(error), _UNREADABLE, path=path)


def _judged_blocks(scan: ScanResult, writes: CompletedWrites) -> Iterator[Finding]:
    for block in scan.corrupt:
        yield _judged(block, writes.why_not_torn(block))
    for block in scan.corrupt_removed:
        covered = writes.why_lost(block)
        if covered is not None:
            yield _judged(block, covered)


def _judged(block: CorruptBlock, covered: str | None) -> Finding:
    place = f"{block.path}: corrupt log block of {block.length} bytes at byte {block.offset}"
    if covered is None:
        return Finding("torn_log_tail", "info", f"{place} is the torn end of a write that died", _TORN, path=block.path)
    what = f"{place} is skipped, rows are missing: {block.reason}; {covered}"
    return Finding("corrupt_log_block", "error", what, _LOST, path=block.path)
