"""The `files` records to write after a restore: the differences from the storage
(fetchOutofSyncFilesRecordsFromMetadataTable).
"""

from __future__ import annotations

from hudi_core.config.table_config import TableConfig
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.metadata_table.records.file_statistics import FileChanges
from hudi_core.model.names import LogFileName, parse_data_file
from hudi_core.storage.base import Storage
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.listing import StorageListing


def sync_changes(storage: Storage, config: TableConfig, data_timeline: Timeline, restore: str) -> FileChanges:
    """The files of listed partitions that are not listed, and those listed that are gone; partitions that are gone as a
    whole.

    Counted are data files of instants up to `restore`, the data table's pending restore, that are not pending
    themselves: others are not the table's (DirectoryInfo). In layout 1 a log file that carries the instant of a pending
    compaction holds what was written since. One listing of the storage.
    """
    listing = StorageListing(storage)
    there = frozenset(listing.partitions())
    pending = data_timeline.pending().requested_times
    compacting = data_timeline.pending_compactions().requested_times
    metadata = MetadataTable(storage, config, data_timeline)
    written: dict[str, dict[str, int]] = {}
    deleted: dict[str, frozenset[str]] = {}
    dropped: set[str] = set()
    for partition in metadata.list_partitions():
        listed = metadata.list_files(partition)
        found: dict[str, int] = {}
        if partition in there:
            for info in listing.files(partition):
                name = parse_data_file(info.name)
                if name is None or name.instant > restore:
                    continue
                if name.instant not in pending or (isinstance(name, LogFileName) and name.instant in compacting):
                    found[info.name] = info.size
        else:
            dropped.add(partition)
        added = {name: size for name, size in found.items() if name not in listed and size > 0}
        gone = frozenset(listed.keys() - found.keys())
        if added:
            written[partition] = added
        if gone:
            deleted[partition] = gone
    return FileChanges(written, deleted, frozenset(dropped))
