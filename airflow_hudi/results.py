"""The XCom of a task about an instant, taken from the timeline; and what any XCom says that was done, of which asset
events, metrics, lineage and messages are made. Whether this task completed an instant: operators/service.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from airflow_hudi.timeline_reader import TimelineReader
from hudi_core.request.results import InstantResult, JobResult, Result
from hudi_core.timeline.instant import COMMIT_ACTIONS, Action, Instant, State

NUMBERS = ("files_written", "bytes_written", "files_deleted", "records")
ELSEWHERE = "another process completed it"
"""The `reason` of an instant at which neither the task nor an earlier try of it did anything."""
ARCHIVE: Final = "archive"
OVERWRITES: Final = ("INSERT_OVERWRITE", "INSERT_OVERWRITE_TABLE", "DELETE_PARTITION")


def instant_named(instant: Instant) -> dict[str, Any]:
    """`{"instant", "action", "state"}`; the action on the pending files: `compaction` also for a completed one."""
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
    """The XCom value of an instant: sums over the completed instant's file, whoever did it, and the `seconds` and
    `engine` of the work, by the `result` of the job. Raises StorageError, FormatError.
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
    return [item for item in (result.instants if isinstance(result, Result) else ()) if item.instant == instant]


def document_of(result: Result | None) -> dict[str, Any]:
    """The document of a verb other than `run`; empty where the result was not received."""
    return dict(result.document or {}) if result is not None else {}


def found_completed(result: JobResult | None, instant: str) -> bool:
    """Whether a job's result says that it found the instant completed, and did nothing."""
    return any(item.already_completed for item in instants_of(result, instant))


def work_seconds(instants: Iterable[InstantResult], otherwise: float) -> float:
    """The duration of the work on all `instants`; `otherwise` where they say 0, which is not measured."""
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
    # The log files with command blocks, by which a rollback removes rows in table version 6.
    logs = [part.get("rollbackLogFiles") or {} for part in (metadata.get("partitionMetadata") or {}).values()]
    return {
        "files_written": sum(len(files) for files in logs),
        "bytes_written": sum(sum(files.values()) for files in logs),
        "files_deleted": int(metadata.get("totalFilesDeleted") or 0),
    }


@dataclass(frozen=True, slots=True)
class FinishedWork:
    """One completed instant of one table, or an archival, which has none. `service` may be an operation in lower case.
    `earlier`: another process or an earlier try completed it, and counted its numbers; `elsewhere`: another process,
    which tells of it itself. `seconds` is None where it was not measured.
    """

    table: str
    service: str
    instant: str | None
    earlier: bool = False
    seconds: float | None = None
    bytes_written: int | None = None
    files_written: int | None = None
    records: int | None = None
    elsewhere: bool = False
    files_deleted: int = 0


def finished_work(result: Mapping[str, Any], service: str | None = None) -> Iterator[FinishedWork]:
    """What an XCom says that was completed. `service`: the operator's, if it has one."""
    if isinstance(result.get("results"), list):
        for item in result["results"]:
            if not item.get("exit_code"):
                for instant in item.get("instants") or ():
                    if instant.get("state") in (None, State.COMPLETED.value):
                        yield _work(item["table"], item["service"], instant)
    elif result.get("action") == ARCHIVE:
        if result.get("instants"):
            yield FinishedWork(result["table"], ARCHIVE, None, seconds=result.get("seconds"))
    elif result.get("instant") is not None and (named := _named(result, service)):
        yield _work(result["table"], named, result)


def _named(result: Mapping[str, Any], service: str | None) -> str | None:
    if result.get("operation") in OVERWRITES:
        return str(result["operation"]).lower()
    if result.get("state") == State.COMPLETED.value:
        return service
    # Restores, and rollbacks of one write.
    return (service or Action.RESTORE) if "target" in result and "removed" in result else None


def _work(table: str, service: str, item: Mapping[str, Any]) -> FinishedWork:
    return FinishedWork(
        table,
        service,
        item.get("instant"),
        bool(item.get("already_completed") or item.get("repeated")),
        item.get("seconds"),
        item.get("bytes_written"),
        item.get("files_written"),
        item.get("records"),
        item.get("reason") == ELSEWHERE,
        int(item.get("files_deleted") or 0),
    )
