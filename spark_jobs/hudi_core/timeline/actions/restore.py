"""Avro files of restores and savepoints, the same in every table version: HoodieRestorePlan, HoodieRestoreMetadata and
HoodieSavepointMetadata.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from hudi_core.errors import CorruptFileError
from hudi_core.model.partition import check_file_name, check_partition
from hudi_core.timeline.actions.content import decode_datum, decode_record, encode_datum
from hudi_core.timeline.actions.fields import member, record_map, records, text, texts
from hudi_core.timeline.actions.rollback import RollbackMetadata, metadata_datum

PLAN_VERSION: Final = 2
"""Names the instant that the table is restored to (RestorePlanActionExecutor.RESTORE_PLAN_VERSION_2)."""


@dataclass(frozen=True, slots=True)
class RestoredInstant:
    """An instant that a restore takes away: its requested time, and its action as the timeline showed it."""

    time: str
    action: str


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """`target` is the requested time to restore to, `instants` are rolled back for that, in this order."""

    target: str
    instants: tuple[RestoredInstant, ...]


@dataclass(frozen=True, slots=True)
class RestoreMetadata:
    """What a restore did: `start_time` is its own instant, `rollbacks` are those of each of `instants`, by time."""

    start_time: str
    time_taken_ms: int
    instants: tuple[RestoredInstant, ...]
    rollbacks: Mapping[str, RollbackMetadata] = field(default_factory=dict, hash=False)


def encode_restore_plan(plan: RestorePlan) -> bytes:
    instants = _infos(plan.instants)
    datum = {"instantsToRollback": instants, "version": PLAN_VERSION, "savepointToRestoreTimestamp": plan.target}
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
            "version": 1,
            "restoreInstantInfo": _infos(metadata.instants),
        },
    )


def _infos(instants: tuple[RestoredInstant, ...]) -> list[dict[str, str]]:
    return [{"commitTime": instant.time, "action": instant.action} for instant in instants]


@dataclass(frozen=True, slots=True)
class SavepointMetadata:
    """Author and epoch milliseconds of a savepoint; `files` maps a partition to names of base and log files."""

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
            "version": 1,
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
