"""The first write that is not complete: later commits cannot be read as of their time for good while it may still complete."""

from __future__ import annotations

from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.clustering_plan import is_clustering
from hudi_core.timeline.instant import Action, Instant
from hudi_core.timeline.query import Timeline


def first_incomplete_write(active: ActiveTimeline, timeline: Timeline) -> Instant | None:
    """The earliest pending commit, deltacommit or replacecommit that is no clustering (TimelineUtils.validateTimestampAsOf).

    Compactions and clusterings change no row, so they may stay pending. Raises FormatError for a plan that cannot be read.
    """
    writes = timeline.pending().of_actions(Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT)
    return next((instant for instant in writes if not is_clustering(active, instant)), None)
