"""Instants to archive, made up, and the folders of both archives."""

from __future__ import annotations

from typing import Any

from hudi_core.history.archived_instant import ArchivedInstant, StateFile
from hudi_core.timeline.actions.commit import CommitMetadata, encode_commit, encode_commit_avro
from hudi_core.timeline.instant import Instant, State

LOGS = ".hoodie/archived"
LSM = ".hoodie/timeline/history"


def archived(time: int, action: str = "commit", *, layout: int = 2, data: bytes | None = None) -> ArchivedInstant:
    encode = encode_commit_avro if layout == 2 else encode_commit
    content = encode(CommitMetadata(operation_type="UPSERT")) if data is None else data
    text = f"{time:03d}"
    files = (
        StateFile(action, State.REQUESTED, b"", "requested", text),
        StateFile(action, State.COMPLETED, content, f"{text}.{action}", text),
    )
    return ArchivedInstant(
        Instant(text, action, State.COMPLETED, f"{time + 500:03d}" if layout == 2 else None, action), files
    )


def times(history: Any) -> list[str]:
    return [item.requested_time for item in history.instants()]
