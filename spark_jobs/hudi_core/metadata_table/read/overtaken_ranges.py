"""Whether ranges of whole partitions were recorded in another order than that in which writes completed
(docs/decisions/0018).

Hudi recomputes the range of a partition from the files that a commit finds when it completes. Log files of the metadata
table merge by the instants in their names, that is by request. A write that completes behind a commit with a later
instant is beneath the range which that commit recorded without it, and readers by that range skip its rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final

from hudi_core.errors import StorageNotFoundError
from hudi_core.history.archived import ArchivedTimeline, load_history
from hudi_core.metadata_table.records.file_statistics import REWRITES
from hudi_core.timeline.actions.commit import CommitMetadata
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, Instant
from hudi_core.timeline.timeline import Timeline

if TYPE_CHECKING:
    from hudi_core.metadata_table.read.snapshot import MetadataTableSnapshot

_COMPARED: Final = 64
"""Commits whose metadata are read to see whether they wrote to one partition; with more of them that is not known."""


def has_overtaken_ranges(snapshot: MetadataTableSnapshot, since: str) -> bool:
    """Whether a commit after instant `since` may have recorded the range of a partition above that of a write which
    completed later.

    False in layout 1, where log files merge in the order in which they were written. Cost: the times of the instants
    in the archive after `since`; the metadata of those commits alone that completed in another order. Memory: some 300
    bytes for each instant.
    """
    config, data = snapshot.config, snapshot.data_timeline
    if not config.features.log_name_has_delta_commit:
        return False
    history = load_history(snapshot.storage, config)
    archived = Timeline(history.instants(after=since)).commits()
    commits = {item.requested_time: item for item in (*archived, *data.commits().after(since))}
    found = (
        pair
        for pair in _in_other_order(commits.values())
        # A compaction, which brings no new values.
        if not (config.is_merge_on_read and pair[0].action == Action.COMMIT)
    )
    pairs = list(islice(found, _COMPARED))
    compared = {item.requested_time: item for pair in pairs for item in pair}
    if len(pairs) == _COMPARED or len(compared) > _COMPARED:
        return True
    try:
        metadata = _metadata_of(compared.values(), data, ActiveTimeline(snapshot.storage, config), history)
        return any(_share_a_partition(*(metadata[item.requested_time] for item in pair)) for pair in pairs)
    except (StorageNotFoundError, KeyError):
        return True  # a commit was archived meanwhile


def _in_other_order(commits: Iterable[Instant]) -> Iterator[tuple[Instant, Instant]]:
    """Pairs of a commit and one that was requested later and completed before it."""
    ordered = sorted(commits, key=lambda item: item.requested_time)
    for at, late in enumerate(ordered, 1):
        for early in islice(ordered, at, None):
            if early.requested_time > late.completed_at:
                break
            if early.completed_at < late.completed_at:
                yield late, early


def _metadata_of(
    commits: Iterable[Instant], data: Timeline, active: ActiveTimeline, history: ArchivedTimeline
) -> dict[str, CommitMetadata]:
    """By requested time."""
    items = list(commits)
    known = [item for item in items if data.contains(item.requested_time)]
    archived = [item for item in items if not data.contains(item.requested_time)]
    found = {item.requested_time: active.read_commit(item) for item in known}
    return found | {item.requested_time: metadata for item, metadata in history.commits(archived)}


def _share_a_partition(late: CommitMetadata, early: CommitMetadata) -> bool:
    return late.operation_type not in REWRITES and not _partitions(late).isdisjoint(_partitions(early))


def _partitions(metadata: CommitMetadata) -> frozenset[str]:
    return frozenset((*metadata.partition_to_write_stats, *(metadata.replaced_file_ids or ())))
