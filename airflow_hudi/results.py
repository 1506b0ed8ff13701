"""What a task returns about an instant it completed, taken from the timeline: the same facts whichever way the job was submitted."""

from __future__ import annotations

from typing import Any

from airflow_hudi.timeline_reader import TimelineReader
from hudi_core.timeline.instant import Instant


def completed_result(reader: TimelineReader, instant: Instant, *, seconds: float, already_completed: bool) -> dict[str, Any]:
    """The XCom value: JSON with the shape of `hudictl run`'s instants, and `table` and `already_completed`.

    `bytes_written` and `records` are sums over the commit's write stats; `seconds` is what the task spent. Raises StorageError and FormatError.
    """
    stats = list(reader.active().read_commit(instant).write_stats())
    return {
        "table": reader.storage.uri,
        "instant": instant.requested_time,
        "action": instant.pending_action,
        "state": instant.state.value,
        "files_written": len(stats),
        "bytes_written": sum(stat.file_size_in_bytes for stat in stats),
        "records": sum(stat.num_writes for stat in stats),
        "seconds": round(seconds, 3),
        "already_completed": already_completed,
    }


def nothing_result(table: str) -> dict[str, Any]:
    """The XCom value when nothing was pending."""
    return {
        "table": table,
        "instant": None,
        "action": "compaction",
        "state": None,
        "files_written": 0,
        "bytes_written": 0,
        "records": 0,
        "seconds": 0.0,
        "already_completed": False,
    }
