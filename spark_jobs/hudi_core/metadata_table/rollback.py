"""Takes a failed instant out of the metadata table, byte for byte in the way of Hudi 0.15.

For the data table's rollback R of a failed instant T (HoodieBackedTableMetadataWriter.update(HoodieRollbackMetadata)):
deltacommit R without files; then, where T left anything, rollback `<R>006`: a command block `.log.<N+1>_1-0-1` against T behind T's
block, T's deltacommit files removed, `<R>006.rollback` completed. Rollback R may complete on the data timeline only after that, because
from then on readers count every block of T that no command takes back (facts 8.8, rule 3).
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from hudi_core.codec.log.blocks import ROLLBACK_COMMAND, BlockType, HeaderKey
from hudi_core.codec.log.encode import encode_block
from hudi_core.errors import ConflictError, TimelineError
from hudi_core.metadata_table.delta_commit import latest_schema, write_empty_delta_commit
from hudi_core.metadata_table.file_group import FILES_PARTITION, ROOT, LatestSlice, blocks_of, latest_slice, metadata_path
from hudi_core.model.ids import ROLLBACK_TOKEN
from hudi_core.storage.base import FileInfo, Storage
from hudi_core.timeline.active import ActiveTimeline, LayoutConfig
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.query import Timeline
from hudi_core.timeline.rollback_plans import RollbackPartition, RollbackRequest, encode_rollback_metadata, encode_rollback_plan
from hudi_core.timeline.rollback_target import pending_rollback_of
from hudi_core.transaction.addresses import plan_address, status_address

ROLLBACK_SUFFIX = "006"
"""HoodieTableMetadataUtil.OperationSuffix.ROLLBACK."""


@dataclass(frozen=True, slots=True)
class Traces:
    """What the metadata table holds of an instant: its deltacommit, an unfinished rollback of it, blocks that count."""

    delta_commit: Instant | None
    pending_rollback: str | None
    live: tuple[FileInfo, ...]

    def __bool__(self) -> bool:
        return self.delta_commit is not None or self.pending_rollback is not None or bool(self.live)


class MetadataRollback:
    """Rolls instants back on the metadata table of the data table in `storage`. The caller holds the table lock while it calls `run`."""

    def __init__(self, storage: Storage, config: LayoutConfig) -> None:
        self._storage = storage
        self._active = ActiveTimeline(storage, config, ROOT)

    def traces(self, failed: str) -> Traces:
        """What there is of `failed`; one look at the timeline and at the headers of the latest slice's logs."""
        timeline = self._active.load()
        return self._traces(timeline, latest_slice(self._storage, timeline), failed)

    def run(self, failed: str, rollback: str) -> None:
        """Rolls `failed` back as part of the data table's rollback `rollback`; goes on where an earlier attempt stopped.

        Raises TimelineError when a compaction of the metadata table has taken the failed instant in: only a rebuild helps then.
        """
        started = time.monotonic()
        timeline = self._active.load()
        write_empty_delta_commit(self._active, timeline, rollback, latest_schema(self._active, timeline))
        place = latest_slice(self._storage, timeline)
        traces = self._traces(timeline, place, failed)
        own = traces.pending_rollback or f"{rollback}{ROLLBACK_SUFFIX}"
        done = timeline.find(own, Action.ROLLBACK)
        if not traces or (done is not None and done.is_completed):
            # A trace behind a completed rollback is a late write of a dead attempt; the next rollback, under an instant of its own, takes it.
            return
        self._check_not_compacted(timeline, failed)
        blocks = {plan_address(self._storage, info.path): info.size for info in traces.live}
        if traces.pending_rollback is None:
            request = RollbackRequest(FILES_PARTITION, place.file_id, place.base_instant, (), blocks)
            plan = encode_rollback_plan(failed, Action.DELTA_COMMIT, [request] if blocks else [])
            self._active.create_requested(own, Action.ROLLBACK, plan)
        self._active.to_inflight(own, Action.ROLLBACK)
        if traces.live:
            self._append_command(place, failed, own)
        for state in (State.COMPLETED, State.INFLIGHT, State.REQUESTED):
            self._active.remove(failed, Action.DELTA_COMMIT, state)
        written = self._commands(timeline, failed, own)
        partition = RollbackPartition(FILES_PARTITION, (), (), written, blocks)
        took = int((time.monotonic() - started) * 1000)
        self._active.complete(own, Action.ROLLBACK, encode_rollback_metadata(own, took, failed, Action.DELTA_COMMIT, [partition]))

    def _traces(self, timeline: Timeline, place: LatestSlice, failed: str) -> Traces:
        return Traces(
            timeline.find(failed, Action.DELTA_COMMIT),
            pending_rollback_of(self._active, timeline, failed),
            blocks_of(self._storage, place.logs, failed).live,
        )

    def _check_not_compacted(self, timeline: Timeline, failed: str) -> None:
        """HoodieBackedTableMetadataWriter.validateRollback."""
        compacted = timeline.completed().of_actions(Action.COMMIT).last()
        if compacted is not None and failed <= compacted.requested_time:
            raise TimelineError(
                f"the metadata table was compacted at {compacted.requested_time}, after the failed instant {failed}",
                path=self._active.path_of(compacted),
                remedy="drop the metadata table and let Hudi's writer rebuild it, then run the instant again",
            )

    def _append_command(self, place: LatestSlice, failed: str, own: str) -> None:
        headers = {
            HeaderKey.INSTANT_TIME: own,
            HeaderKey.TARGET_INSTANT_TIME: failed,
            HeaderKey.COMMAND_BLOCK_TYPE: ROLLBACK_COMMAND,
        }
        name = place.next_log(ROLLBACK_TOKEN)
        self._storage.create_exclusive(metadata_path(name), encode_block(BlockType.COMMAND, headers))

    def _commands(self, timeline: Timeline, failed: str, own: str) -> dict[str, int]:
        """The log files that rollback `own` wrote, in this attempt or an earlier one, by address."""
        blocks = blocks_of(self._storage, latest_slice(self._storage, timeline).logs, failed)
        if blocks.live:
            raise ConflictError(
                f"a block of the failed instant {failed} appeared while it was rolled back: its writer is still alive",
                path=blocks.live[0].path,
                remedy="stop that writer, then run the instant again",
            )
        return {status_address(self._storage, info.path): info.size for info, instant in blocks.commands if instant == own}
