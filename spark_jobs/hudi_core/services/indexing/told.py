"""Whether those who completed something since an index began have told it, so that it is whole with the base files that were written meanwhile."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from hudi_core.metadata_table.create.indexing import Build
from hudi_core.metadata_table.kinds.row_kinds import is_index_of_rows, tells_of_rows
from hudi_core.metadata_table.own import OwnTimeline
from hudi_core.services.context import TableContext
from hudi_core.timeline.instant import COMMIT_ACTIONS, Action, Instant
from hudi_core.timeline.query import Timeline

_TELL_NOTHING: Final = frozenset({Action.INDEXING, Action.SAVEPOINT, Action.ROLLBACK})
"""Actions that leave the rows and files of completed commits alone. A rollback takes its block back where its target had told the index."""


def untold(context: TableContext, build: Build, before: Timeline, now: Timeline, own: OwnTimeline) -> list[str]:
    """The instants that completed since `before`, and that not all partitions of `build` have heard of; with the lock held.

    Real Hudi's indexer takes it that a deltacommit of the same name has told every index. Its writers do when they begin to commit after the
    index was inflight; one that had read the properties before does not. So what the deltacommit says that it wrote counts. One that stood on the
    metadata table's timeline already when the index began was lost with what the index held of an earlier attempt.
    """
    known = {(item.requested_time, item.action) for item in before.completed()}
    since = [item for item in now.completed() if (item.requested_time, item.action) not in known and item.action not in _TELL_NOTHING]
    told = own.active.load().completed()
    return [item.requested_time for item in since if not _has_told(context, build, item, told, own)]


def _has_told(context: TableContext, build: Build, item: Instant, told: Timeline, own: OwnTimeline) -> bool:
    names = [name for name in build.targets if not _says_nothing(context, item, name)]
    if not names:
        return True
    found = told.find(item.requested_time, Action.DELTA_COMMIT)
    if found is None or item.requested_time in build.told_before:
        return False
    return own.active.read_commit(found).partition_to_write_stats.keys() >= set(names)


def _says_nothing(context: TableContext, item: Instant, name: str) -> bool:
    """Whether a partition hears nothing of an action, so that its silence means nothing."""
    if item.action == Action.CLEAN:
        return is_index_of_rows(name) or name == "partition_stats"
    if item.action not in COMMIT_ACTIONS:
        return False
    metadata = context.active.read_commit(item)
    if not _any(metadata.partition_to_write_stats.values()) and not metadata.replaced_file_ids:
        return True
    return is_index_of_rows(name) and not tells_of_rows(metadata.operation_type)


def _any(groups: Iterable[Iterable[object]]) -> bool:
    return any(True for group in groups for _ in group)
