"""Rolls a failed instant back in the metadata table, as part of the data table's rollback
(HoodieBackedTableMetadataWriter.update(HoodieRollbackMetadata)).

For the data table's rollback R of a failed instant T the metadata table has a rollback where it holds something of T,
`R` from version 8 on and `<R>006` in version 6, and T's deltacommit leaves its timeline. What becomes of T's blocks is
in rollback_strategies. In version 6 deltacommit R comes first, with the log files that the data
table's rollback wrote, or without files; later the data table's rollback adds no file, so that `files` needs no record.
Rollback R may complete on the data timeline only afterwards, because from then on readers count every block of T that
is left (HoodieTableMetadataUtil.getValidInstantTimestamps).
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from functools import cached_property

from hudi_core.config.table_config import TableConfig
from hudi_core.errors import TimelineError
from hudi_core.metadata_table.indexed_table import StoredTable
from hudi_core.metadata_table.partitions.registry import rollback_updates
from hudi_core.metadata_table.records.file_statistics import FileChanges
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.metadata_table.write.delta_writer import DeltaWriter
from hudi_core.metadata_table.write.rollback_strategies import CommandBlocks, FileDeletion
from hudi_core.model.names import WriteToken
from hudi_core.storage.base import FileInfo, Storage
from hudi_core.timeline.actions.rollback import (
    RollbackMetadata,
    RollbackRequest,
    encode_rollback_metadata,
    encode_rollback_plan,
)
from hudi_core.timeline.instant import Action, Instant
from hudi_core.timeline.pending_plans import pending_rollback_of
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.instant_generator import InstantClock

log = logging.getLogger(__name__)

_REBUILD = (
    "drop it with `hudictl metadata drop TABLE`, roll the instant back again, then rebuild it: `hudictl metadata "
    "create TABLE --partition …`, or let Hudi's next write do so"
)


@dataclass(frozen=True, slots=True)
class Footprint:
    """What the metadata table holds of an instant: its deltacommit, an unfinished rollback of it, files with blocks
    that count, and the requests to undo these. True while there is something that a rollback must take out.
    """

    delta_commit: Instant | None
    pending_rollback: str | None
    live: list[FileInfo]
    requests: list[RollbackRequest]

    def __bool__(self) -> bool:
        return self.delta_commit is not None or self.pending_rollback is not None or bool(self.live)


class MetadataRollback:
    """Rolls instants back on the metadata table. The caller holds the table lock while it calls `run`."""

    def __init__(
        self, storage: Storage, config: TableConfig, token: WriteToken, clock: InstantClock | None = None
    ) -> None:
        """`token` is of the log file in `files` with the files of the data table's rollback."""
        self._storage = storage
        self._config = config
        self._metadata_timeline = MetadataTimeline(storage, config, clock)
        self._token = token

    @cached_property
    def _strategy(self) -> FileDeletion | CommandBlocks:
        deletes = self._metadata_timeline.features.rollback_deletes_logs
        return (FileDeletion if deletes else CommandBlocks)(self._storage, self._metadata_timeline)

    def footprint(self, failed: str) -> Footprint:
        """One look at the timeline, and one at every partition."""
        return self._footprint(self._metadata_timeline.active.load(), failed)

    def check(self, failed: str) -> None:
        """Raises TimelineError when a compaction has merged the failed instant: only a rebuild helps then."""
        self._checked_footprint(self._metadata_timeline.active.load(), failed)

    def run(self, failed: str, rollback: str, changes: FileChanges | None = None) -> None:
        """Rolls `failed` back as part of the data table's rollback `rollback`; continues an earlier attempt.

        `changes` as MetadataPublisher.roll_back. Blocks that a writer presumed dead wrote after the completed rollback
        are removed under that rollback: they would count once the failed instant has left the data timeline. Raises
        TimelineError as check, before anything is written; ConflictError when such a writer was active meanwhile.
        """
        started = time.monotonic()
        active = self._metadata_timeline.active
        timeline = active.load()
        footprint = self._checked_footprint(timeline, failed)
        self._publish(rollback, changes or FileChanges())
        if not footprint:
            return
        instant = footprint.pending_rollback or self._strategy.instant_of(rollback)
        done = timeline.find(instant, Action.ROLLBACK)
        if done is not None and done.is_completed:
            log.warning(
                "blocks of %s were written into the metadata table after rollback %s of it had completed: removed",
                failed,
                instant,
            )
            self._strategy.undo(failed, instant, footprint.live)
            return
        if footprint.pending_rollback is None:
            plan = encode_rollback_plan(failed, Action.DELTA_COMMIT, footprint.requests)
            active.create_requested(instant, Action.ROLLBACK, plan)
        active.to_inflight(instant, Action.ROLLBACK)
        partitions = self._strategy.undo(failed, instant, footprint.live)
        took = int((time.monotonic() - started) * 1000)
        metadata = RollbackMetadata(instant, took, failed, Action.DELTA_COMMIT, tuple(partitions))
        self._metadata_timeline.complete(instant, Action.ROLLBACK, encode_rollback_metadata(metadata))

    def _publish(self, rollback: str, changes: FileChanges) -> None:
        if self._metadata_timeline.features.rollback_deletes_logs:
            return
        table = StoredTable(self._storage, self._config, {})
        records = rollback_updates(changes, self._config.metadata_partitions, table)
        DeltaWriter(self._storage, self._metadata_timeline, self._token).write(rollback, records)

    def _footprint(self, timeline: Timeline, failed: str) -> Footprint:
        live, requests = self._strategy.find(timeline, failed)
        pending = pending_rollback_of(self._metadata_timeline.active, timeline, failed)
        return Footprint(timeline.find(failed, Action.DELTA_COMMIT), pending, live, requests)

    def _checked_footprint(self, timeline: Timeline, failed: str) -> Footprint:
        found = self._footprint(timeline, failed)
        if found:
            self._check_not_merged(timeline, failed)
        return found

    def _check_not_merged(self, timeline: Timeline, failed: str) -> None:
        """Raises TimelineError when a compaction or log compaction has merged `failed`, or is about to.

        HoodieBackedTableMetadataWriter.validateRollback: in layout 1 by requested times; in layout 2 a compaction
        merges what was completed before it was requested. Hudi does not look at pending compactions; one whose plan
        names the instant's logs would fail without them.
        """
        found = timeline.find(failed, Action.DELTA_COMMIT)
        by_completion = self._metadata_timeline.features.completion_time_in_name
        if by_completion and (found is None or not found.is_completed):
            return
        written = failed if found is None or not by_completion else found.completed_at
        for other in reversed(timeline.instants):
            merges = other.pending_action in (Action.COMPACTION, Action.LOG_COMPACTION) or other.action == Action.COMMIT
            if merges and other.requested_time >= written:
                verb = "was compacted" if other.is_completed else "is about to be compacted"
                raise TimelineError(
                    f"the metadata table {verb} at {other.requested_time}, after instant {failed}: it cannot be "
                    "taken out any more",
                    path=self._metadata_timeline.active.path_of(other),
                    remedy=_REBUILD,
                )
