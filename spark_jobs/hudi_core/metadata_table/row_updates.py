"""Updates the row-level indexes for any commit. An exchange brings the changes of rows in the commit's file groups to
the index's file groups. Its tasks stage log blocks (write.staged_logs), which the deltacommit copies.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial

from hudi_core.frozen import dataclass
from hudi_core.metadata_table.indexed_table import IndexedTable
from hudi_core.metadata_table.initialize.target import initialize_groups
from hudi_core.metadata_table.partition_type import RECORD_INDEX, moves_rows
from hudi_core.metadata_table.partitions.registry import row_level_type
from hudi_core.metadata_table.partitions.row_exchange import IndexUnit, RowsOfIndex, produce_index_rows
from hudi_core.metadata_table.partitions.row_indexes import RecordIndexPartition
from hudi_core.metadata_table.partitions.row_level import (
    PREFIX,
    Counts,
    RowLevelPartition,
    SliceChange,
    escape_file_name,
    partitioned_group_count,
)
from hudi_core.metadata_table.read.file_group import ROOT, merged_slices
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.metadata_table.read.row_level import OtherPartitions
from hudi_core.metadata_table.read.snapshot import MetadataTableSnapshot
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.metadata_table.write.staged_logs import LogShards, StagedLog, StagedShard, Workers, write_log_shard
from hudi_core.storage.base import Storage
from hudi_core.timeline.actions.commit import OVERWRITES, WRITES, Operation
from hudi_core.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class RowUpdates:
    """Stages the records of row-level indexes of the table in `storage`. `zone` is the time zone of instants."""

    storage: Storage
    table: IndexedTable
    metadata_timeline: MetadataTimeline
    workers: Workers
    zone: str

    def stage(
        self,
        instant: str,
        operation: str | None,
        names: Collection[str],
        changes: Sequence[SliceChange],
        spec: str,
        data: Timeline,
    ) -> dict[str, list[StagedLog]]:
        """Stages the log blocks of the indexes `names` for the commit `instant` of `operation` (`operationType`), and
        returns them by index; returns nothing for an operation that leaves every row in its place. `changes` are the
        file groups that the commit wrote or replaced, with their file slices before and after it; `spec` is the
        ReaderSpec of a snapshot query up to the commit; `data` is the data table's timeline. A partitioned record index
        gets file groups for new data partitions, under an instant that only the metadata table has
        (maybeInitializeNewFileGroupsForPartitionedRLI): for such an index the caller holds the table lock. Raises
        StorageNotFoundError for a file that is gone, and errors of RowLevelPartition.rows and Engine.exchange.
        """
        if not moves_rows(operation):
            return {}
        is_write = operation in WRITES
        others = None
        if is_write or operation in OVERWRITES:
            others = self._other_partitions(instant, changes, data, is_write=is_write)
        staged: dict[str, list[StagedLog]] = {}
        spared = 0
        # The record index comes first: where it keeps the place of a key, secondary indexes keep the pairs of the key.
        for name in sorted(names, key=lambda name: (name != RECORD_INDEX, name)):
            known = others if name == RECORD_INDEX or spared else None
            is_clustering = operation == Operation.CLUSTER
            found = self._exchange(name, instant, changes, spec, data, known, is_clustering=is_clustering)
            staged[name] = [log for item in found for log in item.logs]
            spared += sum(item.spared for item in found)
        return staged

    def _exchange(
        self,
        name: str,
        instant: str,
        changes: Sequence[SliceChange],
        spec: str,
        data: Timeline,
        others: OtherPartitions | None,
        *,
        is_clustering: bool,
    ) -> list[StagedShard]:
        index, workers = row_level_type(name, self.table), self.workers
        counts = self._counts(index, {group for change in changes for group in _partitions(change)}, data)
        target = workers.staging_target(self.metadata_timeline, instant)
        rows = RowsOfIndex.of(index.rows(counts, target.schema, self.zone))
        file_ids = tuple(index.row_file_ids(counts))
        is_record_index = name == RECORD_INDEX
        known = others if is_record_index else None
        shards = LogShards(target, rows, file_ids, known, is_clustering)
        going = None if is_record_index else others
        units = [IndexUnit(target.uri, target.storage_options, spec, rows, change, going) for change in changes]
        return workers.engine.exchange(
            produce_index_rows, units, partial(write_log_shard, shards), shards=len(file_ids), run_epoch=workers.epoch
        )

    def _other_partitions(
        self, instant: str, changes: Sequence[SliceChange], data: Timeline, *, is_write: bool
    ) -> OtherPartitions | None:
        """Returns the partitions that an overwrite or a write of rows leaves; None for none, or without a true global
        record index.
        """
        config, storage = self.table.config, self.storage
        definition = self.table.definitions.get(RECORD_INDEX)
        if RECORD_INDEX not in config.metadata_partitions or (definition is not None and definition.is_partitioned):
            return None
        metadata = MetadataTable(storage, config, data)
        replaced = {name for change in changes for name in _partitions(change)}
        leaves_none = not is_write and replaced.issuperset(metadata.partitions())
        if leaves_none or not metadata.completeness.has_true_locations:
            return None
        snapshot = MetadataTableSnapshot(storage, config, data)
        refuses = instant not in data.completed().requested_times
        slices = tuple(snapshot.checked_slices(RECORD_INDEX))
        changed = {change.before.file_group.file_id for change in changes if change.before is not None}
        of_write = tuple(sorted(changed)) if is_write else None
        return OtherPartitions(tuple(sorted(replaced)), slices, snapshot.blocks, self.zone, refuses, of_write)

    def _counts(self, index: RowLevelPartition, partitions: Collection[str], data: Timeline) -> Counts:
        """Returns the numbers of the index's file groups; for a partitioned index only of `partitions`, among which new
        ones get file groups.
        """
        storage, name = self.storage, index.partition
        timeline = self.metadata_timeline.active.load()
        if not isinstance(index, RecordIndexPartition) or not index.is_partitioned:
            return {None: len(self.metadata_timeline.latest_slices(timeline, name))}
        folder = f"{ROOT}/{name}"
        # A dead attempt at an initialization may have left a file group without a file slice.
        slices = merged_slices(folder, storage.list_files(folder), timeline, self.metadata_timeline.features.layout)
        there = [item.file_id for item in slices if item.base_file is not None or item.logs]
        least = partitioned_group_count(self.table.settings, 0)
        counts: dict[str | None, int] = {}
        for partition in partitions:
            start = f"{PREFIX}{escape_file_name(partition)}-"
            counts[partition] = sum(1 for file_id in there if file_id.startswith(start)) or least
        missing = sorted(set(index.row_file_ids(counts)).difference(there))
        initialize_groups(self.metadata_timeline, data, name, missing)
        return counts


def _partitions(change: SliceChange) -> Collection[str]:
    return {item.file_group.partition for item in (change.before, change.after) if item is not None}
