"""Groups that a clustering left as the next one would: to rewrite them again gains nothing (hudi#13475, hudi#14086).

Hudi plans such groups every time: a partition with one small file is rewritten for ever. A group was clustered alike
where no log file came since, one completed clustering wrote all of its files, with the same sort columns and layout,
and the same size of files was its target, or as many files would come out again. That is read from the plan of that
clustering, on the timeline or in the archive.
"""

from __future__ import annotations

from functools import cached_property

from hudi_core.config.services.clustering_config import LAYOUT, SORT_COLUMNS, TARGET_FILE_BYTES, ClusteringConfig
from hudi_core.errors import StorageNotFoundError
from hudi_core.history.archived import ArchivedTimeline
from hudi_core.services.clustering.strategies import Group, outputs_of
from hudi_core.services.context import TableContext
from hudi_core.timeline.actions.clustering import ClusteringPlan, clustering_plan_of
from hudi_core.timeline.instant import Action, Instant
from hudi_core.timeline.pending_plans import read_clustering_plan
from hudi_core.timeline.timeline import Timeline


class ClusteredAlike:
    """What completed clusterings of a table left. Each plan is read once, and the archive on first use."""

    def __init__(self, context: TableContext, timeline: Timeline, config: ClusteringConfig) -> None:
        self._context = context
        self._timeline = timeline
        self._config = config
        self._plans: dict[str, ClusteringPlan | None] = {}

    def holds(self, group: Group) -> bool:
        """Whether the group was clustered alike. Raises FormatError naming a plan that is not safe."""
        instants = {item.base_instant for item in group}
        if len(instants) != 1 or any(item.log_files or item.base_file is None for item in group):
            return False
        (instant,) = instants
        if instant not in self._plans:
            self._plans[instant] = self._plan(instant)
        plan = self._plans[instant]
        return plan is not None and self._is_as_now(plan, group)

    def _is_as_now(self, plan: ClusteringPlan, group: Group) -> bool:
        then, config = plan.strategy_params, self._config
        columns = then.get(SORT_COLUMNS.name) or None
        if columns != config.sort_columns or (columns is not None and LAYOUT.read(then) is not config.layout):
            return False
        target = then.get(TARGET_FILE_BYTES.name)
        return target == str(config.target_file_bytes) or len(group) == outputs_of(group, config)

    def _plan(self, instant: str) -> ClusteringPlan | None:
        found = self._timeline.find(instant, Action.REPLACE_COMMIT)
        if found is not None:
            return self._read(found) if found.is_completed else None
        archived = self._archived.get(instant)
        if archived is None:
            return None
        return clustering_plan_of(
            self._history.plan(archived), path=f"{self._context.config.history_folder}: {instant}"
        )

    def _read(self, found: Instant) -> ClusteringPlan | None:
        try:
            return read_clustering_plan(self._context.active, found)
        except StorageNotFoundError:
            return None

    @cached_property
    def _history(self) -> ArchivedTimeline:
        return self._context.history()

    @cached_property
    def _archived(self) -> dict[str, Instant]:
        """The archived replacecommits by requested time."""
        return {item.requested_time: item for item in self._history.instants() if item.action == Action.REPLACE_COMMIT}
