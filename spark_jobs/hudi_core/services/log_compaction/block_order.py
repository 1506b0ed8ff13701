"""Which blocks a log compaction may be put in front of, so that every reader finds the newest version of each row.

A reader that knows log compactions puts their blocks where the newest block that they hold stood, and passes over all
that they hold. Readers of Hudi 0.15, 1.0 and 1.1 do so only with `hoodie.optimized.log.blocks.scan.enable`; without it
they read the new blocks where they are in the order of log files, beside what they hold, and an older version of a row
would come after a newer one that was written in between (BaseHoodieLogRecordReader, scanInternalV1).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from operator import itemgetter

from hudi_core.codec.log.blocks import CorruptBlock, LogBlock
from hudi_core.config.services.compaction_config import OPTIMIZED_SCAN
from hudi_core.config.transaction_config import CONCURRENCY_MODE
from hudi_core.errors import ConflictError, HudiError, UnsupportedError
from hudi_core.filegroup.read.log_scan import CommittedInstants, log_blocks, scan_blocks
from hudi_core.model.names import LogFileName, parse_data_file
from hudi_core.services.context import TableContext
from hudi_core.services.rollback.failed_writes import heartbeats_of
from hudi_core.storage.base import FileInfo, Storage
from hudi_core.timeline.actions.compaction import CompactionOperation
from hudi_core.timeline.instant import COMMIT_ACTIONS, Instant
from hudi_core.timeline.pending_plans import pending_ingestion
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.writer_heartbeats import may_be_alive, silent_seconds
from hudi_core.view.file_group import DataFile

_AFTER_ALL = "9" * 20
_NON_BLOCKING = "NON_BLOCKING_CONCURRENCY_CONTROL"


@dataclass(frozen=True, slots=True)
class BlockOrder:
    """What a task must know of the table to see which blocks come between.

    `places`: every reader places the blocks of log compactions. `by_name`: log files are named after the instant that
    wrote them, and ordered by it. `pending` are the table's pending writes, `late` those that completed beside the
    plan; with `by_name` both are without what was requested after the plan, which comes behind in any case.
    """

    places: bool
    by_name: bool
    pending: frozenset[str]
    late: frozenset[str]

    @staticmethod
    def of(context: TableContext, timeline: Timeline, instant: str) -> BlockOrder:
        """At the log compaction of `instant`."""
        by_name = context.config.features.log_name_has_delta_commit
        writes = timeline.of_actions(*COMMIT_ACTIONS)
        pending = writes.pending().requested_times - {instant}
        late = (item.requested_time for item in writes.completed() if item.completed_at > instant)
        return BlockOrder(
            places_merged(context),
            by_name,
            frozenset(time for time in pending if time < instant or not by_name),
            frozenset(time for time in late if time < instant or not by_name),
        )

    def check(
        self,
        storage: Storage,
        operation: CompactionOperation,
        listed: Iterable[FileInfo],
        merged: frozenset[str],
        committed: CommittedInstants,
    ) -> None:
        """`listed` are the files of the operation's partition, `merged` the instants of the blocks that are merged.

        Raises ConflictError for blocks of a pending write that would be read before those that hold older rows,
        UnsupportedError for blocks of a completed one.
        """
        named = [(parse_data_file(info.name), info) for info in listed]
        logs = [(name, info) for name, info in named if isinstance(name, LogFileName) and not name.cdc]
        mine = [(name, info) for name, info in logs if name.file_id == operation.file_id]
        if self.by_name:
            last = max(merged)
            others = [(name.instant, info.path, name.instant < last) for name, info in mine]
        else:
            of_slice = [(name.scan_order, info) for name, info in mine if name.instant == operation.base_instant]
            ordered = [info for _, info in sorted(of_slice, key=itemgetter(0))]
            files = [DataFile(operation.partition, info.name, info.size) for info in ordered]
            others = self._blocks(log_blocks(storage, files), merged, committed)
        for time, path, is_between in others:
            if time in self.pending | self.late and time not in merged and (is_between or not self.places):
                raise self._refused(time, path)

    def _blocks(
        self, blocks: Iterable[LogBlock | CorruptBlock], merged: frozenset[str], committed: CommittedInstants
    ) -> list[tuple[str, str, bool]]:
        """The instant and the file of each block that counts or may count, and whether one that is merged comes
        behind.
        """

        def counts(instant: str) -> bool:
            return committed(instant) or instant in self.pending

        found = scan_blocks(blocks, counts, latest_instant=_AFTER_ALL, stop_at_newer=False).blocks
        last = max((number for number, block in enumerate(found) if block.instant_time in merged), default=-1)
        return [(str(block.instant_time), block.path, number < last) for number, block in enumerate(found)]

    def _refused(self, time: str, path: str) -> HudiError:
        if time in self.pending:
            return ConflictError(
                f"write {time} is pending, and its rows are newer than some that would be merged and read after them",
                path=path,
                remedy="run it again when that write has ended",
            )
        return UnsupportedError(
            f"write {time} completed beside the plan, and its rows are newer than some that would be merged and read "
            "after them",
            path=path,
            remedy=f"drop the plan: `hudictl unschedule`; or set {OPTIMIZED_SCAN.name} where every reader has it",
        )


def places_merged(context: TableContext) -> bool:
    """Whether every reader of the table places the blocks of log compactions. Only its users can know."""
    return OPTIMIZED_SCAN.read(context.options)


def writer_beside(context: TableContext, timeline: Timeline, instant: str) -> Instant | None:
    """A pending write that may be alive and come between the blocks of a log compaction at `instant`.

    Of writers that find conflicts only those count whose blocks some readers would read in the wrong order. In layout 2
    one that began later comes behind.
    """
    by_name = context.config.features.log_name_has_delta_commit
    if places_merged(context) and CONCURRENCY_MODE.read(context.options) != _NON_BLOCKING:
        return None
    pending = [
        item
        for item in pending_ingestion(context.active, timeline)
        if item.requested_time != instant and (item.requested_time < instant or not by_name)
    ]
    if not pending:
        return None
    changed = context.active.modified()
    heartbeats = heartbeats_of(context, read_only=True, silent=silent_seconds(context.options))
    return next((item for item in pending if may_be_alive(item, context.active, changed, heartbeats)), None)


def check_no_writer_beside(context: TableContext, instant: str, timeline: Timeline) -> None:
    """Raises ConflictError while there is one (writer_beside)."""
    writer = writer_beside(context, timeline, instant)
    if writer is not None:
        raise ConflictError(
            f"{writer.action} {writer.requested_time} is pending, and may still write log blocks that some readers "
            f"would read before those of log compaction {instant}",
            path=context.active.path_of(writer),
            remedy=(f"run it again when that write has ended, or set {OPTIMIZED_SCAN.name} where every reader has it"),
        )
