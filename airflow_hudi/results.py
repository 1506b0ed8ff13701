"""The result of a task about an instant, taken from the timeline: the same however the job was submitted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from airflow_hudi.timeline_reader import TimelineReader
from hudi_core.request.results import InstantResult, JobResult, Result
from hudi_core.timeline.instant import COMMIT_ACTIONS, Action, Instant

NUMBERS = ("files_written", "bytes_written", "files_deleted", "records")
"""The members that are counts."""
ELSEWHERE = "another process completed it"
"""The `reason` of an instant at which neither the task nor an earlier try of it did anything."""


def instant_named(instant: Instant) -> dict[str, Any]:
    """`{"instant", "action", "state"}`. `action` is the one on the pending files, as far as they are still there:
    `compaction` also for a completed compaction.
    """
    return {"instant": instant.requested_time, "action": instant.pending_action, "state": instant.state.value}


def pending_named(instant: Instant, age: int) -> dict[str, Any]:
    """`{"instant", "action", "state", "age_seconds"}` of a pending instant (hudi_core.timeline.timeline)."""
    return {**instant_named(instant), "age_seconds": age}


def instant_result(
    reader: TimelineReader,
    instant: Instant,
    *,
    seconds: float,
    already_completed: bool,
    reason: str | None = None,
    result: JobResult | None = None,
) -> dict[str, Any]:
    """The XCom value: JSON with the shape of `hudictl run`'s instants, and `table`, `already_completed` and `reason`.

    The numbers are sums over the completed instant's file, whoever did it, 0 for one that is pending; `seconds` is the
    duration of the work, `engine` the one that did it, by the `result` of the job. Raises StorageError and FormatError.
    """
    numbers = _numbers(reader, instant) if instant.is_completed else {}
    return {
        "table": reader.storage.uri,
        **instant_named(instant),
        **{name: numbers.get(name, 0) for name in NUMBERS},
        "seconds": round(seconds, 3),
        "already_completed": already_completed,
        "engine": None if already_completed else result.engine if isinstance(result, Result) else None,
        "reason": reason,
    }


def instants_of(result: JobResult | None, instant: str) -> list[InstantResult]:
    """What a job's result says of one instant."""
    return [item for item in (result.instants if isinstance(result, Result) else ()) if item.instant == instant]


def document_of(result: Result | None) -> dict[str, Any]:
    """The document of a verb other than `run`; empty where the result was not received."""
    return dict(result.document or {}) if result is not None else {}


def found_completed(result: JobResult | None, instant: str) -> bool:
    """Whether a job's result says that it found the instant completed, and did nothing."""
    return any(item.already_completed for item in instants_of(result, instant))


def work_seconds(instants: Iterable[InstantResult], otherwise: float) -> float:
    """The duration of the work on all `instants` of job results; `otherwise` where they say 0, which is not measured,
    or there are none.
    """
    return sum(item.seconds for item in instants) or otherwise


def nothing_result(table: str, action: str) -> dict[str, Any]:
    """The XCom value when there was nothing to do, but for its `reason`."""
    return {
        "table": table,
        "instant": None,
        "action": action,
        "state": None,
        **dict.fromkeys(NUMBERS, 0),
        "seconds": 0.0,
        "already_completed": False,
        "engine": None,
        "reason": None,
    }


def removed_result(table: str, removed: InstantResult) -> dict[str, Any]:
    """The XCom value of an instant that the job removed from the timeline, having nothing to do."""
    return {**nothing_result(table, removed.action), "instant": removed.instant, "state": removed.state}


def _numbers(reader: TimelineReader, instant: Instant) -> dict[str, int]:
    if instant.action in COMMIT_ACTIONS:
        stats = list(reader.active().read_commit(instant).write_stats())
        return {
            "files_written": len(stats),
            "bytes_written": sum(stat.file_size_in_bytes for stat in stats),
            "records": sum(stat.num_writes for stat in stats),
        }
    if instant.action not in (Action.CLEAN, Action.ROLLBACK):
        return {}
    metadata = reader.active().read_of(instant)
    # The log files with command blocks, by which a rollback takes rows back in table version 6.
    logs = [part.get("rollbackLogFiles") or {} for part in (metadata.get("partitionMetadata") or {}).values()]
    return {
        "files_written": sum(len(files) for files in logs),
        "bytes_written": sum(sum(files.values()) for files in logs),
        "files_deleted": int(metadata.get("totalFilesDeleted") or 0),
    }
