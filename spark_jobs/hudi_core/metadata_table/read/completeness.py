"""What a listed index of the metadata table may lack, as Hudi left it (docs/decisions/0018). services/indexing/build.py
says whether a build is whole; initialize/indexing.py says when readers use it.

- Hudi 1.0 computes the range of a partition without the files that a pending compaction will merge
  (HoodieTableMetadataUtil.convertMetadataToPartitionStatsRecords by fetchLatestFileSlicesIncludingInflight).
- Hudi 1.1 and later do not add rows to a secondary index that were written as rows of Spark, as by bulk_insert.
- A writer that tags by base files (SIMPLE, BLOOM) finds a key in a base file whose row a log file deletes, takes its
  new row for an update, and does not record it in the record index, where the deletion has removed the key.
- Of two concurrent writes to a partition, the range of the later one may replace the range of the other.
- A deletion whose ordering value is less than the row's removes the key from the record index, but not the row.
- After a restore by 1.2 the record index may have other file groups of keys than the table, or none.
- A write of version 6 may be missing in the whole metadata table (unrecorded_writes).
- A rollback may fail for a commit whose records a compaction of the metadata table has merged: Hudi makes the commit
  pending, or takes it off the timeline, and then refuses (HoodieBackedTableMetadataWriter.validateRollback).

An index is in doubt where such a gap cannot be excluded. The timelines decide that, and listings that the lookup makes
anyway. The metadata of commits are read only where the commits wrote nothing to an index.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Final

from hudi_core.config.table_config import TableConfig
from hudi_core.errors import ConfigError, CorruptFileError, StorageNotFoundError, UnsupportedError
from hudi_core.filegroup.merge.table_policy import MergePolicy
from hudi_core.history.archived import ArchivedTimeline, load_history
from hudi_core.metadata_table.indexed_table import load_index_definitions
from hudi_core.metadata_table.instants import completed_up_to, data_instant, is_solo, marked_until, reaches_back
from hudi_core.metadata_table.partition_type import (
    COLUMN_STATS,
    EXPRESSION_PREFIX,
    PARTITION_STATS,
    RECORD_INDEX,
    STATISTICS,
    moves_rows,
)
from hudi_core.metadata_table.read.file_group import data_files
from hudi_core.metadata_table.read.snapshot import MetadataTableSnapshot
from hudi_core.metadata_table.records.file_statistics import REWRITES
from hudi_core.model.names import FileGroupId
from hudi_core.storage.base import Storage
from hudi_core.storage.one_look import in_this_look
from hudi_core.timeline.actions.commit import CommitMetadata, Operation
from hudi_core.timeline.actions.indexing import decode_index_plan
from hudi_core.timeline.actions.rollback import decode_restore_plan, decode_rollback_plan
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, Instant
from hudi_core.timeline.timeline import Timeline

_READERS = 8
_TYPED = 2
"""The version of an index definition that no release before 1.1 writes."""

_COMPARED: Final = 64
"""At most so many commits' metadata are read to see whether they wrote to one partition; with more it is unknown."""


