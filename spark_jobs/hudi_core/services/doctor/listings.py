"""The metadata table's list of files compared with the storage in both directions, and the rules on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from hudi_core.errors import FormatError, MetadataUnavailableError, StorageNotFoundError
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.model.names import BaseFileName, parse_data_file
from hudi_core.model.partition import join
from hudi_core.services.archive.listing import appended_log_bytes, is_wrong_size
from hudi_core.services.context import TableContext
from hudi_core.services.doctor.finding import Finding, ListingObservations, Observations, WrongSize, named_files
from hudi_core.services.metadata.validate.files import deletions_at_work
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.listing import walk_partitions

_REBUILD: Final = (
    "stop the writers, drop the metadata table with Hudi (hoodie.metadata.enable=false), and let the next "
    "write rebuild it"
)


def compare_listings(context: TableContext, timeline: Timeline) -> ListingObservations:
    """Lists the table once, one partition in memory at a time. Nothing is found where no metadata table is in use.

    Nothing either while a clean, rollback or restore is inflight, or when the timeline changed meanwhile: both lists
    may be right then. Files that are there and not listed count as base files of completed commits of the active
    timeline only: an incomplete write has no records yet, and the name of a version 6 log file does not carry its
    write. Raises FormatError for a damaged commit or rollback of a merge-on-read table of version 6.
    """
    if not context.has_metadata_table or deletions_at_work(timeline):
        return ListingObservations()
    written = appended_log_bytes(context, timeline)
    try:
        found = _compare(context, timeline, written)
    except (FormatError, MetadataUnavailableError, StorageNotFoundError) as error:
        return ListingObservations(problem=str(error))
    return found if context.active.load() == timeline else ListingObservations()


def _compare(context: TableContext, timeline: Timeline, written: Mapping[str, int] | None) -> ListingObservations:
    metadata = MetadataTable(context.storage, context.config, timeline)
    committed = timeline.commits().requested_times
    found = ListingObservations()
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
        there = {info.name: info for info in context.storage.list_files(partition)}
        for name in sorted(metadata.list_files(partition)):
            (found.hidden if name in there else found.missing).add(join(partition, name))
    return found


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
    if found.unlisted.count:
        yield Finding(
            "metadata_unlisted",
            "error",
            f"the metadata table does not list {named_files(found.unlisted.first, found.unlisted.count)} of completed "
            "commits: readers that use it miss rows",
            _REBUILD,
            path=found.unlisted.first[0],
        )
    if found.hidden.count:
        yield Finding(
            "partition_below_another",
            "error",
            f"{named_files(found.hidden.first, found.hidden.count)} in partitions that lie below other ones, or have "
            "lost their .hoodie_partition_metadata: readers without the metadata table miss their rows, and it cannot "
            "be rebuilt",
            "write the rows to partitions of other names, and keep the metadata table until then",
            path=found.hidden.first[0],
        )
    if found.missing.count:
        yield Finding(
            "metadata_missing_file",
            "warning",
            f"the metadata table lists {named_files(found.missing.first, found.missing.count)} not in the storage: "
            "readers that use it may fail",
            _REBUILD,
            path=found.missing.first[0],
        )
    if found.wrong_size.count:
        sizes = [f"{item.path}: {item.listed} bytes listed, {item.there} there" for item in found.wrong_size.first]
        yield Finding(
            "metadata_wrong_size",
            "error",
            f"the metadata table has the wrong size of {named_files(sizes, found.wrong_size.count)}: readers that "
            "use it fail, or miss rows",
            f"a file that was cut short has to come back from a copy; where the files are whole, {_REBUILD}",
            path=found.wrong_size.first[0].path,
        )
