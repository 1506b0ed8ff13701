"""The initial content of the `files` partition: the files in storage that committed instants wrote
(HoodieTableMetadataUtil.DirectoryInfo).

A file counts when the instant in its name is not pending and not later than the latest completed one: files of a
pending write are recorded by its deltacommit. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hudi_core.metadata_table.instants import SOLO_COMMIT
from hudi_core.model.names import parse_data_file
from hudi_core.timeline.instant import Action
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.listing import FileListing

Sizes = Mapping[str, Mapping[str, int]]
"""By partition path, the plain names of files and their sizes in bytes."""


def pending_instants(data: Timeline, metadata_instant: str | None = None) -> frozenset[str]:
    """The pending instants that matter to an initialization: all but indexing actions and `metadata_instant`, its
    action.
    """
    return frozenset(
        item.requested_time
        for item in data.pending()
        if item.action != Action.INDEXING and item.requested_time != metadata_instant
    )


def committed_files(listing: FileListing, data: Timeline) -> dict[str, dict[str, int]]:
    """The files by partition; every partition of the listing is there, one without such files too.

    `data` is the data table's timeline, loaded under the table lock. An empty file is omitted: Hudi refuses to list
    one, and it has no content. Memory: the listing.
    """
    pending = pending_instants(data)
    last = data.last_completed()
    latest = SOLO_COMMIT if last is None else last.requested_time
    return {
        partition: dict(_committed(listing, partition, pending, latest))
        for partition in (listing.partitions() if len(data) else ())
    }


def _committed(listing: FileListing, partition: str, pending: frozenset[str], latest: str) -> Iterator[tuple[str, int]]:
    for info in listing.files(partition):
        name = parse_data_file(info.name)
        if name is not None and info.size > 0 and name.instant <= latest and name.instant not in pending:
            yield info.name, info.size
