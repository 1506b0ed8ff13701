"""Which data files the attempts of an instant left behind, and the removal of those that no commit may contain.

An uncommitted base file is invisible only until its instant completes, or is archived and so counts as committed
(HoodieTimeline.containsOrBeforeTimelineStarts). So every base file of an instant that is not a winner's is deleted
before the instant completes, and again after it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

from hudi_core.errors import ExecutionError
from hudi_core.model.names import BaseFileName, LogFileName, parse_data_file
from hudi_core.storage.base import FileInfo, Storage

log = logging.getLogger(__name__)

_LISTERS = 16
_PARALLEL_FROM = 8


def list_partitions(storage: Storage, partitions: Iterable[str]) -> list[tuple[str, list[FileInfo]]]:
    """The files of each partition, partitions sorted: one listing per partition, several at a time."""
    names = sorted(set(partitions))
    if len(names) < _PARALLEL_FROM:
        return [(partition, storage.list_files(partition)) for partition in names]
    with ThreadPoolExecutor(max_workers=_LISTERS, thread_name_prefix="list") as pool:
        return list(zip(names, pool.map(storage.list_files, names), strict=True))


def files_of(
    storage: Storage, instant: str, partitions: Iterable[str]
) -> Iterator[tuple[FileInfo, BaseFileName | LogFileName]]:
    """The base and log files in `partitions` that are named after `instant`, with their parsed names."""
    for _, files in list_partitions(storage, partitions):
        for info in files:
            name = parse_data_file(info.name)
            if name is not None and name.instant == instant:
                yield info, name


def base_files_of(storage: Storage, instant: str, partitions: Iterable[str]) -> list[FileInfo]:
    """The base files that `instant` wrote into `partitions`, whatever their file group; one listing per partition.

    Log files are left alone: one named after a compaction's instant belongs to the slice that the compaction opens, and
    holds other writers' rows (ListingBasedRollbackStrategy, compaction outside of a restore).
    """
    return [info for info, name in files_of(storage, instant, partitions) if isinstance(name, BaseFileName)]


def remove_losers(
    storage: Storage, instant: str, partitions: Iterable[str], winners: Mapping[str, int]
) -> dict[str, int]:
    """Deletes the base files of `instant` that are not in `winners`; returns the bytes of the others, by path."""
    kept: dict[str, int] = {}
    for info in base_files_of(storage, instant, partitions):
        if info.path in winners:
            kept[info.path] = info.size
        else:
            log.warning("%s belongs to no winning attempt of instant %s: deleted", info.path, instant)
            storage.delete(info.path)
    return kept


def check_winners(winners: Mapping[str, int], kept: Mapping[str, int]) -> None:
    """Raises ExecutionError when a winner (path to size in bytes) is missing or has another size."""
    for path, size in sorted(winners.items()):
        if kept.get(path) != size:
            found = f"{kept[path]} bytes" if path in kept else "no such file"
            raise ExecutionError(
                f"the task reported {size} bytes for this file, the storage has {found}",
                path=path,
                remedy="run the instant again; nothing was published",
            )
