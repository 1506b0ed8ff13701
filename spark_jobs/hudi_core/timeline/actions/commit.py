"""The metadata of a completed commit: HoodieCommitMetadata and HoodieReplaceCommitMetadata."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field, replace
from hashlib import blake2b
from typing import Any, Final

from hudi_core.errors import CorruptFileError, FormatError, StorageNotFoundError
from hudi_core.frozen import dataclass
from hudi_core.model.names import FileGroupId
from hudi_core.model.partition import check_partition, check_relative_path
from hudi_core.timeline.actions.content import decode_any, dump, encode_datum, member
from hudi_core.timeline.actions.write_stats import (
    NULL_COMMIT,
    WriteStat,
    WrittenFile,
    stat_from_json,
    stat_to_json,
    written_file,
)
from hudi_core.timeline.instant import COMMIT_ACTIONS, Action, Instant
from hudi_core.timeline.timeline import Timeline

log = logging.getLogger(__name__)

SCHEMA_KEY: Final = "schema"
"""The extra-metadata key of the table's Avro schema, without meta fields (HoodieCommitMetadata.SCHEMA_KEY)."""

_KEYS: Final = ("partitionToWriteStats", "compacted", "extraMetadata", "operationType", "partitionToReplaceFileIds")
_STATS: Final = frozenset({"partitionToWriteStats"})
_LARGE: Final = 1 << 20
"""From this many bytes on, passing over the write stats of a commit file takes a tenth of a second."""
_large: dict[bytes, CommitMetadata] = {}

OVERWRITES: Final = frozenset({"INSERT_OVERWRITE", "INSERT_OVERWRITE_TABLE", "DELETE_PARTITION"})
"""Operations that replace partitions as a whole."""
WRITES: Final = frozenset({"BULK_INSERT", "INSERT", "UPSERT", "DELETE"})
"""Operations that add, change or remove rows."""
_REPLACING: Final = OVERWRITES | {"CLUSTER"}
"""Operations that complete as a replacecommit."""


class Operation:
    """Values of `operationType` that this engine writes or compares (WriteOperationType, enum names)."""

    COMPACT: Final = "COMPACT"
    LOG_COMPACT: Final = "LOG_COMPACT"
    CLUSTER: Final = "CLUSTER"
    INDEX: Final = "INDEX"
    INSERT_OVERWRITE: Final = "INSERT_OVERWRITE"
    INSERT_OVERWRITE_TABLE: Final = "INSERT_OVERWRITE_TABLE"
    DELETE_PARTITION: Final = "DELETE_PARTITION"
    UPSERT_PREPPED: Final = "UPSERT_PREPPED"
    BULK_INSERT: Final = "BULK_INSERT"
    INSERT: Final = "INSERT"
    UPSERT: Final = "UPSERT"
    DELETE: Final = "DELETE"


@dataclass(frozen=True, slots=True)
class CommitMetadata:
    """One commit's metadata, by partition path: the stats of the files written there, and the file ids that the commit
    replaced (None for every action but replacecommit). `extra` holds top-level members that Hudi 0.15 does not know.
    """

    partition_to_write_stats: Mapping[str, tuple[WriteStat, ...]] = field(default_factory=dict)
    compacted: bool = False
    operation_type: str | None = None
    extra_metadata: Mapping[str, str | None] = field(default_factory=dict)
    replaced_file_ids: Mapping[str, tuple[str, ...]] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def schema_text(self) -> str | None:
        """The Avro schema text of the commit, or None."""
        return self.extra_metadata.get(SCHEMA_KEY) or None

    def write_stats(self) -> Iterator[WriteStat]:
        for stats in self.partition_to_write_stats.values():
            yield from stats

    def replaced_file_groups(self) -> Iterator[FileGroupId]:
        """Yields the file groups that this commit replaced. They are for comparing only: the names are unchecked."""
        for partition, file_ids in (self.replaced_file_ids or {}).items():
            for file_id in file_ids:
                yield FileGroupId(partition, file_id)

    def check_paths(self, *, source: str) -> None:
        """Raises FormatError naming `source` when a partition or a written file lies outside the table."""
        for partition, stats in self.partition_to_write_stats.items():
            check_partition(partition, source=source)
            for stat in stats:
                check_partition(stat.partition_path, source=source)
                for path in (stat.path, *(name for name, _ in stat.cdc_stats)):
                    check_relative_path(path, source=source)


