"""Finished log blocks that executors write before a deltacommit starts, in a folder outside the table's partitions.

A writer copies them under the table lock into log files of the current slices (delta_writer). A dead attempt leaves
only such files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hudi_core.errors import ConfigError
from hudi_core.metadata_table.partitions.group_content import LogContent, log_contents
from hudi_core.metadata_table.partitions.row_units import rows_from_json
from hudi_core.storage.data_registry import open_data_storage

if TYPE_CHECKING:
    import pyarrow as pa

    from hudi_core.engine.protocol import Json, TaskAttempt
    from hudi_core.storage.base import Storage

STAGING: Final = ".hoodie/.airflow_hudi/metadata"
"""Below it a folder for each instant, in that one for each attempt."""


@dataclass(frozen=True, slots=True)
class StagedLog:
    """A log file's blocks for a file group: where they lie in the table's storage, how many records and deletions they
    hold, and their bytes.

    A file group may get several: each is of some group_content.LOG_BYTES.
    """

    file_id: str
    path: str
    records: int
    deletions: int
    size: int

    def to_json(self) -> Json:
        """As it crosses the engine."""
        return {
            "file_id": self.file_id,
            "path": self.path,
            "records": self.records,
            "deletions": self.deletions,
            "size": self.size,
        }

    @classmethod
    def from_json(cls, raw: Json) -> StagedLog:
        """Back from to_json."""
        return cls(str(raw["file_id"]), str(raw["path"]), int(raw["records"]), int(raw["deletions"]), int(raw["size"]))


def staging_folder(instant: str, epoch: int) -> str:
    """Where attempt `epoch` at an instant puts its files."""
    return f"{STAGING}/{instant}/{epoch}"


def write_log_shard(unit: Json, shard: int, batches: Iterator[pa.RecordBatch], attempt: TaskAttempt) -> Json:
    """Stages the blocks of one file group; with `unit` given, engine.protocol.Consume. Returns `{"logs": [StagedLog as
    JSON]}`.

    `unit` is `{"uri", "storage_options", "index": IndexRows as JSON, "file_ids", "instant", "schema", "hudi_1_headers",
    "folder"}`. Memory: that of group_content.log_contents.
    """
    try:
        storage, rows = open_data_storage(unit["uri"], unit["storage_options"]), rows_from_json(unit["index"])
        place = StagingPlace(rows.partition, str(unit["file_ids"][shard]), str(unit["folder"]))
        instant, schema, hudi_1 = str(unit["instant"]), str(unit["schema"]), bool(unit["hudi_1_headers"])
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ConfigError(f"a unit of an index is not what this version writes: {error!r}") from error
    contents = log_contents(rows.partition, batches, instant, schema, conflict=rows.conflict, hudi_1_headers=hudi_1)
    return {"logs": [item.to_json() for item in place.stage(storage, contents, attempt)]}


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
