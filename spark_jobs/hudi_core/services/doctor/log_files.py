"""Finds log files that queries read in part only, and the rule on them: torn writes, and damage in storage."""

from __future__ import annotations

from collections.abc import Iterator

from hudi_core.codec.log.blocks import CorruptBlock
from hudi_core.codec.log.frames import walk
from hudi_core.errors import FormatError, StorageNotFoundError
from hudi_core.services.context import TableContext
from hudi_core.services.doctor.finding import Counted, Finding, Observations
from hudi_core.storage.base import ByteRange, Storage
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_group import DataFile
from hudi_core.view.listing import StorageListing

_FIX = (
    "restore the file from a copy, or roll back the instant that wrote it; a query skips the block, with --strict it "
    "fails, and a compaction is refused unless --allow-corrupt-log-blocks is given, which loses the rows for good"
)


def find_corrupt_logs(context: TableContext, timeline: Timeline) -> Counted[tuple[str, str]]:
    """Path and reason of each corrupt log file in the slices that a snapshot query reads.

    Reads the headers of every log block: a request for a file of up to 64 KiB, one for each block of a larger one.
    Nothing is found where a pending plan cannot be read, which has a finding of its own, nor of a file that was removed
    meanwhile.
    """
    found: Counted[tuple[str, str]] = Counted()
    if not context.config.is_merge_on_read:
        return found
    try:
        view = context.view(timeline, listing=StorageListing(context.storage))
    except (FormatError, StorageNotFoundError):
        return found
    for partition in view.partitions():
        for file_slice in view.latest_merged_slices(partition):
            for log in file_slice.log_files:
                if (reason := _fault(context.storage, log)) is not None:
                    found.add((log.path, reason))
    return found


def _fault(storage: Storage, log: DataFile) -> str | None:
    """Why a query skips a part of the file, or cannot read it."""

    def read_at(offset: int, length: int) -> bytes:
        return storage.read_range(log.path, ByteRange(offset, length))

    try:
        for block in walk(read_at, log.size, log.path):
            if isinstance(block, CorruptBlock):
                return f"{block.length} bytes at byte {block.offset} are no block: {block.reason}"
    except StorageNotFoundError:
        return None
    except FormatError as error:
        return error.message
    return None


def corrupt_logs(observed: Observations) -> Iterator[Finding]:
    """Each log file with a corrupt block, up to the number that is kept."""
    for path, reason in observed.corrupt_logs.first:
        yield Finding("corrupt_log_file", "error", f"{path}: {reason}; its rows may be missing", _FIX, path=path)
    if more := observed.corrupt_logs.count - len(observed.corrupt_logs.first):
        yield Finding("corrupt_log_file", "error", f"{more} more log files are damaged", _FIX)
