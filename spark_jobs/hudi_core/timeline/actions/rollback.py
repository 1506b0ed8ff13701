"""The Avro files of rollbacks and restores, the same in every table version: plans (HoodieRollbackPlan,
HoodieRestorePlan) and what was done (HoodieRollbackMetadata, HoodieRestoreMetadata); and the files of savepoints
(HoodieSavepointMetadata). Paths in a plan are absolute paths of its writer, and are never followed; model/partition.py
says which partitions are safe.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any, Final

from hudi_core import VERSION
from hudi_core.codec.avro.container import container_metadata
from hudi_core.errors import CorruptFileError
from hudi_core.frozen import dataclass
from hudi_core.model.partition import check_file_name, check_partition
from hudi_core.timeline.actions.content import (
    decode_datum,
    decode_record,
    encode_datum,
    member,
    numbers,
    record_map,
    records,
    text,
    texts,
)

_RELEASE: Final = "airflow_hudi.version"
_OF_COMPLETED: Final = "airflow_hudi.rolls_back_completed"


@dataclass(frozen=True, slots=True)
class RollbackStep:
    """What to roll back in one file group (HoodieRollbackRequest): files to delete, or log files whose blocks a command
    block must roll back. `delete` are names in `partition`; in a plan they are absolute paths, without a scheme on
    local file systems, as real Hudi reads them. `file_id` and `base_instant` are empty for files found by listing.
    `log_blocks` maps a log file, by name or path, to its bytes.
    """

    partition: str
    file_id: str = ""
    base_instant: str = ""
    delete: tuple[str, ...] = ()
    log_blocks: Mapping[str, int] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class RollbackPlan:
    """The instant to roll back, by its action on the timeline (`compaction` or `commit`), and the steps for that."""

    instant: str
    action: str
    requests: tuple[RollbackStep, ...] = ()


@dataclass(frozen=True, slots=True)
class RollbackPartition:
    """What was rolled back in one partition. Paths are as in a plan, but rollback log files have a scheme (`file:`)."""

    partition: str
    deleted: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    rollback_log_files: Mapping[str, int] = field(default_factory=dict, hash=False)
    failed_commit_log_files: Mapping[str, int] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class RollbackMetadata:
    """What a rollback did. `start_time` is its own instant; `instant` and `action` are those that it rolled back."""

    start_time: str
    time_taken_ms: int
    instant: str
    action: str
    partitions: tuple[RollbackPartition, ...] = ()

    @property
    def files_deleted(self) -> int:
        return sum(len(part.deleted) for part in self.partitions)


def encode_rollback_plan(
    instant: str, action: str, requests: Iterable[RollbackStep], *, completed: bool = False
) -> bytes:
    """Returns the requested file. It names this release, and says whether the instant was `completed` then."""
    return encode_datum(
        "HoodieRollbackPlan",
        {
            "instantToRollback": {"commitTime": instant, "action": action},
            "RollbackRequests": [
                {
                    "partitionPath": request.partition,
                    "fileId": request.file_id,
                    "latestBaseInstant": request.base_instant,
                    "filesToBeDeleted": list(request.delete),
                    "logBlocksToBeDeleted": dict(request.log_blocks),
                }
                for request in requests
            ],
        },
        metadata={_RELEASE: VERSION.encode()} | ({_OF_COMPLETED: b"true"} if completed else {}),
    )


def is_engine_plan(data: bytes, *, path: str) -> bool:
    """Whether encode_rollback_plan made the plan, and not Hudi. Raises CorruptFileError naming `path`."""
    return _RELEASE in container_metadata(data, path=path)


def is_of_completed(data: bytes, *, path: str) -> bool:
    """Whether the instant was completed when encode_rollback_plan made the plan; False for a plan of Hudi."""
    return _OF_COMPLETED in container_metadata(data, path=path)


def decode_rollback_plan(data: bytes, *, path: str) -> RollbackPlan:
    """Decodes the requested file. Raises CorruptFileError without an instant, FormatError for a foreign partition."""
    raw = decode_datum(data, path=path)
    instant, action = instant_to_roll_back(raw, path=path)
    requests = tuple(_request(item, path) for item in records(raw, "RollbackRequests", path=path))
    return RollbackPlan(instant, action, requests)


def instant_to_roll_back(raw: dict[str, Any], *, path: str) -> tuple[str, str]:
    """Returns the time and action that a plan's record names. Raises CorruptFileError naming `path` for none."""
    target = member(raw, "instantToRollback", dict, path=path, default={})
    instant, action = text(target, "commitTime", path=path), text(target, "action", path=path)
    if not instant or not action:
        message = "the rollback plan names no instant"
        remedy = "remove the rollback's files from the timeline; Hudi plans it again"
        raise CorruptFileError(message, path=path, remedy=remedy)
    return instant, action


def _request(raw: dict[str, Any], path: str) -> RollbackStep:
    return RollbackStep(
        check_partition(text(raw, "partitionPath", path=path), source=path),
        text(raw, "fileId", path=path),
        text(raw, "latestBaseInstant", path=path),
        tuple(texts(raw, "filesToBeDeleted", path=path)),
        _sizes(raw, "logBlocksToBeDeleted", path),
    )


def encode_rollback_metadata(metadata: RollbackMetadata) -> bytes:
    return encode_datum("HoodieRollbackMetadata", metadata_datum(metadata))


