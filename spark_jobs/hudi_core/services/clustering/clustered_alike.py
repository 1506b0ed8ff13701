"""Groups that a clustering left as the next one would: to rewrite them again gains nothing (hudi#13475, hudi#14086).

Hudi plans such groups every time: a partition with one small file is rewritten for ever. A group was clustered alike
where no log file came since, and completed clusterings wrote all of its files, with the same sort columns and layout.
Where they had the same target size, one of them wrote the whole group, or the group has fewer than twice as many files
as would come out; else as many files would come out again. That is read from the plans of these clusterings, on the
timeline or in the archive.

So planning comes to an end on a table that nothing else changes. Each rewrite takes files that no clustering left in
this order and for this size, or it lowers the number of files: n files become o parts, each of which ends in at most
one file below the target size, so that fewer than 2 * o <= n files come out.
"""

from __future__ import annotations

from functools import cached_property

from hudi_core.config.services.clustering_config import LAYOUT, SORT_COLUMNS, TARGET_FILE_BYTES, ClusteringConfig
from hudi_core.errors import StorageNotFoundError
from hudi_core.history.archived import ArchivedTimeline
from hudi_core.services.clustering.strategies import Group, outputs_of
from hudi_core.services.context import TableContext
from hudi_core.timeline.actions.replacecommit import ClusteringPlan, clustering_plan_of
from hudi_core.timeline.instant import Action, Instant
from hudi_core.timeline.pending_plans import read_clustering_plan
from hudi_core.timeline.timeline import Timeline


class ClusteredAlike:
    """What completed clusterings of a table left. Each plan is read once, and the archive on first use."""

    def __init__(self, context: TableContext, timeline: Timeline, config: ClusteringConfig) -> None:
        self._context = context
        self._timeline = timeline
        self._config = config
        self._commits = timeline.commits().requested_times
        self._plans: dict[str, ClusteringPlan | None] = {}

    def holds(self, group: Group) -> bool:
        """Whether the group was clustered alike. Raises FormatError naming a plan that is not safe."""
        if any(item.log_files or item.base_file is None for item in group):
            return False
        targets, outputs = set[str | None](), outputs_of(group, self._config)
        # The newest first: of a write that is on the timeline the archive need not be read.
        instants = sorted({item.base_instant for item in group}, reverse=True)
        for instant in instants:
            if instant not in self._plans:
                self._plans[instant] = self._plan(instant)
            plan = self._plans[instant]
            if plan is None or not self._orders_as_now(plan):
                return False
            targets.add(plan.strategy_params.get(TARGET_FILE_BYTES.name))
        if targets != {str(self._config.target_file_bytes)}:
            return len(group) == outputs
        return len(instants) == 1 or len(group) < 2 * outputs

    def _orders_as_now(self, plan: ClusteringPlan) -> bool:
        then, config = plan.strategy_params, self._config
        columns = then.get(SORT_COLUMNS.name) or None
        return columns == config.sort_columns and (columns is None or LAYOUT.read(then) is config.layout)

    def _plan(self, instant: str) -> ClusteringPlan | None:
        found = self._timeline.find(instant, Action.REPLACE_COMMIT)
        if found is not None:
            return self._read(found) if found.is_completed else None
        if instant in self._commits:
            return None
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
