"""Initializes a metadata table and its partitions (HoodieBackedTableMetadataWriter.initializeFromFilesystem).

The steps for each partition: request a separate instant and make it inflight; empty the folder and create the file
groups; write base files for the file groups that have records; write the definition of the index; complete the
deltacommit; list the name in `hoodie.table.metadata.partitions`. Before the last step nobody reads or updates the
partition: after a crash the next attempt initializes it again, like Hudi's writer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from hudi_core.config.table_config import TableConfig
from hudi_core.config.versions import TableVersion
from hudi_core.errors import ConflictError, MetadataUnavailableError
from hudi_core.frozen import dataclass
from hudi_core.history.archived import load_history
from hudi_core.metadata_table.indexed_table import IndexDefinition, put_index_definitions
from hudi_core.metadata_table.initialize.target import (
    Fill,
    NewBaseFile,
    NewPartition,
    check_written,
    complete_initialization,
    list_partitions,
    remove_attempts,
    start_initialization,
)
from hudi_core.metadata_table.instants import SOLO_COMMIT, initial_instant, unfinished_initializations
from hudi_core.metadata_table.partition_type import FILES_PARTITION
from hudi_core.metadata_table.partitions.protocol import numbered_file_ids
from hudi_core.metadata_table.partitions.single_files import initial_listing
from hudi_core.metadata_table.read.snapshot import partitions_there
from hudi_core.metadata_table.record import block_schema, commit_schema
from hudi_core.metadata_table.timeline import MetadataTimeline, latest_schema
from hudi_core.metadata_table.write.lifetime import drop_metadata_table, write_metadata_properties
from hudi_core.model.names import WriteToken, parse_data_file
from hudi_core.model.partition import check_file_name
from hudi_core.request.services import service_of_action
from hudi_core.storage.base import FileInfo, Storage
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.pending_plans import is_clustering
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.instant_generator import InstantClock
from hudi_core.view.listing import CommittedSizes, FileListing, StorageListing

log = logging.getLogger(__name__)

Sizes = Mapping[str, Mapping[str, int]]
"""The plain names of files and their sizes in bytes, by partition path."""


@dataclass(frozen=True, slots=True)
class Initialization:
    name: str
    file_ids: Sequence[str]
    fill: Fill
    definition: IndexDefinition | None = None

    def target(self, instant: str, token: WriteToken, schema: str, features: TableVersion) -> NewPartition:
        """Returns the place of the partition's files under `instant`; `schema` is the schema of commits."""
        file_ids, entries = tuple(self.file_ids), features.metadata_bloom_entries
        return NewPartition(self.name, instant, file_ids, token, block_schema(schema), entries)

    def write(self, target: NewPartition) -> list[NewBaseFile]:
        written = list(self.fill(target))
        check_written(target, written)
        return written


@dataclass(frozen=True, slots=True)
class MetadataCreation:
    """Initializes the metadata table. The caller holds the table lock while a method writes. Every method may be
    repeated. `token` makes the base files' names unique to this attempt. `guard` raises when the table lock is lost.
    """

    storage: Storage
    token: WriteToken
    clock: InstantClock | None = None
    guard: Callable[[], None] = lambda: None

    def check(self) -> None:
        """Raises ConflictError while an indexing action builds partitions, and in version 6, like Hudi, while any other
        action is pending. Hudi also initializes a partition beside its indexer. This engine does not: an initialization
        rolls dead attempts back, and a rebuild of the table deletes all folders, while indexers work without lock.
        """
        self._check_rest(*self._data())

    def initialize_table(self, listing: FileListing | None = None) -> TableConfig:
        """Creates the metadata table with the partition `files`, where the properties list none or the table is gone
        (partitions_there); returns the properties. `listing` shows the data table's files, by default the storage's.
        The remains of a dead attempt or unfinished drop are deleted first, with the indexes. Before that it raises
        the errors of check, and CutFileError for a file that lost bytes; later begin's errors. Memory: the listing.
        """
        config, data = self._data()
        if partitions_there(self.storage, config):
            return config
        self._check_rest(config, data)
        sizes = CommittedSizes(
            data, ActiveTimeline(self.storage, config).read_commit, lambda: load_history(self.storage, config)
        )
        files = committed_files(listing or StorageListing(self.storage), data, sizes.refuse_cut)
        self._check_current(config, data, FILES_PARTITION)
        config = drop_metadata_table(self.storage)
        write_metadata_properties(self.storage, config)
        log.info(
            "the metadata table is initialized with %d partitions and %d files",
            len(files),
            sum(map(len, files.values())),
        )
        initialization = Initialization(
            FILES_PARTITION,
            numbered_file_ids(f"{FILES_PARTITION}-", 1),
            lambda target: target.write(self.storage, initial_listing(files)),
        )
        return self._begin(config, data, initialization)

    def begin(self, initialization: Initialization, since: Timeline | None = None) -> TableConfig:
        """Adds a partition to the metadata table; returns the properties, which then list it. `since` is the data
        timeline of the initialization (default: present). Raises the errors of check, MetadataTimeline.active,
        `Initialization.fill` and the guard; MetadataUnavailableError; ConflictError for an instant completed since.
        """
        config, data = self._data()
        if initialization.name in config.metadata_partitions:
            return config
        refuse_without_table(config)
        self._check_rest(config, data)
        data = data if since is None else since
        self._check_current(config, data, initialization.name)
        return self._begin(config, data, initialization)

    def _begin(self, config: TableConfig, data: Timeline, initialization: Initialization) -> TableConfig:
        check_file_name(initialization.name, source=config.path)
        metadata_timeline = MetadataTimeline(self.storage, config, self.clock)
        timeline = self._without_unfinished(metadata_timeline)
        schema = (
            latest_schema(metadata_timeline.active, timeline)
            if len(timeline.commits())
            else commit_schema(metadata_timeline.features)
        )
        instant = initial_instant(data, timeline, metadata_timeline.features)
        target = initialization.target(instant, self.token, schema, metadata_timeline.features)
        start_initialization(metadata_timeline, instant)
        target.begin(self.storage)
        written = initialization.write(target)
        remove_attempts(self.storage, target, written, self.guard)
        if initialization.definition is not None:
            put_index_definitions(self.storage, config, [initialization.definition])
        self._check_current(config, data, target.name)
        complete_initialization(metadata_timeline, instant, {target.name: written}, schema)
        self._check_current(config, data, target.name)
        return list_partitions(self.storage, TableConfig.load(self.storage), [initialization.name])

    def _check_current(self, config: TableConfig, data: Timeline, name: str) -> None:
        """Raises ConflictError when an instant has completed that `data` does not have; then checks the lock."""
        now = ActiveTimeline(self.storage, config).load().completed()
        late = sorted(now.requested_times - data.completed().requested_times)
        if late:
            message = f"{late[0]} was completed while the metadata partition `{name}` was initialized, which lacks it"
            remedy = "let all writers of the table take its lock (docs/use/locks.md), and run this again"
            raise ConflictError(message, path=config.path, remedy=remedy)
        self.guard()

    def _without_unfinished(self, metadata_timeline: MetadataTimeline) -> Timeline:
        """Removes dead attempts' instants, returns the timeline without them. Files go with the unlisted folder."""
        timeline = metadata_timeline.active.load()
        dead = unfinished_initializations(timeline, metadata_timeline.features)
        for item in dead:
            log.warning("deltacommit %s of the metadata table is of a dead attempt: rolled back", item.requested_time)
            metadata_timeline.active.delete_instant(item.requested_time, Action.DELTA_COMMIT)
        return metadata_timeline.active.load() if dead else timeline

    def _data(self) -> tuple[TableConfig, Timeline]:
        config = TableConfig.load(self.storage)
        return config, ActiveTimeline(self.storage, config).load()

    def _check_rest(self, config: TableConfig, data: Timeline) -> None:
        refuse_building(data, lambda _: config.path)
        pending = _pending(data)
        oldest = pending.first()
        if oldest is not None and config.features.metadata_needs_rest:
            times = ", ".join(sorted(pending.requested_times))
            way_on = _way_on(ActiveTimeline(self.storage, config), oldest)
            message = f"the metadata table cannot begin while actions of the table are pending: {times}"
            remedy = f"wait until they are completed; {way_on}; then run this again"
            raise ConflictError(message, path=config.path, remedy=remedy)


