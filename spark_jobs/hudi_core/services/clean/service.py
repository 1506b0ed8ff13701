"""Cleaning as a service: plans which old files go, and deletes them."""

from __future__ import annotations

import logging
from functools import partial

from hudi_core.config.transaction_config import FAILED_WRITES_POLICY
from hudi_core.engine.protocol import Engine
from hudi_core.errors import ConflictError
from hudi_core.request.model import InstantResult
from hudi_core.services.clean.job import CleanRun
from hudi_core.services.clean.planner import Planned, make_plan
from hudi_core.services.clean.retention import Nothing
from hudi_core.services.context import TableContext
from hudi_core.services.rollback.verb import clean_failed_writes
from hudi_core.services.service import Scheduled, UnitProgress
from hudi_core.timeline.actions.clean import encode_clean_plan
from hudi_core.timeline.instant import Action
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.addresses import plan_address
from hudi_core.transaction.owner import Owner
from hudi_core.transaction.writer_heartbeats import FailedWrites, failed_writes_policy

log = logging.getLogger(__name__)

_ATTEMPTS = 3
_PLANS = (Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING, Action.REPLACE_COMMIT)
_UNDOES = (Action.CLEAN, Action.ROLLBACK, Action.RESTORE, Action.SAVEPOINT)


class CleanService:
    """See service.SchedulingService."""

    name = "clean"

    def pending(self, context: TableContext, timeline: Timeline) -> list[str]:
        """The cleans that are requested or inflight, oldest first, whoever planned them."""
        return [instant.requested_time for instant in timeline.pending().of_actions(Action.CLEAN)]

    def schedule(self, context: TableContext, owner: Owner, *, dry_run: bool) -> Scheduled:
        """Plans a clean and requests it; the plan names files and bytes.

        The table is looked at without the lock, which is taken for the request alone. A plan of old slices is not made
        wrong by commits that complete meanwhile; where a plan, savepoint, rollback, restore or clean came or went, it
        is made again. Raises ConflictError when that happens all the time, ConfigError for options, FormatError for a
        plan or savepoint of the timeline that is not safe.

        Where the options name the LAZY policy, failed writes are rolled back first: nobody else does it (CleanPlanner's
        caller in Hudi, BaseHoodieTableServiceClient.clean), and one that stays keeps old files from being cleaned.
        """
        if (
            not dry_run
            and FAILED_WRITES_POLICY.is_set(context.options)
            and failed_writes_policy(context.options) is FailedWrites.LAZY
        ):
            clean_failed_writes(context, owner)
        for _ in range(_ATTEMPTS):
            timeline = context.active.load()
            made = make_plan(context, timeline)
            if isinstance(made, Nothing):
                return Scheduled(None, None, made.reason)
            if dry_run:
                return Scheduled(None, made.to_json())
            instant = self._request(context, owner, made, timeline)
            if instant is not None:
                log.info("clean %s requested: %d files", instant, made.plan.file_count)
                return Scheduled(instant, made.to_json())
        raise ConflictError(
            "the table's plans changed each time while a clean was planned",
            path=context.active.folder,
            remedy="run it again",
        )

    def run(
        self, context: TableContext, instant: str, engine: Engine, owner: Owner, progress: UnitProgress | None
    ) -> InstantResult:
        """See run.CleanRun."""
        return CleanRun(context, instant, engine, owner, progress).run()

    def _request(self, context: TableContext, owner: Owner, made: Planned, planned_on: Timeline) -> str | None:
        """The instant that holds the plan; None when the plan no longer fits the table."""
        content = encode_clean_plan(made.plan, partial(plan_address, context.storage))
        with context.lock(owner) as lock:
            timeline = context.active.load()
            if _basis(timeline) != _basis(planned_on):
                return None
            instant = context.new_instant(timeline)
            lock.check()
            context.active.create_requested(instant, Action.CLEAN, content)
            return instant


def _basis(timeline: Timeline) -> frozenset[tuple[str, str, bool]]:
    """What a plan of old slices stands on: pending plans, and whatever takes files away, brings them back or keeps
    them.
    """
    return frozenset(
        (instant.requested_time, instant.pending_action, instant.is_completed)
        for instant in timeline
        if instant.action in _UNDOES or (not instant.is_completed and instant.pending_action in _PLANS)
    )
