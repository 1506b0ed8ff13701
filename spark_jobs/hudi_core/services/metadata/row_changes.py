"""What a completed commit did to the rows of its file groups, told to the record index and the secondary indexes afterwards.

The slices before and after it are told by the timeline as it was then; an exchange brings the keys to the index's file groups, whose blocks tasks
stage (metadata_table.staged_logs).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from hudi_core.config.timeline_zone import timeline_zone
from hudi_core.errors import StorageNotFoundError, UnsupportedError
from hudi_core.filegroup.spec import ReaderSpec
from hudi_core.metadata_table.delta_commit import latest_schema
from hudi_core.metadata_table.file_group import ROOT, latest_slices
from hudi_core.metadata_table.kinds.indexed_table import IndexedTable
from hudi_core.metadata_table.kinds.row_kinds import index_rows
from hudi_core.metadata_table.kinds.row_units import index_unit, produce_index_rows
from hudi_core.metadata_table.kinds.slice_change import SliceChange
from hudi_core.metadata_table.own import OwnTimeline
from hudi_core.metadata_table.record import block_schema
from hudi_core.metadata_table.record_index import PARTITION as RECORD_INDEX
from hudi_core.metadata_table.staged_logs import StagedLog, staging_folder, write_log_shard
from hudi_core.timeline.commit_metadata import CommitMetadata
from hudi_core.timeline.instant import Instant
from hudi_core.timeline.query import Timeline
from hudi_core.timeline.schema_history import internal_schema_history
from hudi_core.view.file_group import FileSlice
from hudi_core.view.fs_view import load_view
from hudi_core.view.listing import FileListing

if TYPE_CHECKING:
    from hudi_core.model.engine import Engine
    from hudi_core.services.context import TableContext


@dataclass(frozen=True, slots=True)
class RowChanges:
    """One commit of a table; `listing` gives the files that there are."""

    context: TableContext
    table: IndexedTable
    own: OwnTimeline
    listing: FileListing
    engine: Engine
    epoch: int

    def stage(self, names: Collection[str], instant: Instant, metadata: CommitMetadata) -> dict[str, list[StagedLog]]:
        """The staged blocks of each of the indexes `names`, under the instant of the commit.

        The commit is the newest that moved rows. Raises UnsupportedError for a record index that is partitioned, and where the files of the
        slices before the commit were cleaned: what went is not known any more.
        """
        if not names:
            return {}
        timeline = self.context.active.load()
        changes = self._changes(timeline, instant, metadata)
        history = internal_schema_history(self.context.storage, timeline)
        spec = ReaderSpec.for_query(self.context.config, self.table.schema, timeline, merge_logs=True, history=history, options=self.context.options)
        text = spec.up_to(instant.requested_time).to_text()
        try:
            return {name: self._exchange(name, instant.requested_time, changes, text) for name in sorted(names)}
        except StorageNotFoundError as error:
            raise UnsupportedError(
                f"the indexes {', '.join(sorted(names))} cannot be told of {instant.action} {instant.requested_time}: {error.message}",
                path=error.path,
                remedy="drop these indexes with `hudictl metadata drop TABLE --partition …`, and create them anew",
            ) from error

    def _exchange(self, name: str, instant: str, changes: list[SliceChange], spec: str) -> list[StagedLog]:
        context, timeline = self.context, self.own.active.load()
        file_ids = [item.file_id for item in latest_slices(context.storage, timeline, name, layout=self.own.features.layout)]
        definition = self.table.definitions.get(name)
        if name == RECORD_INDEX and definition is not None and definition.is_partitioned:
            raise UnsupportedError(
                "a record index that is partitioned cannot be told of a commit that was left out",
                path=f"{ROOT}/{name}",
                remedy="drop it with `hudictl metadata drop TABLE --partition record_index`, and create it anew",
            )
        schema = block_schema(latest_schema(self.own.active, timeline))
        rows = index_rows(name, self.table, {None: len(file_ids)}, schema, timeline_zone(context.config, context.options))
        options = dict(context.storage_options)
        shard = {
            "uri": context.uri,
            "storage_options": options,
            "index": rows.to_json(),
            "file_ids": file_ids,
            "instant": instant,
            "schema": schema,
            "hudi_1_headers": self.own.features.hudi_1_log_headers,
            "folder": staging_folder(instant, self.epoch),
        }
        units = [index_unit(context.uri, options, spec, rows, change) for change in changes]
        found = self.engine.exchange(produce_index_rows, units, partial(write_log_shard, shard), shards=rows.shards, run_epoch=self.epoch)
        return [StagedLog.from_json(item["log"]) for item in found if item["log"] is not None]

    def _changes(self, timeline: Timeline, instant: Instant, metadata: CommitMetadata) -> list[SliceChange]:
        touched = {(name, stat.file_id) for name, stats in metadata.partition_to_write_stats.items() for stat in stats}
        touched |= {(group.partition, group.file_id) for group in metadata.replaced_file_groups()}
        partitions = {name for name, _ in touched}
        after = self._slices(timeline.filter(lambda item: _is_there(item, instant, inclusive=True)), partitions)
        before = self._slices(timeline.filter(lambda item: _is_there(item, instant, inclusive=False)), partitions)
        return [SliceChange(before.get(group), after.get(group), instant.requested_time) for group in sorted(touched)]

    def _slices(self, timeline: Timeline, partitions: Collection[str]) -> dict[tuple[str, str], FileSlice]:
        view = load_view(self.context.active, self.listing, timeline, self.context.history)
        slices = (item for partition in sorted(partitions) for item in view.latest_merged_slices(partition))
        return {(item.file_group.partition, item.file_group.file_id): item for item in slices}


def _is_there(item: Instant, commit: Instant, *, inclusive: bool) -> bool:
    """Whether an instant is on the timeline as it was right after the commit completed, or right before."""
    if not item.is_completed:
        return True
    order, limit = (item.completed_at, item.requested_time), (commit.completed_at, commit.requested_time)
    return order < limit or (inclusive and order == limit)
