"""The time by the clock that dates the files: ages of heartbeats and locks are differences of two of its readings."""

from __future__ import annotations

import uuid

from hudi_core.storage.base import Storage


def storage_time(storage: Storage, folder: str) -> float:
    """Seconds since the epoch: the modification time of a file made in `folder` now, and removed again."""
    probe = f"{folder}/clock-{uuid.uuid4().hex}"
    storage.write(probe, b"")
    try:
        return storage.stat(probe).modified
    finally:
        storage.delete(probe)
