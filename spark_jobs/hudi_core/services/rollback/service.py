"""Rollback as a table service: the runner, hudictl and the operators schedule and run it like any other."""

from __future__ import annotations

import time

from hudi_core.engine.protocol import Engine, Json
from hudi_core.request.model import InstantResult
from hudi_core.services.context import TableContext
from hudi_core.services.rollback.execute import encode_plan
from hudi_core.services.rollback.failed_writes import dead_rollbacks, failed_writes
from hudi_core.services.rollback.job import RollbackRun
from hudi_core.services.rollback.request import check_rollback, plan_rollback, request_rollback
from hudi_core.services.rollback.verb import nothing_failed
from hudi_core.services.service import Scheduled, UnitProgress
from hudi_core.timeline.actions.container import decode_any
from hudi_core.timeline.instant import Action, State
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.owner import Owner


class RollbackService:
    """Plans the rollback of the newest write that failed, and runs rollbacks that are pending and that no writer of
    Hudi is at.
    """

    name = "rollback"

    def pending(self, context: TableContext, timeline: Timeline) -> list[str]:
        """See Service. Nothing is written, so ages are measured by this process's clock."""
        return dead_rollbacks(context, timeline, dry_run=True)

    def schedule(self, context: TableContext, owner: Owner, *, dry_run: bool) -> Scheduled:
        """See SchedulingService. One rollback at a time: the next failed write is planned when this one is done."""
        timeline = context.active.load()
        pending = dead_rollbacks(context, timeline, dry_run=dry_run)
        if pending:
            return Scheduled(None, None, f"rollback {pending[0]} is pending: run it first")
        failed = failed_writes(context, timeline, dry_run=dry_run)
        if not failed:
            return Scheduled(None, None, nothing_failed(context, timeline))
        if dry_run:
            check_rollback(context, timeline, failed[0], dry_run=True)
            return Scheduled(None, _preview(context, timeline, failed[0].requested_time))
        rollback = request_rollback(context, failed[0], owner)
        path = context.active.path(rollback, Action.ROLLBACK, State.REQUESTED)
        return Scheduled(rollback, decode_any(context.active.read_requested(rollback, Action.ROLLBACK), path=path))

    def run(
        self, context: TableContext, instant: str, engine: Engine, owner: Owner, progress: UnitProgress | None
    ) -> InstantResult:
        """See Service. A rollback is requests to the storage and no work on rows, so the engine has none of it."""
        started = time.monotonic()
        run = RollbackRun(context, instant, owner)
        metadata = run.run()
        if progress is not None:
            progress(1, 1)
        return InstantResult(
            instant,
            Action.ROLLBACK,
            State.COMPLETED.value,
            files_written=sum(len(part.rollback_log_files) for part in metadata.partitions),
            bytes_written=sum(sum(part.rollback_log_files.values()) for part in metadata.partitions),
            files_deleted=metadata.files_deleted,
            seconds=round(time.monotonic() - started, 3),
        )


def _preview(context: TableContext, timeline: Timeline, target: str) -> Json:
    failed = next(instant for instant in timeline.pending() if instant.requested_time == target)
    path = context.active.path_of(failed)
    return decode_any(encode_plan(context, failed, plan_rollback(context, timeline, failed)), path=path)