def decode_commit(data: bytes, *, path: str, stats: bool = True) -> CommitMetadata:
    """Decodes a commit file. Empty bytes are empty metadata. Without `stats`, write stats, which are most of the cost,
    are left out. Raises CorruptFileError.
    """
    if stats:
        return commit_of(decode_any(data, path=path), path=path)
    # One verb may decode a table's newest commit several times: it is kept, with its content as the key.
    digest = blake2b(data).digest() if len(data) >= _LARGE else b""
    commit = _large.get(digest)
    if commit is None:
        commit = commit_of(decode_any(data, path=path, without=_STATS), path=path)
        if digest:
            _large.clear()
            _large[digest] = commit
    return commit


def commit_of(raw: dict[str, Any], *, path: str) -> CommitMetadata:
    """Returns the metadata of a commit's members, also of the layout 1 archive. Raises CorruptFileError with `path`."""
    stats: dict[str, tuple[WriteStat, ...]] = {}
    for partition, items in member(raw, "partitionToWriteStats", dict, path=path, default={}).items():
        if not isinstance(items, list):
            raise CorruptFileError(f"the write stats of partition {partition!r} are not a list", path=path)
        stats[partition] = tuple(stat_from_json(item, path=path) for item in items)
    extra_metadata = member(raw, "extraMetadata", dict, path=path, default={})
    if not all(value is None or isinstance(value, str) for value in extra_metadata.values()):
        raise CorruptFileError("'extraMetadata' holds something other than text", path=path)
    return CommitMetadata(
        partition_to_write_stats=stats,
        compacted=member(raw, "compacted", bool, path=path, default=False),
        operation_type=member(raw, "operationType", str, path=path),
        extra_metadata=extra_metadata,
        replaced_file_ids=_replaced(raw, path),
        extra={name: value for name, value in raw.items() if name not in _KEYS},
    )


def written_files(raw: dict[str, Any], *, path: str) -> list[WrittenFile]:
    """Returns the files that a commit file's members name as written. Raises CorruptFileError naming `path`."""
    lists = member(raw, "partitionToWriteStats", dict, path=path, default={}).values()
    return [written_file(item, path=path) for items in lists for item in (items if isinstance(items, list) else [None])]


def _replaced(raw: dict[str, Any], path: str) -> dict[str, tuple[str, ...]] | None:
    members = member(raw, "partitionToReplaceFileIds", dict, path=path)
    if members is None:
        return None
    for partition, file_ids in members.items():
        if not isinstance(file_ids, list) or not all(isinstance(file_id, str) for file_id in file_ids):
            raise CorruptFileError(
                f"the replaced file ids of partition {partition!r} are not a list of text", path=path
            )
    return {partition: tuple(file_ids) for partition, file_ids in members.items()}


def encode_commit(metadata: CommitMetadata) -> bytes:
    """Returns the commit file of layout 1: keys, their order and the form of Hudi 0.15, then unknown members."""
    return dump(_members(metadata))


def encode_commit_avro(metadata: CommitMetadata) -> bytes:
    """Returns the commit file of layout 2 in Hudi 1.x's schema (CommitMetadataSerDeV2), without unknown members."""
    replaces = metadata.replaced_file_ids is not None or metadata.operation_type in _REPLACING
    return encode_datum("HoodieReplaceCommitMetadata" if replaces else "HoodieCommitMetadata", _members(metadata))


