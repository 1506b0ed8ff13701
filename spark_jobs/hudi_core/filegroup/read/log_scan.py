"""The first pass over a slice's log files. It decides which blocks count, and in which order they merge
(AbstractHoodieLogRecordReader of Hudi 0.15, BaseHoodieLogRecordReader of 1.x). metadata_table/instants.py decides it in
the metadata table.

The scan reads frames and headers, and queues blocks in file order. A rollback command removes the queued blocks of the
instant that it names, and every queued corrupt block. At a block that is newer than the query's instant, Hudi 0.15 ends
the scan; 1.x skips the block, and obeys rollback commands of any age.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import Final

from hudi_core.codec.log.blocks import BlockType, CorruptBlock, HeaderKey, LogBlock, ReadAt, walk
from hudi_core.errors import CorruptFileError, UnsupportedError
from hudi_core.frozen import dataclass
from hudi_core.storage.base import ByteRange, Storage
from hudi_core.storage.overlapped import each_ahead
from hudi_core.timeline.instant import COMMIT_ACTIONS, Action
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_group import DataFile
from hudi_core.view.slicing import PENDING_WRITES

IsCommitted = Callable[[str], bool]
"""Whether blocks of an instant count: CommittedInstants, but metadata_table.instants in the metadata table."""

DATA_TYPES: Final = frozenset({BlockType.AVRO_DATA, BlockType.HFILE_DATA, BlockType.PARQUET_DATA, BlockType.DELETE})
_SMALL: Final = 64 << 10
"""Bytes of a file that the scan reads at once (codec.log.blocks). So a small file is read only once."""
_MOST_KEPT: Final = 8 << 20
"""The most bytes of small files that one scan keeps."""
AFTER_ALL: Final = "9" * 20
"""A time later than every instant: the blocks' instants alone then decide which blocks count."""


@dataclass(frozen=True, slots=True)
class CommittedInstants:
    """Says whether an instant is committed: it is a completed commit, deltacommit or replacecommit, or older than the
    first of them (archived), unless it is inflight. `inflight` also holds instants that are only requested, and log
    compactions. An instant that the timeline shows as pending is never committed, however old.
    """

    completed: frozenset[str]
    inflight: frozenset[str]
    start: str | None

    def __call__(self, instant: str) -> bool:
        if instant in self.inflight:
            return False
        return instant in self.completed or (self.start is not None and instant < self.start)

    def up_to(self, instant: str, *, inclusive: bool = True) -> CommittedInstants:
        """Returns the same answers for instants up to `instant`, or before it; later ones are not committed."""
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
    """Returns the last completed commit, up to which a snapshot query reads log blocks; None without commits."""
    last = timeline.commits().last()
    return None if last is None else last.requested_time


def latest_compaction_instant(timeline: Timeline) -> str | None:
    """Returns the instant up to which a log compaction plans log blocks: the last completed commit or rollback, whose
    command blocks are obeyed; None without any. A replacecommit counts, but not for Hudi
    (HoodieCompactor.getMaxInstantTime of 0.15). After an archival of the deltacommits it may be all that is left, and
    Hudi fails; or all that is newer, and Hudi drops the deltacommits' log records.
    """
    last = timeline.completed().of_actions(*COMMIT_ACTIONS, Action.ROLLBACK).last()
    return None if last is None else last.requested_time


@dataclass(frozen=True, slots=True)
class ScanCounts:
    """Counts as in HoodieWriteStat: `blocks` of any type, `rolled_back` blocks removed, `files` with a block."""

    files: int = 0
    blocks: int = 0
    corrupt: int = 0
    rolled_back: int = 0


@dataclass(frozen=True, slots=True)
class ScanResult:
    """The data and delete blocks to merge, oldest first, and the corrupt blocks that no rollback removed.
    `corrupt_removed` are the ones that a rollback removed; whether they were of the rolled back write is unknown.
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
    """Scans `log_files`, which are in scan order. With `latest_instant` None, for a table without a completed instant,
    no block counts. With `stop_at_newer`, the scan ends at the first newer block, as in Hudi 0.15. Raises
    StorageNotFoundError, CorruptFileError for a file that is no log file or a block without instant, UnsupportedError
    for blocks that no base table's log holds.
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
    """Scans blocks in file order; those of `types` are merged. Raises CorruptFileError for a block without instant and
    UnsupportedError for a block of another type, both with `remedy`.
    """
    queued: dict[str, list[tuple[int, LogBlock]]] = {}
    """Blocks by instant, with their places in file order: a log may have as many commands as blocks."""
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
    """Yields every block of the log files, file by file. Contents are not read, except those of small files, up to
    `most_kept` bytes in all: each of them is one request. Raises the errors of scan_log_files.
    """

    def content(item: tuple[DataFile, bool]) -> bytes | None:
        file, is_kept = item
        return _read(storage, file.path, 0, file.size) if is_kept else None

    for (file, _), kept in each_ahead(storage, _with_kept(log_files, most_kept), content):
        read_at: ReadAt = partial(_read, storage, file.path) if kept is None else partial(_part, kept)
        yield from walk(read_at, file.size, file.path)


def _with_kept(log_files: Iterable[DataFile], most_kept: int) -> Iterator[tuple[DataFile, bool]]:
    """Yields each log file, and whether its whole content is read: of small files, up to `most_kept` bytes in all."""
    for file in log_files:
        is_kept = 0 < file.size <= min(_SMALL, most_kept)
        most_kept -= file.size if is_kept else 0
        yield file, is_kept


def has_counting_block(storage: Storage, log_file: DataFile, is_committed: IsCommitted) -> bool:
    """Whether a log file holds rows or deletes of a committed instant, or rolls back those of one. Any other file
    changes nothing that a reader sees. Raises the errors of scan_log_files.
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
    """Returns the instant whose blocks a command removes. Every command also removes the corrupt blocks."""
    target = command.target_instant_time
    if not command.is_rollback or not target:
        message = f"log command block at byte {command.offset} is not a rollback of an instant"
        raise UnsupportedError(message, path=command.path, remedy=remedy)
    return target


def _place_compacted(blocks: list[LogBlock]) -> list[LogBlock]:
    """Moves the output of a log compaction to the place of its newest input, and drops the inputs (scanInternalV2 of
    Hudi 0.15). The output is written after blocks that are newer than its inputs.
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
