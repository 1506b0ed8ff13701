"""Partitions of the metadata table that are built beside writers
(HoodieBackedTableMetadataWriter.buildMetadataPartitions).

Under the table lock, a build makes the file groups and puts the names into `hoodie.table.metadata.partitions.inflight`:
from then on writers update these partitions, and readers ignore them. Without the lock, it writes the base files from
the snapshot of that moment. Under the lock again, it moves the names to `hoodie.table.metadata.partitions`. A crashed
build is repeated: its file groups are deleted, and the new base files contain the writers' records.

From version 8 on a deltacommit of the action's instant is pending meanwhile, as for Hudi's indexer. In version 6 the
releases of Hudi expect different names of this deltacommit, and roll back a deltacommit of another name
(isIndexingCommit of 0.15 and of 1.x): the build has no deltacommit there, and its base instant is an early one.

The deltacommit completes before the names move, and the action completes after both; a process may die in between. A
completed deltacommit makes the base files count. So it is rolled back only while no listed partition has files of it: a
listed index is complete, and stays complete when its action leaves the timeline.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from hudi_core.config.table_config import METADATA_INFLIGHT, PROPERTIES, TableConfig, update_properties
from hudi_core.errors import BuildRolledBackError, ConflictError, StorageNotFoundError
from hudi_core.frozen import dataclass
from hudi_core.metadata_table.indexed_table import put_index_definitions
from hudi_core.metadata_table.initialize.initialize import Initialization, refuse_without_table
from hudi_core.metadata_table.initialize.target import (
    NewBaseFile,
    NewPartition,
    complete_initialization,
    list_partitions,
    remove_attempts,
    start_initialization,
)
from hudi_core.metadata_table.instants import early_instant, initialization_time, may_be_of_indexer
from hudi_core.metadata_table.read.file_group import ROOT, data_files
from hudi_core.metadata_table.timeline import MetadataTimeline, latest_schema
from hudi_core.model.names import HUDI_HEARTBEATS, WriteToken
from hudi_core.model.partition import check_file_name
from hudi_core.storage.base import Storage
from hudi_core.timeline.instant import Action, State
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.heartbeat_thread import Heartbeat
from hudi_core.transaction.instant_generator import InstantClock

log = logging.getLogger(__name__)

INTERVAL_SECONDS: Final = 30.0
TOLERANCE_SECONDS: Final = 120.0
"""Hudi's tolerance: its defaults (a minute, two misses) hold for any metadata table. Our interval is half a minute."""


@dataclass(frozen=True, slots=True)
class Build:
    """A build that has begun. `recorded_before`: the instants completed on the metadata timeline before it."""

    deltacommit: str | None
    targets: Mapping[str, NewPartition]
    schema: str
    recorded_before: frozenset[str]


