"""Finished log blocks that executors write before a deltacommit starts, in a folder outside the table's partitions. A
writer copies them under the table lock into log files of the current slices (delta_writer). A dead attempt leaves only
such files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from hudi_core.engine.protocol import Engine, TaskAttempt
from hudi_core.metadata_table.partitions.row_exchange import LOG_BYTES, Conflict, RowsOfIndex, log_contents
from hudi_core.metadata_table.read.row_level import OtherPartitions
from hudi_core.metadata_table.record import block_schema
from hudi_core.metadata_table.records.file_statistics import FileStatistics
from hudi_core.metadata_table.timeline import MetadataTimeline, latest_schema
from hudi_core.model.names import WriteToken
from hudi_core.storage.arrow_store import open_data_storage
from hudi_core.storage.base import Storage

STAGING: Final = ".hoodie/.airflow_hudi/metadata"
"""Below it a folder for each instant, in that one for each attempt."""


@dataclass(frozen=True, slots=True)
class StagedLog:
    """Where a log file's blocks lie, how many records and deletions they hold, and their bytes."""

    file_id: str
    path: str
    records: int
    deletions: int
    size: int


@dataclass(frozen=True, slots=True)
class Workers:
    """The tasks of one attempt: their engine, and how they open the table. `epoch` is the attempt's."""

    engine: Engine
    epoch: int
    uri: str
    storage_options: Mapping[str, str]

    @property
    def token(self) -> WriteToken:
        return WriteToken(0, self.epoch, 0)

    def staging_target(self, metadata_timeline: MetadataTimeline, instant: str) -> StagingTarget:
        active = metadata_timeline.active
        return StagingTarget(
            self.uri,
            dict(self.storage_options),
            instant,
            block_schema(latest_schema(active, active.load())),
            staging_folder(instant, self.epoch),
        )


def staging_folder(instant: str, epoch: int) -> str:
    return f"{STAGING}/{instant}/{epoch}"


@dataclass(frozen=True, slots=True)
class StagingTarget:
    """Where the tasks of one attempt at an instant stage blocks. `schema` is that of stored records."""

    uri: str
    storage_options: Mapping[str, str]
    instant: str
    schema: str
    folder: str

    def stage(
        self,
        partition: str,
        file_id: str,
        batches: Iterator[pa.RecordBatch],
        attempt: TaskAttempt,
        *,
        conflict: Conflict | None,
        limit: int = LOG_BYTES,
    ) -> Iterator[StagedLog]:
        """Stages the blocks of one file group, under names of this attempt; as row_exchange.log_contents."""
        storage = open_data_storage(self.uri, self.storage_options)
        contents = log_contents(partition, batches, self.instant, self.schema, conflict=conflict, limit=limit)
        token = f"{attempt.partition_id}-{attempt.stage_id}-{attempt.attempt_id}"
        for number, content in enumerate(contents):
            path = f"{self.folder}/{partition}_{file_id}_{number}_{token}"
            storage.write(path, content.data)
            yield StagedLog(file_id, path, content.records, content.deletions, len(content.data))


@dataclass(frozen=True, slots=True)
class LogShards:
    """Where the rows of a row-level index are staged: `file_ids` are in the order of shards, `others` are looked up for
    a record index. `is_clustering`: a key that has rows in several file groups keeps one of its places, as 0.15.0 has
    it; other changes would bring such rows, and are refused.
    """

    target: StagingTarget
    index: RowsOfIndex
    file_ids: tuple[str, ...]
    others: OtherPartitions | None = None
    is_clustering: bool = False


@dataclass(frozen=True, slots=True)
class StagedShard:
    """Staged blocks of one file group, and how many deletions were left out (OtherPartitions); of the shard of data
    partitions their merged statistics (prepare).
    """

    logs: tuple[StagedLog, ...] = ()
    spared: int = 0
    wholes: tuple[FileStatistics, ...] = ()


def write_log_shard(
    shards: LogShards, shard: int, batches: Iterator[pa.RecordBatch], attempt: TaskAttempt
) -> StagedShard:
    """engine.protocol.Consume, given `shards`: stages the blocks of one file group."""
    rows, target, others = shards.index.rows, shards.target, shards.others
    elsewhere = None if others is None else others.open(open_data_storage(target.uri, target.storage_options))
    if elsewhere is not None:
        batches = elsewhere.filtered(shard, batches)
    conflict = None if shards.is_clustering else rows.conflict
    logs = tuple(target.stage(rows.partition, shards.file_ids[shard], batches, attempt, conflict=conflict))
    return StagedShard(logs, 0 if elsewhere is None else elsewhere.spared)


def staged_instants(storage: Storage) -> frozenset[str]:
    return frozenset(folder.rpartition("/")[2] for folder in storage.list_folders(STAGING))


def forget_staged(storage: Storage, instant: str, *, up_to: int | None = None) -> None:
    """Of attempts at an instant: all (under the lock, or when it is completed), or those `up_to` an epoch."""
    if up_to is None:
        storage.delete_folder(f"{STAGING}/{instant}")
        return
    for folder in storage.list_folders(f"{STAGING}/{instant}"):
        epoch = folder.rpartition("/")[2]
        if not epoch.isdecimal() or int(epoch) <= up_to:
            storage.delete_folder(folder)
