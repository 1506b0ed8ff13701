"""The Avro files of a rollback: the plan (HoodieRollbackPlan) and what was done (HoodieRollbackMetadata), as Hudi 0.15 writes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hudi_core.timeline.containers import encode_datum


@dataclass(frozen=True, slots=True)
class RollbackRequest:
    """What to undo of one file group: files to delete, or log files whose blocks a command block must cancel.

    Paths are absolute, without a scheme on local file systems, because that is what real Hudi reads there. `file_id` and `base_instant`
    are empty for files found by listing. `log_blocks` maps a log file's path to its size in bytes.
    """

    partition: str
    file_id: str = ""
    base_instant: str = ""
    files_to_delete: tuple[str, ...] = ()
    log_blocks: Mapping[str, int] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class RollbackPartition:
    """What was undone in one partition. Paths as in RollbackRequest, except that rollback log files carry a scheme (`file:`)."""

    partition: str
    deleted: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    rollback_log_files: Mapping[str, int] = field(default_factory=dict, hash=False)
    failed_commit_log_files: Mapping[str, int] = field(default_factory=dict, hash=False)


def encode_rollback_plan(instant: str, action: str, requests: Iterable[RollbackRequest]) -> bytes:
    """The content of `<R>.rollback.requested`: undo `instant`, whose pending action is `action` (`compaction`, not `commit`)."""
    return encode_datum(
        "HoodieRollbackPlan",
        {
            "instantToRollback": {"commitTime": instant, "action": action},
            "RollbackRequests": [
                {
                    "partitionPath": request.partition,
                    "fileId": request.file_id,
                    "latestBaseInstant": request.base_instant,
                    "filesToBeDeleted": list(request.files_to_delete),
                    "logBlocksToBeDeleted": dict(request.log_blocks),
                }
                for request in requests
            ],
            "version": 1,
        },
    )


def encode_rollback_metadata(start_time: str, time_taken_ms: int, instant: str, action: str, partitions: Iterable[RollbackPartition]) -> bytes:
    """The content of `<R>.rollback`: `start_time` is the rollback's own instant, `time_taken_ms` its duration."""
    by_partition: dict[str, Any] = {
        part.partition: {
            "partitionPath": part.partition,
            "successDeleteFiles": list(part.deleted),
            "failedDeleteFiles": list(part.failed),
            "rollbackLogFiles": dict(part.rollback_log_files),
            "logFilesFromFailedCommit": dict(part.failed_commit_log_files),
        }
        for part in partitions
    }
    return encode_datum(
        "HoodieRollbackMetadata",
        {
            "startRollbackTime": start_time,
            "timeTakenInMillis": time_taken_ms,
            "totalFilesDeleted": sum(len(part["successDeleteFiles"]) for part in by_partition.values()),
            "commitsRollback": [instant],
            "partitionMetadata": by_partition,
            "version": 1,
            "instantsRollback": [{"commitTime": instant, "action": action}],
        },
    )
