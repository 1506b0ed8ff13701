"""The metadata table's list of files compared with the storage in both directions, and the rules on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from hudi_core.errors import FormatError, MetadataUnavailableError, StorageNotFoundError
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.model.names import BaseFileName, parse_data_file
from hudi_core.model.partition import join
from hudi_core.services.archive.listing import appended_log_bytes, is_wrong_size
from hudi_core.services.context import TableContext
from hudi_core.services.doctor.finding import Finding, ListingObservations, Observations, WrongSize, named_files
from hudi_core.timeline.instant import Action, State
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.listing import walk_partitions

KEPT: Final = 100
"""How many paths of each group are kept; all are counted."""
_UNDOES: Final = (Action.CLEAN, Action.ROLLBACK, Action.RESTORE)
"""They delete files first and update the metadata table then."""
_REBUILD: Final = (
    "stop the writers, drop the metadata table with Hudi (hoodie.metadata.enable=false), and let the next "
    "write rebuild it"
)

T = TypeVar("T")


@dataclass(slots=True)
class _Found(Generic[T]):
    """The first KEPT items, and how many there are."""

    kept: list[T] = field(default_factory=list)
    count: int = 0

    def add(self, item: T) -> None:
        self.count += 1
        if self.count <= KEPT:
            self.kept.append(item)


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
    written = appended_log_bytes(context, timeline)
    try:
        found = _compare(context, timeline, written)
    except (FormatError, MetadataUnavailableError, StorageNotFoundError) as error:
        return ListingObservations(problem=str(error))
    if _states(context.active.load()) != _states(timeline):
        return ListingObservations()
    return ListingObservations(
        tuple(found.missing.kept),
        found.missing.count,
        tuple(found.unlisted.kept),
        found.unlisted.count,
        tuple(found.wrong_size.kept),
        found.wrong_size.count,
    )


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


def listings(observed: Observations) -> Iterator[Finding]:
    """Entries without a file, committed files without an entry, entries of another size, an unreadable list."""
    found = observed.listings
    if found.problem is not None:
        yield Finding(
            "metadata_unreadable",
            "error",
            f"the metadata table's list of files cannot be read: {found.problem}",
            _REBUILD,
        )
    if found.unlisted_count:
        yield Finding(
            "metadata_unlisted",
            "error",
            f"the metadata table does not list {named_files(found.unlisted, found.unlisted_count)} of completed "
            "commits: readers that use it miss rows",
            _REBUILD,
            path=found.unlisted[0],
        )
    if found.missing_count:
        yield Finding(
            "metadata_missing_file",
            "warning",
            f"the metadata table lists {named_files(found.missing, found.missing_count)} not in the storage: readers "
            "that use it may fail",
            _REBUILD,
            path=found.missing[0],
        )
    if found.wrong_size_count:
        sizes = tuple(f"{item.path}: {item.listed} bytes listed, {item.there} there" for item in found.wrong_size)
        yield Finding(
            "metadata_wrong_size",
            "error",
            f"the metadata table has the wrong size of {named_files(sizes, found.wrong_size_count)}: readers that "
            "use it fail, or miss rows",
            f"a file that was cut short has to come back from a copy; where the files are whole, {_REBUILD}",
            path=found.wrong_size[0].path,
        )
