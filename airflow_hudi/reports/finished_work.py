"""What a task has done, taken from its XCom: its asset events, metrics, lineage and messages are made of this alone.
Whether this task completed an instant: operators/service.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from airflow_hudi.results import ELSEWHERE
from hudi_core.timeline.instant import Action, State

ARCHIVE: Final = "archive"
OVERWRITES: Final = ("INSERT_OVERWRITE", "INSERT_OVERWRITE_TABLE", "DELETE_PARTITION")


@dataclass(frozen=True, slots=True)
class FinishedWork:
    """One completed instant of one table, or an archival, which has none.

    `service` is a service's name, or an operation in lower case. `earlier` is whether another process or an earlier try
    completed it: its numbers have been counted then. `elsewhere` is whether that was another process, which tells of it
    itself. `seconds` is None where it was not measured.
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
    """What the XCom of an operator of this package says that was completed; nothing of what only reports, plans or
    keeps. `service` is the operator's, if it has one.
    """
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
