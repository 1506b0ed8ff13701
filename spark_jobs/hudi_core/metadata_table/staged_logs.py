"""Log blocks that executors have written for a deltacommit before it begins: finished, in a folder where no reader looks.

A writer copies them under the table lock into log files of the slices as they are then (delta_writer). A dead attempt leaves only such files.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hudi_core.errors import ConfigError
from hudi_core.metadata_table.kinds.group_content import log_content
from hudi_core.metadata_table.kinds.row_units import rows_from_json
from hudi_core.storage.data_registry import open_data_storage

if TYPE_CHECKING:
    import pyarrow as pa

    from hudi_core.model.engine import Json, TaskAttempt
    from hudi_core.storage.base import Storage

STAGING: Final = ".hoodie/.airflow_hudi/metadata"
"""Below it a folder for each instant, in that one for each attempt."""


@dataclass(frozen=True, slots=True)
class StagedLog:
    """The blocks of one file group: where they lie in the table's storage, how many records and deletions they hold, and their bytes."""

    file_id: str
    path: str
    records: int
    deletions: int
    size: int

    def to_json(self) -> Json:
        """As it crosses the engine."""
        return {"file_id": self.file_id, "path": self.path, "records": self.records, "deletions": self.deletions, "size": self.size}

    @classmethod
    def from_json(cls, raw: Json) -> StagedLog:
        """Back from to_json."""
        return cls(str(raw["file_id"]), str(raw["path"]), int(raw["records"]), int(raw["deletions"]), int(raw["size"]))


def staging_folder(instant: str, epoch: int) -> str:
    """Where attempt `epoch` at an instant puts its files."""
    return f"{STAGING}/{instant}/{epoch}"


def write_log_shard(unit: Json, shard: int, batches: Iterator[pa.RecordBatch], attempt: TaskAttempt) -> Json:
    """Stages the blocks of one file group; with `unit` given, model.engine.Consume. Returns `{"log": StagedLog as JSON}`, None without rows.

    `unit` is `{"uri", "storage_options", "index": IndexRows as JSON, "file_ids", "instant", "schema", "hudi_1_headers", "folder"}`.
    Memory: that of group_content.log_content.
    """
    try:
        storage, rows = open_data_storage(unit["uri"], unit["storage_options"]), rows_from_json(unit["index"])
        file_id, folder, instant = str(unit["file_ids"][shard]), str(unit["folder"]), str(unit["instant"])
        schema, hudi_1 = str(unit["schema"]), bool(unit["hudi_1_headers"])
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ConfigError(f"a unit of an index is not what this version writes: {error!r}") from error
    content = log_content(rows, batches, instant, schema, hudi_1_headers=hudi_1)
    if not content.data:
        return {"log": None}
    path = f"{folder}/{rows.partition}_{file_id}_{attempt.partition_id}-{attempt.stage_id}-{attempt.attempt_id}"
    storage.write(path, content.data)
    return {"log": StagedLog(file_id, path, content.records, content.deletions, len(content.data)).to_json()}


def forget_staged(storage: Storage, instant: str) -> None:
    """Deletes what all attempts at an instant staged."""
    storage.delete_folder(f"{STAGING}/{instant}")