class Completeness:
    """Finds what the indexes of a snapshot may lack. Reads what it needs once for each index."""

    def __init__(self, snapshot: MetadataTableSnapshot) -> None:
        self._snapshot = snapshot
        self._data = snapshot.data_timeline
        self._active = ActiveTimeline(snapshot.storage, snapshot.config)

    def groups_in_doubt(self, index: str) -> frozenset[FileGroupId] | None:
        """Returns the file groups of which a row-level index may lack some rows; None: all file groups. For a secondary
        index they are the file groups into which a commit put rows without a record in the index, and those that a
        clustering made of them. For the record index they are the file groups in which deleted keys may have been
        written again, or rows of deleted keys may have stayed. Returns None where the active timeline does not reach
        back to the time at which the index was last known to be whole.
        """
        of_keys = index == RECORD_INDEX
        if self.uncommitted or (of_keys and not self.has_true_locations):
            return None
        if of_keys and not self._snapshot.config.is_merge_on_read:
            return frozenset()
        since = self._whole_until(index)
        is_archived = not of_keys or not load_history(self._snapshot.storage, self._snapshot.config).is_empty()
        if is_archived and (since is None or not reaches_back(self._data, since)):
            return None
        try:
            if of_keys:
                return self._written_again(since or "", is_archived=is_archived)
            return self._without_record(index, since or "")
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
                if not found.isdisjoint(metadata.replaced_file_groups()):
                    found.update(FileGroupId(stat.partition_path, stat.file_id) for stat in metadata.write_stats())
            elif moves_rows(metadata.operation_type):
                # Updates that do not change the indexed column have no record in the index: they lack nothing.
                found.update(
                    FileGroupId(stat.partition_path, stat.file_id)
                    for stat in metadata.write_stats()
                    if stat.num_writes and (stat.num_inserts or not stat.num_update_writes)
                )
        return frozenset(found)

    @cached_property
    def unrecorded_writes(self) -> list[Instant]:
        """The completed writes of the data timeline that the metadata table lacks: a reader of the metadata table loses
        their rows. A writer on table version 6 makes such writes: when it must begin an index while an operation is
        pending, it initializes nothing, and does not record its own commit
        (HoodieBackedTableMetadataWriter.initializeIfNeeded, of 0.15.0 and 1.2.0). Writes before the first active
        deltacommit are not checked: their deltacommits are archived, or they were there at its beginning.
        """
        deltas = self._snapshot.timeline.completed().of_actions(Action.DELTA_COMMIT)
        recorded = deltas.filter(lambda item: not is_solo(item.requested_time))
        if not recorded:
            return []
        by_completion = self._snapshot.config.features.completion_time_in_name
        first = min(data_instant(item.requested_time) for item in recorded)
        since = min(item.completed_at for item in recorded) if by_completion else first
        return [
            item
            for item in self._data.commits()
            if item.requested_time > first
            and (item.completed_at if by_completion else item.requested_time) > since
            and item.requested_time not in recorded.requested_times
        ]

    @cached_property
    def uncommitted(self) -> frozenset[str]:
        """The commits that a compaction of the metadata table has merged, and that are pending on the data timeline, or
        are rolled back by a pending rollback or restore. All merged ones where a plan of these cannot be read.
        """
        timeline, pending = self._snapshot.timeline.completed(), self._data.pending_changes()
        merged_until = max(timeline.of_actions(Action.COMMIT).requested_times, default="")
        merged = timeline.of_actions(Action.DELTA_COMMIT).filter(lambda item: item.completed_at < merged_until)
        times = set(pending.requested_times)
        try:
            for item in pending.of_actions(Action.ROLLBACK, Action.RESTORE) if merged.instants else ():
                times |= self._rolled_back_by(item)
        except (StorageNotFoundError, CorruptFileError):
            return merged.requested_times
        return merged.requested_times & times

    def _rolled_back_by(self, item: Instant) -> set[str]:
        plan, path = self._active.read_requested(item.requested_time, item.action), self._active.path_of(item)
        if item.action == Action.RESTORE:
            return {instant.time for instant in decode_restore_plan(plan, path=path).instants}
        return {decode_rollback_plan(plan, path=path).instant}

    @cached_property
    def has_overtaken_ranges(self) -> bool:
        """Whether, since `partition_stats` was last known to be whole, a commit's range of a partition may hide the
        range of a write that completed later: readers then skip its rows. Hudi recomputes the range of a partition from
        the files that a commit finds when it completes. Log files of the metadata table merge by the instants in their
        names, that is in the order of requests. In layout 1 they merge as written: the answer is no. True where the
        archive cannot be read. Cost: the times of the archived instants since then, and the metadata of the commits
        that completed after a commit requested later; for new values also those of the commits requested later.
        """
        config = self._snapshot.config
        if not config.features.log_name_has_delta_commit:
            return False
        since, history = self._whole_until(PARTITION_STATS) or "", load_history(self._snapshot.storage, config)
        try:
            archived = Timeline(history.instants(after=since)).commits()
            commits = {item.requested_time: item for item in (*archived, *self._data.commits().after(since))}
            overtaken = {
                late: earlier
                for late, earlier in _overtaken(commits.values())
                # The metadata of a compaction need not be read.
                if not (config.is_merge_on_read and late.action == Action.COMMIT)
            }
            if len(overtaken) > _COMPARED:
                return True
            written = {
                late.requested_time: _partitions(metadata)
                for late, metadata in self._metadata_of(overtaken, history)
                if metadata.operation_type not in REWRITES
            }
            pairs = [
                (late.requested_time, early)
                for late, earlier in overtaken.items()
                if late.requested_time in written
                for early in earlier
            ]
            others = {early.requested_time: early for _, early in pairs}
            if len(others) > _COMPARED:
                return True
            read = {
                early.requested_time: _partitions(metadata)
                for early, metadata in self._metadata_of(others.values(), history)
            }
            return any(not written[late].isdisjoint(read[early.requested_time]) for late, early in pairs)
        except (StorageNotFoundError, CorruptFileError, KeyError):
            return True  # a commit was archived meanwhile, or the archive is damaged

    def _metadata_of(
        self, commits: Iterable[Instant], history: ArchivedTimeline
    ) -> Iterator[tuple[Instant, CommitMetadata]]:
        archived = []
        for item in commits:
            if self._data.contains(item.requested_time):
                yield item, self._active.read_commit(item)
            else:
                archived.append(item)
        if archived:
            yield from history.commits(archived)

    @cached_property
    def has_true_locations(self) -> bool:
        """Whether the record index has its keys' right file groups: not after a restore, nor with uncommitted rows."""
        if self.uncommitted:
            return False
        # Unlike commits, restores stay on the active timeline.
        return not len(self._data.of_actions(Action.RESTORE).after(self._whole_until(RECORD_INDEX) or ""))

    def _written_again(self, since: str, *, is_archived: bool) -> frozenset[FileGroupId]:
        """Returns the file groups that got a log file of updates, requested after `since`, after a deletion. Where
        ordering values decide on deletions, also those that got deletions requested after `since`. A file slice older
        than the active timeline is assumed to have deletions of archived commits.
        """
        commits = sorted(self._data.commits(), key=lambda commit: commit.completed_at)
        oldest = commits[0].requested_time if is_archived and commits else ""
        deleted: set[FileGroupId] = set()
        found: set[FileGroupId] = set()
        with ThreadPoolExecutor(_READERS if self._snapshot.is_remote else 1, "completeness") as pool:
            read = in_this_look(self._snapshot.storage, self._active.read_commit)
            for item, metadata in zip(commits, pool.map(read, commits), strict=True):
                for stat in metadata.write_stats():
                    group = FileGroupId(stat.partition_path, stat.file_id)
                    is_update = stat.name.startswith(".") and stat.num_update_writes and item.requested_time > since
                    if is_update and (group in deleted or stat.prev_commit < oldest):
                        found.add(group)
                    if stat.num_deletes:
                        deleted.add(group)
                        if self._rows_may_stay and stat.name.startswith(".") and item.requested_time > since:
                            found.add(group)
        return frozenset(found)

    @cached_property
    def _rows_may_stay(self) -> bool:
        """Whether a deletion loses against a row with a greater ordering value; True where the rule is not known."""
        try:
            policy = MergePolicy.for_table(self._snapshot.config)
        except (ConfigError, UnsupportedError):
            return True
        return policy.is_ordered and bool(policy.ordering_fields)

    def _whole_until(self, index: str) -> str | None:
        """Returns the last commit up to which the index is known to be whole, by our mark or by the index's build."""
        snapshot = self._snapshot
        built = snapshot.built_at(index) or self._indexed_at(index)
        times = [marked_until(snapshot.config, index, snapshot.files(index))]
        times += [] if built is None else [completed_up_to(self._data, built)]
        return max((instant for instant in times if instant is not None), default=None)

    def _indexed_at(self, index: str) -> str | None:
        """Returns when the newest indexing action for the index began; it adds later commits. None without one."""
        for item in reversed(self._data.completed().of_actions(Action.INDEXING).instants):
            plan = decode_index_plan(self._active.read_details(item), path=self._active.path_of(item))
            if any(partition.name == index for partition in plan):
                return item.requested_time
        return None