def metadata_datum(metadata: RollbackMetadata) -> dict[str, Any]:
    """Returns the Avro record of what a rollback did. It is also a part of what a restore did."""
    by_partition = {
        part.partition: {
            "partitionPath": part.partition,
            "successDeleteFiles": list(part.deleted),
            "failedDeleteFiles": list(part.failed),
            "rollbackLogFiles": dict(part.rollback_log_files),
            "logFilesFromFailedCommit": dict(part.failed_commit_log_files),
        }
        for part in metadata.partitions
    }
    return {
        "startRollbackTime": metadata.start_time,
        "timeTakenInMillis": metadata.time_taken_ms,
        "totalFilesDeleted": metadata.files_deleted,
        "commitsRollback": [metadata.instant],
        "partitionMetadata": by_partition,
        "instantsRollback": [{"commitTime": metadata.instant, "action": metadata.action}],
    }


def decode_rollback_metadata(data: bytes, *, path: str) -> RollbackMetadata:
    """Decodes `<R>.rollback`. Raises the errors of decode_rollback_plan."""
    return metadata_of(decode_datum(data, path=path), path=path)


def metadata_of(raw: dict[str, Any], *, path: str) -> RollbackMetadata:
    """Returns what a rollback did, from its Avro record. Raises the errors of decode_rollback_metadata."""
    done = records(raw, "instantsRollback", path=path)
    commits = texts(raw, "commitsRollback", path=path)
    if not commits:
        raise CorruptFileError("the rollback's metadata names no instant", path=path)
    return RollbackMetadata(
        text(raw, "startRollbackTime", path=path),
        member(raw, "timeTakenInMillis", int, path=path, default=0),
        commits[0],
        text(done[0], "action", path=path) if done else "",
        tuple(_partition(*item, path) for item in record_map(raw, "partitionMetadata", path=path).items()),
    )


def _partition(name: str, raw: dict[str, Any], path: str) -> RollbackPartition:
    return RollbackPartition(
        check_partition(name, source=path),
        tuple(texts(raw, "successDeleteFiles", path=path)),
        tuple(texts(raw, "failedDeleteFiles", path=path)),
        _sizes(raw, "rollbackLogFiles", path),
        _sizes(raw, "logFilesFromFailedCommit", path),
    )


def _sizes(raw: dict[str, Any], name: str, path: str) -> dict[str, int]:
    return {file: int(size) for file, size in numbers(raw, name, path=path).items()}


@dataclass(frozen=True, slots=True)
class RestoredInstant:
    """An instant that a restore rolls back: its requested time, and its action as the timeline showed it."""

    time: str
    action: str


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """The plan of a restore to the requested time `target`; `instants` are rolled back for that, in this order."""

    target: str
    instants: tuple[RestoredInstant, ...]


@dataclass(frozen=True, slots=True)
class RestoreMetadata:
    """What a restore did. `start_time` is its own instant; `rollbacks` has the rollback of each instant, by time."""

    start_time: str
    time_taken_ms: int
    instants: tuple[RestoredInstant, ...]
    rollbacks: Mapping[str, RollbackMetadata] = field(default_factory=dict, hash=False)


def encode_restore_plan(plan: RestorePlan) -> bytes:
    datum = {"instantsToRollback": _infos(plan.instants), "savepointToRestoreTimestamp": plan.target}
    return encode_datum("HoodieRestorePlan", datum)


def decode_restore_plan(data: bytes, *, path: str) -> RestorePlan:
    """Decodes `<R>.restore.requested`; `target` is `""` in a plan of version 1. Raises CorruptFileError."""
    raw = decode_record(data, "instantsToRollback", "restore plan", path=path)
    instants = tuple(
        RestoredInstant(text(item, "commitTime", path=path), text(item, "action", path=path))
        for item in records(raw, "instantsToRollback", path=path)
    )
    if not all(instant.time and instant.action for instant in instants):
        raise CorruptFileError("the restore names an instant without time or action", path=path)
    return RestorePlan(text(raw, "savepointToRestoreTimestamp", path=path), instants)


def encode_restore_metadata(metadata: RestoreMetadata) -> bytes:
    return encode_datum(
        "HoodieRestoreMetadata",
        {
            "startRestoreTime": metadata.start_time,
            "timeTakenInMillis": metadata.time_taken_ms,
            "instantsToRollback": [instant.time for instant in metadata.instants],
            "hoodieRestoreMetadata": {time: [metadata_datum(done)] for time, done in metadata.rollbacks.items()},
            "restoreInstantInfo": _infos(metadata.instants),
        },
    )


def _infos(instants: tuple[RestoredInstant, ...]) -> list[dict[str, str]]:
    return [{"commitTime": instant.time, "action": instant.action} for instant in instants]


@dataclass(frozen=True, slots=True)
class SavepointMetadata:
    """Author, epoch milliseconds and comment of a savepoint. `files` maps a partition to names of its data files."""

    by: str
    at_ms: int
    comment: str
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)


def encode_savepoint(metadata: SavepointMetadata) -> bytes:
    return encode_datum(
        "HoodieSavepointMetadata",
        {
            "savepointedBy": metadata.by,
            "savepointedAt": metadata.at_ms,
            "comments": metadata.comment,
            "partitionMetadata": {
                partition: {"partitionPath": partition, "savepointDataFile": list(names)}
                for partition, names in metadata.files.items()
            },
        },
    )


def decode_savepoint(data: bytes, *, path: str) -> SavepointMetadata:
    """Decodes the completed file. Raises CorruptFileError, FormatError for a path outside the table, naming `path`."""
    raw = decode_datum(data, path=path)
    files: dict[str, tuple[str, ...]] = {}
    for partition, item in record_map(raw, "partitionMetadata", path=path).items():
        names = texts(item, "savepointDataFile", path=path)
        files[check_partition(partition, source=path)] = tuple(check_file_name(name, source=path) for name in names)
    at_ms = member(raw, "savepointedAt", int, path=path, default=0)
    return SavepointMetadata(text(raw, "savepointedBy", path=path), at_ms, text(raw, "comments", path=path), files)
