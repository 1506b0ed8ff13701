"""Updates of the metadata table by services: commits, cleans, rollbacks and restores; table versions 6, 8 and 9."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property, partial

from hudi_core.codec.avro.schema import AvroSchema
from hudi_core.config.table_config import TableConfig
from hudi_core.errors import ConflictError, StorageNotFoundError
from hudi_core.frozen import dataclass
from hudi_core.metadata_table.extract.data_file import StatisticsRequirements
from hudi_core.metadata_table.indexed_table import StoredTable
from hudi_core.metadata_table.instants import latest_compaction
from hudi_core.metadata_table.partition_type import FILES_PARTITION, is_row_level
from hudi_core.metadata_table.partitions.registry import clean_updates, known_partition
from hudi_core.metadata_table.partitions.row_indexes import RecordIndexPartition
from hudi_core.metadata_table.read.completeness import indexes_in_doubt
from hudi_core.metadata_table.read.file_group import ROOT, load_metadata_config
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.metadata_table.read.snapshot import MetadataTableSnapshot
from hudi_core.metadata_table.records.file_statistics import DataFileRef, FileChanges, FileStatistics
from hudi_core.metadata_table.timeline import MetadataTimeline, latest_schema
from hudi_core.metadata_table.write.commit_updates import CommitPartitions, widen_ranges
from hudi_core.metadata_table.write.delta_writer import DeltaWriter, Staged
from hudi_core.metadata_table.write.lifetime import drop_metadata_table, drop_partitions
from hudi_core.metadata_table.write.restore import MetadataRestore
from hudi_core.metadata_table.write.restore_reach import reach_of
from hudi_core.metadata_table.write.rollback import Footprint, MetadataRollback
from hudi_core.metadata_table.write.staged_logs import Groups, Prepared, Workers, forget_staged, prepare_files
from hudi_core.model.names import WriteToken
from hudi_core.storage.base import Storage
from hudi_core.storage.overlapped import look_ahead
from hudi_core.timeline.actions.commit import CommitMetadata, Operation
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.instant_generator import InstantClock
from hudi_core.view.listing import CutFileError

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class MetadataPublisher:
    """Keeps the metadata table consistent while a service changes the data table. The caller calls every method that
    writes under the table lock, before the action completes on the data timeline, and may repeat it after a crash with
    the same arguments. The action is pending on the data timeline meanwhile, and an instant that is rolled back leaves
    the data timeline only afterwards: an instant that is not pending there counts for readers where the metadata table
    completed it. Call the `check_` methods before anything is written to the data table.

    Memory: the records of one action as encoded cells: some 300 bytes per deleted file, and 600 for each deletion of
    statistics or filters (file_statistics.MAX_DELETIONS). For a commit it is some 600 bytes for each column of each
    written file, each file's bloom filter as text (430 KB with Hudi's defaults), and the ranges of one partition's
    files (remaining_files.RemainingFiles). For a prepared commit it is 600 bytes for each column of each data
    partition, and one staged log file at a time (row_exchange.LOG_BYTES), for any number of rows and files.

    `config` lists a metadata table. `token` makes the names of log files unique to this attempt. `settings` are the
    options of the run, by Hudi's names. `schema` is the table's schema after a commit that changes it.
    """

    storage: Storage
    config: TableConfig
    token: WriteToken
    clock: InstantClock | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    schema: AvroSchema | None = None

    def check(self, *, deletes: bool = False) -> None:
        """Raises MetadataUnavailableError without a readable metadata table, StorageNotFoundError for a partition
        without file groups, UnsupportedError for an unknown type. With `deletes` only the partitions that
        publish_deletes writes to need file groups. A record index of each data partition needs none before the first
        data partition (RowUpdates).
        """
        timeline = MetadataTableSnapshot(self.storage, self.config, Timeline()).timeline
        table = self._table()
        for name in sorted(self.config.metadata_partitions):
            partition_type = known_partition(name, table)
            if not partition_type.updated_by_clean and deletes:
                continue
            try:
                self._metadata_timeline.latest_slices(timeline, name)
            except StorageNotFoundError:
                is_partitioned = isinstance(partition_type, RecordIndexPartition) and partition_type.is_partitioned
                if not is_partitioned or MetadataTable(self.storage, self.config, Timeline()).partitions():
                    raise

    def check_commit(self) -> StatisticsRequirements:
        """Checks like check, for publish_commit, and returns commit_requirements. Also raises UnsupportedError for a
        partition that this release cannot update, and ConflictError for a partition whose build has begun and has no
        file groups yet: its builder would assume that this commit is in it.
        """
        self.look_ahead()
        absent = sorted(self.config.metadata_partitions_inflight - self._recorded.metadata_partitions)
        if absent:
            message = f"the metadata partitions {', '.join(absent)} are being initialized"
            remedy = (
                "run it again when they have file groups; where no process builds them any more, drop them with "
                "`hudictl metadata drop`"
            )
            raise ConflictError(message, path=self.config.path, remedy=remedy)
        self.check()
        return self.commit_requirements()

    def look_ahead(self) -> None:
        """Requests at once what check_commit and publish_commit need of the table, one after the other. The caller has
        loaded the data timeline: files of the metadata table are listed after its timeline, and that after the data
        table's.
        """
        storage, config = self.storage, self.config
        table = StoredTable(storage, config, self.settings)
        timeline = ActiveTimeline(storage, config, ROOT)
        look_ahead(
            storage,
            partial(TableConfig.load, storage),
            partial(load_metadata_config, storage),
            timeline.load,  # where the metadata table has the layout of the table
            lambda: table.definitions,
            lambda: table.history,
            lambda: table.schema,
        )
        folders = [f"{ROOT}/{name}" for name in sorted(config.metadata_partitions)]
        lists = [partial(storage.list_files, folder) for folder in folders]
        look_ahead(storage, *lists, lambda: latest_schema(timeline, timeline.load()))

    def commit_requirements(self) -> StatisticsRequirements:
        """Returns the statistics of a written file for publish_commit. Raises UnsupportedError like check_commit."""
        return self._partition_types.requirements()

    def publish_commit(
        self,
        instant: str,
        metadata: CommitMetadata,
        written: Iterable[FileStatistics] | Prepared,
        requested: StatisticsRequirements,
        check: Callable[[], None] = lambda: None,
        rows: Prepared | None = None,
    ) -> None:
        """Writes and completes deltacommit `instant` of a commit. `written` are the statistics of its base and log
        files, or the result of prepare_commit for them: then the method copies staged blocks, and makes only the
        listing and the ranges of partitions. `requested` is the result of commit_requirements, `rows` are the staged
        blocks of row-level indexes.

        Nothing else of `instant` may be in the metadata table: after a crash the call is repeated only after a
        rollback. Raises ConflictError when something of the instant is there or appears, when the requirements of an
        index have grown, or when an index with staged blocks was rebuilt: its keys are in other file groups. The table
        lists the same indexes as at the preparation. `check` is called right before the deltacommit completes: readers
        also count a deltacommit whose instant is not on the data timeline.
        """
        files = written if isinstance(written, Prepared) else Prepared({}, {}, tuple(written))
        staged = {**self._staged(files), **self._staged(rows)}
        by_partition = isinstance(written, Prepared)
        records = self._partition_types.records(instant, metadata, files.wholes, requested, by_partition=by_partition)
        self._writer.write_alone(instant, records, staged, check)
        self._widen_ranges(instant, metadata, files.wholes)

    def prepare_commit(
        self, instant: str, files: Sequence[DataFileRef], requested: StatisticsRequirements, workers: Workers
    ) -> Prepared:
        """Lets executors stage the records of a commit's `files` for publish_commit, without the table lock. The staged
        blocks are in the instant's folder, which the caller deletes when the instant is over, and before another
        attempt (staged_logs.forget_staged). Raises the errors of prepare_files and commit_requirements.
        """
        groups = self.file_groups(self._partition_types.from_files())
        staging = workers.staging_target(self._metadata_timeline, instant)
        return prepare_files(workers, staging, files, requested, groups)

    @cached_property
    def row_indexes(self) -> frozenset[str]:
        return frozenset(filter(is_row_level, self._recorded.metadata_partitions))

    def file_groups(self, names: Collection[str]) -> Groups:
        timeline = self._metadata_timeline.active.load()
        return {name: self._file_ids(timeline, name) for name in names}

    def _staged(self, prepared: Prepared | None) -> Staged:
        if prepared is None or not prepared.groups:
            return {}
        timeline = self._metadata_timeline.active.load()
        for name, file_ids in prepared.groups.items():
            if self._file_ids(timeline, name) != list(file_ids):
                raise ConflictError(
                    f"the index {name} was rebuilt while this ran", path=f"{ROOT}/{name}", remedy="run it again"
                )
        return prepared.staged

    def publish_deletes(self, instant: str, changes: FileChanges) -> None:
        """Writes and completes deltacommit `instant` of a clean: it unlists the files of the plan, existing or not."""
        self.look_ahead()
        records = clean_updates(instant, changes, self._recorded.metadata_partitions, self._table())
        self._writer.write(instant, records)

    def check_roll_back(self, failed: str) -> None:
        self._rollback.check(failed)

    def roll_back(self, failed: str, rollback: str, changes: FileChanges | None = None) -> None:
        """Rolls instant `failed` back in every partition, as part of the data table's rollback `rollback`. In version
        6, `changes.written` are the log files in the rollback's metadata (command blocks and failed commit), and
        `changes.deleted` the files that it deleted. Later versions need neither. First raises check_roll_back's errors.
        """
        self._rollback.run(failed, rollback, changes)
        forget_staged(self.storage, failed)

    def footprint(self, instant: str) -> Footprint:
        return self._rollback.footprint(instant)

    def prepare_restore(self, target: str) -> TableConfig:
        """Drops the partitions that cannot be restored to `target`, a completed instant, before a restore. Like Hudi,
        it drops the metadata table where it was compacted or initialized after `target`; else it drops the indexes that
        were built after `target` or are being built. Returns the new properties; without `files` nothing is left.
        """
        reach = reach_of(self.storage, self.config, self._metadata_timeline, target)
        if reach.reason is not None:
            log.warning(
                "the metadata table is dropped, Hudi's next write rebuilds it: it cannot go back to %s, as %s",
                target,
                reach.reason,
            )
            return drop_metadata_table(self.storage)
        if reach.late:
            log.warning("indexes are dropped that cannot go back to %s: %s", target, ", ".join(sorted(reach.late)))
        return drop_partitions(self.storage, self.config, reach.late)

    def restore(self, target: str, restore: str) -> TableConfig:
        """Restores the metadata table to its state after `target`, as part of the data table's pending restore
        `restore`. The data table's files are already restored. Drops partitions that cannot be restored, like
        prepare_restore, and the whole metadata table where a file to list lost bytes. Returns the new properties.
        """
        config = self.prepare_restore(target)
        if FILES_PARTITION in config.metadata_partitions:
            try:
                MetadataRestore(self.storage, config, self._metadata_timeline, self.token).run(target, restore)
            except CutFileError as error:
                log.warning("the metadata table is dropped, as it would list a file that lost bytes: %s", error)
                return drop_metadata_table(self.storage)
        return config

    def latest_compaction(self) -> str | None:
        """Returns the requested time of the metadata table's latest compaction; older data instants may be archived."""
        found = latest_compaction(self._metadata_timeline.active.load())
        return None if found is None else found.requested_time

    def _widen_ranges(self, instant: str, metadata: CommitMetadata, written: Sequence[FileStatistics]) -> None:
        """Widens, after a compaction, the ranges that Hudi 1.0 narrowed while the compaction was pending. The records
        need a new instant: under the compaction's own instant they would merge beneath the narrow ranges.
        """
        later = self._metadata_timeline.active.load().completed().of_actions(Action.DELTA_COMMIT).after(instant)
        if metadata.operation_type != Operation.COMPACT or not len(later):
            return
        names = indexes_in_doubt(self.storage, self._recorded)
        if not names:
            return
        by_partition: dict[str, list[FileStatistics]] = {}
        for item in written:
            by_partition.setdefault(item.file.partition, []).append(item)
        data = ActiveTimeline(self.storage, self.config).load()
        widen_ranges(self._writer, self._table(), names, data, metadata.partition_to_write_stats, by_partition)

    @property
    def _partition_types(self) -> CommitPartitions:
        return CommitPartitions(self.storage, self._table())

    @cached_property
    def _recorded(self) -> TableConfig:
        """The properties, with the partitions that are being built and have file groups: they need writers' records."""
        building = {
            name for name in self.config.metadata_partitions_inflight if self.storage.list_files(f"{ROOT}/{name}")
        }
        return replace(self.config, metadata_partitions=self.config.metadata_partitions | building)

    def _file_ids(self, timeline: Timeline, partition: str) -> list[str]:
        return [item.file_id for item in self._metadata_timeline.latest_slices(timeline, partition)]

    @cached_property
    def _metadata_timeline(self) -> MetadataTimeline:
        return MetadataTimeline(self.storage, self.config, self.clock)

    @property
    def _writer(self) -> DeltaWriter:
        return DeltaWriter(self._metadata_timeline, self.token)

    @cached_property
    def _rollback(self) -> MetadataRollback:
        return MetadataRollback(self.storage, self.config, self.token, self.clock)

    def _table(self) -> StoredTable:
        return StoredTable(self.storage, self._recorded, self.settings, self.schema)