def encode_inflight(
    operation: str,
    profile: Mapping[str, Iterable[WriteStat]],
    *,
    layout: int,
    extra: Mapping[str, str] | None = None,
) -> bytes:
    """Returns the inflight file of a write (saveWorkloadProfileMetadataToInflight). `profile` has stats of to_come,
    `extra` is extra metadata.
    """
    nulls: dict[str, Any] = {"path": None, "partitionPath": None, "runtimeStats": None}
    if layout == 2:
        nulls |= {"numUpdates": 0, "totalLogReadTimeMs": 0}
    stats = {partition: tuple(replace(stat, extra=nulls) for stat in found) for partition, found in profile.items()}
    metadata = CommitMetadata(stats, operation_type=operation, extra_metadata=extra or {})
    if layout == 1:
        return encode_commit(metadata)
    return encode_datum("HoodieCommitMetadata", {**_members(metadata), "version": None})


def to_come(file_id: str = "", prev_commit: str = NULL_COMMIT, *, inserts: int = 0, updates: int = 0) -> WriteStat:
    """Returns a stat for encode_inflight: new rows, and updates of old ones, in a file group; or rows in new ones."""
    return WriteStat(file_id, "", "", prev_commit, 0, 0, updates, inserts, 0, 0)


def _members(metadata: CommitMetadata) -> dict[str, Any]:
    raw: dict[str, Any] = {
        "partitionToWriteStats": {
            partition: [stat_to_json(stat) for stat in stats]
            for partition, stats in metadata.partition_to_write_stats.items()
        },
        "compacted": metadata.compacted,
        "extraMetadata": dict(metadata.extra_metadata),
        "operationType": metadata.operation_type,
    }
    if metadata.replaced_file_ids is not None:
        raw["partitionToReplaceFileIds"] = {
            partition: list(file_ids) for partition, file_ids in metadata.replaced_file_ids.items()
        }
    raw.update(metadata.extra)
    return raw


def replaced_file_groups(timeline: Timeline, read: Callable[[Instant], CommitMetadata]) -> dict[FileGroupId, Instant]:
    """Returns each replaced file group with the first replacecommit that names it, by requested time
    (resetFileGroupsReplaced). When two writers replaced a group, Hudi 1.x keeps the last one: reads as of a time
    between the two would see the rows twice.
    """
    replaced: dict[FileGroupId, Instant] = {}
    for instant in timeline.completed().of_actions(Action.REPLACE_COMMIT):
        try:
            metadata = read(instant)
        except StorageNotFoundError:
            continue
        for group in metadata.replaced_file_groups():
            replaced.setdefault(group, instant)
    return replaced


_READERS: Final = 16
"""How many commit files are read at once: the work is waiting for storage."""


@dataclass(frozen=True, slots=True)
class CommitTotals:
    """What a commit wrote: its operation (None when not recorded), rows written and deleted, and bytes."""

    operation: str | None
    rows: int
    bytes: int

    @staticmethod
    def of(commit: CommitMetadata) -> CommitTotals:
        stats = list(commit.write_stats())
        rows = sum(stat.num_writes + stat.num_deletes for stat in stats)
        return CommitTotals(commit.operation_type, rows, sum(stat.total_write_bytes for stat in stats))


def commit_totals(
    instants: Iterable[Instant], read_commit: Callable[[Instant], CommitMetadata]
) -> dict[Instant, CommitTotals]:
    """Returns what each completed commit among `instants` wrote; several are read at once. A commit whose file is
    missing or damaged is left out.
    """

    def read(instant: Instant) -> CommitMetadata | None:
        try:
            return read_commit(instant)
        except StorageNotFoundError:
            return None  # rolled back or archived since the listing
        except FormatError as error:  # the other instants are shown
            log.warning("what %s %s wrote is unknown: %s", instant.action, instant.requested_time, error)
            return None

    commits = [instant for instant in instants if instant.is_completed and instant.action in COMMIT_ACTIONS]
    with ThreadPoolExecutor(max_workers=_READERS, thread_name_prefix="commits") as pool:
        contents = zip(commits, pool.map(read, commits), strict=True)
        return {instant: CommitTotals.of(commit) for instant, commit in contents if commit is not None}
