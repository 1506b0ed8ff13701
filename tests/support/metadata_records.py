"""A golden table's metadata table as a whole: every record of every partition, and the names on its timeline."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hudi_core.config.table_config import TableConfig
from hudi_core.metadata_table.indexed_table import load_index_definitions
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.metadata_table.read.row_level import RecordIndexRules, SecondaryIndexRules
from hudi_core.metadata_table.read.snapshot import MetadataTableSnapshot
from hudi_core.metadata_table.record import RecordRules
from hudi_core.metadata_table.records.column_stats import ColumnStatsRules
from hudi_core.metadata_table.records.file_statistics import BloomFilterRules, FileChanges
from hudi_core.metadata_table.records.files import FilesRules
from hudi_core.metadata_table.write.publish import MetadataPublisher
from hudi_core.model.names import WriteToken
from hudi_core.storage.base import Storage
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.actions.rollback import RollbackMetadata, encode_rollback_metadata, encode_rollback_plan
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, State
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.instant_generator import InstantClock

Records = dict[str, dict[str, Any]]
TOKEN = WriteToken(0, 7, 0)


class Table:
    """A table on disk, its properties and its timelines, read again at each access."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.storage = LocalStorage(path)

    @property
    def config(self) -> TableConfig:
        return TableConfig.load(self.storage)

    @property
    def data(self) -> ActiveTimeline:
        return ActiveTimeline(self.storage, self.config)

    @property
    def metadata_timeline(self) -> ActiveTimeline:
        return ActiveTimeline(self.storage, self.config, ROOT)

    def publisher(self, storage: Storage | None = None) -> MetadataPublisher:
        """A publisher whose clock does not wait."""
        clock = InstantClock(self.config.timezone, sleep=lambda seconds: None)
        return MetadataPublisher(storage or self.storage, self.config, TOKEN, clock)

    def records(self, timeline: Timeline | None = None) -> Records:
        """Every record by partition and key, as of `timeline` of the data table; those of `files` as live entries."""
        metadata_snapshot = MetadataTableSnapshot(self.storage, self.config, timeline or self.data.load())
        definitions = load_index_definitions(self.storage, self.config)
        found: Records = {}
        for name in sorted(self.config.metadata_partitions):
            partition_type = definitions[name].type if name.startswith("expr_index_") else name
            found[name] = dict(metadata_snapshot.partition(name, rules_of(partition_type)).all())
        return found

    def live(self, timeline: Timeline | None = None) -> Records:
        """As records, without what was deleted."""
        return {
            name: {key: value for key, value in items.items() if is_live(value)}
            for name, items in self.records(timeline).items()
        }

    def metadata_instants(self) -> list[str]:
        """The names on the metadata table's timeline, without completion times."""
        return sorted(re.sub(r"^(\d+)_\d+\.", r"\1.", name) for name in self.metadata_timeline.names())

    def new_instant(self) -> str:
        """An instant after all of both timelines."""
        return (
            max(
                item.completed_at[:14]
                for timeline in (self.data.load(), self.metadata_timeline.load())
                for item in timeline
            )
            + "999"
        )

    def later(self, instant: str) -> str | None:
        """A completion time for `instant`, where the timeline needs one."""
        return str(int(instant) + 1) if self.config.features.completion_time_in_name else None

    def take_data_timeline(self, other: Table, pattern: str) -> None:
        """Copies files of another table's data timeline: what a service would complete, or has removed, there."""
        for path in other.path.joinpath(self.data.folder).glob(pattern):
            shutil.copy2(path, self.path / self.data.folder / path.name)


def rules_of(partition_type: str) -> RecordRules[Any]:
    if partition_type == "files":
        return FilesRules()
    if partition_type in ("column_stats", "partition_stats"):
        return ColumnStatsRules()
    if partition_type == "bloom_filters":
        return BloomFilterRules()
    return RecordIndexRules("UTC") if partition_type == "record_index" else SecondaryIndexRules()


def is_live(value: Any) -> bool:
    entries = getattr(value, "entries", None)
    if entries is not None:
        return any(not entry.is_deleted for entry in entries.values())
    return value is not False and not getattr(value, "is_deleted", False)


def comparable(records: Records) -> Records:
    """Records without what distinguishes files of the metadata table."""
    return {name: {key: _plain(value) for key, value in items.items()} for name, items in records.items()}


def _plain(value: Any) -> Any:
    return (value.type_code, value.text, value.instant, value.is_deleted) if hasattr(value, "type_code") else value


def clean_changes(metadata: dict[str, Any]) -> FileChanges:
    """The changes in a clean's metadata."""
    parts = metadata["partitionMetadata"]
    deleted = {name: frozenset(part["deletePathPatterns"]) for name, part in parts.items()}
    return FileChanges(
        deleted=deleted,
        dropped_partitions=frozenset(name for name, part in parts.items() if part["isPartitionDeleted"]),
    )


def rollback_changes(metadata: dict[str, Any]) -> FileChanges:
    """The changes in a rollback's metadata."""
    written: dict[str, dict[str, int]] = {}
    deleted: dict[str, frozenset[str]] = {}
    for name, part in metadata["partitionMetadata"].items():
        if part["rollbackLogFiles"]:
            written[name] = {
                path.rpartition("/")[2]: size
                for path, size in (part["rollbackLogFiles"] | part["logFilesFromFailedCommit"]).items()
            }
        deleted[name] = frozenset(path.rpartition("/")[2] for path in part["successDeleteFiles"])
    return FileChanges(written, deleted)


def added_instants(before: Table, after: Table, actions: Iterable[str]) -> list[str]:
    """The requested times of completed instants of some actions that are only on the data timeline of `after`."""
    known = {item.requested_time for item in before.data.load().completed()}
    return [
        item.requested_time
        for item in after.data.load().completed().of_actions(*actions)
        if item.requested_time not in known
    ]


def crash_before_completion(table: Table, instant: str) -> None:
    """Makes the data table look as if its writer had died after the update of the metadata table, before the commit
    completed.
    """
    found = next(item for item in table.data.load().completed() if item.requested_time == instant)
    table.data.remove(instant, found.pending_action, State.COMPLETED)


def complete_rollback(table: Table, failed: str, rollback: str) -> None:
    """What the data table's rollback does after the metadata table's."""
    found = next(item for item in table.data.load() if item.requested_time == failed)
    table.data.delete_instant(failed, found.pending_action)
    table.data.create_requested(rollback, Action.ROLLBACK, encode_rollback_plan(failed, found.action, []))
    table.data.to_inflight(rollback, Action.ROLLBACK)
    metadata = encode_rollback_metadata(RollbackMetadata(rollback, 1, failed, found.action))
    table.data.complete(rollback, Action.ROLLBACK, metadata, table.later(rollback))


def complete_clean(table: Table, instant: str) -> None:
    """Completes a requested clean on the data timeline; no test reads its content."""
    table.data.to_inflight(instant, Action.CLEAN)
    table.data.complete(instant, Action.CLEAN, b"done", table.later(instant))
