"""Applies missing actions (missing_actions) to the metadata table in the order of their completion, under the table
lock.

Each is one deltacommit under the action's instant, as its writer would have written it, with two differences: files
that a later clean or rollback has deleted are omitted, and so are records that an index already has from its
initialization. Statistics of whole partitions are computed from the current files, and are written first where later
commits wrote some (whole_ranges). It may be repeated after a crash: an inflight deltacommit is continued.

Row-level indexes cannot be updated where later commits changed the same rows or a clean deleted the older files. Then
catch-up refuses (RowsUnknownError), and an update drops and rebuilds them where the options allow it
(REBUILD_ROW_INDEXES, rebuild).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from hudi_core.config.metadata_config import REBUILD_ROW_INDEXES
from hudi_core.errors import ConflictError, CorruptFileError, TimelineError
from hudi_core.filegroup.read.schema_resolver import table_schema
from hudi_core.metadata_table.index_definitions import load_index_definitions
from hudi_core.metadata_table.indexed_table import IndexedTable
from hudi_core.metadata_table.partition_type import FILES_PARTITION, is_row_level
from hudi_core.metadata_table.partitions.row_level import moves_rows
from hudi_core.metadata_table.read.snapshot import MetadataTableSnapshot
from hudi_core.metadata_table.record import Datum, FileDatum, RecordType, files_datum
from hudi_core.metadata_table.records.file_statistics import DataFileRef, FileChanges, Record
from hudi_core.metadata_table.records.files import rollback_records
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.metadata_table.validity import rolled_back_by
from hudi_core.metadata_table.write.commit_updates import CommitPartitions
from hudi_core.metadata_table.write.delta_writer import DeltaWriter
from hudi_core.metadata_table.write.publish import MetadataPublisher
from hudi_core.metadata_table.write.staged_logs import forget_staged, staged_instants
from hudi_core.model.names import BaseFileName, WriteToken, parse_data_file
from hudi_core.model.stats import WriteStat
from hudi_core.services.metadata.completed_changes import clean_changes, rollback_changes
from hudi_core.services.metadata.missing_actions import REBUILD, missing_actions
from hudi_core.services.metadata.row_changes import REBUILD_ROW_LEVEL, RowChanges, RowsUnknownError
from hudi_core.services.metadata.statistics_units import read_statistics
from hudi_core.services.metadata.whole_ranges import WholeRanges
from hudi_core.timeline.actions.commit import CommitMetadata
from hudi_core.timeline.actions.restore import decode_restore_plan
from hudi_core.timeline.instant import COMMIT_ACTIONS, Action, Instant, State
from hudi_core.timeline.schema_history import internal_schema_history
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.listing import StorageListing

if TYPE_CHECKING:
    from hudi_core.engine.protocol import Engine
    from hudi_core.services.context import TableContext

log = logging.getLogger(__name__)

_OF_FILES: Final = frozenset({int(RecordType.COLUMN_STATS), int(RecordType.BLOOM_FILTER)})


def catch_up(context: TableContext, engine: Engine, epoch: int, guard: Callable[[], None], applied: list[str]) -> None:
    """Applies the missing actions in order; `applied` receives each instant when it is recorded.

    The caller holds the table lock, `guard` raises when it is lost, `context.config` was loaded under it. Raises,
    before anything is written, TimelineError for actions that can no longer be applied (an archived action; a restore
    that later actions followed; RowsUnknownError for rows whose later changes the row-level indexes have),
    ConflictError while a restore is pending or an indexing builds, UnsupportedError for an index without partition
    type; during the run, RowsUnknownError for rows whose older files were cleaned, and the errors of reading the files.
    """
    metadata_timeline = MetadataTimeline(context.storage, context.config, context.clock())
    _forget_recorded(context, metadata_timeline)
    missing = missing_actions(context, metadata_timeline)
    if not missing:
        return
    catching = _CatchUp(context, engine, epoch, metadata_timeline)
    catching.check(missing)
    catching.check_rows(missing)
    catching.update_partition_ranges(missing)
    for item in missing:
        guard()
        log.warning("the metadata table was not told of %s %s: it is now", item.action, item.requested_time)
        catching.tell(item)
        applied.append(item.requested_time)


@dataclass(frozen=True)
class _CatchUp:
    context: TableContext
    engine: Engine
    epoch: int
    metadata_timeline: MetadataTimeline

    def check(self, missing: list[Instant]) -> None:
        restoring = self._timeline.pending().of_actions(Action.RESTORE).first()
        if restoring is not None:
            raise ConflictError(
                f"restore {restoring.requested_time} of the table is pending",
                path=self.context.active.path_of(restoring),
                remedy="run the restore to its end first",
            )
        building = next(
            (item for item in self._timeline.pending().of_actions(Action.INDEXING) if item.state is State.INFLIGHT),
            None,
        )
        if building is not None:
            # Only listed indexes are updated here, and Hudi's indexer assumes that a deltacommit of the instant updated
            # its index as well.
            raise ConflictError(
                f"indexing {building.requested_time} is building partitions of the metadata table",
                path=self.context.active.path_of(building),
                remedy="run it to its end, or drop what it builds with `hudictl metadata drop TABLE "
                "--partition …`; then run this again",
            )
        self._check_restores(missing)
        for operation in {self._commit(item).operation_type or "" for item in missing if item.action in COMMIT_ACTIONS}:
            self._partition_types(operation).requirements()

    def check_rows(self, missing: list[Instant]) -> None:
        """Raises RowsUnknownError where row-level indexes have later records of rows that a missing action may have
        moved.
        """
        names = {item.requested_time for item in missing}
        rows = [item for item in missing if item.action in COMMIT_ACTIONS and self._rows_of(self._commit(item))]
        if not rows:
            return
        later = [
            item
            for item in self._timeline.completed().of_actions(*COMMIT_ACTIONS)
            if item.completed_at > rows[0].completed_at
        ]
        known = next(
            (
                item
                for item in later
                if item.requested_time not in names and moves_rows(self._commit(item).operation_type)
            ),
            None,
        )
        if known is None:
            known = self._archived_behind(rows[0])
        if known is not None:
            raise RowsUnknownError(
                f"{', '.join(sorted(self.row_indexes))} know {known.action} {known.requested_time}, but not "
                f"{rows[0].action} "
                f"{rows[0].requested_time} before it: which rows they hold wrongly cannot be told",
                path=self.metadata_timeline.active.folder,
                remedy=f"{REBUILD_ROW_LEVEL}, or set {REBUILD_ROW_INDEXES.name} to true",
            )

    def _archived_behind(self, commit: Instant) -> Instant | None:
        """A commit with rows that was requested before `commit`, completed after it and is archived already."""
        history = self.context.history()
        for item in history.completed_in(commit.completed_at, None):
            if item.action in COMMIT_ACTIONS and item.requested_time < commit.requested_time:
                metadata = history.commit(item.requested_time)
                if metadata is None or moves_rows(metadata.operation_type):
                    return item
        return None

    def update_partition_ranges(self, missing: list[Instant]) -> None:
        """Of the partitions that commits among the missing ones touched, before any of these is applied."""
        commits = [item for item in missing if item.action in COMMIT_ACTIONS]
        recorded = self.metadata_timeline.active.load().completed().of_actions(Action.DELTA_COMMIT)
        first = min((item.requested_time for item in commits), default="")
        is_late = any(item.requested_time > first for item in recorded) or any(map(self._has_overtaken, commits))
        if not commits or not is_late or not self.metadata_timeline.features.log_name_has_delta_commit:
            return
        touched: set[str] = set()
        for metadata in map(self._commit, commits):
            touched.update(metadata.partition_to_write_stats, metadata.replaced_file_ids or ())
        token = WriteToken(0, self.epoch, 0)
        WholeRanges(
            self.context.storage, self.context.config, self._table, self.metadata_timeline, self._listing, token
        ).tell(touched)

    def _has_overtaken(self, commit: Instant) -> bool:
        """Whether an older write is pending, whose ranges of whole partitions those of `commit` would replace."""
        writes = self._timeline.pending().of_actions(*COMMIT_ACTIONS)
        return self.metadata_timeline.features.log_name_has_delta_commit and any(
            item.requested_time < commit.requested_time for item in writes
        )

    def _check_restores(self, missing: list[Instant]) -> None:
        restores = [item for item in missing if item.action == Action.RESTORE]
        newest = max((item.requested_time for item in self._timeline.completed()), default="")
        for item in restores:
            if item.requested_time != newest or not self._target(item):
                raise TimelineError(
                    f"the metadata table was not told of restore {item.requested_time}, and other actions "
                    "followed it or its plan names no instant",
                    path=self.metadata_timeline.active.folder,
                    remedy=REBUILD,
                )

    def tell(self, item: Instant) -> None:
        if item.action in COMMIT_ACTIONS:
            self._apply_commit(item)
        elif item.action == Action.CLEAN:
            changes = clean_changes(self.context.active.read_of(item), path=self.context.active.path_of(item))
            dropped = frozenset(name for name in changes.dropped_partitions if not self._listing.files(name))
            self._publisher().publish_deletes(item.requested_time, replace(changes, dropped_partitions=dropped))
        elif item.action == Action.RESTORE:
            self._publisher().restore(self._target(item), item.requested_time)
        else:
            self._apply_rollback(item)

    def _apply_commit(self, item: Instant) -> None:
        metadata = self._remaining_commit(item)
        partition_types = self._partition_types(metadata.operation_type or "")
        requested = partition_types.requirements()
        written = list(read_statistics(self.context, self.engine, self.epoch, self._references(metadata), requested))
        instant = item.requested_time
        recorded = partition_types.records(instant, metadata, written, requested, self._listing)
        records = {name: self._new(name, recorded[name], whole=not self._has_overtaken(item)) for name in recorded}
        forget_staged(self.context.storage, instant)
        rows = RowChanges(self.context, self._table, self.metadata_timeline, self._listing, self.engine, self.epoch)
        staged = rows.stage(self._rows_of(metadata), item, metadata)
        self._writer().write(instant, records, staged)
        forget_staged(self.context.storage, instant)

    def _apply_rollback(self, item: Instant) -> None:
        active, instant = self.context.active, item.requested_time
        details = active.read_of(item)
        changes = rollback_changes(details, path=active.path_of(item)) if details else FileChanges()
        there = {name: {info.name for info in self._listing.files(name)} for name in changes.written}
        written = {
            name: {file: size for file, size in sizes.items() if file in there[name]}
            for name, sizes in changes.written.items()
        }
        changes = FileChanges({name: sizes for name, sizes in written.items() if sizes}, changes.deleted)
        failed = self._rolled_back(item)
        if any(self._timeline.contains(time) for time in failed):
            # It was run again, and its new files are valid: only the log files of the rollback's commands are new.
            found = rollback_records(changes.written)
            self._writer().write(
                instant, {FILES_PARTITION: [(record.key, files_datum(record)) for record in found]} if found else {}
            )
            return
        for time in failed:
            self._publisher().roll_back(time, instant, changes)

    def _remaining_commit(self, item: Instant) -> CommitMetadata:
        """The commit without the files that are gone by now. Raises CorruptFileError where nothing explains that one
        is.
        """
        metadata, path = self._commit(item), self.context.active.path_of(item)
        explained = any(
            other.action in (Action.CLEAN, Action.ROLLBACK, Action.RESTORE)
            for other in self._timeline.completed()
            if other.completed_at > item.completed_at
        )
        stats: dict[str, tuple[WriteStat, ...]] = {}
        for partition, found in metadata.partition_to_write_stats.items():
            there = {info.name for info in self._listing.files(partition)}
            remaining = tuple(_without_gone(stat, there) for stat in found if _name(stat.path) in there)
            if len(remaining) < len(found) and not explained:
                gone = next(stat.path for stat in found if _name(stat.path) not in there)
                raise CorruptFileError(
                    f"{path} wrote this file, but it is not there", path=gone, remedy="restore it from a copy"
                )
            if remaining or not found or there:
                stats[partition] = remaining
        return replace(metadata, partition_to_write_stats=stats)

    def _references(self, metadata: CommitMetadata) -> list[DataFileRef]:
        found: dict[tuple[str, str], DataFileRef] = {}
        for partition, stats in metadata.partition_to_write_stats.items():
            sizes = {info.name: info.size for info in self._listing.files(partition)}
            for name in (_name(stat.path) for stat in stats):
                found[partition, name] = DataFileRef(
                    partition, name, sizes[name], isinstance(parse_data_file(name), BaseFileName)
                )
        return list(found.values())

    def _new(self, name: str, records: Iterable[Record], *, whole: bool) -> Iterable[Record]:
        """Without the records of files that an index has from its initialization, since ranges of one file would merge.
        Those of whole partitions only on request.
        """
        if name == FILES_PARTITION:
            return records
        kept = [record for record in records if whole or _type_of(record[1]) != RecordType.PARTITION_STATS]
        keys = [key for key, datum in kept if _type_of(datum) in _OF_FILES]
        metadata_snapshot = MetadataTableSnapshot(self.context.storage, self.context.config, self._timeline)
        known = (
            {key for key, is_there in metadata_snapshot.partition(name, _Presence()).lookup(keys).items() if is_there}
            if keys
            else set()
        )
        return [item for item in kept if item[0] not in known]

    def _rows_of(self, metadata: CommitMetadata) -> Collection[str]:
        return (
            self.row_indexes
            if moves_rows(metadata.operation_type) and (metadata.partition_to_write_stats or metadata.replaced_file_ids)
            else ()
        )

    def _commit(self, item: Instant) -> CommitMetadata:
        metadata = self.context.active.read_commit(item)
        metadata.check_paths(source=self.context.active.path_of(item))
        return metadata

    def _partition_types(self, operation: str) -> CommitPartitions:
        context = self.context
        return CommitPartitions(
            context.storage,
            context.config,
            context.options,
            operation,
            context.config.metadata_partitions - self.row_indexes,
        )

    def _target(self, restore: Instant) -> str:
        active = self.context.active
        return decode_restore_plan(
            active.read_requested(restore.requested_time, restore.action), path=active.path_of(restore)
        ).target

    def _rolled_back(self, rollback: Instant) -> list[str]:
        return rolled_back_by(self.context.active, rollback)

    def _publisher(self) -> MetadataPublisher:
        context = self.context
        return MetadataPublisher(
            context.storage, context.config, WriteToken(0, self.epoch, 0), context.clock(), context.options
        )

    def _writer(self) -> DeltaWriter:
        return DeltaWriter(self.context.storage, self.metadata_timeline, WriteToken(0, self.epoch, 0))

    @cached_property
    def row_indexes(self) -> frozenset[str]:
        """Those that the table has."""
        return frozenset(filter(is_row_level, self.context.config.metadata_partitions))

    @cached_property
    def _timeline(self) -> Timeline:
        return self.context.active.load()

    @cached_property
    def _listing(self) -> StorageListing:
        return StorageListing(self.context.storage)

    @cached_property
    def _table(self) -> IndexedTable:
        context = self.context
        schema, history = (
            table_schema(context.storage, context.config, self._timeline),
            internal_schema_history(context.storage, self._timeline),
        )
        definitions = load_index_definitions(context.storage, context.config)
        return IndexedTable(
            context.config, schema, definitions, context.options, None if history is None else history.to_json()
        )


class _Presence:
    """group_reader.RecordRules that say whether there is a record of a file."""

    keyless = False

    def decode(self, key: str, datum: dict[str, Any], *, path: str) -> bool:
        """False for a deletion."""
        body = datum.get("ColumnStatsMetadata") or datum.get("BloomFilterMetadata") or {}
        return body.get("isDeleted") is False

    def merge(self, older: bool, newer: bool, *, path: str) -> bool:
        """The newer one."""
        return newer


def _forget_recorded(context: TableContext, metadata_timeline: MetadataTimeline) -> None:
    """Deletes staged files of attempts that died after their deltacommit: an instant completed on both timelines is not
    run again.
    """
    staged = staged_instants(context.storage)
    done = (
        staged
        and context.active.load().completed().requested_times
        & metadata_timeline.active.load().completed().requested_times
    )
    for instant in sorted(staged & done):
        forget_staged(context.storage, instant)


def _type_of(datum: Datum | None) -> int | None:
    found = datum.template if isinstance(datum, FileDatum) else datum
    return None if found is None else found.get("type")


def _without_gone(stat: WriteStat, there: Collection[str]) -> WriteStat:
    return replace(stat, cdc_stats=tuple(item for item in stat.cdc_stats if _name(item[0]) in there))


def _name(path: str) -> str:
    return path.rpartition("/")[2]
