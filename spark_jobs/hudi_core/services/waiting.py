"""Waits for writes that were pending at some moment, each while its writer may be alive
(AbstractIndexingCatchupTask.awaitInstantCaughtUp).

Such a write may have read the table's properties, or the definitions of its indexes, before these were changed. A write
that completes meanwhile is seen. A write whose writer is dead does not complete.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection
from typing import Final, TypeAlias

from hudi_core.config.concurrency_config import HeartbeatConfig
from hudi_core.config.metadata_config import CATCHUP_MINUTES
from hudi_core.errors import ConflictError, Reminder
from hudi_core.services.context import TableContext
from hudi_core.timeline.instant import COMMIT_ACTIONS, WRITE_ACTIONS, Action, Instant, State
from hudi_core.timeline.pending_plans import is_clustering
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim_file import current_claim, is_live, wrote_until
from hudi_core.transaction.heartbeat_thread import pause
from hudi_core.transaction.writer_heartbeats import Heartbeats, may_be_alive, read_heartbeats, silent_seconds

log = logging.getLogger(__name__)

POLL_SECONDS: Final = 5.0
"""Seconds between two looks at the timeline (RunIndexActionExecutor.TIMELINE_RELOAD_INTERVAL_MILLIS)."""
Rule: TypeAlias = Callable[[TableContext, Instant, Heartbeats], bool]
"""Whether a writer may be at work on a pending instant."""


def pending_writers(timeline: Timeline) -> frozenset[str]:
    """Returns the pending instants that a change of an index may have to wait for."""
    return frozenset(item.requested_time for item in _writers(timeline))


def _writers(timeline: Timeline) -> Timeline:
    return timeline.pending_changes().filter(lambda item: item.action != Action.INDEXING)


def writes_of_others(context: TableContext, timeline: Timeline) -> frozenset[str]:
    """Returns the pending writes without a live writer of this engine, which reads index definitions again."""
    times = timeline.pending().of_actions(*WRITE_ACTIONS).requested_times
    claims = {time: current_claim(context.storage, time) for time in times}
    return frozenset(
        time for time, claimed in claims.items() if claimed is None or not is_live(context.storage, time, claimed.epoch)
    )


def is_at_work(context: TableContext, item: Instant, heartbeats: Heartbeats) -> bool:
    """Whether a writer is at work on the instant, by its claim or heartbeat. A write without both is at work when it
    changed lately. A plan without a run has no writer.
    """
    claimed = current_claim(context.storage, item.requested_time)
    if claimed is not None:
        return is_live(context.storage, item.requested_time, claimed.epoch, now=lambda: heartbeats.now)
    if _is_write(context, item):
        return may_be_alive(item, context.active, context.active.modified(), heartbeats)
    return item.state is State.INFLIGHT and not heartbeats.is_expired(item.requested_time)


def may_be_at_work(context: TableContext, item: Instant, heartbeats: Heartbeats) -> bool:
    """Whether a writer may be at work: is_at_work says so, or the instant is inflight, without a heartbeat, and changed
    lately. Compactions and clusterings of Hudi before 1.2 are like that. One that this engine left inflight does not.
    """
    if is_at_work(context, item, heartbeats):
        return True
    if item.state is not State.INFLIGHT:
        return False
    modified, claimed = context.active.modified(), current_claim(context.storage, item.requested_time)
    if claimed is not None:
        wrote_last = wrote_until(context.storage, item.requested_time, claimed)
        if modified.get(context.active.path_of(item), 0.0) <= wrote_last:
            return False
    return may_be_alive(item, context.active, modified, heartbeats)


def writers_at_work(context: TableContext, awaited: Collection[str], rule: Rule = is_at_work) -> list[Instant]:
    """Returns those of the `awaited` instants that are pending and whose writers may be alive."""
    if not (pending := _pending(context, awaited)):
        return []
    heartbeats = _heartbeats(context)
    return [item for item in pending if rule(context, item, heartbeats)]


def wait_for_writers(
    context: TableContext,
    awaited: Collection[str],
    check: Callable[[], None] = lambda: None,
    sleep: Callable[[float], None] = pause,
    *,
    clock: Callable[[], float] = time.monotonic,
    rule: Rule = is_at_work,
    deadline: float | None = None,
) -> frozenset[str]:
    """Waits until none of the `awaited` instants is pending with a writer that may be alive. Returns the dead writes
    among them. `check` raises an error when this run lost its claim. At the `deadline` (by `clock`; by default
    CATCHUP_MINUTES away) raises ConflictError that names a writer still at work. Raises KeyboardInterrupt.
    """
    minutes = CATCHUP_MINUTES.read(context.options)
    limit = deadline_of(context, clock) if deadline is None else deadline
    recorded: set[str] = set()
    reminder = Reminder(clock)
    while True:
        check()
        pending = _pending(context, awaited)
        if not pending:
            return frozenset()
        heartbeats = _heartbeats(context)
        alive = [item for item in pending if rule(context, item, heartbeats)]
        for item in pending:
            if item not in alive and item.requested_time not in recorded:
                recorded.add(item.requested_time)
                log.warning(
                    "%s %s is not waited for: %s",
                    item.pending_action,
                    item.requested_time,
                    _why(context, item, heartbeats),
                )
        if not alive:
            return frozenset(item.requested_time for item in pending if _is_write(context, item))
        if clock() >= limit:
            first = alive[0]
            raise ConflictError(
                f"{first.pending_action} {first.requested_time}, which began before, is still at work after {minutes} "
                "minutes" + (f", with {len(alive) - 1} others" if len(alive) > 1 else ""),
                path=context.active.path_of(first),
                remedy=f"run this again when it has ended, or let it wait longer by {CATCHUP_MINUTES.name}",
            )
        if reminder.is_due():
            for item in alive:
                log.warning(
                    "waiting for %s %s, %s; for up to %.0f s more",
                    item.pending_action,
                    item.requested_time,
                    _whose(context, item, heartbeats),
                    max(0.0, limit - clock()),
                )
        sleep(min(POLL_SECONDS, max(0.0, limit - clock())))


def deadline_of(context: TableContext, clock: Callable[[], float] = time.monotonic) -> float:
    """Returns the time, by `clock`, until which writers are waited for from now on."""
    return clock() + 60.0 * CATCHUP_MINUTES.read(context.options)


def _pending(context: TableContext, awaited: Collection[str]) -> list[Instant]:
    if not awaited:
        return []
    return [item for item in _writers(context.active.load()) if item.requested_time in awaited]


def _heartbeats(context: TableContext) -> Heartbeats:
    return read_heartbeats(
        context.storage, HeartbeatConfig.of(context.options), silent_seconds=silent_seconds(context.options)
    )


def _is_write(context: TableContext, item: Instant) -> bool:
    return item.pending_action in COMMIT_ACTIONS and not is_clustering(context.active, item)


def _whose(context: TableContext, item: Instant, heartbeats: Heartbeats) -> str:
    """Says who may be at work on an instant: the claim and its age, or else how old the last sign of the writer is."""
    claimed = current_claim(context.storage, item.requested_time)
    if claimed is not None:
        return f"run by {claimed.owner.describe()} for {max(0.0, heartbeats.now - claimed.claimed):.0f} s"
    age = heartbeats.age(item.requested_time)
    if age is not None:
        return f"whose writer's last heartbeat is {age:.0f} s old"
    changed = context.active.modified().get(context.active.path_of(item), heartbeats.now)
    return f"whose writer makes no heartbeat and changed it {max(0.0, heartbeats.now - changed):.0f} s ago"


def _why(context: TableContext, item: Instant, heartbeats: Heartbeats) -> str:
    if not _is_write(context, item):
        return "it is a plan without a run"
    age = heartbeats.age(item.requested_time)
    if age is None:
        return "its writer makes no heartbeat, and it did not change for long"
    return f"its writer's last heartbeat is {age:.0f} seconds old, so that it counts as dead and must not complete"