def indexes_in_doubt(storage: Storage, config: TableConfig) -> frozenset[str]:
    """Returns the listed indexes whose ranges of whole partitions may lack values: `partition_stats` and expression
    indexes of a merge-on-read table, unless their definition says that 1.1 or later made them. The timeline does not
    show the partitions: a plan that was pending may have been removed since.
    """
    if not config.is_merge_on_read:
        return frozenset()
    definitions = load_index_definitions(storage, config)
    versions = {
        name: definition.version
        for name, definition in definitions.items()
        if name.startswith(EXPRESSION_PREFIX) and definition.type == COLUMN_STATS
    }
    of_statistics = (definitions[name].version for name in STATISTICS if name in definitions)
    versions[PARTITION_STATS] = min(of_statistics, default=0)
    old = (name for name, version in versions.items() if version < _TYPED)
    return config.metadata_partitions.intersection(old)


def _overtaken(commits: Iterable[Instant]) -> Iterator[tuple[Instant, list[Instant]]]:
    """Yields each commit that completed after commits requested later, with these commits."""
    ordered = sorted(commits, key=lambda item: item.requested_time)
    for at, late in enumerate(ordered, 1):
        found = []
        # By index: islice would walk over the items before `at` each time.
        for early in (ordered[later] for later in range(at, len(ordered))):
            if early.requested_time > late.completed_at:
                break
            if early.completed_at < late.completed_at:
                found.append(early)
        if found:
            yield late, found


def _partitions(metadata: CommitMetadata) -> frozenset[str]:
    return frozenset((*metadata.partition_to_write_stats, *(metadata.replaced_file_ids or ())))
