"""The data files that the attempts at an instant left, and the removal of the files that no commit may contain.

An uncommitted base file is invisible only until its instant completes, or until the instant is archived, since it then
counts as committed (HoodieTimeline.containsOrBeforeTimelineStarts). So every base file of an instant that is no winner
is deleted before the instant completes, and again after that. The winners are the files that the results of units name
(services/rewriting/job.py). A late task deletes its file itself (filegroup/write/markers.py).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from hudi_core.codec.log.blocks import LogBlock
from hudi_core.errors import ExecutionError, StorageNotFoundError
from hudi_core.filegroup.read.log_scan import log_blocks
from hudi_core.filegroup.write.markers import list_markers
from hudi_core.model.names import BaseFileName, LogFileName, parse_data_file
from hudi_core.storage.base import FileInfo, Storage
from hudi_core.storage.overlapped import overlapped
from hudi_core.view.file_group import DataFile

log = logging.getLogger(__name__)

FindFiles = Callable[[Storage, str, Iterable[str]], Sequence[FileInfo]]
"""Finds the files that attempts at an instant wrote into partitions: base_files_of, log_files_of, data_files_of."""
OWN_ATTEMPTS: Final = 1_500_000_000
"""The first attempt id in our log files' names. It is far above Hudi's: in version 6, all writers share the names."""


def list_partitions(storage: Storage, partitions: Iterable[str]) -> list[tuple[str, list[FileInfo]]]:
    """Returns the partitions, sorted, with their files. Makes one listing per partition, several at a time."""
    names = sorted(set(partitions))
    return list(zip(names, overlapped(storage, [partial(storage.list_files, name) for name in names]), strict=True))


def files_of(
    storage: Storage, instant: str, partitions: Iterable[str]
) -> Iterator[tuple[FileInfo, BaseFileName | LogFileName]]:
    """Yields the base and log files in `partitions` that are named after `instant`, with their parsed names."""
    for _, files in list_partitions(storage, partitions):
        for info in files:
            name = parse_data_file(info.name)
            if name is not None and name.instant == instant:
                yield info, name


def base_files_of(storage: Storage, instant: str, partitions: Iterable[str]) -> list[FileInfo]:
    """Returns `instant`'s base files in `partitions`. Log files named after a compaction have rows of others."""
    return [info for info, name in files_of(storage, instant, partitions) if isinstance(name, BaseFileName)]


def log_files_of(
    storage: Storage, instant: str, partitions: Iterable[str], *, shared_logs: bool = False
) -> list[FileInfo]:
    """Returns the log files that attempts at `instant` wrote into `partitions`: the log files named after `instant`. In
    version 6, log files are named after the file slice; there it returns the log files of this engine whose blocks are
    all of `instant`. A log file without a whole block was cut, or is being written, by an attempt at any instant: it
    counts where a marker of `instant` names it. In version 6 Hudi may append to any log file, so a log file with a
    block of another instant stays. Log files of Hudi's attempts stay, too: their double rows merge. `shared_logs`:
    `instant` may have made slices of version 6, and writers behind it name their log files after it.
    """
    files_of_instant = []
    marked = {marker.data_path for marker in list_markers(storage, instant)}
    for _, files in list_partitions(storage, partitions):
        for info in files:
            name = parse_data_file(info.name)
            if isinstance(name, LogFileName) and (
                (name.instant == instant and (name.cdc or not shared_logs))
                or _is_own(storage, info, name, instant, marked)
            ):
                files_of_instant.append(info)
    return files_of_instant


def data_files_of(
    storage: Storage, instant: str, partitions: Iterable[str], *, shared_logs: bool = False
) -> list[FileInfo]:
    """Returns the base files and log files (log_files_of) that attempts at `instant` wrote into `partitions`."""
    names = [*partitions]
    return [
        *base_files_of(storage, instant, names),
        *log_files_of(storage, instant, names, shared_logs=shared_logs),
    ]


def _is_own(storage: Storage, info: FileInfo, name: LogFileName, instant: str, marked: Collection[str]) -> bool:
    # Its name may be later than `instant`: that of a compaction which was planned before the write looked at the table.
    if name.token is None or name.token.attempt_id < OWN_ATTEMPTS:
        return False
    try:
        blocks = list(log_blocks(storage, [DataFile(info.path.rpartition("/")[0], info.name, info.size)]))
    except StorageNotFoundError:
        return False  # deleted since the listing
    written_by = {block.instant_time for block in blocks if isinstance(block, LogBlock)}
    return written_by == {instant} if written_by else info.path in marked


def remove_losers(
    storage: Storage,
    instant: str,
    partitions: Iterable[str],
    winners: Mapping[str, int],
    find: FindFiles = base_files_of,
    *,
    check: Callable[[], None] = lambda: None,
) -> dict[str, int]:
    """Deletes the files of `instant` that are not in `winners`; returns the bytes of the winners, by path. `check`
    raises where the instant may have another owner; after the completion no check is needed. It is called once, between
    the listing and the deletion. An owner has its claim, or the table lock, before its first file: so a check that
    passes after the listing shows that no listed file is a successor's, however late the deletion comes.
    """
    files = find(storage, instant, partitions)
    losers = [info.path for info in files if info.path not in winners]
    if losers:
        check()
    for path in losers:
        log.warning("%s belongs to no winning attempt of instant %s: deleted", path, instant)
        storage.delete(path)
    return {info.path: info.size for info in files if info.path in winners}


def check_winners(winners: Mapping[str, int], kept: Mapping[str, int]) -> None:
    """Raises ExecutionError when a winner (path to size in bytes) is not in `kept` or has another size there."""
    for path, size in sorted(winners.items()):
        if kept.get(path) != size:
            stored = f"{kept[path]} bytes" if path in kept else "no such file"
            message = f"the task reported {size} bytes for this file, the storage has {stored}"
            raise ExecutionError(message, path=path, remedy="run the instant again; nothing was published")
