"""Tells corrupt blocks of log files that lost bytes of a completed write from the torn end of a write that died.
codec/log/blocks.py says when a block is corrupt.

A writer that dies while it appends leaves a part of a block. That is usual on HDFS, above all in layout 1, where the
next write appends after it. Hudi skips the part, and no row is lost. Bytes that the write stats of a completed commit
cover (HoodieDeltaWriteStat: from logOffset to fileSizeInBytes) held rows of that commit.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import chain
from typing import Final, NamedTuple

from hudi_core.codec.log.blocks import CorruptBlock
from hudi_core.config.table_config import TableConfig
from hudi_core.errors import CorruptFileError, FormatError, StorageNotFoundError
from hudi_core.filegroup.read.log_scan import ScanResult
from hudi_core.history.archived import ArchivedTimeline, begin_of_writes, load_history
from hudi_core.model.names import parse_log_file
from hudi_core.storage.base import Storage
from hudi_core.timeline.actions.commit import CommitMetadata
from hudi_core.timeline.actions.write_stats import WriteStat
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Instant
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.listing import least_size

_REMEDY: Final = (
    "rows are missing: restore the file from a copy, or write them again; "
    "--allow-corrupt-log-blocks goes on without them"
)

log = logging.getLogger(__name__)


def pass_over_torn_tails(storage: Storage, scan: ScanResult, *, allow_lost: bool) -> int:
    """Returns how many corrupt blocks the scan passes over, as in Hudi. Raises CorruptFileError naming the first that
    is no torn tail, unless `allow_lost`. For that check, the timeline and the commits that may have written a corrupt
    block are read.
    """
    if (scan.corrupt or scan.corrupt_removed) and not allow_lost:
        refuse_lost(scan, CompletedWrites.of(storage))
    if scan.corrupt:
        first = scan.corrupt[0]  # of perhaps thousands
        log.warning(
            "%s: corrupt log block of %d bytes at byte %d is passed over", first.path, first.length, first.offset
        )
    return len(scan.corrupt)


def refuse_lost(scan: ScanResult, writes: CompletedWrites) -> None:
    """Raises CorruptFileError naming the first corrupt block of the scan that is no torn tail, or that a rollback
    command removed though a completed commit wrote it.
    """
    judged = chain(
        ((block, writes.why_lost(block)) for block in scan.corrupt),
        ((block, writes.why_lost(block, is_removed=True)) for block in scan.corrupt_removed),
    )
    for block, covered in judged:
        if covered is not None:
            message = f"corrupt log block of {block.length} bytes at byte {block.offset}: {block.reason}; {covered}"
            raise CorruptFileError(message, path=block.path, remedy=_REMEDY)


class _Bytes(NamedTuple):
    """The bytes of a file that a commit wrote, from 0 without logOffset, which the archive of layout 1 lacks."""

    path: str
    start: int | None
    end: int
    commit: Instant

    def overlaps(self, block: CorruptBlock) -> bool:
        return self.path == block.path and (self.start or 0) < block.offset + block.length and block.offset < self.end

    def describe(self) -> str:
        commit = f"{self.commit.action} {self.commit.requested_time}"
        return f"bytes {self.start or 0} to {self.end} of the file are of {commit}"


class CompletedWrites:
    """The bytes of log files that completed commits wrote; each commit is read once. Not thread-safe."""

    def __init__(self, active: ActiveTimeline, timeline: Timeline, history: Callable[[], ArchivedTimeline]) -> None:
        self._active = active
        self._timeline = timeline
        self._begin = begin_of_writes(timeline)
        self._load_history = history
        self._read: dict[Instant, tuple[_Bytes, ...]] = {}

    @staticmethod
    def of(storage: Storage) -> CompletedWrites:
        config = TableConfig.load(storage)
        active = ActiveTimeline(storage, config)
        return CompletedWrites(active, active.load(), lambda: load_history(storage, config))

    def read_commit(self, commit: Instant) -> CommitMetadata:
        """Reads a commit of the timeline, so that it is not read again for the bytes of log files."""
        metadata = self._active.read_commit(commit)
        self._read[commit] = _bytes_of(commit, metadata)
        return metadata

    def why_lost(self, block: CorruptBlock, *, is_removed: bool = False) -> str | None:
        """Returns which commit covers bytes of the block, or why none can be ruled out; None for the torn end of a
        write that no commit completed. With `is_removed`, a rollback command removed the block, so that only proof
        counts. A log file is written by the instant in its name, or in layout 1 from that instant on.
        """
        since = parse_log_file(block.path.rpartition("/")[2]).instant
        try:
            for written in self._written_since(since):
                if written.overlaps(block) and not (is_removed and written.start is None):
                    return written.describe()
            if not is_removed and (self._begin is None or since < self._begin):
                first = next(iter(self._history.instants()), None)
                if first is None or since < first.requested_time:
                    return f"whether a completed commit wrote it is unknown: the archive does not go back to {since}"
        except (FormatError, StorageNotFoundError) as error:
            return None if is_removed else f"whether a completed commit wrote it is unknown: {error}"
        return None

    def _written_since(self, since: str) -> Iterator[_Bytes]:
        # In layout 1 a write that is older than a planned compaction may append to the log file of its slice.
        may_be_older = self._active.layout == 1
        for commit in self._timeline.commits():
            if may_be_older or commit.requested_time >= since:
                if commit not in self._read:
                    self.read_commit(commit)
                yield from self._read[commit]
        if self._begin is None or since < self._begin:
            archived = [item for item in self._history.instants() if item.requested_time >= since]
            missing = [item for item in archived if item not in self._read]
            self._read.update((item, _bytes_of(item, metadata)) for item, metadata in self._history.commits(missing))
            for commit in archived:
                yield from self._read.get(commit, ())

    @cached_property
    def _history(self) -> ArchivedTimeline:
        return self._load_history()


def _bytes_of(commit: Instant, metadata: CommitMetadata) -> tuple[_Bytes, ...]:
    return tuple(
        _Bytes(stat.path, stat.log_offset, least_size(stat), commit)
        for stat in metadata.write_stats()
        if ".log." in stat.name and not _is_of_failed_task(stat)
    )


def _is_of_failed_task(stat: WriteStat) -> bool:
    """Whether a writer of version 6 added the stat for the log file of a failed task, whose rows another attempt wrote
    to a file of its own (MarkerBasedCommitMetadataResolver). Such a stat counts nothing, and has no time, unlike those
    of every writer of blocks (HoodieAppendHandle). An archived stat does not show it.
    """
    counted = stat.num_writes or stat.num_deletes or stat.num_update_writes or stat.num_inserts
    return not counted and stat.log_offset == 0 and stat.extra.get("runtimeStats", {}) is None
