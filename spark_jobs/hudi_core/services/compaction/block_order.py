"""Decides after which writes a log compaction may not come, so that every reader finds the newest version of each row.

A log compaction writes new blocks that hold the rows of merged blocks. Hudi 1.2 and this engine read a new block where
the newest of its merged blocks stood, and pass over the merged ones. The queries of Hudi 0.15, 1.0 and 1.1 read the new
blocks in the order of log files, beside the merged ones (BaseHoodieLogRecordReader, scanInternalV1). There an older
version of a row would come after a newer one that another write put in between.
`hoodie.optimized.log.blocks.scan.enable` changes that for Hudi's compaction and clustering, not for its queries.
"""

from __future__ import annotations

from collections.abc import Iterable

from hudi_core.errors import ConflictError, UnsupportedError
from hudi_core.filegroup.read.log_scan import AFTER_ALL, CommittedInstants, log_blocks, scan_blocks
from hudi_core.frozen import dataclass
from hudi_core.model.names import LogFileName, parse_data_file
from hudi_core.services.context import TableContext
from hudi_core.services.rewriting.other_writers import alive_among
from hudi_core.storage.base import FileInfo, Storage
from hudi_core.timeline.actions.compaction import CompactionOperation
from hudi_core.timeline.instant import COMMIT_ACTIONS, Instant
from hudi_core.timeline.pending_plans import pending_ingestion
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_group import DataFile


@dataclass(frozen=True, slots=True)
class BlockOrder:
    """What a task must know of the table to find the blocks that come in between. With `by_name` log files are named
    after the instant that wrote them, and ordered by it. `pending` are pending writes, `late` are writes that completed
    after the plan. With `by_name` both leave out writes requested after the plan: their blocks come later in any case.
    """

    by_name: bool
    pending: frozenset[str]
    late: frozenset[str]

    @staticmethod
    def of(context: TableContext, timeline: Timeline, instant: str) -> BlockOrder:
        by_name = context.config.features.log_name_has_delta_commit
        writes = timeline.of_actions(*COMMIT_ACTIONS)
        pending = writes.pending().requested_times - {instant}
        late = (item.requested_time for item in writes.completed() if item.completed_at > instant)
        return BlockOrder(
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
        """Raises ConflictError where the file group has blocks of a pending write before the new blocks, and
        UnsupportedError where it has such blocks of a completed write. `listed` are the files of the operation's
        partition, `merged` the instants of the blocks that are merged.
        """
        named = [(parse_data_file(info.name), info) for info in listed]
        mine = [
            (name, info)
            for name, info in named
            if isinstance(name, LogFileName) and not name.cdc and name.file_id == operation.file_id
        ]
        if self.by_name:
            others = {name.instant: info.path for name, info in mine}
        else:
            of_slice = [(name, info) for name, info in mine if name.instant == operation.base_instant]
            of_slice.sort(key=lambda item: item[0].scan_order)
            files = [DataFile(operation.partition, info.name, info.size) for _, info in of_slice]
            scanned = scan_blocks(
                log_blocks(storage, files),
                lambda instant: committed(instant) or instant in self.pending,
                latest_instant=AFTER_ALL,
                stop_at_newer=False,
            )
            others = {str(block.instant_time): block.path for block in scanned.blocks}
        for time in sorted((self.pending | self.late) & others.keys() - merged):
            if time in self.pending:
                raise ConflictError(
                    f"write {time} is pending, and some readers would read its rows before older ones that are merged",
                    path=others[time],
                    remedy=f"run it again when that write has ended: hudictl rollback TABLE --instant {time}",
                )
            raise UnsupportedError(
                f"write {time} completed beside the plan, and some readers would read its rows before older ones that "
                "are merged",
                path=others[time],
                remedy="drop the plan with `hudictl unschedule`, and plan again",
            )


def writer_beside(context: TableContext, timeline: Timeline, instant: str) -> Instant | None:
    """Returns a pending write that may be alive and write blocks before those of a log compaction at `instant`."""
    by_name = context.config.features.log_name_has_delta_commit
    pending = [
        item
        for item in pending_ingestion(context.active, timeline)
        if item.requested_time != instant and (item.requested_time < instant or not by_name)
    ]
    return next((writer for writer, _ in alive_among(context, timeline, pending)), None)


def check_no_writer_beside(context: TableContext, instant: str, timeline: Timeline) -> None:
    """Raises ConflictError while writer_beside finds a write."""
    writer = writer_beside(context, timeline, instant)
    if writer is not None:
        raise ConflictError(
            f"{writer.action} {writer.requested_time} is pending, and may still write log blocks that some readers "
            f"would read before those of log compaction {instant}",
            path=context.active.path_of(writer),
            remedy="run it again when that write has ended",
        )
