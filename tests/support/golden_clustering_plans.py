"""Golden tables with a clustering by real Hudi: its requested file as it is."""

from __future__ import annotations

from functools import cache

from hudi_core.timeline.instant import State
from hudi_core.timeline.pending_plans import is_clustering
from tests.support.golden_views import open_table, table_names


@cache
def clustered_tables() -> list[str]:
    """The tables whose timeline holds a clustering, pending or completed, as golden_views names them."""
    return [name for name in table_names() if "cluster" in name and requested_clustering(name) is not None]


def requested_clustering(name: str) -> tuple[str, str, bytes] | None:
    """The instant of the table's one clustering, and the path and the content of its requested file."""
    _, active, view = open_table(name)
    found = [instant for instant in view.timeline if is_clustering(active, instant)]
    if not found:
        return None
    (instant,) = found
    path = active.path(instant.requested_time, instant.pending_action, State.REQUESTED)
    return instant.requested_time, path, active.read_requested(instant.requested_time, instant.pending_action)
