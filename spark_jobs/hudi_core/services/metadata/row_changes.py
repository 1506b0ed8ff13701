"""Updates row-level indexes by a commit, some time after it completed. The timeline as it was then says which slices
its file groups had before and after the commit. metadata_table.row_updates stages what changed between them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from hudi_core.engine.serializer import to_text
from hudi_core.errors import StorageNotFoundError, TimelineError
from hudi_core.frozen import dataclass
from hudi_core.metadata_table.indexed_table import IndexedTable
from hudi_core.metadata_table.partitions.row_level import SliceChange
from hudi_core.metadata_table.row_updates import RowUpdates
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.metadata_table.write.staged_logs import StagedLog, Workers
from hudi_core.model.names import BaseFileName, parse_data_file
from hudi_core.query.context import reader_spec
from hudi_core.services.context import TableContext
from hudi_core.timeline.actions.commit import CommitMetadata
from hudi_core.timeline.instant import COMMIT_ACTIONS, Action, Instant, State
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_group import FileSlice
from hudi_core.view.file_system_view import load_view
from hudi_core.view.listing import FileListing

REBUILD_ROW_LEVEL: Final = (
    "drop these indexes with `hudictl metadata drop TABLE --partition …`, run this again, and create them again"
)

_NONE: Final = "null"
"""The value of `prevCommit` for a new file group."""
Slices = Mapping[tuple[str, str], FileSlice]


class RowsUnknownError(TimelineError):
    """A row-level index cannot be updated by a commit: the rows that the commit changed are no longer known."""

    indexes: frozenset[str] | None = None
    """The indexes that must be built again; None: all row-level indexes."""


@dataclass(frozen=True, slots=True)
class RowChanges:
    context: TableContext
    table: IndexedTable
    metadata_timeline: MetadataTimeline
    listing: FileListing
    workers: Workers

    def stage(self, names: Collection[str], instant: Instant, metadata: CommitMetadata) -> dict[str, list[StagedLog]]:
        """Returns the staged blocks of each of the indexes `names`, under the instant of the commit, the newest that
        moved rows. Errors and new file groups are as in RowUpdates.stage. Raises RowsUnknownError where the files of
        the slices before the commit were cleaned.
        """
        if not names:
            return {}
        context, time = self.context, instant.requested_time
        timeline = context.active.load()
        changes = self._changes(timeline, instant, metadata)
        spec = to_text(reader_spec(context, self.table.schema, timeline, merge_logs=True).up_to(time))
        updates = RowUpdates(context.storage, self.table, self.metadata_timeline, self.workers, context.zone)
        try:
            return updates.stage(time, metadata.operation_type, names, changes, spec, timeline)
        except StorageNotFoundError as error:
            message = (
                f"the indexes {', '.join(sorted(names))} cannot be updated by {instant.action} "
                f"{instant.requested_time}: {error.message}"
            )
            raise RowsUnknownError(message, path=error.path, remedy=REBUILD_ROW_LEVEL) from error

    def _changes(self, timeline: Timeline, instant: Instant, metadata: CommitMetadata) -> list[SliceChange]:
        touched = {(name, stat.file_id) for name, stats in metadata.partition_to_write_stats.items() for stat in stats}
        touched |= {(group.partition, group.file_id) for group in metadata.replaced_file_groups()}
        partitions = {name for name, _ in touched}
        after = self._slices(_as_of(timeline, instant, inclusive=True), partitions)
        before = self._slices(self._initialized(_as_of(timeline, instant, inclusive=False), instant), partitions)
        self._check_known(instant, metadata, before, after)
        return [SliceChange(before.get(group), after.get(group), instant.requested_time) for group in sorted(touched)]

    def _initialized(self, timeline: Timeline, commit: Instant) -> Timeline:
        """Returns the timeline right before `commit`. Where it shows no write that was completed then, the last
        archived one is added: without it all older files would count as uncommitted. Later archived ones are pending.
        """
        if timeline.visible_writes().start is not None:
            return timeline
        archived = [
            item
            for item in self.context.history().instants(up_to=commit.requested_time)
            if item.action in COMMIT_ACTIONS
        ]
        completed = Timeline(item for item in archived if _is_known_at(item, commit, inclusive=False))
        added = [_not_yet(item) for item in archived if not completed.contains(item.requested_time)]
        last = completed.last()
        if last is not None:
            # As a commit, whatever its action: nothing more is read of it, and what it replaced was deleted before.
            added.append(Instant(last.requested_time, Action.COMMIT, State.COMPLETED, last.completion_time))
        return Timeline([*timeline, *(item for item in added if not timeline.contains(item.requested_time))])

    def _check_known(self, instant: Instant, metadata: CommitMetadata, before: Slices, after: Slices) -> None:
        """Raises RowsUnknownError where a clean deleted files that the commit wrote, replaced or was based on."""
        for partition, stats in metadata.partition_to_write_stats.items():
            for stat in stats:
                group, name = (partition, stat.file_id), stat.name
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
        """Whether a file group has an older file than the commit. In layout 2 a log file's stat does not say so."""
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
        f"row-level indexes cannot be updated by {instant.action} {instant.requested_time}: {what} was cleaned since",
        remedy=REBUILD_ROW_LEVEL,
    )


def _as_of(timeline: Timeline, commit: Instant, *, inclusive: bool) -> Timeline:
    """Returns the timeline after, or before, the commit. Later commits are pending, so that none counts as archived."""
    known = [(item, _is_known_at(item, commit, inclusive=inclusive)) for item in timeline]
    return Timeline(
        item if is_known else _not_yet(item) for item, is_known in known if is_known or item.action in COMMIT_ACTIONS
    )


def _not_yet(item: Instant) -> Instant:
    """Returns a completed commit as it was before, as a pending deltacommit: no plan is read of one."""
    return Instant(item.requested_time, Action.DELTA_COMMIT, State.INFLIGHT)


def _is_known_at(item: Instant, commit: Instant, *, inclusive: bool) -> bool:
    if not item.is_completed:
        return True
    order, limit = (item.completed_at, item.requested_time), (commit.completed_at, commit.requested_time)
    return order < limit or (inclusive and order == limit)
