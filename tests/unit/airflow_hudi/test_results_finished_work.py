"""What XComs say that a task has done."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_hudi.results import FinishedWork, finished_work, nothing_result

NUMBERS = {"files_written": 2, "bytes_written": 300, "files_deleted": 0, "records": 40, "seconds": 1.5}


@pytest.mark.parametrize(
    ("result", "service", "expected"),
    [
        (
            {"table": "/t", "instant": "1", "action": "logcompaction", "state": "completed", **NUMBERS},
            "log_compaction",
            [FinishedWork("/t", "log_compaction", "1", False, 1.5, 300, 2, 40)],
        ),
        (
            {"table": "/t", "instant": "1", "action": "clean", "state": "completed", "already_completed": True},
            "clean",
            [FinishedWork("/t", "clean", "1", True)],
        ),
        ({"table": "/t", "instant": "1", "action": "clean", "state": "requested", **NUMBERS}, "clean", []),
        (nothing_result("/t", "compaction"), "compaction", []),
        (
            {"table": "/t", "instant": "2", "operation": "INSERT_OVERWRITE", "repeated": True, "records": 3},
            None,
            [FinishedWork("/t", "insert_overwrite", "2", True, records=3)],
        ),
        ({"table": "/t", "instant": None, "operation": "DELETE_PARTITION", "repeated": False}, None, []),
        *(
            (
                {"table": "/t", "instant": "2", "operation": operation, "repeated": False, "files_written": 1},
                None,
                [FinishedWork("/t", operation.lower(), "2", files_written=1)],
            )
            for operation in ("BULK_INSERT", "INSERT", "UPSERT", "DELETE")
        ),
        ({"table": "/t", "instant": None, "operation": "UPSERT", "repeated": False}, None, []),
        (
            {"table": "/t", "instant": "3", "target": "2", "removed": {"files": 1}},
            None,
            [FinishedWork("/t", "restore", "3")],
        ),
        (
            {"table": "/t", "instant": "3", "target": "2", "removed": {"files": 1}},
            "rollback",
            [FinishedWork("/t", "rollback", "3")],
        ),
        (
            {"table": "/t", "action": "archive", "instants": 4, "seconds": 2.0},
            None,
            [FinishedWork("/t", "archive", None, seconds=2.0)],
        ),
        ({"table": "/t", "action": "archive", "instants": 0, "seconds": 0.0}, None, []),
        # Savepoints, takeovers and dropped plans name an instant, too.
        ({"table": "/t", "instant": "1", "existed": False, "deleted": False}, None, []),
        ({"table": "/t", "instant": "1", "action": "compaction", "state": "inflight", "removed": {}}, None, []),
        ({"table": "/t", "instant": "1", "action": "compaction", "removed": {}}, None, []),
        ({"table": "/t", "findings": []}, None, []),
    ],
)
def test_the_result_of_one_table(result: dict[str, Any], service: str | None, expected: list[FinishedWork]) -> None:
    assert list(finished_work(result, service)) == expected


def test_the_results_of_many_tables() -> None:
    results = [
        {
            "table": "/t",
            "service": "compaction",
            "exit_code": 0,
            "instants": [
                {"instant": "1", "state": "completed", **NUMBERS},
                {"instant": "2", "state": "removed", **NUMBERS},
            ],
        },
        {"table": "/u", "service": "clean", "exit_code": 1, "instants": [{"instant": "3", "state": "completed"}]},
        {"table": "/u", "service": "archive", "exit_code": 0, "instants": None, "reason": "nothing"},
    ]
    assert list(finished_work({"results": results})) == [FinishedWork("/t", "compaction", "1", False, 1.5, 300, 2, 40)]