class IndexBuild:
    """Builds partitions for the indexing action `instant`. Every method but `fill` is called under the table lock."""

    def __init__(self, storage: Storage, instant: str, token: WriteToken, clock: InstantClock) -> None:
        self._storage = storage
        self._instant = instant
        self._token = token
        self._clock = clock

    def begin(self, initializations: Sequence[Initialization], data: Timeline) -> Build:
        """Makes the file groups and lists the partitions as inflight; before that, it removes the remains of an earlier
        attempt. `data` is the data table's timeline, loaded under this lock. Raises MetadataUnavailableError when no
        metadata table exists, ConflictError while a listed partition has files of the action's deltacommit.
        """
        listed = self.listed_by_deltacommit()
        if listed:
            raise ConflictError(
                f"indexing {self._instant} has listed {', '.join(sorted(listed))} before, and others of its plan were "
                "dropped meanwhile",
                path=ROOT,
                remedy="run the indexing again",
            )
        config = self.roll_back([item.name for item in initializations], data)
        metadata_timeline = MetadataTimeline(self._storage, config, self._clock)
        timeline = metadata_timeline.active.load()
        text = latest_schema(metadata_timeline.active, timeline)
        deltacommit = None if metadata_timeline.features.metadata_suffixes else self._instant
        instant, time = deltacommit or early_instant(self._token.stage_id), None
        if deltacommit is None:
            last = data.last_completed()
            time = initialization_time(None if last is None else last.requested_time)
        targets = {
            item.name: item.target(instant, self._token, text, metadata_timeline.features) for item in initializations
        }
        for target in targets.values():
            target.begin(self._storage, time)
        if deltacommit is not None:
            start_initialization(metadata_timeline, deltacommit)
        config = put_index_definitions(
            self._storage, config, [item.definition for item in initializations if item.definition is not None]
        )
        inflight = config.metadata_partitions_inflight.union(targets)
        update_properties(self._storage, {METADATA_INFLIGHT.name: ",".join(sorted(inflight))})
        log.info("the metadata partitions %s are inflight under %s", ", ".join(sorted(targets)), instant)
        return Build(deltacommit, targets, text, timeline.completed().requested_times)

    def fill(self, build: Build, initializations: Sequence[Initialization]) -> dict[str, list[NewBaseFile]]:
        """Writes the base files, without the table lock. Raises BuildRolledBackError where file groups are gone."""
        return {item.name: item.write(build.targets[item.name]) for item in initializations}

    def publish(
        self, build: Build, written: Mapping[str, Sequence[NewBaseFile]], guard: Callable[[], None]
    ) -> TableConfig:
        """Completes the deltacommit, if any, and lists the partitions; returns the properties. `guard` raises when the
        table lock is lost: others may have committed since. Raises the error of `guard`; BuildRolledBackError when
        others rolled the build back or started new file slices there; ConflictError when others built a partition.
        """
        config = TableConfig.load(self._storage)
        metadata_timeline = MetadataTimeline(self._storage, config, self._clock)
        self._check_there(build, config, metadata_timeline)
        for name, target in build.targets.items():
            remove_attempts(self._storage, target, written[name], guard)
        if build.deltacommit is not None:
            guard()
            complete_initialization(metadata_timeline, build.deltacommit, written, build.schema)
        self._check_slices(build, metadata_timeline)
        guard()
        return list_partitions(self._storage, config, list(build.targets))

    def _check_there(self, build: Build, config: TableConfig, metadata_timeline: MetadataTimeline) -> None:
        """Raises BuildRolledBackError or ConflictError where another process changed the build (see publish)."""
        found, path = None, config.path
        is_gone = not config.metadata_partitions_inflight.issuperset(build.targets)
        if build.deltacommit is not None:
            found = metadata_timeline.active.load().find(build.deltacommit, Action.DELTA_COMMIT)
            if found is None or found.state is not State.INFLIGHT:
                is_gone, path = True, f"{metadata_timeline.active.folder}/{build.deltacommit}.deltacommit.inflight"
        if is_gone:
            is_built = found is not None or config.metadata_partitions.intersection(build.targets)
            raise (ConflictError if is_built else BuildRolledBackError)(
                f"another process changed what was built of the metadata partitions {', '.join(sorted(build.targets))}",
                path=path,
                remedy="run the indexing again",
            )

    def roll_back(self, names: Collection[str], data: Timeline) -> TableConfig:
        """Removes the remains of an attempt at unlisted partitions; returns the properties. The names go first, since a
        writer must not find a partition without file groups; then the deltacommit, then the files. Raises
        MetadataUnavailableError when no metadata table exists. May be repeated.
        """
        config = TableConfig.load(self._storage)
        refuse_without_table(config)
        left = config.metadata_partitions_inflight.intersection(names) - config.metadata_partitions
        if left:
            inflight = config.metadata_partitions_inflight - left
            config = update_properties(self._storage, {METADATA_INFLIGHT.name: ",".join(sorted(inflight))})
        metadata_timeline = MetadataTimeline(self._storage, config, self._clock)
        for instant in self._abandoned(metadata_timeline, names, config):
            log.warning(
                "deltacommit %s of the metadata table is of an earlier attempt at indexing: rolled back", instant
            )
            self._storage.delete(heartbeat_path(instant))
            metadata_timeline.active.delete_instant(instant, Action.DELTA_COMMIT)
        for name in sorted(set(names) - config.metadata_partitions):
            self._storage.delete_folder(f"{ROOT}/{check_file_name(name, source=config.path)}")
        return config

    def has_completed(self) -> bool:
        """Returns whether the deltacommit is completed: then its file groups count, listed or not. Not in version 6."""
        metadata_timeline = MetadataTimeline(self._storage, TableConfig.load(self._storage), self._clock)
        if metadata_timeline.features.metadata_suffixes:
            return False
        return metadata_timeline.active.load().completed().find(self._instant, Action.DELTA_COMMIT) is not None

    def listed_by_deltacommit(self) -> frozenset[str]:
        """Returns the listed partitions that still have files of the completed deltacommit; none in version 6."""
        if not self.has_completed():
            return frozenset()
        return frozenset(
            name
            for name in TableConfig.load(self._storage).metadata_partitions
            if self._instant in self._instants_of(name)
        )

    def _abandoned(self, metadata_timeline: MetadataTimeline, names: Collection[str], config: TableConfig) -> list[str]:
        """Returns the deltacommits of earlier attempts: the action's own, unless a listed partition needs it; in
        version 6 the pending ones of Hudi's indexer.
        """
        timeline = metadata_timeline.active.load()
        if not metadata_timeline.features.metadata_suffixes:
            is_there = timeline.find(self._instant, Action.DELTA_COMMIT) is not None
            return [self._instant] if is_there and not self.listed_by_deltacommit() else []
        instants = {time for name in set(names) - config.metadata_partitions for time in self._instants_of(name)}
        times = sorted(filter(may_be_of_indexer, instants))
        return [time for time in times if timeline.pending().find(time, Action.DELTA_COMMIT) is not None]

    def _instants_of(self, name: str) -> set[str]:
        """Returns the instants in the names of a partition's files."""
        folder = f"{ROOT}/{check_file_name(name, source=PROPERTIES)}"
        return {parsed.instant for _, parsed in data_files(self._storage.list_files(folder))}

    def _check_slices(self, build: Build, metadata_timeline: MetadataTimeline) -> None:
        timeline = metadata_timeline.active.load()
        for name, target in build.targets.items():
            try:
                initialized = {
                    item.file_id: item.base_instant for item in metadata_timeline.latest_slices(timeline, name)
                }
            except StorageNotFoundError:  # the partition has no file group any more
                initialized = {}
            if any(initialized.get(file_id) != target.instant for file_id in target.file_ids):
                message = f"the metadata partition `{name}` was compacted, or initialized again, while it was built"
                remedy = "run the indexing again"
                raise BuildRolledBackError(message, path=target.folder, remedy=remedy)


