"""Compares the metadata table's list of files with the storage, in both directions."""

from __future__ import annotations

from typing import Final

from hudi_core.errors import FormatError, MetadataUnavailableError, StorageNotFoundError
from hudi_core.metadata_table.reader import MetadataTable
from hudi_core.model.names import BaseFileName, parse_data_file
from hudi_core.model.partition import join
from hudi_core.services.context import TableContext
from hudi_core.services.doctor.facts import ListingFacts
from hudi_core.timeline.instant import Action, State
from hudi_core.timeline.query import Timeline
from hudi_core.view.listing import walk_partitions

KEPT: Final = 100
"""How many paths of each kind are kept; all are counted."""
_UNDOES: Final = (Action.CLEAN, Action.ROLLBACK, Action.RESTORE)
"""They delete files first and tell the metadata table then."""


class _Found:
    def __init__(self) -> None:
        self.paths: list[str] = []
        self.count = 0

    def add(self, path: str) -> None:
        self.count += 1
        if len(self.paths) < KEPT:
            self.paths.append(path)


def compare_listings(context: TableContext, timeline: Timeline) -> ListingFacts:
    """Lists the table once, one partition in memory at a time. Nothing is found where no metadata table is in use.

    Nothing either while a clean, rollback or restore is inflight, or when the timeline changed meanwhile: both lists may be right then. Files
    that are there and not listed count as base files of completed commits of the active timeline only: a write that is not complete has
    told nobody, and the name of a version 6 log file does not tell its write.
    """
    if not context.has_metadata_table or any(item.action in _UNDOES and item.state is State.INFLIGHT for item in timeline):
        return ListingFacts()
    try:
        missing, unlisted = _compare(context, timeline)
    except (FormatError, MetadataUnavailableError, StorageNotFoundError) as error:
        return ListingFacts(problem=str(error))
    if _states(context.active.load()) != _states(timeline):
        return ListingFacts()
    return ListingFacts(tuple(missing.paths), missing.count, tuple(unlisted.paths), unlisted.count)


def _compare(context: TableContext, timeline: Timeline) -> tuple[_Found, _Found]:
    metadata = MetadataTable(context.storage, context.config, timeline)
    committed = timeline.commits().requested_times
    missing, unlisted = _Found(), _Found()
    unseen = set(metadata.list_partitions())
    for partition, files in walk_partitions(context.storage, context.storage.list_files):
        unseen.discard(partition)
        listed, there = metadata.list_files(partition), {info.name for info in files}
        for name in sorted(listed.keys() - there):
            missing.add(join(partition, name))
        for name in sorted(there - listed.keys()):
            parsed = parse_data_file(name)
            if isinstance(parsed, BaseFileName) and parsed.instant in committed:
                unlisted.add(join(partition, name))
    for partition in sorted(unseen):
        for name in sorted(metadata.list_files(partition)):
            missing.add(join(partition, name))
    return missing, unlisted


def _states(timeline: Timeline) -> frozenset[tuple[str, str, State]]:
    return frozenset((item.requested_time, item.action, item.state) for item in timeline)
