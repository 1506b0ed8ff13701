"""Which blocks of the metadata table's log files count (HoodieTableMetadataUtil.getValidInstantTimestamps of Hudi 0.15
and 1.x).

The metadata table completes an instant before the data table does, so the metadata timeline is not enough: a block
counts when its instant is completed on the data timeline too, or is one that only the metadata table has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hudi_core.errors import CorruptFileError
from hudi_core.metadata_table.instants import SOLO_COMMIT, is_metadata_suffix, is_solo
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.timeline import Timeline

RolledBack = Callable[[Instant], list[str]]
"""The instants that a completed rollback or restore of the data table rolled back."""


def valid_instants(
    data: Timeline, metadata: Timeline, rolled_back: RolledBack, *, suffixes: bool = True
) -> frozenset[str]:
    """The instants whose blocks count, of the data table's and the metadata table's timelines.

    `suffixes`: instants of the metadata table alone are recognized by their suffix (TableVersion.metadata_suffixes);
    else they are all completed deltacommits that are not pending on the data timeline.

    Instants that were rolled back count as well: only rollback commands in the log cancel their blocks. A data instant
    older than the timeline is not among them, since archiving waits until the metadata table has compacted it.
    """
    valid = {instant.requested_time for instant in data.completed()}
    pending = data.pending().requested_times
    for instant in metadata.completed():
        time = instant.requested_time
        is_metadata_service = instant.action == Action.DELTA_COMMIT and (
            is_metadata_suffix(time) if suffixes else time not in pending or is_solo(time)
        )
        if is_metadata_service or instant.action in (Action.ROLLBACK, Action.RESTORE):
            valid.add(time)
    # Real Hudi reads only the rollbacks that are newer than the earliest valid instant; an older one names instants
    # whose blocks are gone.
    earliest = min(valid, default=SOLO_COMMIT)
    for instant in data.completed().of_actions(Action.ROLLBACK, Action.RESTORE):
        if instant.requested_time > earliest:
            valid.update(rolled_back(instant))
    return frozenset(valid)


def rolled_back_by(timeline: ActiveTimeline, instant: Instant) -> list[str]:
    """The instants that a completed rollback or restore of the data table rolled back; raises CorruptFileError when its
    file does not name them.

    The completed file of a rollback is empty after a crash; its plan then names the instant (getRollbackedCommits).
    """
    path = timeline.path_of(instant)
    details = timeline.read_of(instant)
    if instant.action == Action.RESTORE:
        by_instant = details.get("hoodieRestoreMetadata")
        lists = by_instant.values() if isinstance(by_instant, dict) else [None]
        rollbacks = [entry for entries in lists for entry in (entries if isinstance(entries, list) else [None])]
        return [time for rollback in rollbacks for time in _instants(rollback, path)]
    if not details:
        plan = timeline.read_any(instant.requested_time, instant.action, State.REQUESTED).get("instantToRollback")
        return _texts([plan.get("commitTime") if isinstance(plan, dict) else None], path)
    return _instants(details, path)


def _instants(rollback: Any, path: str) -> list[str]:
    return _texts(rollback.get("commitsRollback") if isinstance(rollback, dict) else None, path)


def _texts(values: Any, path: str) -> list[str]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise CorruptFileError("does not say which instants it rolled back", path=path)
    return values
