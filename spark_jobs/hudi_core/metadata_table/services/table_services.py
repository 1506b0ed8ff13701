"""What keeps the metadata table in shape, in the order of HoodieBackedTableMetadataWriter.performTableServices; no data
write is needed for it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hudi_core.config.archive_config import ArchiveConfig
from hudi_core.config.clean_config import CLEAN_COMMITS_RETAINED
from hudi_core.config.keys import ConfigKey, whole_number
from hudi_core.config.table_config import TableConfig
from hudi_core.history.manifest import Guard
from hudi_core.metadata_table.instants import is_of_indexing, unfinished_initializations
from hudi_core.metadata_table.services.archival import Archived, MetadataArchival
from hudi_core.metadata_table.services.cleaning import Cleaned, MetadataCleaning
from hudi_core.metadata_table.services.compaction import Compacted, MetadataCompaction, RunUnits
from hudi_core.metadata_table.services.compaction_planner import DEFAULT_TRIGGER, TRIGGER
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.metadata_table.write.rollback import MetadataRollback
from hudi_core.metadata_table.write.rollback_deletion import DeletingRollback
from hudi_core.model.names import WriteToken
from hudi_core.storage.base import Storage
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action
from hudi_core.transaction.instant_generator import InstantClock

COMPACTION_TRIGGER: Final[ConfigKey[int]] = ConfigKey(
    TRIGGER,
    DEFAULT_TRIGGER,
    whole_number(1, 2**31 - 1),
    "deltacommits of the metadata table since its last compaction that make the next one due",
)


log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Upkeep:
    """What each of the services did."""

    rolled_back: tuple[str, ...]
    compacted: Compacted
    cleaned: Cleaned
    archived: Archived


def keep_up(
    storage: Storage,
    config: TableConfig,
    token: WriteToken,
    options: Mapping[str, str],
    guard: Guard,
    clock: InstantClock | None = None,
    *,
    run_units: RunUnits | None = None,
    uri: str = "",
    storage_options: Mapping[str, str] | None = None,
) -> Upkeep:
    """Rolls failed deltacommits back, then cleans, compacts and archives the metadata table of the data table in
    `storage`.

    The caller holds the table lock; `guard` raises when it is lost. `config` lists a metadata table and was loaded
    under the lock, `options` are Hudi's. `run_units`, `uri` and `storage_options` as MetadataCompaction. Killed
    anywhere, it can be run again. Raises ConfigError for options that are not valid, before anything is written, and
    what the services raise.
    """
    trigger, archive, retained = (
        COMPACTION_TRIGGER.read(options),
        ArchiveConfig.of(options),
        CLEAN_COMMITS_RETAINED.read(options),
    )
    metadata_timeline = MetadataTimeline(storage, config, clock)
    rolled_back = roll_back_failed(storage, config, token, clock)
    guard()
    compaction = MetadataCompaction(
        storage,
        config,
        token,
        clock,
        run_units=run_units,
        uri=uri,
        storage_options=None if storage_options is None else dict(storage_options),
    )
    finished = compaction.finish()
    guard()
    cleaned = MetadataCleaning(storage, metadata_timeline).run(retained)
    guard()
    compacted = finished if finished.instants else compaction.run(trigger)
    guard()
    archived = MetadataArchival(storage, metadata_timeline, archive, guard).run(ActiveTimeline(storage, config).load())
    return Upkeep(rolled_back, compacted, cleaned, archived)


def roll_back_failed(
    storage: Storage, config: TableConfig, token: WriteToken, clock: InstantClock | None = None
) -> tuple[str, ...]:
    """Takes back pending deltacommits whose action is over on the data table, or never was there; returns their
    instants.

    The caller holds the table lock. Killed anywhere, it can be run again. Raises as MetadataPublisher.roll_back. A
    partition that was beginning under one of them is not listed: its files go when it begins anew.
    """
    metadata_timeline = MetadataTimeline(storage, config, clock)
    timeline = metadata_timeline.active.load()
    initialization = {item.requested_time for item in unfinished_initializations(timeline, metadata_timeline.features)}
    data = ActiveTimeline(storage, config).load()
    awaited = data.pending().requested_times
    done = []
    for item in timeline.pending().of_actions(Action.DELTA_COMMIT):
        if item.requested_time in awaited or is_of_indexing(item.requested_time, data):
            continue
        log.warning("deltacommit %s of the metadata table was left by a dead writer: taken back", item.requested_time)
        if item.requested_time in initialization:
            metadata_timeline.active.undo(item.requested_time, Action.DELTA_COMMIT)
        elif metadata_timeline.features.rollback_deletes_logs:
            DeletingRollback(storage, config, clock).run(
                item.requested_time, metadata_timeline.clock.next(metadata_timeline.active.load())
            )
        else:
            MetadataRollback(storage, config, token).run(
                item.requested_time, metadata_timeline.clock.next(metadata_timeline.active.load())
            )
        done.append(item.requested_time)
    return tuple(done)
