"""Compares the metadata table's list of files with the storage, in both directions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from hudi_core.errors import FormatError, MetadataUnavailableError, StorageNotFoundError
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.model.names import BaseFileName, parse_data_file
from hudi_core.model.partition import join
from hudi_core.services.archive.listing import is_wrong_size, written_log_bytes
from hudi_core.services.context import TableContext
from hudi_core.services.doctor.observations import ListingObservations, WrongSize
from hudi_core.timeline.instant import Action, State
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.listing import walk_partitions

KEPT: Final = 100
"""How many paths of each group are kept; all are counted."""
_UNDOES: Final = (Action.CLEAN, Action.ROLLBACK, Action.RESTORE)
"""They delete files first and update the metadata table then."""


T = TypeVar("T")


class _Found(Generic[T]):
    def __init__(self) -> None:
        self._kept: list[T] = []
        self.count = 0

    def add(self, item: T) -> None:
        self.count += 1
        if self.count <= KEPT:
            self._kept.append(item)

    @property
    def kept(self) -> tuple[T, ...]:
        return tuple(self._kept)


@dataclass(slots=True)
class _Differences:
    missing: _Found[str] = field(default_factory=_Found)
    unlisted: _Found[str] = field(default_factory=_Found)
    wrong_size: _Found[WrongSize] = field(default_factory=_Found)


def compare_listings(context: TableContext, timeline: Timeline) -> ListingObservations:
    """Lists the table once, one partition in memory at a time. Nothing is found where no metadata table is in use.

    Nothing either while a clean, rollback or restore is inflight, or when the timeline changed meanwhile: both lists
    may be right then. Files that are there and not listed count as base files of completed commits of the active
    timeline only: an incomplete write has no records yet, and the name of a version 6 log file does not carry its
    write. Raises FormatError for a damaged commit or rollback of a merge-on-read table of version 6.
    """
    if not context.has_metadata_table or any(
        item.action in _UNDOES and item.state is State.INFLIGHT for item in timeline
    ):
        return ListingObservations()
    appended = context.config.is_merge_on_read and not context.config.features.log_name_has_delta_commit
    written = written_log_bytes(context.active, timeline) if appended else None
    try:
        found = _compare(context, timeline, written)
    except (FormatError, MetadataUnavailableError, StorageNotFoundError) as error:
        return ListingObservations(problem=str(error))
    if _states(context.active.load()) != _states(timeline):
        return ListingObservations()
    missing, unlisted, sizes = found.missing, found.unlisted, found.wrong_size
    return ListingObservations(missing.kept, missing.count, unlisted.kept, unlisted.count, sizes.kept, sizes.count)


def _compare(context: TableContext, timeline: Timeline, written: Mapping[str, int] | None) -> _Differences:
    metadata = MetadataTable(context.storage, context.config, timeline)
    committed = timeline.commits().requested_times
    found = _Differences()
    unseen = set(metadata.list_partitions())
    for partition, files in walk_partitions(context.storage, context.storage.list_files):
        unseen.discard(partition)
        listed, there = metadata.list_files(partition), {info.name: info for info in files}
        for name in sorted(listed.keys() - there.keys()):
            found.missing.add(join(partition, name))
        for name in sorted(there.keys() - listed.keys()):
            parsed = parse_data_file(name)
            if isinstance(parsed, BaseFileName) and parsed.instant in committed:
                found.unlisted.add(join(partition, name))
        for name in sorted(there.keys() & listed.keys()):
            if listed[name] != there[name].size and is_wrong_size(listed[name], there[name], written):
                found.wrong_size.add(WrongSize(there[name].path, listed[name], there[name].size))
    for partition in sorted(unseen):
        for name in sorted(metadata.list_files(partition)):
            found.missing.add(join(partition, name))
    return found


def _states(timeline: Timeline) -> frozenset[tuple[str, str, State]]:
    return frozenset((item.requested_time, item.action, item.state) for item in timeline)
