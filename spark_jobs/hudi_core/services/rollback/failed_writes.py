"""Finds the instants to roll back: failed writes and dead rollbacks. files_to_roll_back.py says which files go."""

from __future__ import annotations

import time
from contextlib import suppress

from hudi_core.config.concurrency_config import FAILED_WRITES_POLICY, SILENT_MINUTES, HeartbeatConfig
from hudi_core.errors import CorruptFileError, StorageNotFoundError
from hudi_core.services.context import TableContext
from hudi_core.timeline.actions.rollback import is_engine_plan
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.pending_plans import pending_ingestion, read_restore_plan, restored_instants, rollback_target
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim_file import current_claim
from hudi_core.transaction.writer_heartbeats import (
    FailedWrites,
    Heartbeats,
    expired_writes,
    failed_writes_policy,
    may_be_alive,
    read_heartbeats,
    silent_seconds,
    warn_of_eager_writers,
    with_own_writes,
)


def pending_rollbacks(active: ActiveTimeline, timeline: Timeline) -> dict[str, str | None]:
    """Returns the requested times of the rollbacks to finish, oldest first, each with the instant that it rolls back.
    Leaves out those of a restore: it finishes its own. None: the plan cannot be read; it is dropped.
    """
    pending = timeline.pending().of_actions(Action.ROLLBACK)
    if not pending.instants:
        return {}
    restores = timeline.of_actions(Action.RESTORE)
    restored = frozenset().union(*(restored_instants(active, restore) for restore in restores))
    targets = {item.requested_time: rollback_target(active, item.requested_time) for item in pending}
    return {time: target for time, target in targets.items() if target not in restored}


def pending_rollback_or_restore(active: ActiveTimeline, timeline: Timeline) -> tuple[Instant, str] | None:
    """Returns a pending rollback or restore of completed writes, and what to do about it; None without one."""
    restore = timeline.pending().of_actions(Action.RESTORE).last()
    if restore is not None:
        return restore, f"finish it: {finish_restore(restore_target(active, restore), restore.requested_time)}"
    try:
        rollbacks = pending_rollbacks(active, timeline)
    except CorruptFileError:  # the plan may still be written
        rollbacks = {item.requested_time: "" for item in timeline.pending().of_actions(Action.ROLLBACK)}
    first = next((time for time, target in rollbacks.items() if target is not None), None)
    return None if first is None else (timeline.get(first, Action.ROLLBACK), "finish it: hudictl rollback TABLE")


def restore_target(active: ActiveTimeline, restore: Instant) -> str:
    """Returns the commit of a pending restore; empty where its plan, of an old Hudi or cut, does not say."""
    with suppress(StorageNotFoundError, CorruptFileError):
        return read_restore_plan(active, restore.requested_time).target
    return ""


def finish_restore(target: str, restore: str, table: str = "TABLE") -> str:
    """Returns how to finish the pending `restore` to the commit `target`."""
    if target:
        return f"hudictl restore {table} --instant {target}"
    return (
        "run it with the Hudi that began it, as its plan does not say which commit the table goes back to; where it is "
        f"only requested, or its plan cannot be read, it can be dropped: hudictl unschedule {table} {restore}"
    )


def dead_rollbacks(context: TableContext, timeline: Timeline, *, dry_run: bool = False) -> list[str]:
    """Returns those of pending_rollbacks that no writer of Hudi may be at: first ours, whose claim names the owner. Of
    Hudi's rollbacks it takes those whose heartbeat expired (1.2 makes one where it has several writers), and those
    without one that did not change for `airflow_hudi.failed_writes.silent_minutes`. With the EAGER policy it takes all.
    """
    pending = pending_rollbacks(context.active, timeline)
    if failed_writes_policy(context.options) is FailedWrites.EAGER:
        return [*pending]
    foreign = [time for time, target in pending.items() if target is None or not _is_ours(context, time)]
    if not foreign:
        return [*pending]
    # No rollback of Hudi 0.15 or 1.0 makes heartbeats, whatever the policy's name says of writes.
    heartbeats = heartbeats_of(context, timeline, read_only=dry_run, silent=60.0 * SILENT_MINUTES.read(context.options))
    changed = context.active.modified()

    def is_alive(time: str) -> bool:
        return may_be_alive(timeline.get(time, Action.ROLLBACK), context.active, changed, heartbeats)

    return [time for time in pending if time not in foreign or not is_alive(time)]