def heartbeat_path(metadata_instant: str) -> str:
    """Returns the path where Hudi's writers look for a heartbeat (HoodieTableMetaClient.getHeartbeatFolderPath)."""
    return f"{ROOT}/{HUDI_HEARTBEATS}/{metadata_instant}"


class BuildHeartbeat:
    """The heartbeat of a build's deltacommit, which stays pending without the table lock. It is for one instant at a
    time. In versions 8 and 9, a writer of Hudi 1.2 streams its records to the metadata table, with the LAZY policy of
    failed writes (HoodieMetadataWriteUtils.createMetadataWriteConfig). The metadata table's next clean then rolls back
    every pending deltacommit without a fresh heartbeat, also those of indexing actions
    (BaseHoodieTableServiceClient.getInstantsToRollback).
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._instant: str | None = None
        self._heartbeat: Heartbeat | None = None

    def __enter__(self) -> BuildHeartbeat:
        return self

    def __exit__(self, *exception: object) -> None:
        self.end()

    def begin(self, metadata_instant: str) -> None:
        """Writes the heartbeat now and then every INTERVAL_SECONDS. The caller holds the table lock."""
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
        """Stops and removes the heartbeat: its instant is completed, or may be rolled back. Idempotent."""
        if self._heartbeat is not None and self._instant is not None:
            self._heartbeat.stop()
            self._storage.delete(heartbeat_path(self._instant))
        self._heartbeat = self._instant = None
