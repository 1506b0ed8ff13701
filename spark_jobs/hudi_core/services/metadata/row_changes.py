"""What a completed commit did to the rows of its file groups, told to the record index and the secondary indexes
afterwards.

The slices before and after it are told by the timeline as it was then; an exchange brings the keys to the index's file
groups, whose blocks tasks stage (metadata_table.write.staged_logs).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from hudi_core.config.table_config import timeline_zone
from hudi_core.errors import StorageNotFoundError, TimelineError
from hudi_core.filegroup.read.read_spec import ReaderSpec
from hudi_core.metadata_table.extract.slice_change import SliceChange
from hudi_core.metadata_table.indexed_table import IndexedTable
from hudi_core.metadata_table.initialize.new_groups import initialize_groups
from hudi_core.metadata_table.partitions.record_groups import PREFIX, escape_file_name, partitioned_group_count
from hudi_core.metadata_table.partitions.row_level import Counts, index_rows, row_file_ids
from hudi_core.metadata_table.partitions.row_units import IndexUnit, produce_index_rows
from hudi_core.metadata_table.read.file_group import ROOT, latest_slices
from hudi_core.metadata_table.read.record_index import PARTITION as RECORD_INDEX
from hudi_core.metadata_table.read.slices import merged_slices
from hudi_core.metadata_table.record import block_schema
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.metadata_table.write.delta_commit import latest_schema
from hudi_core.metadata_table.write.staged_logs import LogShards, StagedLog, staging_folder, write_log_shard
from hudi_core.model.names import BaseFileName, parse_data_file
from hudi_core.timeline.actions.commit import CommitMetadata
from hudi_core.timeline.instant import COMMIT_ACTIONS, Action, Instant, State
from hudi_core.timeline.schema_history import internal_schema_history
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_group import FileSlice
from hudi_core.view.fs_view import load_view
from hudi_core.view.listing import FileListing

if TYPE_CHECKING:
    from hudi_core.engine.protocol import Engine
    from hudi_core.services.context import TableContext


REBUILD_ROW_LEVEL: Final = (
    "drop these indexes with `hudictl metadata drop TABLE --partition …`, run this again, and create them anew"
)

_NONE: Final = "null"
"""What `prevCommit` says of a new file group."""
Slices = Mapping[tuple[str, str], FileSlice]
"""By data partition and file id."""


class RowsUnknownError(TimelineError):
    """An index of rows cannot be told what a commit did: what it holds wrongly is not known any more."""


@dataclass(frozen=True, slots=True)
class RowChanges:
    """One commit of a table; `listing` gives the files that there are."""

    context: TableContext
    table: IndexedTable
    metadata_timeline: MetadataTimeline
    listing: FileListing
    engine: Engine
    epoch: int

    def stage(self, names: Collection[str], instant: Instant, metadata: CommitMetadata) -> dict[str, list[StagedLog]]:
        """The staged blocks of each of the indexes `names`, under the instant of the commit, which is the newest that
        moved rows.

        A record index of each data partition gets file groups for the commit's new ones, as
        HoodieBackedTableMetadataWriter's maybeInitializeNewFileGroupsForPartitionedRLI makes them, under an instant of
        the metadata table's own. Raises RowsUnknownError where the files of the slices before the commit were cleaned.
        """
        if not names:
            return {}
        timeline = self.context.active.load()
        changes = self._changes(timeline, instant, metadata)
        history = internal_schema_history(self.context.storage, timeline)
        spec = ReaderSpec.for_query(
            self.context.config,
            self.table.schema,
            timeline,
            merge_logs=True,
            history=history,
            options=self.context.options,
        )
        text = spec.up_to(instant.requested_time).to_text()
        try:
            return {name: self._exchange(name, instant.requested_time, changes, text) for name in sorted(names)}
        except StorageNotFoundError as error:
            raise RowsUnknownError(
                f"the indexes {', '.join(sorted(names))} cannot be told of {instant.action} "
                f"{instant.requested_time}: "
                f"{error.message}",
                path=error.path,
                remedy=REBUILD_ROW_LEVEL,
            ) from error

    def _exchange(self, name: str, instant: str, changes: list[SliceChange], spec: str) -> list[StagedLog]:
        context, counts = (
            self.context,
            self._counts(name, {group for change in changes for group in _partitions(change)}),
        )
        file_ids, schema = (
            row_file_ids(name, counts),
            block_schema(latest_schema(self.metadata_timeline.active, self.metadata_timeline.active.load())),
        )
        rows = index_rows(name, self.table, counts, schema, timeline_zone(context.config, context.options))
        shard = LogShards(
            context.uri,
            context.storage_options,
            rows,
            tuple(file_ids),
            instant,
            schema,
            self.metadata_timeline.features.hudi_1_log_headers,
            staging_folder(instant, self.epoch),
        )
        units = [IndexUnit(context.uri, context.storage_options, spec, rows, change) for change in changes]
        found = self.engine.exchange(
            produce_index_rows, units, partial(write_log_shard, shard), shards=rows.shards, run_epoch=self.epoch
        )
        return [log for item in found for log in item.logs]

    def _counts(self, name: str, partitions: Collection[str]) -> Counts:
        """The index's file groups; of a partitioned one those of the given data partitions, of which new ones get
        theirs here.
        """
        storage, timeline, layout = (
            self.context.storage,
            self.metadata_timeline.active.load(),
            self.metadata_timeline.features.layout,
        )
        definition = self.table.definitions.get(name)
        if name != RECORD_INDEX or definition is None or not definition.is_partitioned:
            return {None: len(latest_slices(storage, timeline, name, layout=layout))}
        folder = f"{ROOT}/{name}"
        # A group without a slice was left by a dead attempt at beginning it.
        slices = merged_slices(folder, storage.list_files(folder), timeline, layout)
        there = [item.file_id for item in slices if item.base_file is not None or item.logs]
        least = partitioned_group_count(self.table.settings, 0)
        counts: dict[str | None, int] = {}
        for partition in partitions:
            start = f"{PREFIX}{escape_file_name(partition)}-"
            counts[partition] = sum(1 for file_id in there if file_id.startswith(start)) or least
        initialize_groups(
            storage,
            self.metadata_timeline,
            self.context.active.load(),
            name,
            sorted(set(row_file_ids(name, counts)).difference(there)),
        )
        return counts

    def _changes(self, timeline: Timeline, instant: Instant, metadata: CommitMetadata) -> list[SliceChange]:
        touched = {(name, stat.file_id) for name, stats in metadata.partition_to_write_stats.items() for stat in stats}
        touched |= {(group.partition, group.file_id) for group in metadata.replaced_file_groups()}
        partitions = {name for name, _ in touched}
        after = self._slices(_as_of(timeline, instant, inclusive=True), partitions)
        before = self._slices(self._initialized(_as_of(timeline, instant, inclusive=False), instant), partitions)
        self._check_known(instant, metadata, before, after)
        return [SliceChange(before.get(group), after.get(group), instant.requested_time) for group in sorted(touched)]

    def _initialized(self, timeline: Timeline, commit: Instant) -> Timeline:
        """The timeline right before `commit` with the last archived commit of then, where it shows nothing that stood:
        without one to begin with, all older files would count for uncommitted ones. Archived commits that completed
        later are pending ones, as in _as_of.
        """
        if timeline.visible_writes().start is not None:
            return timeline
        archived = [
            item
            for item in self.context.history().instants(up_to=commit.requested_time)
            if item.action in COMMIT_ACTIONS
        ]
        stood = Timeline(item for item in archived if _is_there(item, commit, inclusive=False))
        added = [_not_yet(item) for item in archived if not stood.contains(item.requested_time)]
        last = stood.last()
        if last is not None:
            # Whatever it was: nothing more is read of it, and what it replaced was deleted before it was archived.
            added.append(Instant(last.requested_time, Action.COMMIT, State.COMPLETED, last.completion_time))
        return Timeline([*timeline, *(item for item in added if not timeline.contains(item.requested_time))])

    def _check_known(self, instant: Instant, metadata: CommitMetadata, before: Slices, after: Slices) -> None:
        """What the commit wrote is there, and so is what it wrote upon or replaced; else a clean took it since, and
        nobody knows its rows.
        """
        for partition, stats in metadata.partition_to_write_stats.items():
            for stat in stats:
                group, name = (partition, stat.file_id), stat.path.rpartition("/")[2]
                old, new = before.get(group), after.get(group)
                if new is None or all(item.name != name for item in new.files):
                    raise _unknown(instant, stat.path)
                if (stat.prev_commit or _NONE) not in (_NONE, instant.requested_time):
                    is_base = isinstance(parse_data_file(name), BaseFileName)
                    is_known = old is not None and not (is_base and old.base_instant != stat.prev_commit)
                else:
                    is_known = old is not None or not self._is_older(group, instant)
                if not is_known:
                    raise _unknown(instant, f"what {stat.file_id} held before")
        for replaced in metadata.replaced_file_groups():
            if (replaced.partition, replaced.file_id) not in before:
                raise _unknown(instant, f"the file group {replaced.file_id}")

    def _is_older(self, group: tuple[str, str], instant: Instant) -> bool:
        """Whether a file group has a file that is older than a commit. In layout 2 a log file's stat does not say upon
        what it was written, and after a compaction and a clean the slice may have begun with it.
        """
        names = (parse_data_file(info.name) for info in self.listing.files(group[0]))
        return any(
            item.file_id == group[1] and item.instant < instant.requested_time for item in names if item is not None
        )

    def _slices(self, timeline: Timeline, partitions: Collection[str]) -> Slices:
        view = load_view(self.context.active, self.listing, timeline, self.context.history)
        slices = (item for partition in sorted(partitions) for item in view.latest_merged_slices(partition))
        return {(item.file_group.partition, item.file_group.file_id): item for item in slices}


def _unknown(instant: Instant, what: str) -> RowsUnknownError:
    return RowsUnknownError(
        f"the indexes of rows cannot be told of {instant.action} {instant.requested_time}: {what} was cleaned since",
        remedy=REBUILD_ROW_LEVEL,
    )


def _partitions(change: SliceChange) -> Collection[str]:
    return {item.file_group.partition for item in (change.before, change.after) if item is not None}


def _as_of(timeline: Timeline, commit: Instant, *, inclusive: bool) -> Timeline:
    """The timeline as it was right after the commit completed, or right before. Commits that were not there yet are
    pending ones: without them, the first of the timeline would count as archived, its files as old ones, and its rows
    as rows that the indexes know.
    """
    kept = (item for item in timeline if item.action in COMMIT_ACTIONS or _is_there(item, commit, inclusive=inclusive))
    return Timeline(item if _is_there(item, commit, inclusive=inclusive) else _not_yet(item) for item in kept)


def _not_yet(item: Instant) -> Instant:
    """A completed commit before it was one; no plan is read of a deltacommit."""
    return Instant(item.requested_time, Action.DELTA_COMMIT, State.INFLIGHT)


def _is_there(item: Instant, commit: Instant, *, inclusive: bool) -> bool:
    """Whether an instant is on the timeline as it was right after the commit completed, or right before."""
    if not item.is_completed:
        return True
    order, limit = (item.completed_at, item.requested_time), (commit.completed_at, commit.requested_time)
    return order < limit or (inclusive and order == limit)
