"""The kind `files`: the listing of the table. What a commit adds to it is metadata_table.records.files; this gives it
the shape of a kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from hudi_core.metadata_table.indexed_table import IndexedTable
from hudi_core.metadata_table.partitions.protocol import numbered_file_ids
from hudi_core.metadata_table.record import files_datum
from hudi_core.metadata_table.records.file_statistics import CommitUpdate, FileStatistics, Needs, Record
from hudi_core.metadata_table.records.files import commit_records, listing_records


class FilesPartition:
    """See Kind."""

    needs = Needs(older_slices=True)

    def __init__(self, partition: str, table: IndexedTable) -> None:
        self.partition = partition

    def of_commit(self, statistics: CommitUpdate) -> Iterator[Record]:
        """One record of the partitions written to, one of each partition's files. Replaced files stay until a clean
        takes them.
        """
        return ((record.key, files_datum(record)) for record in commit_records(statistics.stats))

    def initial(self, instant: str, files: Iterable[FileStatistics]) -> Iterator[Record]:
        """The listing; `files` include change-data logs."""
        sizes: dict[str, dict[str, int]] = {}
        for statistics in files:
            sizes.setdefault(statistics.file.partition, {})[statistics.file.name] = statistics.file.size
        listed = listing_records(dict(sorted(sizes.items())))
        return ((record.key, files_datum(record)) for record in listed)

    def group_count(self, settings: Mapping[str, str], records: int = 0) -> int:
        """Always one."""
        return 1

    def file_ids(self, count: int) -> list[str]:
        """See Kind."""
        return numbered_file_ids("files-", count)