def committed_files(
    listing: FileListing, data: Timeline, refuse_cut: Callable[[FileInfo], None] | None = None
) -> dict[str, dict[str, int]]:
    """Returns the files in storage that committed instants wrote (HoodieTableMetadataUtil.DirectoryInfo), by partition
    of the listing. `data` is the data table's timeline, loaded under the table lock. A file counts when its instant is
    neither pending nor later than the latest completed instant, and when it is not empty: Hudi refuses to list empty
    files. `refuse_cut` is called before that, and raises for a file that lost bytes. Memory: the listing.
    """
    pending, last = _pending(data).requested_times, data.last_completed()
    latest = SOLO_COMMIT if last is None else last.requested_time

    def is_committed(info: FileInfo) -> bool:
        name = parse_data_file(info.name)
        if name is None or name.instant > latest or name.instant in pending:
            return False
        if refuse_cut is not None:
            refuse_cut(info)
        return info.size > 0

    return {
        partition: {info.name: info.size for info in listing.files(partition) if is_committed(info)}
        for partition in (listing.partitions() if len(data) else ())
    }


def _pending(data: Timeline) -> Timeline:
    """Returns all pending instants but indexing actions. Savepoints are among them (getPendingDataInstants,
    anyPendingDataInstant): beside one Hudi omits files of a completed commit, or in version 6 does not start.
    """
    return data.pending_changes().filter(lambda item: item.action != Action.INDEXING)


def _way_on(active: ActiveTimeline, item: Instant) -> str:
    time, action = item.requested_time, item.pending_action
    service = "clustering" if is_clustering(active, item) else service_of_action(action)
    if service is not None:
        return f"{action} {time} is run with `hudictl run {service} TABLE --instant {time}`"
    if action == Action.RESTORE:
        return (
            f"{action} {time} is finished with `hudictl restore TABLE --instant T`; `hudictl show TABLE {time}` names T"
        )
    return f"{action} {time} is rolled back with `hudictl rollback TABLE --instant {time}` when its writer is dead"


def refuse_without_table(config: TableConfig) -> None:
    if FILES_PARTITION not in config.metadata_partitions:
        message = "the table has no metadata table that an index could be added to"
        remedy = "create it first: `hudictl metadata create TABLE`"
        raise MetadataUnavailableError(message, path=config.path, remedy=remedy)


def refuse_building(data: Timeline, path_of: Callable[[Instant], str]) -> None:
    """Raises ConflictError while an indexing action of the data table builds partitions of the metadata table."""
    pending = data.pending().of_actions(Action.INDEXING)
    building = next((item for item in pending if item.state is State.INFLIGHT), None)
    if building is not None:
        message = f"indexing {building.requested_time} is building partitions of the metadata table"
        remedy = (
            "run it to its end, or drop what it builds with `hudictl metadata drop TABLE --partition …`; then run "
            "this again"
        )
        raise ConflictError(message, path=path_of(building), remedy=remedy)