def failed_writes(context: TableContext, timeline: Timeline, *, dry_run: bool = False) -> list[Instant]:
    """Returns the pending writes that failed, newest first, by `hoodie.cleaner.policy.failed.writes`. LAZY, our
    default, takes those whose heartbeat expired, and those without one that did not change for long
    (writer_heartbeats.silent_seconds). EAGER takes all. Omits those that Hudi may be rolling back (dead_rollbacks).
    """
    policy = failed_writes_policy(context.options)
    if not any(pending_ingestion(context.active, timeline)):
        return []
    heartbeats = heartbeats_of(context, timeline, read_only=dry_run, silent=silent_seconds(context.options))
    if policy is not FailedWrites.EAGER:
        warn_of_eager_writers(context.active, timeline, heartbeats)
    dead = dead_rollbacks(context, timeline, dry_run=dry_run)
    pending = pending_rollbacks(context.active, timeline)
    rolled_back = {target for time, target in pending.items() if time not in dead}
    expired = expired_writes(context.active, timeline, heartbeats, policy)
    return [instant for instant in expired if instant.requested_time not in rolled_back]


def nothing_failed(context: TableContext, timeline: Timeline) -> str:
    """Says why there is nothing to roll back, and what would change that."""
    alive = next(iter(pending_rollbacks(context.active, timeline)), None)
    if alive is not None:
        return (
            f"rollback {alive} is pending, and the writer of Hudi that began it may be at it: it changed less than "
            f"{SILENT_MINUTES.read(context.options)} minutes ago ({SILENT_MINUTES.name}) or has a heartbeat; name the "
            "rollback to finish it now"
        )
    if failed_writes_policy(context.options) is FailedWrites.EAGER:
        return "no rollback is pending, and no write is pending"
    beat = HeartbeatConfig.of(context.options)
    seconds = beat.interval_ms * beat.tolerable_misses // 1000
    silent = max(seconds, int(silent_seconds(context.options)))
    return (
        f"no rollback is pending, and no pending write is without a sign of life: for {seconds} s since its last "
        f"heartbeat, for {silent} s where it never had one ({SILENT_MINUTES.name}); name the instant to roll back, "
        f"or set {FAILED_WRITES_POLICY.name}=EAGER when no writer is at work"
    )


def dead_own_writes(context: TableContext, timeline: Timeline, *, dry_run: bool = False) -> list[Instant]:
    """Returns the pending writes of this engine whose owner is dead, newest first. They failed by any policy."""
    ours = heartbeats_of(context, timeline, read_only=dry_run).ours
    return [item for item in reversed(timeline.pending().instants) if ours.get(item.requested_time)]


def heartbeats_of(context: TableContext, timeline: Timeline, *, read_only: bool, silent: float = 0.0) -> Heartbeats:
    """Returns writers' heartbeats, and live owners of our pending writes. `read_only`: by this machine's clock."""
    heartbeats = read_heartbeats(
        context.storage,
        HeartbeatConfig.of(context.options),
        now=time.time if read_only else None,
        silent_seconds=silent,
    )
    return with_own_writes(heartbeats, context.storage, context.active, timeline)


def _is_ours(context: TableContext, rollback: str) -> bool:
    if current_claim(context.storage, rollback) is not None:
        return True
    path = context.active.path(rollback, Action.ROLLBACK, State.REQUESTED)
    return is_engine_plan(context.active.read_requested(rollback, Action.ROLLBACK), path=path)
