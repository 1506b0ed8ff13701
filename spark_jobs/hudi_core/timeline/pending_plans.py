"""Reads plans of pending instants, and the file groups that each occupies, so that nothing else is planned on them
(ClusteringUtils.getClusteringPlan, getPendingRollbackInfo). transaction/conflict.py compares commits with them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from typing import Final

from hudi_core.errors import CorruptFileError, StorageNotFoundError
from hudi_core.model.names import FileGroupId
from hudi_core.timeline.actions.clean import CleanPlan, decode_clean_plan
from hudi_core.timeline.actions.content import YOUNG_SECONDS
from hudi_core.timeline.actions.replacecommit import ClusteringPlan, decode_clustering_plan
from hudi_core.timeline.actions.rollback import RestorePlan, decode_restore_plan, instant_to_roll_back
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import COMMIT_ACTIONS, REPLACING_ACTIONS, Action, Instant, State
from hudi_core.timeline.timeline import Timeline

log = logging.getLogger(__name__)

PLANS_OF_FILE_GROUPS: Final = REPLACING_ACTIONS | {Action.COMPACTION, Action.LOG_COMPACTION}
"""The actions whose plans name file groups. A replacecommit's plan does so only for a clustering."""


def read_clustering_plan(active: ActiveTimeline, instant: Instant) -> ClusteringPlan | None:
    """Returns the plan of a replacecommit or clustering; None for an overwrite. Raises StorageNotFoundError."""
    path = active.path(instant.requested_time, instant.pending_action, State.REQUESTED)
    return decode_clustering_plan(active.read_requested(instant.requested_time, instant.pending_action), path=path)


def is_clustering(active: ActiveTimeline, instant: Instant, *, whole: bool = False) -> bool:
    """Whether an instant is a clustering: by its action's name in layout 2, by its plan in layout 1. False for a
    replacecommit without a requested file: it was rolled back or archived since the listing. A replacecommit whose file
    is damaged counts as a clustering while it is only requested: it has written nothing, and is dropped as a plan. With
    `whole`, it raises CorruptFileError: the file may be half-written, and is read again.
    """
    if instant.pending_action != Action.REPLACE_COMMIT:
        return instant.pending_action == Action.CLUSTERING
    try:
        return read_clustering_plan(active, instant) is not None
    except StorageNotFoundError:
        return False
    except CorruptFileError:
        if whole or instant.state is not State.REQUESTED:
            raise
        return True


def pending_ingestion(active: ActiveTimeline, timeline: Timeline) -> Iterator[Instant]:
    """Yields the requested and inflight commits, deltacommits and replacecommits except clusterings, oldest first."""
    writes = timeline.pending().of_actions(*COMMIT_ACTIONS)
    return (instant for instant in writes if not is_clustering(active, instant))


def read_clustering_plans(active: ActiveTimeline, timeline: Timeline) -> dict[str, ClusteringPlan]:
    """Returns the plans of pending clusterings of `timeline`, by requested time, without those rolled back since."""
    plans: dict[str, ClusteringPlan] = {}
    for instant in timeline.pending().of_actions(*REPLACING_ACTIONS):
        with suppress(StorageNotFoundError):
            if (plan := read_clustering_plan(active, instant)) is not None:
                plans[instant.requested_time] = plan
    return plans


def planned_file_groups(active: ActiveTimeline, instant: Instant) -> frozenset[FileGroupId] | None:
    """Returns the file groups that an instant's plan rewrites; None for other writes. Raises FormatError if unsafe."""
    if instant.pending_action in (Action.COMPACTION, Action.LOG_COMPACTION):
        plan = active.read_plan(instant.requested_time, instant.pending_action)
        return frozenset(operation.file_group for operation in plan.operations)
    if instant.pending_action not in REPLACING_ACTIONS:
        return None
    clustering = read_clustering_plan(active, instant)
    return None if clustering is None else frozenset(clustering.file_groups())


