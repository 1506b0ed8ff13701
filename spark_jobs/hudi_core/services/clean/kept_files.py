"""Files that a clean must leave alone: those of savepoints, and those that pending plans are going to read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hudi_core.errors import StorageNotFoundError
from hudi_core.model.ids import FileGroupId
from hudi_core.timeline.actions.savepoint import decode_savepoint
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.pending import PendingWork

Names = Mapping[str, frozenset[str]]
"""File names by partition."""


@dataclass(frozen=True, slots=True)
class Needed:
    """`by_plans` are the files of pending compactions, log compactions and clusterings, `compacting` the base instants
    of the first two's operations by file group, `by_savepoints` the files of completed savepoints, whose requested
    times are `savepoints`.
    """

    by_plans: Names = field(default_factory=dict)
    compacting: Mapping[FileGroupId, tuple[str, ...]] = field(default_factory=dict)
    by_savepoints: Names = field(default_factory=dict)
    savepoints: frozenset[str] = frozenset()


def read_needed(active: ActiveTimeline, timeline: Timeline, pending: PendingWork) -> Needed:
    """What the pending plans and the savepoints of `timeline` need. Raises FormatError naming a plan or savepoint that
    is not safe.
    """
    compacting: dict[FileGroupId, tuple[str, ...]] = {}
    for work in (pending.compacting, pending.log_compacting):
        for group, (_, operation) in work.items():
            compacting[group] = (*compacting.get(group, ()), operation.base_instant)
    savepoints = timeline.completed().of_actions(Action.SAVEPOINT)
    return Needed(
        files_of_plans(pending), compacting, savepointed_files(active, savepoints), savepoints.requested_times
    )


def files_of_plans(pending: PendingWork) -> Names:
    """The files that pending compactions, log compactions and clusterings name."""
    found: dict[str, set[str]] = {}
    for work in (pending.compacting, pending.log_compacting):
        for _, operation in work.values():
            _add(found, operation.partition, operation.base_file, (*operation.log_files, *operation.cdc_files))
    for plan in pending.read_clusterings().values():
        for group in plan.groups:
            for item in group.slices:
                _add(found, item.partition, item.base_file, item.log_files)
    return {partition: frozenset(names) for partition, names in found.items()}


def savepointed_files(active: ActiveTimeline, savepoints: Timeline) -> Names:
    """The files that completed savepoints keep; one that was deleted since the timeline was listed keeps none."""
    found: dict[str, set[str]] = {}
    for instant in savepoints:
        try:
            data = active.read_details(instant)
        except StorageNotFoundError:
            continue
        if data:
            for partition, names in decode_savepoint(data, path=active.path_of(instant)).files.items():
                _add(found, partition, None, names)
    return {partition: frozenset(names) for partition, names in found.items()}


def _add(found: dict[str, set[str]], partition: str, base: str | None, names: Iterable[str]) -> None:
    of_partition = found.setdefault(partition, set())
    of_partition.update(names)
    if base is not None:
        of_partition.add(base)
