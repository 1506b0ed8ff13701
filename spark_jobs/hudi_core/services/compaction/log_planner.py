"""Plans a log compaction: decides when it is due, and which slices' log files it merges
(HoodieLogCompactionPlanGenerator).

It is planned on an explicit option only. A reader that does not know log compactions reads rows twice, and in the wrong
order where a writer came between (block_order.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from hudi_core.codec.log.blocks import HeaderKey, LogBlock
from hudi_core.config.services.compaction_config import LOG_COMPACTION, LOG_COMPACTION_BLOCKS, CompactionConfig
from hudi_core.errors import FormatError
from hudi_core.filegroup.merge.table_policy import reads_as_hudi_1
from hudi_core.filegroup.read.log_scan import CommittedInstants, latest_compaction_instant, scan_log_files
from hudi_core.filegroup.read.torn_tails import CompletedWrites, refuse_lost
from hudi_core.services.compaction.block_order import writer_beside
from hudi_core.services.compaction.candidates import candidates
from hudi_core.services.compaction.job import LogCompactionJob, check_log_compaction
from hudi_core.services.compaction.merge_logs import check_copied
from hudi_core.services.compaction.planner import CompactionService, affordable, planned
from hudi_core.services.context import TableContext
from hudi_core.services.rewriting.checks import check_schema_of_latest
from hudi_core.services.rewriting.planning import Planned, was_cut
from hudi_core.services.rollback.failed_writes import pending_rollback_or_restore
from hudi_core.services.service import FREED_BY, NO_OPTION, Nothing
from hudi_core.timeline.actions.compaction import CompactionPlan
from hudi_core.timeline.instant import Action
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_group import FileSlice
from hudi_core.view.slice_columns import LatestSlices, Mask

_STRATEGY: Final = {
    "compactorClassName": "org.apache.hudi.table.action.compact.LogCompactionExecutionHelper",
    "strategyParams": {},
    "version": 1,
}
"""The strategy that Hudi names in each of its plans."""


class LogCompactionService(CompactionService):
    name = "log_compaction"
    action = Action.LOG_COMPACTION
    job = LogCompactionJob

    def check(self, context: TableContext, timeline: Timeline) -> None:
        check_log_compaction(context)
        check_schema_of_latest(context, timeline)

    def plan(self, context: TableContext, timeline: Timeline, instant: str) -> Planned[CompactionPlan] | Nothing:
        """Plans a log compaction. Its guards differ from a compaction's: blocks of other writes may come between."""
        if not LOG_COMPACTION.read(context.options):
            return Nothing(
                f"log compactions are planned with {LOG_COMPACTION.name}=true only, since readers must know them"
            )
        first = pending_rollback_or_restore(context.active, timeline)
        if first is not None:
            pending, way_out = first
            return Nothing(f"{pending.action} {pending.requested_time} is pending: {way_out}")
        writer = writer_beside(context, timeline, instant)
        if writer is not None:
            what = f"{writer.action} {writer.requested_time} is pending"
            return Nothing(f"{what}, and its log blocks may come between: wait for it, or roll it back")
        reason = _why_not_due(context, timeline)
        return _planned(context, timeline, instant) if reason is None else Nothing(reason)


def _planned(context: TableContext, timeline: Timeline, instant: str) -> Planned[CompactionPlan] | Nothing:
    view, slices = context.view(timeline), _Slices(context, timeline)
    everywhere = view.partitions()
    due = candidates(context, view, everywhere, instant, CompactionConfig.of(context.options), slices.takes)
    if not len(due):
        beside = f", beside {due.held} that pending plans hold ({FREED_BY})" if due.held else ""
        if not due.passed:
            return Nothing(f"no file slice has log files{beside}{NO_OPTION}")
        refused = f"; {slices.refused}" if slices.refused else ""
        return Nothing(
            f"of {due.passed} file slices with log files none has {slices.least} log blocks to merge "
            f"({LOG_COMPACTION_BLOCKS.name}){beside}{refused}"
        )
    taken, left = affordable(context, due, np.arange(len(due)))
    plan = CompactionPlan(
        tuple(due.operations(taken)),
        strategy=_STRATEGY,
        preserve_hoodie_metadata=True,
        missing_partitions=() if context.config.features.layout == 2 else None,
    )
    return planned(plan, due.data_bytes[taken].tolist(), left)


def _why_not_due(context: TableContext, timeline: Timeline) -> str | None:
    """Returns why no log compaction is due. Hudi 1.2 counts completed delta commits since the last compaction or log
    compaction (ScheduleCompactionActionExecutor.needLogCompact), the delta commit of the log compaction included.
    Earlier releases look at the file slices alone. Slices that the last plan left out for its budget are due at once.
    """
    deltas = timeline.of_actions(Action.DELTA_COMMIT)
    if not len(deltas):
        return f"the table has no delta commit{NO_OPTION}"
    if not context.config.features.log_compaction_by_commits:
        return None
    merged = timeline.filter(lambda item: item.pending_action == Action.LOG_COMPACTION)
    pending = merged.pending().first()
    if pending is not None:
        return (
            f"log compaction {pending.requested_time} is pending: run it, or drop it by `hudictl unschedule`{NO_OPTION}"
        )
    compacted = timeline.completed().of_actions(Action.COMMIT).last()
    since = max((item.requested_time for item in (*merged, *filter(None, (compacted,)))), default="")
    count = sum(item.completed_at > since for item in deltas.completed())
    least = LOG_COMPACTION_BLOCKS.read(context.options)
    if count >= least or was_cut(context, merged.last()):
        return None
    after = f"since {since}" if since else "so far"
    return f"{count} delta commits {after}, but {LOG_COMPACTION_BLOCKS.name} is {least}"


class _Slices:
    """Chooses the file slices that have enough log blocks, if log compaction copies all of these."""

    def __init__(self, context: TableContext, timeline: Timeline) -> None:
        self.least = LOG_COMPACTION_BLOCKS.read(context.options)
        self.refused = ""
        """Why a slice that has enough is not taken."""
        self._context = context
        self._committed = CommittedInstants.of(timeline)
        self._writes = CompletedWrites(context.active, timeline, context.history)
        self._latest = latest_compaction_instant(timeline)
        self._by_files = context.config.features.log_compaction_by_commits
        self._as_hudi_1 = reads_as_hudi_1(context.config)

    def takes(self, latest: LatestSlices) -> Mask:
        return np.array([self._takes(item) for item in latest.slices(np.arange(len(latest)))], np.bool_)

    def _takes(self, item: FileSlice) -> bool:
        """Whether the plan takes a slice; reads the headers of its log blocks. Hudi 1.2 also counts log files, those of
        log compactions included. Unlike in Hudi, the result of one log compaction is not taken again: a run that plans
        until nothing is due would copy it without end.
        """
        scan = scan_log_files(
            self._context.storage,
            item.log_files,
            self._committed,
            latest_instant=self._latest,
            stop_at_newer=not self._as_hudi_1,
        )
        enough = len(scan.blocks) >= self.least or (self._by_files and len(item.log_files) >= self.least)
        if not enough or not scan.blocks or _is_merged(scan.blocks):
            return False
        try:
            refuse_lost(scan, self._writes)
            check_copied(scan.blocks)
        except FormatError as error:
            self.refused = str(error)
            return False
        return True


def _is_merged(blocks: Sequence[LogBlock]) -> bool:
    """Whether one log compaction wrote all of them."""
    return HeaderKey.COMPACTED_BLOCK_TIMES in blocks[0].headers and len({block.instant_time for block in blocks}) == 1
