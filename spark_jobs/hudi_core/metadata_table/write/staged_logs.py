"""Finished log blocks that executors write before a deltacommit starts, in a folder outside the table's partitions.

A writer copies them under the table lock into log files of the current slices (delta_writer). A dead attempt leaves
only such files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hudi_core.metadata_table.partitions.row_exchange import AnyIndexRows, LogContent, log_contents
from hudi_core.storage.arrow_store import open_data_storage

if TYPE_CHECKING:
    import pyarrow as pa

    from hudi_core.engine.protocol import TaskAttempt
    from hudi_core.storage.base import Storage

STAGING: Final = ".hoodie/.airflow_hudi/metadata"
"""Below it a folder for each instant, in that one for each attempt."""


@dataclass(frozen=True, slots=True)
class StagedLog:
    """A log file's blocks for a file group: where they lie in the table's storage, how many records and deletions they
    hold, and their bytes.

    A file group may get several: each is of some row_exchange.LOG_BYTES.
    """

    file_id: str
    path: str
    records: int
    deletions: int
    size: int


def staging_folder(instant: str, epoch: int) -> str:
    """Where attempt `epoch` at an instant puts its files."""
    return f"{STAGING}/{instant}/{epoch}"


@dataclass(frozen=True, slots=True)
class LogShards:
    """Where the rows of a row-level index are staged: `file_ids` are its file groups, in the order of shards.

    `schema` is that of the records, `hudi_1_headers` as encode_block, `folder` as staging_folder.
    """

    uri: str
    storage_options: Mapping[str, str]
    index: AnyIndexRows
    file_ids: tuple[str, ...]
    instant: str
    schema: str
    hudi_1_headers: bool
    folder: str


@dataclass(frozen=True, slots=True)
class StagedLogs:
    """The staged blocks of one file group."""

    logs: tuple[StagedLog, ...]


def write_log_shard(
    target: LogShards, shard: int, batches: Iterator[pa.RecordBatch], attempt: TaskAttempt
) -> StagedLogs:
    """Stages the blocks of one file group; with `target` given, engine.protocol.Consume. Memory: that of
    row_exchange.log_contents.
    """
    storage, rows = open_data_storage(target.uri, target.storage_options), target.index
    place = StagingPlace(rows.partition, target.file_ids[shard], target.folder)
    contents = log_contents(
        rows.partition,
        batches,
        target.instant,
        target.schema,
        conflict=rows.conflict,
        hudi_1_headers=target.hudi_1_headers,
    )
    return StagedLogs(tuple(place.stage(storage, contents, attempt)))


@dataclass(frozen=True, slots=True)
class StagingPlace:
    """Where the blocks of one file group of a metadata partition are staged: in `folder` (staging_folder)."""

    partition: str
    file_id: str
    folder: str

    def stage(self, storage: Storage, contents: Iterable[LogContent], attempt: TaskAttempt) -> Iterator[StagedLog]:
        """Writes log files' contents under names of this attempt."""
        for number, content in enumerate(contents):
            token = f"{attempt.partition_id}-{attempt.stage_id}-{attempt.attempt_id}"
            path = f"{self.folder}/{self.partition}_{self.file_id}_{number}_{token}"
            storage.write(path, content.data)
            yield StagedLog(self.file_id, path, content.records, content.deletions, len(content.data))


def staged_instants(storage: Storage) -> frozenset[str]:
    """The instants of which something is staged."""
    return frozenset(folder.rpartition("/")[2] for folder in storage.list_folders(STAGING))


def forget_staged(storage: Storage, instant: str, *, up_to: int | None = None) -> None:
    """Deletes the staged files of attempts at an instant: all, or those `up_to` an epoch, which spares a successor's
    files.

    To delete all, the caller holds the table lock, or the instant is completed.
    """
    if up_to is None:
        storage.delete_folder(f"{STAGING}/{instant}")
        return
    for folder in storage.list_folders(f"{STAGING}/{instant}"):
        epoch = folder.rpartition("/")[2]
        if not epoch.isdecimal() or int(epoch) <= up_to:
            storage.delete_folder(folder)
