"""The metadata table's services in the order of HoodieBackedTableMetadataWriter.performTableServices, without a write
of the data table.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from hudi_core.config.metadata_config import METADATA_DELTA_COMMITS
from hudi_core.config.services.archive_config import ArchiveConfig
from hudi_core.config.services.clean_config import CLEAN_COMMITS_RETAINED
from hudi_core.config.table_config import TableConfig
from hudi_core.history.manifest import Guard
from hudi_core.metadata_table.instants import is_of_indexing, unfinished_initializations
from hudi_core.metadata_table.services.archival import archive
from hudi_core.metadata_table.services.cleaning import clean
from hudi_core.metadata_table.services.compaction import MetadataCompaction
from hudi_core.metadata_table.services.outcome import ServiceOutcome
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.metadata_table.write.rollback import MetadataRollback
from hudi_core.metadata_table.write.staged_logs import Workers
from hudi_core.model.names import WriteToken
from hudi_core.storage.base import Storage
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action
from hudi_core.timeline.pending_plans import rollback_target
from hudi_core.transaction.instant_generator import InstantClock

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ServiceResults:
    """The results of the services."""

    rolled_back: tuple[str, ...]
    compacted: ServiceOutcome
    cleaned: ServiceOutcome
    archived: ServiceOutcome


def perform_table_services(
    storage: Storage,
    config: TableConfig,
    token: WriteToken,
    options: Mapping[str, str],
    guard: Guard,
    clock: InstantClock | None = None,
    workers: Workers | None = None,
) -> ServiceResults:
    """Rolls failed deltacommits back, then cleans, compacts and archives the metadata table of the data table in
    `storage`.

    The caller holds the table lock; `guard` raises when it is lost. `config` lists a metadata table and was loaded
    under the lock, `options` are Hudi's, `workers` are for the compaction. Killed anywhere, it can be run again. Raises
    ConfigError for options that are not valid, before anything is written, and the errors of the services.
    """
    trigger, retained = METADATA_DELTA_COMMITS.read(options), CLEAN_COMMITS_RETAINED.read(options)
    archiving = ArchiveConfig.of(options)
    metadata_timeline = MetadataTimeline(storage, config, clock)
    rolled_back = roll_back_failed(storage, config, token, clock)
    guard()
    compaction = MetadataCompaction(storage, config, token, clock, workers, guard)
    finished = compaction.finish()
    guard()
    cleaned = clean(storage, metadata_timeline, retained)
    guard()
    compacted = finished if finished.instants else compaction.run(trigger)
    guard()
    archived = archive(storage, metadata_timeline, ActiveTimeline(storage, config).load(), archiving, guard)
    return ServiceResults(rolled_back, compacted, cleaned, archived)


def roll_back_failed(
    storage: Storage, config: TableConfig, token: WriteToken, clock: InstantClock | None = None
) -> tuple[str, ...]:
    """Rolls pending deltacommits back whose action has ended on the data table, or never was there; returns their
    instants (rollbackFailedWrites, before a metadata writer writes).

    All that is written to the metadata table is written under the table lock, which the caller holds: what is pending
    was left by a dead writer. An action that is pending on the data table is left to the data table's own rollback
    (MetadataPublisher.roll_back), which knows what became of the files. An index that an indexing action builds is
    built without the lock, so its deltacommit is left while that is pending. A partition that was being initialized is
    not listed: its files go when it is initialized again. A rollback whose plan cannot be read leaves the timeline, as
    on the data table (services/rollback/job.py). Killed anywhere, it can be run again. Raises as MetadataRollback.run.
    """
    metadata_timeline = MetadataTimeline(storage, config, clock)
    timeline = metadata_timeline.active.load()
    initialization = {item.requested_time for item in unfinished_initializations(timeline, metadata_timeline.features)}
    data = ActiveTimeline(storage, config).load()
    awaited = data.pending_changes().requested_times
    for item in timeline.pending().of_actions(Action.ROLLBACK):
        if rollback_target(metadata_timeline.active, item.requested_time) is None:
            metadata_timeline.active.drop(item.requested_time, Action.ROLLBACK)
    done = []
    for item in timeline.pending().of_actions(Action.DELTA_COMMIT):
        if item.requested_time in awaited or is_of_indexing(item.requested_time, data):
            continue
        if item.requested_time in initialization:
            metadata_timeline.active.undo(item.requested_time, Action.DELTA_COMMIT)
        else:
            instant = metadata_timeline.clock.next(metadata_timeline.active.load())
            MetadataRollback(storage, config, token, clock).run(item.requested_time, instant)
        log.warning("deltacommit %s of the metadata table was left by a dead writer: rolled back", item.requested_time)
        done.append(item.requested_time)
    return tuple(done)