def pending_plan_on(
    active: ActiveTimeline,
    timeline: Timeline,
    is_ours: Callable[[FileGroupId], bool],
    actions: Collection[str] = PLANS_OF_FILE_GROUPS,
) -> tuple[Instant, FileGroupId] | None:
    """Returns the oldest pending instant of `actions` whose plan has file groups that satisfy `is_ours`, and the first
    of these; None when there is no such instant.
    """
    for instant in timeline.pending().of_actions(*actions):
        shared = min(filter(is_ours, planned_file_groups(active, instant) or ()), default=None)
        if shared is not None:
            return instant, shared
    return None


def rollback_target(active: ActiveTimeline, rollback: str) -> str | None:
    """Returns the instant that the plan of `rollback` names. None, with a warning, when its requested file is missing,
    empty or cut, as a crash leaves it: no process carries out such a rollback (getPendingRollbackInfos passes it over).
    Raises CorruptFileError naming the file while its writer may still be writing it.
    """
    path = active.path(rollback, Action.ROLLBACK, State.REQUESTED)
    try:
        return instant_to_roll_back(active.read_any(rollback, Action.ROLLBACK, State.REQUESTED), path=path)[0]
    except (StorageNotFoundError, CorruptFileError) as error:
        if may_be_written(active, path):
            raise
        log.warning("%s: a rollback whose plan cannot be read is passed over: %s", path, error.message)
        return None


def may_be_written(active: ActiveTimeline, path: str) -> bool:
    """Whether the writer of a plan that cannot be read may still be writing it: its file changed lately."""
    return abs(time.time() - active.modified().get(path, 0.0)) <= YOUNG_SECONDS


def read_restore_plan(active: ActiveTimeline, restore: str) -> RestorePlan:
    """Returns the plan of a restore in any state. Raises StorageNotFoundError, CorruptFileError."""
    path = active.path(restore, Action.RESTORE, State.REQUESTED)
    try:
        return decode_restore_plan(active.read_requested(restore, Action.RESTORE), path=path)
    except CorruptFileError as error:
        remedy = f"drop it with `hudictl unschedule TABLE {restore}`; then restore again, which ends its rollbacks"
        raise CorruptFileError(error.message, path=path, remedy=remedy) from error


def restored_instants(active: ActiveTimeline, restore: Instant) -> frozenset[str]:
    """Returns the instants that a restore rolls back; none if its plan is missing, or not readable before inflight."""
    try:
        return frozenset(item.time for item in read_restore_plan(active, restore.requested_time).instants)
    except StorageNotFoundError:
        return frozenset()
    except CorruptFileError as error:
        if restore.state is State.INFLIGHT:
            raise
        log.warning("%s: a restore whose plan cannot be read is passed over: %s", error.path, error.message)
        return frozenset()


def read_clean_plan(active: ActiveTimeline, instant: str) -> tuple[CleanPlan, str] | None:
    """Returns the plan and the path of its file, requested or inflight; None when both are empty. Raises FormatError
    for an unsafe plan.
    """
    for state in (State.REQUESTED, State.INFLIGHT):
        path = active.path(instant, Action.CLEAN, state)
        with suppress(StorageNotFoundError):
            if data := active.read_pending(instant, Action.CLEAN, state):
                return decode_clean_plan(data, path=path), path
    return None


def pending_rollback_of(active: ActiveTimeline, timeline: Timeline, instant: str) -> str | None:
    """Returns the latest pending rollback of `instant` on `timeline`; None when there is none."""
    for pending in reversed(timeline.pending().of_actions(Action.ROLLBACK).instants):
        if rollback_target(active, pending.requested_time) == instant:
            return pending.requested_time
    return None


def without_rolled_back(active: ActiveTimeline, timeline: Timeline) -> Timeline:
    """Returns the timeline without the completed writes that a pending rollback or restore will roll back. When any
    process has finished it, readers read what these writes replaced. Raises CorruptFileError naming a plan.
    """
    rolled_back: set[str | None] = set()
    for pending in timeline.pending().of_actions(Action.ROLLBACK, Action.RESTORE):
        if pending.action == Action.ROLLBACK:
            rolled_back.add(rollback_target(active, pending.requested_time))
        else:
            rolled_back.update(restored_instants(active, pending))
    return timeline.filter(
        lambda item: (
            item.requested_time not in rolled_back or not item.is_completed or item.action not in COMMIT_ACTIONS
        )
    )
