"""Takes back deltacommits of the metadata table that nobody will complete (rollbackFailedWrites, before a metadata
writer writes).

All that is written to the metadata table is written under the table lock, so what is pending on it while the lock is
held was left by a dead writer. Of an action that is pending on the data table the data table's own rollback takes it
back (MetadataPublisher.roll_back): that one knows what became of the files. An index that an indexing action builds is
built without the lock, so its deltacommit is left while that is pending.
"""

from __future__ import annotations

import logging

from hudi_core.config.table_config import TableConfig
from hudi_core.metadata_table.instants import is_of_indexing, unfinished_initializations
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.metadata_table.write.rollback import MetadataRollback
from hudi_core.metadata_table.write.rollback_deletion import DeletingRollback
from hudi_core.model.names import WriteToken
from hudi_core.storage.base import Storage
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action
from hudi_core.transaction.instant_generator import InstantClock

log = logging.getLogger(__name__)


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
