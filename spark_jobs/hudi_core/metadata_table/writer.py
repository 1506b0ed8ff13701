"""Publishes a commit's files in the metadata table: deltacommit T on its timeline, one log file in its `files` partition.

Table version 6, a metadata table with the partition `files` only; any other partition would go stale (facts 8.10), so the services refuse
such tables before they write. A pending deltacommit of another instant is left alone: on the metadata table it cannot be told from a live
writer's, and readers count its blocks only once its instant completes on the data timeline. Real Hudi's next writer rolls it back
itself, where it is the single writer (HoodieBackedTableMetadataWriter.commitInternal).
"""

from __future__ import annotations

from hudi_core.codec.hfile.writer import write_hfile
from hudi_core.codec.log.blocks import BlockType, HeaderKey
from hudi_core.codec.log.encode import encode_block
from hudi_core.config.table_config import TableConfig
from hudi_core.errors import ConflictError
from hudi_core.metadata_table.delta_commit import complete_delta_commit, latest_schema, log_stat, profile_stat, write_delta_commit_start
from hudi_core.metadata_table.file_group import FILES_PARTITION, ROOT, LatestSlice, blocks_of, latest_slice, metadata_path
from hudi_core.metadata_table.files import commit_records
from hudi_core.metadata_table.record import encode_items, schema_text
from hudi_core.model.ids import WriteToken
from hudi_core.model.names import LogFileName
from hudi_core.storage.base import Storage
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.commit_metadata import CommitMetadata
from hudi_core.timeline.instant import Action
from hudi_core.timeline.query import Timeline
from hudi_core.timeline.rollback_target import pending_rollback_of

_RETRY = "run the instant again: it is rolled back in the metadata table first"


class MetadataWriter:
    """The MetadataSink of a table whose metadata table has the partition `files`. `token` makes the log file's name this attempt's own."""

    def __init__(self, storage: Storage, config: TableConfig, token: WriteToken) -> None:
        self._storage = storage
        self._config = config
        self._active = ActiveTimeline(storage, config, ROOT)
        self._token = token

    def publish(self, instant: str, metadata: CommitMetadata) -> None:
        """Writes and completes deltacommit `instant`. The caller holds the table lock and has checked the claim.

        The slice is looked up here, under the lock: a compaction of the metadata table since the run began moves it. Raises ConflictError
        when anything of `instant` is there already, since a block of a dead attempt would count beside ours.
        """
        timeline = self._active.load()
        place = latest_slice(self._storage, timeline)
        self._refuse_traces(timeline, place, instant)
        items = encode_items(commit_records(metadata.partition_to_write_stats))
        schema = latest_schema(self._active, timeline)
        name = place.next_log(self._token)
        write_delta_commit_start(self._active, instant, {FILES_PARTITION: (profile_stat(place, len(items)),)})
        headers = {HeaderKey.INSTANT_TIME: instant, HeaderKey.SCHEMA: schema_text()}
        content = write_hfile(items, schema=schema_text(), codec="GZ")
        block = encode_block(BlockType.HFILE_DATA, headers, content, hudi_1_headers=self._config.features.hudi_1_log_headers)
        self._storage.create_exclusive(metadata_path(name), block)
        self._refuse_newcomers(timeline, place, name, instant)
        complete_delta_commit(self._active, instant, {FILES_PARTITION: (log_stat(place, name, len(items), len(block), own_instant=False),)}, schema)

    def _refuse_traces(self, timeline: Timeline, place: LatestSlice, instant: str) -> None:
        found = timeline.find(instant, Action.DELTA_COMMIT)
        if found is not None:
            raise ConflictError("another attempt's deltacommit is on the metadata table", path=self._active.path_of(found), remedy=_RETRY)
        rollback = pending_rollback_of(self._active, timeline, instant)
        if rollback is not None:
            raise ConflictError(f"rollback {rollback} of this instant is unfinished on the metadata table", path=ROOT, remedy=_RETRY)
        live = blocks_of(self._storage, place.logs, instant).live
        if live:
            raise ConflictError("another attempt's block is in the metadata table", path=live[0].path, remedy=_RETRY)

    def _refuse_newcomers(self, timeline: Timeline, before: LatestSlice, ours: LogFileName, instant: str) -> None:
        """A log file that a process thought dead wrote late, between our look and our own file, must not count beside ours."""
        known = {info.path for info in before.logs} | {metadata_path(ours)}
        newcomers = [info for info in latest_slice(self._storage, timeline).logs if info.path not in known]
        live = blocks_of(self._storage, newcomers, instant).live
        if live:
            raise ConflictError("another attempt's block appeared in the metadata table", path=live[0].path, remedy=_RETRY)
