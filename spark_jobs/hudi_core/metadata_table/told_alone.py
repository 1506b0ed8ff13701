"""Statistics that came to the metadata table without an action of the data table: of columns that were added to the index."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from hudi_core.metadata_table.file_group import FILES_PARTITION
from hudi_core.metadata_table.own import OwnTimeline
from hudi_core.timeline.instant import Action, Instant

STATISTICS: Final = frozenset({"column_stats", "partition_stats"})
"""What goes back together: the index's definition goes on naming the columns for both."""
_COLUMN_STATS: Final = "column_stats"


def columns_came_with(own: OwnTimeline, instants: Iterable[Instant]) -> bool:
    """Whether one of `instants`, of the metadata table, told statistics of files and no listing of them, as no action of the data table does.

    A commit that takes such a one back leaves an index that lacks columns of its definition: Hudi's readers take these for null.
    """
    deltas = (item for item in instants if item.action == Action.DELTA_COMMIT and item.is_completed)
    return any(_tells_statistics_alone(own, item) for item in deltas)


def _tells_statistics_alone(own: OwnTimeline, item: Instant) -> bool:
    written = {name for name, stats in own.active.read_commit(item).partition_to_write_stats.items() if stats}
    return _COLUMN_STATS in written and FILES_PARTITION not in written
