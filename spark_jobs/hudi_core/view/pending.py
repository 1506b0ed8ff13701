"""The plans that are pending on file groups, and where they open a new slice; which groups one plan occupies:
timeline.pending_plans.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from hudi_core.errors import FormatError, StorageNotFoundError, TimelineError
from hudi_core.model.names import FileGroupId
from hudi_core.timeline.actions.compaction import CompactionOperation, CompactionPlan
from hudi_core.timeline.actions.replacecommit import ClusteringPlan
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, State
from hudi_core.timeline.pending_plans import read_clustering_plans
from hudi_core.timeline.timeline import Timeline


@dataclass(frozen=True)
class PendingWork:
    """The pending plans of a timeline, by requested time. `folder` is the timeline's, for messages. Slices depend on
    the plans of compactions alone: the others are read on first use, so that one which does not fit does not prevent
    reading.
    """

    compactions: Mapping[str, CompactionPlan] = field(default_factory=dict)
    read_log_compactions: Callable[[], Mapping[str, CompactionPlan]] = dict
    read_clusterings: Callable[[], Mapping[str, ClusteringPlan]] = dict
    folder: str = ".hoodie"

    @staticmethod
    def read(active: ActiveTimeline, timeline: Timeline) -> PendingWork:
        """Raises StorageNotFoundError, and FormatError naming a plan's file, here and when more is read."""
        return PendingWork(
            active.read_plans(timeline),
            lambda: _log_compaction_plans(active, timeline),
            lambda: read_clustering_plans(active, timeline),
            active.folder,
        )

    def check_complete(self, timeline: Timeline) -> None:
        """Raises TimelineError where the plan of a pending compaction is missing: the slices depend on it."""
        unread = timeline.pending_compactions().requested_times - self.compactions.keys()
        if unread:
            message = f"the plans of the pending compactions {sorted(unread)} are needed to determine the slices"
            raise TimelineError(message, path=self.folder)

    @cached_property
    def compacting(self) -> dict[FileGroupId, tuple[str, CompactionOperation]]:
        """The file groups of pending compactions and their instants. Raises FormatError for a group in two plans."""
        return self._operations(self.compactions, Action.COMPACTION)

    @cached_property
    def compacting_by_partition(self) -> dict[str, list[tuple[FileGroupId, str]]]:
        """As compacting, so that no partition goes through the groups of all."""
        groups: dict[str, list[tuple[FileGroupId, str]]] = {}
        for group, (instant, _) in self.compacting.items():
            groups.setdefault(group.partition, []).append((group, instant))
        return groups

    def compaction_of(self, group: FileGroupId) -> str | None:
        """The requested time of the pending compaction whose plan names the group; None when none does."""
        instant, _ = self.compacting.get(group, (None, None))
        return instant

    @cached_property
    def log_compacting(self) -> dict[FileGroupId, tuple[str, CompactionOperation]]:
        return self._operations(self.read_log_compactions(), Action.LOG_COMPACTION)

    def _operations(
        self, plans: Mapping[str, CompactionPlan], action: str
    ) -> dict[FileGroupId, tuple[str, CompactionOperation]]:
        operations: dict[FileGroupId, tuple[str, CompactionOperation]] = {}
        for instant, plan in sorted(plans.items()):
            for operation in plan.operations:
                group = operation.file_group
                first, _ = operations.setdefault(group, (instant, operation))
                if first != instant:
                    raise FormatError(
                        f"file group {group.file_id} is in the pending {action}s {first} and {instant}",
                        path=f"{self.folder}/{instant}.{action}.{State.REQUESTED.value}",
                        remedy=f"drop one of the two plans: hudictl unschedule TABLE {instant}",
                    )
        return operations


def _log_compaction_plans(active: ActiveTimeline, timeline: Timeline) -> dict[str, CompactionPlan]:
    """The plans of pending log compactions; one that was rolled back since `timeline` was listed is passed over."""
    plans: dict[str, CompactionPlan] = {}
    for instant in timeline.pending_log_compactions():
        try:
            plans[instant.requested_time] = active.read_plan(instant.requested_time, Action.LOG_COMPACTION)
        except StorageNotFoundError:
            continue
    return plans
