"""What a completed commit did to the rows of its file groups, told to the record index and the secondary indexes
afterwards.

The slices before and after it follow from the timeline as it was then (metadata_table.row_updates stages the rest).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hudi_core.config.table_config import timeline_zone
from hudi_core.engine.serializer import to_text
from hudi_core.errors import StorageNotFoundError, TimelineError
from hudi_core.metadata_table.indexed_table import IndexedTable
from hudi_core.metadata_table.partitions.row_level import SliceChange
from hudi_core.metadata_table.row_updates import RowUpdates
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.metadata_table.write.staged_logs import StagedLog, Workers
from hudi_core.model.names import BaseFileName, parse_data_file
from hudi_core.query.slices_plan import reader_spec
from hudi_core.timeline.actions.commit import CommitMetadata
from hudi_core.timeline.instant import COMMIT_ACTIONS, Action, Instant, State
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

        Errors and new file groups as RowUpdates.stage. Raises RowsUnknownError where the files of the slices before the
        commit were cleaned.
        """
        if not names:
            return {}
        timeline = self.context.active.load()
        changes = self._changes(timeline, instant, metadata)
        spec = reader_spec(self.context, self.table.schema, timeline, merge_logs=True)
        workers = Workers(self.engine, self.epoch, self.context.uri, self.context.storage_options)
        zone = timeline_zone(self.context.config, self.context.options)
        updates = RowUpdates(self.context.storage, self.table, self.metadata_timeline, workers, zone)
        time = instant.requested_time
        text = to_text(spec.up_to(time))
        try:
            return updates.stage(time, metadata.operation_type, names, changes, text, timeline)
        except StorageNotFoundError as error:
            raise RowsUnknownError(
                f"the indexes {', '.join(sorted(names))} cannot be told of {instant.action} "
                f"{instant.requested_time}: "
                f"{error.message}",
                path=error.path,
                remedy=REBUILD_ROW_LEVEL,
            ) from error

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
