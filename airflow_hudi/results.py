"""Makes the XCom of an instant from the timeline. Also reads the completed work from any XCom, for asset events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from airflow_hudi.timeline_reader import TimelineReader
from hudi_core.frozen import dataclass
from hudi_core.request.results import InstantResult, JobResult, Result
from hudi_core.timeline.instant import COMMIT_ACTIONS, Action, Instant, State

NUMBERS = ("files_written", "bytes_written", "files_deleted", "records")
ELSEWHERE = "another process completed it"
"""The `reason` of an instant that neither the task nor an earlier try of it worked on."""
ARCHIVE: Final = "archive"
OVERWRITES: Final = ("INSERT_OVERWRITE", "INSERT_OVERWRITE_TABLE", "DELETE_PARTITION")
WRITES: Final = (*OVERWRITES, "BULK_INSERT", "INSERT", "UPSERT", "DELETE")
"""The operations of commits whose rows come from outside of the table, or are deleted."""


def instant_named(instant: Instant) -> dict[str, Any]:
    """Returns `{"instant", "action", "state"}`. The action is the one in the names of the pending files: a completed
    compaction has the action `compaction`, too.
    """
    return {"instant": instant.requested_time, "action": instant.pending_action, "state": instant.state.value}


def pending_named(instant: Instant, age: int) -> dict[str, Any]:
    """Returns `{"instant", "action", "state", "age_seconds"}` of a pending instant (hudi_core.timeline.timeline)."""
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
    """Returns the XCom value of an instant. Its numbers are sums over the completed instant's file, whichever process
    completed it. `seconds` is the duration of the work; the engine comes from the `result` of the job. Raises
    StorageError, FormatError.
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
    """Returns the document of a verb other than `run`; empty if the result was not received."""
    return dict(result.document or {}) if result is not None else {}


def found_completed(result: JobResult | None, instant: str) -> bool:
    """Returns whether the job's result says that the job found the instant completed, and did nothing."""
    return any(item.already_completed for item in instants_of(result, instant))


def work_seconds(instants: Iterable[InstantResult], otherwise: float) -> float:
    """Returns the seconds of the work on all `instants`, or `otherwise` if they say 0, which means not measured."""
    return sum(item.seconds for item in instants) or otherwise


def nothing_result(table: str, action: str) -> dict[str, Any]:
    """Returns the XCom value of a task without work. The caller sets the `reason`."""
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
    """Returns the XCom value of an instant that the job removed from the timeline because there was nothing to do."""
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
    # In table version 6 a rollback removes rows by log files with command blocks.
    logs = [part.get("rollbackLogFiles") or {} for part in (metadata.get("partitionMetadata") or {}).values()]
    return {
        "files_written": sum(len(files) for files in logs),
        "bytes_written": sum(sum(files.values()) for files in logs),
        "files_deleted": int(metadata.get("totalFilesDeleted") or 0),
    }


@dataclass(frozen=True, slots=True)
class FinishedWork:
    """One completed instant of a table, or an archival, which has no instant. `service` may be an operation in lower
    case. `earlier` says that another process or an earlier try completed the instant, and counted its numbers.
    `elsewhere` says that another process completed it, and reports it itself. `seconds` is None if not measured.
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
    """Reads the completed work from an XCom. `service` is the operator's service, if it has one."""
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
    if result.get("operation") in WRITES:
        return str(result["operation"]).lower()
    if result.get("state") == State.COMPLETED.value:
        return service
    # Restores, and rollbacks of one write, have no state.
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
