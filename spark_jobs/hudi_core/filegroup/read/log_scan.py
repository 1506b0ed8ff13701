"""The first pass over a slice's log files: which blocks count, and in which order they merge
(AbstractHoodieLogRecordReader of Hudi 0.15, BaseHoodieLogRecordReader of 1.x). In the metadata table:
metadata_table/instants.py.

Frames and headers are read. Blocks are queued in file order; a rollback command removes the queued blocks of the
instant it names, and every queued corrupt block. At a block that is newer than the query's instant Hudi 0.15 ends the
scan; 1.x skips the block, and obeys rollback commands however new they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import Final

from hudi_core.codec.log.blocks import BlockType, CorruptBlock, HeaderKey, LogBlock, ReadAt, walk
from hudi_core.errors import CorruptFileError, UnsupportedError
from hudi_core.storage.base import ByteRange, Storage
from hudi_core.timeline.instant import COMMIT_ACTIONS, Action
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_group import DataFile
from hudi_core.view.slicing import PENDING_WRITES

IsCommitted = Callable[[str], bool]
"""Whether blocks of an instant count: CommittedInstants, but in the metadata table metadata_table.instants."""

DATA_TYPES: Final = frozenset({BlockType.AVRO_DATA, BlockType.HFILE_DATA, BlockType.PARQUET_DATA, BlockType.DELETE})
_SMALL: Final = 64 << 10
"""Bytes that the scan reads of a file at once (codec.log.blocks): what it has of a small file need not be read again.
"""
_MOST_KEPT: Final = 8 << 20
"""Bytes of small files that one scan keeps."""
AFTER_ALL: Final = "9" * 20
"""Later than every instant: which blocks count is decided by their instants alone."""


@dataclass(frozen=True, slots=True)
class CommittedInstants:
    """Answers "is this instant committed?": whether it is a completed commit, deltacommit or replacecommit, or older
    than the first of them (archived), unless it is inflight. `inflight` also holds instants that are only requested,
    and log compactions: what the timeline shows as pending is never committed, however old.
    """

    completed: frozenset[str]
    inflight: frozenset[str]
    start: str | None

    def __call__(self, instant: str) -> bool:
        if instant in self.inflight:
            return False
        return instant in self.completed or (self.start is not None and instant < self.start)

    def up_to(self, instant: str, *, inclusive: bool = True) -> CommittedInstants:
        """The same answers for instants requested up to `instant`, or before it; later ones are not committed."""
        completed = frozenset(time for time in self.completed if time < instant)
        start = None if self.start is None else min(self.start, instant)
        return CommittedInstants(
            completed | {instant} if inclusive and self(instant) else completed, self.inflight, start
        )

    @staticmethod
    def of(timeline: Timeline) -> CommittedInstants:
        commits = timeline.commits()
        inflight = timeline.pending().of_actions(*PENDING_WRITES)
        return CommittedInstants(commits.requested_times, inflight.requested_times, commits.start)


def latest_read_instant(timeline: Timeline) -> str | None:
    """The last completed commit, up to which a snapshot query reads log blocks; None for a table without any."""
    last = timeline.commits().last()
    return None if last is None else last.requested_time


def latest_compaction_instant(timeline: Timeline) -> str | None:
    """The instant up to which a log compaction plans log blocks: the last completed commit or rollback, whose command
    blocks are obeyed; None without any. A replacecommit counts, though not for Hudi (HoodieCompactor.getMaxInstantTime
    of 0.15): behind an archival of the deltacommits it may be all that is left, where Hudi fails, or all that is newer,
    where Hudi drops their log records.
    """
    last = timeline.completed().of_actions(*COMMIT_ACTIONS, Action.ROLLBACK).last()
    return None if last is None else last.requested_time


@dataclass(frozen=True, slots=True)
class ScanCounts:
    """As HoodieWriteStat: `blocks` of any type, `rolled_back` blocks removed, `files` with a block."""

    files: int = 0
    blocks: int = 0
    corrupt: int = 0
    rolled_back: int = 0


@dataclass(frozen=True, slots=True)
class ScanResult:
    """The data and delete blocks to merge, oldest first, and the corrupt blocks that no rollback removed;
    `corrupt_removed` are those that one removed: whether they were of its write is unknown.
    """

    blocks: tuple[LogBlock, ...]
    corrupt: tuple[CorruptBlock, ...]
    counts: ScanCounts
    corrupt_removed: tuple[CorruptBlock, ...] = ()

    def refuse_corrupt(self) -> None:
        """Raises CorruptFileError naming the first corrupt block that no rollback removed."""
        if self.corrupt:
            first = self.corrupt[0]
            message = f"corrupt log block of {first.length} bytes at byte {first.offset}: {first.reason}"
            remedy = "rows may be missing; restore the file, or go on without them: read without --strict"
            raise CorruptFileError(message, path=first.path, remedy=remedy)


def scan_log_files(
    storage: Storage,
    log_files: Sequence[DataFile],
    is_committed: IsCommitted,
    *,
    latest_instant: str | None,
    stop_at_newer: bool = True,
) -> ScanResult:
    """Scans `log_files`, in scan order; with `latest_instant` None, of a table without a completed instant, it reads
    none. `stop_at_newer`: whether the scan ends at the first newer block, as in Hudi 0.15. Raises StorageNotFoundError,
    CorruptFileError for what is no log file or a block without instant, UnsupportedError for blocks that no base
    table's log holds.
    """
    blocks = log_blocks(storage, log_files, most_kept=_MOST_KEPT)
    return scan_blocks(blocks, is_committed, latest_instant=latest_instant, stop_at_newer=stop_at_newer)


def scan_blocks(
    met: Iterable[LogBlock | CorruptBlock],
    is_committed: IsCommitted,
    *,
    latest_instant: str | None,
    stop_at_newer: bool,
    types: Set[BlockType] = DATA_TYPES,
    remedy: str | None = None,
) -> ScanResult:
    """The scan of blocks in file order, of which those of `types` are merged. Raises CorruptFileError for a block
    without instant and UnsupportedError for one of another type, both with `remedy`.
    """
    queued: dict[str, list[tuple[int, LogBlock]]] = {}
    """By instant, with their places in file order: a log may have as many commands as blocks."""
    queued_corrupt: list[CorruptBlock] = []
    removed: list[CorruptBlock] = []
    seen: set[str] = set()
    blocks = corrupt = rolled_back = 0
    for block in met:
        blocks += 1
        seen.add(block.path)
        if isinstance(block, CorruptBlock):
            corrupt += 1
            queued_corrupt.append(block)
            continue
        instant = _instant_of(block, remedy)
        if latest_instant is None or (stop_at_newer and instant > latest_instant):
            break
        if block.type is BlockType.COMMAND:
            rolled_back += len(queued.pop(_target_of(block, remedy), ())) + len(queued_corrupt)
            removed += queued_corrupt
            queued_corrupt = []
        elif block.type not in types:
            message = f"log block of type {block.type.name} at byte {block.offset}"
            raise UnsupportedError(message, path=block.path, remedy=remedy)
        elif instant <= latest_instant and is_committed(instant):
            queued.setdefault(instant, []).append((blocks, block))
    valid = [block for _, block in sorted(chain.from_iterable(queued.values()), key=itemgetter(0))]
    counts = ScanCounts(len(seen), blocks, corrupt, rolled_back)
    return ScanResult(tuple(_place_compacted(valid)), tuple(queued_corrupt), counts, tuple(removed))


def log_blocks(
    storage: Storage, log_files: Iterable[DataFile], *, most_kept: int = 0
) -> Iterator[LogBlock | CorruptBlock]:
    """Every block of the log files, file by file; contents are not read, but of small files, up to `most_kept` bytes in
    all: each is one request. Errors as scan_log_files.
    """
    for file in log_files:
        read_at: ReadAt = partial(_read, storage, file.path)
        if 0 < file.size <= min(_SMALL, most_kept):
            most_kept -= file.size
            read_at = partial(_part, read_at(0, file.size))
        yield from walk(read_at, file.size, file.path)


def has_counting_block(storage: Storage, log_file: DataFile, is_committed: IsCommitted) -> bool:
    """Whether a log file holds rows or deletes of a committed instant, or rolls those of one back: another file changes
    nothing that a reader sees. Errors as scan_log_files.
    """
    instants = (
        block.target_instant_time if block.type is BlockType.COMMAND else _instant_of(block)
        for block in log_blocks(storage, [log_file])
        if isinstance(block, LogBlock)
    )
    return any(instant is not None and is_committed(instant) for instant in instants)


def _read(storage: Storage, path: str, offset: int, length: int) -> bytes:
    return storage.read_range(path, ByteRange(offset, length))


def _part(content: bytes, offset: int, length: int) -> bytes:
    return content[offset : offset + length]


def _instant_of(block: LogBlock, remedy: str | None = None) -> str:
    instant = block.instant_time
    if not instant:
        raise CorruptFileError(f"log block at byte {block.offset} names no instant", path=block.path, remedy=remedy)
    return instant


def _target_of(command: LogBlock, remedy: str | None) -> str:
    """The instant whose blocks a command removes; every command removes the corrupt blocks, too."""
    target = command.target_instant_time
    if not command.is_rollback or not target:
        message = f"log command block at byte {command.offset} is not a rollback of an instant"
        raise UnsupportedError(message, path=command.path, remedy=remedy)
    return target


def _place_compacted(blocks: list[LogBlock]) -> list[LogBlock]:
    """Moves the output of log compactions to the place of the newest of its inputs, and drops the inputs
    (scanInternalV2 of Hudi 0.15): it is written after blocks that are newer than what it merged.
    """
    if not any(HeaderKey.COMPACTED_BLOCK_TIMES in block.headers for block in blocks):
        return blocks
    by_instant: dict[str, list[LogBlock]] = {}
    for block in blocks:
        by_instant.setdefault(_instant_of(block), []).append(block)
    final: dict[str, str] = {}
    placed: set[str] = set()
    newest_first: list[list[LogBlock]] = []
    for instant in reversed(by_instant):
        group = by_instant[instant]
        merged = group[0].headers.get(HeaderKey.COMPACTED_BLOCK_TIMES)
        if merged is not None:
            target = final.get(instant, instant)
            final.update(dict.fromkeys(merged.split(","), target))
        elif instant not in final:
            newest_first.append(group)
        elif final[instant] not in placed:
            placed.add(final[instant])
            newest_first.append(by_instant[final[instant]])
    return [block for group in reversed(newest_first) for block in group]
