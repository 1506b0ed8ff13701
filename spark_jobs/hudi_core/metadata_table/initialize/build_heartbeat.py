"""The heartbeat of a deltacommit that stays pending in the metadata table without the table lock.

A writer of Hudi 1.2 streams its records to the metadata table of versions 8 and 9, whose policy of failed writes is
LAZY then (HoodieMetadataWriteUtils.createMetadataWriteConfig): its next clean there rolls back every pending
deltacommit without a fresh heartbeat, those of indexing actions, too
(BaseHoodieTableServiceClient.getInstantsToRollback checks isIndexingCommit with EAGER alone).
"""

from __future__ import annotations

from typing import Final

from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.storage.base import Storage
from hudi_core.transaction.claim import HUDI_HEARTBEATS
from hudi_core.transaction.heartbeat_thread import Heartbeat

INTERVAL_SECONDS: Final = 30.0
TOLERANCE_SECONDS: Final = 120.0
"""Hudi's defaults, a minute and two misses, which hold for a metadata table with any options of the table's writers;
half of that minute is ours.
"""


def heartbeat_path(metadata_instant: str) -> str:
    """Where writers of Hudi look for the heartbeat of an instant of the metadata table
    (HoodieTableMetaClient.getHeartbeatFolderPath).
    """
    return f"{ROOT}/{HUDI_HEARTBEATS}/{metadata_instant}"


class BuildHeartbeat:
    """Beats for one instant at a time. As a context manager it ends at the end."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._instant: str | None = None
        self._heartbeat: Heartbeat | None = None

    def __enter__(self) -> BuildHeartbeat:
        return self

    def __exit__(self, *exception: object) -> None:
        self.end()

    def begin(self, metadata_instant: str) -> None:
        """The first beat, and then one every INTERVAL_SECONDS. The caller holds the table lock, under which others look
        for it.
        """
        if self._instant == metadata_instant:
            return
        self.end()
        path = heartbeat_path(metadata_instant)
        self._instant = metadata_instant
        self._heartbeat = Heartbeat(
            lambda: self._storage.write(path, b""),
            interval_seconds=INTERVAL_SECONDS,
            tolerance_seconds=TOLERANCE_SECONDS,
            name=f"deltacommit {metadata_instant} of the metadata table",
        )
        self._heartbeat.start()

    def end(self) -> None:
        """Stops, and removes the heartbeat: its instant is completed, or may be rolled back. Idempotent."""
        if self._heartbeat is not None and self._instant is not None:
            self._heartbeat.stop()
            self._storage.delete(heartbeat_path(self._instant))
        self._heartbeat = self._instant = None
