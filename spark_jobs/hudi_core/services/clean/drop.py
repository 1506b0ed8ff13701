"""Deletes partitions that a clean leaves empty. The caller holds the table lock."""

from __future__ import annotations

import logging

from hudi_core.model.names import parse_data_file
from hudi_core.services.clean.partitions import stored_data_files
from hudi_core.storage.base import Storage
from hudi_core.timeline.actions.clean import CleanPlan
from hudi_core.timeline.instant import COMMIT_ACTIONS
from hudi_core.timeline.timeline import Timeline

log = logging.getLogger(__name__)


def drop_partitions(storage: Storage, plan: CleanPlan, timeline: Timeline) -> frozenset[str]:
    """Deletes the folders of the plan's partitions to be deleted; returns those that are gone.

    One that is in use again is kept: with a data file or a folder in it, or with a live writer that may have listed it
    already. Hudi deletes the folder with any content. Idempotent: a partition that is gone counts as deleted.
    """
    if not plan.dropped_partitions:
        return frozenset()
    if timeline.pending().of_actions(*COMMIT_ACTIONS).instants:
        log.info("%d empty partitions are left: a writer is at work", len(plan.dropped_partitions))
        return frozenset(partition for partition in plan.dropped_partitions if not storage.list_names(partition))
    return frozenset(partition for partition in plan.dropped_partitions if _drop(storage, partition))


def _drop(storage: Storage, partition: str) -> bool:
    if stored_data_files(storage, partition) or storage.list_folders(partition):
        log.warning("partition %s is in use again and was left", partition)
        return False
    for info in storage.list_files(
        partition
    ):  # by name: a file that a writer creates meanwhile must not go with the folder
        if parse_data_file(info.name) is None:
            storage.delete(info.path)
    if storage.list_names(partition):
        log.warning("partition %s is in use again and was left", partition)
        return False
    storage.delete_folder(partition)
    return True
