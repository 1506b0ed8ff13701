"""File groups that a partition of the metadata table gets later: those of a record index of each data partition, when a
data partition is new.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Sequence

from hudi_core.errors import StorageExistsError
from hudi_core.metadata_table.initialize.finish import initialization_content
from hudi_core.metadata_table.initialize.target import initialize_group
from hudi_core.metadata_table.instants import initial_instant
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.metadata_table.write.delta_commit import latest_schema
from hudi_core.storage.base import Storage
from hudi_core.timeline.instant import Action
from hudi_core.timeline.timeline import Timeline

log = logging.getLogger(__name__)


def initialize_groups(
    storage: Storage, metadata_timeline: MetadataTimeline, data: Timeline, name: str, file_ids: Sequence[str]
) -> None:
    """Creates file groups without records in the metadata partition `name`, under an initialization instant. No effect
    without `file_ids`.

    `data` is the data table's timeline. The caller holds the table lock. It may be repeated after a crash: files of an
    incomplete deltacommit are ignored, and the same groups are created under the next instant.
    """
    if not file_ids:
        return
    timeline = metadata_timeline.active.load()
    instant = initial_instant(data, timeline, metadata_timeline.features)
    log.info("the metadata partition %s gets the file groups %s", name, ", ".join(file_ids))
    metadata_timeline.active.create_requested(instant, Action.DELTA_COMMIT)
    metadata_timeline.active.to_inflight(instant, Action.DELTA_COMMIT)
    for file_id in file_ids:
        # A dead attempt's instant may have been rolled back and its file kept, which is equivalent.
        with contextlib.suppress(StorageExistsError):
            initialize_group(storage, name, file_id, instant)
    metadata_timeline.active.complete(
        instant,
        Action.DELTA_COMMIT,
        initialization_content({}, latest_schema(metadata_timeline.active, timeline), metadata_timeline),
        metadata_timeline.completion_time(instant),
    )
