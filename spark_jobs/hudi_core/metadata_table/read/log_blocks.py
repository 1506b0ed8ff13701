"""Which blocks of a metadata-table file group's log files hold records that count (AbstractHoodieLogRecordReader,
HoodieTableMetadataUtil.getValidInstantTimestamps of 0.15 and 1.x). In any other table: filegroup/read/log_scan.py.

The metadata table completes an instant before the data table does: a block counts when its instant is completed on the
data timeline too, or is one that only the metadata table has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from hudi_core.codec.log.blocks import BlockType, LogBlock, ReadAt, walk
from hudi_core.errors import CorruptFileError
from hudi_core.filegroup.read.log_scan import scan_blocks
from hudi_core.metadata_table.instants import SOLO_COMMIT, is_metadata_suffix, is_solo
from hudi_core.storage.base import ByteRange, FileInfo, Storage
from hudi_core.storage.one_look import content_of
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.timeline import Timeline

_TYPES: Final = frozenset({BlockType.HFILE_DATA, BlockType.DELETE})
_REMEDY = "read the table without its metadata table; drop it and let Hudi's writer rebuild it"
_WHOLE_FILE = 1 << 20
"""Bytes up to which a log file is read with one request: the metadata table's are some ten kilobytes."""

RolledBack = Callable[[Instant], list[str]]


def log_reader(storage: Storage, info: FileInfo) -> ReadAt:
    """Reads (start, length) of a log file, fewer bytes only where it ends."""
    if info.size > _WHOLE_FILE:
        return lambda start, length: storage.read_range(info.path, ByteRange(start, length))
    data = content_of(storage, info, lambda: storage.read(info.path)) if info.size else b""
    return lambda start, length: data[start : start + length]


@dataclass(frozen=True, slots=True)
class BlockFilter:
    """`stop_at_newer`: the first block after `latest` ends the scan, as in Hudi 0.15; else it is passed over (1.x)."""

    instants: frozenset[str]
    latest: str
    stop_at_newer: bool = True


@dataclass(frozen=True, slots=True)
class LiveBlock:
    block: LogBlock

    @property
    def schema(self) -> str:
        """Of the block's records; raises CorruptFileError when it carries none."""
        text = self.block.schema
        if text is None:
            raise CorruptFileError(
                f"data block at byte {self.block.offset} has no schema", path=self.block.path, remedy=_REMEDY
            )
        return text

    def content(self) -> bytes:
        return self.read_range(0, self.block.content_length)

    def read_range(self, offset: int, length: int) -> bytes:
        return self.block.read_at(
            self.block.content_offset + offset, max(0, min(length, self.block.content_length - offset))
        )


def live_blocks(storage: Storage, logs: Iterable[FileInfo], blocks: BlockFilter) -> list[LiveBlock]:
    """The blocks that count in the order in which they merge (filegroup.read.log_scan). Contents are not read. Raises
    CorruptFileError for a damaged block that no later rollback cancels: its records are lost, and an answer without
    them would be silently wrong (Hudi passes over such a block).
    """
    scan = scan_blocks(
        chain.from_iterable(walk(log_reader(storage, info), info.size, info.path) for info in logs),
        blocks.instants.__contains__,
        latest_instant=blocks.latest,
        stop_at_newer=blocks.stop_at_newer,
        types=_TYPES,
        remedy=_REMEDY,
    )
    if scan.corrupt:
        first = scan.corrupt[0]
        raise CorruptFileError(f"damaged block at byte {first.offset}: {first.reason}", path=first.path, remedy=_REMEDY)
    return list(map(LiveBlock, scan.blocks))


def valid_instants(
    data: Timeline, metadata: Timeline, rolled_back: RolledBack, *, suffixes: bool = True
) -> frozenset[str]:
    """The instants whose blocks count, of the data table's and the metadata table's timelines. `suffixes`: instants of
    the metadata table alone have a suffix (TableVersion.metadata_suffixes); else all completed deltacommits that are
    not pending on the data timeline count. Instants that were rolled back count as well: only rollback commands cancel
    their blocks. Archiving waits until the metadata table has compacted an instant.
    """
    valid = {instant.requested_time for instant in data.completed()}
    pending = data.pending().requested_times
    for instant in metadata.completed():
        time = instant.requested_time
        is_metadata_service = instant.action == Action.DELTA_COMMIT and (
            is_metadata_suffix(time) if suffixes else time not in pending or is_solo(time)
        )
        if is_metadata_service or instant.action in (Action.ROLLBACK, Action.RESTORE):
            valid.add(time)
    # Real Hudi reads only the rollbacks that are newer than the earliest valid instant; an older one names instants
    # whose blocks are gone.
    earliest = min(valid, default=SOLO_COMMIT)
    for instant in data.completed().of_actions(Action.ROLLBACK, Action.RESTORE):
        if instant.requested_time > earliest:
            valid.update(rolled_back(instant))
    return frozenset(valid)


def rolled_back_by(timeline: ActiveTimeline, instant: Instant) -> list[str]:
    """What a completed rollback or restore of the data table rolled back; raises CorruptFileError where it does not
    say. A rollback's completed file is empty after a crash; then its plan names it (getRollbackedCommits).
    """
    path = timeline.path_of(instant)
    details = timeline.read_of(instant)
    if instant.action == Action.RESTORE:
        by_instant = details.get("hoodieRestoreMetadata")
        lists = by_instant.values() if isinstance(by_instant, dict) else [None]
        rollbacks = [entry for entries in lists for entry in (entries if isinstance(entries, list) else [None])]
        return [time for rollback in rollbacks for time in _instants(rollback, path)]
    if not details:
        plan = timeline.read_any(instant.requested_time, instant.action, State.REQUESTED).get("instantToRollback")
        return _texts([plan.get("commitTime") if isinstance(plan, dict) else None], path)
    return _instants(details, path)


def _instants(rollback: Any, path: str) -> list[str]:
    return _texts(rollback.get("commitsRollback") if isinstance(rollback, dict) else None, path)


def _texts(values: Any, path: str) -> list[str]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise CorruptFileError("does not say which instants it rolled back", path=path)
    return values
