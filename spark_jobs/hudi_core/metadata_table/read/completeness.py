"""What an index of the metadata table may lack although it is listed, as real Hudi left it (docs/decisions/0018).

- Hudi 1.0 computes the range of a partition without the files that a pending compaction is to merge
  (HoodieTableMetadataUtil.convertMetadataToPartitionStatsRecords by fetchLatestFileSlicesIncludingInflight).
- Hudi 1.1 and later tell a secondary index nothing of rows that were written as rows of Spark, as bulk_insert does.

What cannot be excluded is in doubt. That is decided by the timelines and by listings that the lookup has made anyway;
of commits that wrote nothing to an index their metadata are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hudi_core.config.table_config import TableConfig
from hudi_core.errors import StorageNotFoundError
from hudi_core.metadata_table.index_definitions import load_index_definitions
from hudi_core.metadata_table.partition_type import STATISTICS, moves_rows
from hudi_core.metadata_table.read.file_group import data_files
from hudi_core.metadata_table.whole_until import completed_up_to, marked_until, reaches_back
from hudi_core.model.names import FileGroupId
from hudi_core.storage.base import Storage
from hudi_core.timeline.actions.commit import CommitMetadata, Operation
from hudi_core.timeline.actions.indexing import decode_index_plan
from hudi_core.timeline.actions.write_stats import WriteStat
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action

if TYPE_CHECKING:
    from hudi_core.metadata_table.read.snapshot import MetadataTableSnapshot

_TYPED = 2
"""The version of an index definition that no release before 1.1 writes."""


class Completeness:
    """What the indexes of a snapshot may lack. Reads what it needs once for each index."""

    def __init__(self, snapshot: MetadataTableSnapshot) -> None:
        self._snapshot = snapshot
        self._data = snapshot.data_timeline
        self._active = ActiveTimeline(snapshot.storage, snapshot.config)

    def groups_in_doubt(self, index: str) -> frozenset[FileGroupId] | None:
        """The file groups of whose rows a secondary index may lack some; None: all of them.

        Those that a commit put rows into without a record in the index, and those that a clustering made of such. None
        where the commits are not on the active timeline that came after the index was last known to be whole.
        """
        since = self._whole_until(index)
        if since is None or not reaches_back(self._data, since):
            return None
        try:
            return self._without_record(index, since)
        except StorageNotFoundError:
            return None  # a commit was archived meanwhile

    def _without_record(self, index: str, since: str) -> frozenset[FileGroupId]:
        recorded = {name.instant for _, name in data_files(self._snapshot.files(index))}
        found: set[FileGroupId] = set()
        for item in sorted(self._data.commits().after(since), key=lambda commit: commit.completed_at):
            if item.requested_time in recorded or self._snapshot.wrote(item.requested_time, index):
                continue
            metadata = self._active.read_commit(item)
            if metadata.operation_type == Operation.CLUSTER:
                found |= _made_of(metadata, found)
            elif moves_rows(metadata.operation_type):
                found.update(FileGroupId(stat.partition_path, stat.file_id) for stat in _with_new_rows(metadata))
        return frozenset(found)

    def _whole_until(self, index: str) -> str | None:
        """The last commit up to which the index is known to be whole: by our mark, or by the build of the index."""
        snapshot = self._snapshot
        found = [marked_until(snapshot.config, index, snapshot.files(index))]
        built = snapshot.built_at(index)
        found += [completed_up_to(self._data, built)] if built is not None else self._indexed(index)
        return max((instant for instant in found if instant is not None), default=None)

    def _indexed(self, index: str) -> list[str | None]:
        """By the newest indexing action that built the index; an indexer adds what completes while it builds."""
        for item in reversed(list(self._data.completed().of_actions(Action.INDEXING))):
            plan = decode_index_plan(self._active.read_details(item), path=self._active.path_of(item))
            if any(partition.name == index for partition in plan):
                return [completed_up_to(self._data, item.requested_time)]
        return []


def may_be_narrow(storage: Storage, config: TableConfig) -> bool:
    """Whether ranges in `partition_stats` may lack values of their partitions: of a merge-on-read table, unless the
    definition says that 1.1 or later made the index. It shares one version with `column_stats`.

    The timeline does not tell in which partitions: a plan that was pending may have been removed since.
    """
    if not config.is_merge_on_read:
        return False
    definitions = load_index_definitions(storage, config)
    versions = [definitions[name].version for name in STATISTICS if name in definitions]
    return not versions or min(versions) < _TYPED


def _with_new_rows(metadata: CommitMetadata) -> Iterator[WriteStat]:
    """The write stats of files that may hold rows of new keys. Updates that leave the indexed column alone have no
    record in the index either.
    """
    for stat in metadata.write_stats():
        if stat.num_writes and (stat.num_inserts or not stat.num_update_writes):
            yield stat


def _made_of(metadata: CommitMetadata, groups: set[FileGroupId]) -> set[FileGroupId]:
    """The file groups that a clustering wrote, if it replaced one of `groups`."""
    replaced = {
        FileGroupId(partition, file_id)
        for partition, ids in (metadata.replaced_file_ids or {}).items()
        for file_id in ids
    }
    if replaced.isdisjoint(groups):
        return set()
    return {FileGroupId(stat.partition_path, stat.file_id) for stat in metadata.write_stats()}
