"""Which slices of a file group a clean deletes. Pure (CleanPlanner of Hudi).

A slice is deleted as a whole: base file, log files, change-data logs. It stays when a savepoint names one of its files,
when it is the newest, when a query that started at the earliest retained commit may be reading it, and when a pending
plan needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from hudi_core.config.services.clean_config import KEEP_LATEST_FILE_VERSIONS, CleanConfig
from hudi_core.model.names import FileGroupId
from hudi_core.timeline.instant import Instant
from hudi_core.view.file_group import DataFile, FileGroup, FileSlice

_NO_NAMES: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class PartitionState:
    """One partition of the table, with its file groups, replaced ones among them.

    `replaced` maps a replaced group to its replacecommit. `compacting` maps a group in pending compactions or log
    compactions to the base instants of their operations. `kept` are the names of files that savepoints keep, `needed`
    of those that pending plans need. `stored` lists the names of all data files in the partition's folder, committed or
    not; it is read only where no group remains.
    """

    partition: str
    groups: tuple[FileGroup, ...]
    replaced: Mapping[FileGroupId, Instant] = field(default_factory=dict)
    compacting: Mapping[FileGroupId, tuple[str, ...]] = field(default_factory=dict)
    kept: frozenset[str] = _NO_NAMES
    needed: frozenset[str] = _NO_NAMES
    stored: Callable[[], Iterable[str]] = tuple


@dataclass(frozen=True, slots=True)
class PartitionDeletes:
    """What a clean deletes in one partition; with `drop`, nothing else is in it and the partition is deleted, too."""

    partition: str
    files: tuple[DataFile, ...]
    drop: bool = False


def deletes(inputs: PartitionState, config: CleanConfig, earliest: str | None) -> PartitionDeletes:
    """What to delete in a partition. `earliest` is the requested time of the earliest commit to retain, None for the
    policy by versions.
    """
    found: list[DataFile] = []
    live = False
    for group in inputs.groups:
        by = inputs.replaced.get(group.id)
        live = live or by is None
        expired: Iterable[FileSlice] = ()
        if by is None:
            expired = _expired(group, inputs.compacting.get(group.id, ()), config, earliest)
        elif earliest is None or by.requested_time < earliest:  # by versions, of any replaced group
            expired = group.slices
        for item in expired:
            if not is_held(item, inputs.kept) and not is_needed(item, inputs.needed):
                found.extend(item.files)
    return PartitionDeletes(
        inputs.partition, tuple(found), not live and _may_drop(inputs, {file.name for file in found}, earliest)
    )


def is_held(item: FileSlice, kept: Collection[str]) -> bool:
    """Whether a savepoint keeps a file of the slice (isFileSliceExistInSavepointedFiles)."""
    return any(file.name in kept for file in item.files)


def is_needed(item: FileSlice, needed: Collection[str]) -> bool:
    """Whether a pending plan names a file of the slice.

    Hudi goes by the slices' base instants alone, which fails where its view and the plan disagree about the slice of a
    log file, as a deltacommit that ran while a compaction was planned may have it (hudi#19290), and it does not look at
    pending clusterings at all.
    """
    return any(file.name in needed for file in item.files)


def _expired(
    group: FileGroup, operations: tuple[str, ...], config: CleanConfig, earliest: str | None
) -> Iterator[FileSlice]:
    """The slices of a group without replacement that the policy deletes."""
    if config.policy == KEEP_LATEST_FILE_VERSIONS:
        yield from _beyond_versions(group, operations, config.versions_retained)
    elif earliest is not None and group.slices:
        yield from _before(group, operations, earliest)


def _before(group: FileGroup, operations: tuple[str, ...], earliest: str) -> Iterator[FileSlice]:
    """KEEP_LATEST_COMMITS and KEEP_LATEST_BY_HOURS, with `earliest` of earliest_commit.py.

    The slice of a query that started right before `earliest` stays (HUDI-7226).
    """
    newest = group.slices[0].base_instant
    in_use = next((item.base_instant for item in group.slices if item.base_instant < earliest), None)
    for item in group.slices:
        if (
            item.base_instant < earliest
            and item.base_instant not in (newest, in_use)
            and not _compacts(item, operations)
        ):
            yield item


def _beyond_versions(group: FileGroup, operations: tuple[str, ...], retained: int) -> Iterator[FileSlice]:
    """What a pending compaction needs counts as one version."""
    free = [item for item in group.slices if not _compacts(item, operations)]
    yield from free[max(0, retained - (1 if operations else 0)) :]


def _compacts(item: FileSlice, operations: tuple[str, ...]) -> bool:
    """Whether a pending (log) compaction has this base or an earlier one (isFileSliceNeededForPendingCompaction)."""
    return any(item.base_instant >= base for base in operations)


def _may_drop(inputs: PartitionState, deleted: set[str], earliest: str | None) -> bool:
    """Whether no file, committed or not, would remain. Hudi checks the groups alone, and would drop replaced files that
    a savepoint keeps.
    """
    if not inputs.partition:
        return False  # a table without partitions is not deleted
    by = (inputs.replaced.get(group.id) for group in inputs.groups)
    if earliest is not None and any(instant is not None and instant.requested_time >= earliest for instant in by):
        return False  # its files are still read by queries as of before
    return all(name in deleted for name in inputs.stored())
