"""Writes that were pending when an index began: each is waited for while its writer may be alive (AbstractIndexingCatchupTask.awaitInstantCaughtUp).

Such a write may have looked at the table's properties before the index was inflight there. One that completes before the index is published is
seen then, and one whose writer is dead does not complete.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection
from typing import Final

from hudi_core.config.indexing_config import CATCHUP_MINUTES
from hudi_core.config.service_config import HeartbeatConfig
from hudi_core.errors import ConflictError
from hudi_core.services.context import TableContext
from hudi_core.timeline.clustering_plan import is_clustering
from hudi_core.timeline.instant import COMMIT_ACTIONS, Action, Instant, State
from hudi_core.timeline.query import Timeline
from hudi_core.transaction.claim import current_claim, is_live
from hudi_core.transaction.heartbeats import Heartbeats, may_be_alive, read_heartbeats, silent_seconds

log = logging.getLogger(__name__)

POLL_SECONDS: Final = 5.0
"""RunIndexActionExecutor.TIMELINE_RELOAD_INTERVAL_MILLIS."""
_TELL_NOTHING: Final = frozenset({Action.INDEXING, Action.SAVEPOINT})


def pending_writers(timeline: Timeline) -> frozenset[str]:
    """The pending instants that an index which begins now may have to wait for."""
    return frozenset(item.requested_time for item in timeline.pending() if item.action not in _TELL_NOTHING)


def wait_for_writers(
    context: TableContext, awaited: Collection[str], check: Callable[[], None], sleep: Callable[[float], None] = time.sleep
) -> frozenset[str]:
    """Waits until none of the `awaited` instants is pending with a writer that may be alive; the dead writes among them, which stay pending.

    Plans that nobody runs are not waited for: whoever runs one looks at the properties then. `check` raises when this run lost its claim. Raises
    ConflictError when a writer is still at work after `airflow_hudi.indexing.catchup_minutes`, naming it: the indexing can be run again.
    """
    minutes = CATCHUP_MINUTES.read(context.options)
    deadline = time.monotonic() + 60.0 * minutes
    told: set[str] = set()
    while True:
        check()
        timeline = context.active.load()
        pending = [item for item in timeline.pending() if item.requested_time in awaited and item.action not in _TELL_NOTHING]
        if not pending:
            return frozenset()
        heartbeats = read_heartbeats(context.storage, HeartbeatConfig.of(context.options), silent_seconds=silent_seconds(context.options))
        alive = [item for item in pending if _is_at_work(context, item, heartbeats)]
        for item in pending:
            if item not in alive and item.requested_time not in told:
                told.add(item.requested_time)
                log.warning("%s %s is not waited for: %s", item.pending_action, item.requested_time, _why(context, item, heartbeats))
        if not alive:
            return frozenset(item.requested_time for item in pending if _is_write(context, item))
        if time.monotonic() >= deadline:
            first = alive[0]
            raise ConflictError(
                f"{first.pending_action} {first.requested_time}, which began before the index, is still at work after {minutes} minutes"
                + (f", with {len(alive) - 1} others" if len(alive) > 1 else ""),
                path=context.active.path_of(first),
                remedy=f"run the indexing again when it has ended, or let it wait longer by {CATCHUP_MINUTES.name}",
            )
        sleep(min(POLL_SECONDS, max(0.0, deadline - time.monotonic())))


def _is_at_work(context: TableContext, item: Instant, heartbeats: Heartbeats) -> bool:
    claimed = current_claim(context.storage, item.requested_time)
    if claimed is not None:
        return is_live(context.storage, item.requested_time, claimed.epoch, now=lambda: heartbeats.now)
    if _is_write(context, item):
        return may_be_alive(item, context.active, context.active.modified(), heartbeats)
    return item.state is State.INFLIGHT and not heartbeats.is_expired(item.requested_time)


def _is_write(context: TableContext, item: Instant) -> bool:
    return item.pending_action in COMMIT_ACTIONS and not is_clustering(context.active, item)


def _why(context: TableContext, item: Instant, heartbeats: Heartbeats) -> str:
    if not _is_write(context, item):
        return "it is a plan that nobody runs"
    age = heartbeats.age(item.requested_time)
    if age is None:
        return "its writer makes no heartbeat, and it did not change for long"
    return f"its writer's last heartbeat is {age:.0f} seconds old, so that it counts as dead and must not complete"
