"""The table's partitions one after the other, each with its file groups: what planning looks at, never all of it in
memory. And the deletion of partitions that a clean leaves empty.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from hudi_core.history.completion import CompletionTimes
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.model.ids import FileGroupId
from hudi_core.model.names import parse_data_file
from hudi_core.model.partition import check_partition
from hudi_core.services.clean.kept_files import Needed, read_needed
from hudi_core.services.clean.policies import PartitionState
from hudi_core.services.context import TableContext
from hudi_core.storage.base import FileInfo, Storage
from hudi_core.timeline.actions.clean import CleanPlan
from hudi_core.timeline.instant import COMMIT_ACTIONS, Instant
from hudi_core.timeline.replaced import replaced_file_groups
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.builder import build_file_groups
from hudi_core.view.listing import walk_partitions
from hudi_core.view.pending import PendingWork
from hudi_core.view.slicing import Slicing, slicing_for

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TablePartitions:
    """A table at one timeline. Nothing of a partition is kept once the caller has passed on to the next."""

    storage: Storage
    metadata: MetadataTable | None
    slicing: Slicing
    replaced: dict[FileGroupId, Instant]
    compactions: dict[str, list[tuple[FileGroupId, str]]]
    """The file groups and instants of pending compactions, by partition."""
    needed: Needed

    @staticmethod
    def open(context: TableContext, timeline: Timeline) -> TablePartitions:
        """Reads what the slices depend on: pending plans, savepoints, replacecommits. Raises FormatError naming a plan
        that is not safe.
        """
        pending = PendingWork.read(context.active, timeline)
        pending.check_complete(timeline)
        compactions: dict[str, list[tuple[FileGroupId, str]]] = {}
        for group, (instant, _) in pending.compacting.items():
            compactions.setdefault(group.partition, []).append((group, instant))
        return TablePartitions(
            context.storage,
            context.metadata_table("auto", timeline),
            slicing_for(context.active.layout, timeline, CompletionTimes(timeline, context.history).of),
            replaced_file_groups(timeline, context.active.read_commit),
            compactions,
            read_needed(context.active, timeline, pending),
        )

    def inputs(self, partitions: Iterable[str] | None = None) -> Iterator[PartitionState]:
        """The inputs of these partitions, or of all of them, read lazily."""
        for partition, files in self._files(partitions):
            yield PartitionState(
                partition,
                tuple(
                    build_file_groups(partition, files, self.slicing, compactions=self.compactions.get(partition, ()))
                ),
                self.replaced,
                self.needed.compacting,
                self.needed.by_savepoints.get(partition, frozenset()),
                self.needed.by_plans.get(partition, frozenset()),
                partial(stored_data_files, self.storage, partition),
            )

    def files(self, partition: str) -> list[FileInfo]:
        """The files of one partition as readers find them: by the metadata table where there is one."""
        check_partition(partition, source="partition to clean")
        return self.storage.list_files(partition) if self.metadata is None else self.metadata.listing().files(partition)

    def _files(self, partitions: Iterable[str] | None) -> Iterator[tuple[str, list[FileInfo]]]:
        if partitions is None and self.metadata is None:
            yield from walk_partitions(self.storage, self.storage.list_files)
            return
        names = (
            self.metadata.list_partitions()
            if partitions is None and self.metadata is not None
            else sorted(partitions or ())
        )
        for partition in names:
            yield partition, self.files(partition)


def stored_data_files(storage: Storage, partition: str) -> list[str]:
    """The names of the base and log files in a partition's folder, committed or not."""
    return [name for name in storage.list_names(partition) if parse_data_file(name) is not None]


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
