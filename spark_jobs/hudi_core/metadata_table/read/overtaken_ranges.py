"""Whether ranges of whole partitions were recorded in another order than that in which writes completed
(docs/decisions/0018).

Hudi recomputes the range of a partition from the files that a commit finds when it completes. Log files of the metadata
table merge by the instants in their names, that is by request. A write that completes behind a commit with a later
instant is beneath the range which that commit recorded without it, and readers by that range skip its rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from hudi_core.errors import CorruptFileError, StorageNotFoundError
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

    False in layout 1, where log files merge in the order in which they were written. True where the archive cannot be
    read. Cost: the times of the instants in the archive after `since`; the metadata of those commits alone that
    completed behind a later one, and where these are no rewrites, which bring no new values, of the later ones. Memory:
    some 300 bytes for each instant.
    """
    config, data = snapshot.config, snapshot.data_timeline
    if not config.features.log_name_has_delta_commit:
        return False
    active, history = ActiveTimeline(snapshot.storage, config), load_history(snapshot.storage, config)
    try:
        archived = Timeline(history.instants(after=since)).commits()
        commits = {item.requested_time: item for item in (*archived, *data.commits().after(since))}
        overtaken = {
            late: found
            for late, found in _overtaken(commits.values())
            # A compaction: its metadata need not be read.
            if not (config.is_merge_on_read and late.action == Action.COMMIT)
        }
        if len(overtaken) > _COMPARED:
            return True
        written = {
            late.requested_time: _partitions(metadata)
            for late, metadata in _metadata_of(overtaken, data, active, history)
            if metadata.operation_type not in REWRITES
        }
        pairs = [
            (late, early) for late, found in overtaken.items() if late.requested_time in written for early in found
        ]
        others = {early.requested_time: early for _, early in pairs}
        if len(others) > _COMPARED:
            return True
        read = {
            item.requested_time: _partitions(found)
            for item, found in _metadata_of(others.values(), data, active, history)
        }
        return any(not written[late.requested_time].isdisjoint(read[early.requested_time]) for late, early in pairs)
    except (StorageNotFoundError, CorruptFileError, KeyError):
        return True  # a commit was archived meanwhile, or the archive is damaged


def _overtaken(commits: Iterable[Instant]) -> Iterator[tuple[Instant, list[Instant]]]:
    """Each commit that completed behind later requested ones, and these."""
    ordered = sorted(commits, key=lambda item: item.requested_time)
    for at, late in enumerate(ordered, 1):
        found = []
        # By index: islice would walk over what is before `at` each time.
        for early in (ordered[later] for later in range(at, len(ordered))):
            if early.requested_time > late.completed_at:
                break
            if early.completed_at < late.completed_at:
                found.append(early)
        if found:
            yield late, found


def _metadata_of(
    commits: Iterable[Instant], data: Timeline, active: ActiveTimeline, history: ArchivedTimeline
) -> Iterator[tuple[Instant, CommitMetadata]]:
    archived = []
    for item in commits:
        if data.contains(item.requested_time):
            yield item, active.read_commit(item)
        else:
            archived.append(item)
    if archived:
        yield from history.commits(archived)


def _partitions(metadata: CommitMetadata) -> frozenset[str]:
    return frozenset((*metadata.partition_to_write_stats, *(metadata.replaced_file_ids or ())))
