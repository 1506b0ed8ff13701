"""Which instants wait to be rolled back: rollbacks that died, and writes that did."""

from __future__ import annotations

import time

from hudi_core.config.service_config import HeartbeatConfig
from hudi_core.errors import StorageNotFoundError
from hudi_core.services.context import TableContext
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.query import Timeline
from hudi_core.timeline.restore_plans import decode_restore_plan
from hudi_core.timeline.rollback_target import rollback_target
from hudi_core.transaction.heartbeats import (
    FailedWrites,
    expired_writes,
    failed_writes_policy,
    read_heartbeats,
    silent_seconds,
    warn_of_eager_writers,
)


def pending_rollbacks(active: ActiveTimeline, timeline: Timeline) -> list[str]:
    """The requested times of the rollbacks to finish, oldest first. Those of a restore are the restore's to finish and to remove."""
    restored = _restored(active, timeline)
    pending = [instant.requested_time for instant in timeline.pending().of_actions(Action.ROLLBACK)]
    return [time for time in pending if rollback_target(active, time) not in restored]


def failed_writes(context: TableContext, timeline: Timeline, *, eager: bool = False, dry_run: bool = False) -> list[Instant]:
    """The pending writes that failed, newest first, as they are to be rolled back.

    By the policy of `hoodie.cleaner.policy.failed.writes`: LAZY, our default, takes those whose heartbeat expired, and those that never had
    one when nothing of them changed for long (transaction.heartbeats.silent_seconds); EAGER, or `eager`, takes
    all of them, for a table that nobody writes to.
    """
    policy = FailedWrites.EAGER if eager else failed_writes_policy(context.options)
    # A dry run may not write the file by which the storage's clock is read.
    heartbeats = read_heartbeats(
        context.storage, HeartbeatConfig.of(context.options), now=time.time if dry_run else None, silent_seconds=silent_seconds(context.options)
    )
    if policy is not FailedWrites.EAGER:
        warn_of_eager_writers(context.active, timeline, heartbeats)
    return expired_writes(context.active, timeline, heartbeats, policy)


def _restored(active: ActiveTimeline, timeline: Timeline) -> frozenset[str]:
    """The instants that restores on the timeline take, or took, away."""
    found: set[str] = set()
    for restore in timeline.of_actions(Action.RESTORE):
        path = active.path(restore.requested_time, Action.RESTORE, State.REQUESTED)
        try:
            plan = decode_restore_plan(active.read_requested(restore.requested_time, Action.RESTORE), path=path)
        except StorageNotFoundError:
            continue  # archived since the listing
        found.update(instant.time for instant in plan.instants)
    return frozenset(found)
