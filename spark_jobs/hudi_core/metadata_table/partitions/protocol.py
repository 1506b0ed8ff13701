"""What every kind of metadata says of a commit, and the facts that it says it from: the protocol of the write side of
the metadata table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from hudi_core.metadata_table.records.file_statistics import CommitUpdate, FileStatistics, Needs, Record


class PartitionType(Protocol):
    """One partition of the metadata table on the write side. What a clean, a rollback and a restore tell it:
    clean_records, rollback, restore.
    """

    partition: str
    """The folder's name in the metadata table: `files`, `column_stats`, `expr_index_<name>` …"""
    needs: Needs

    def of_commit(self, statistics: CommitUpdate) -> Iterable[Record]:
        """The records of a commit; no two share a key."""
        ...

    def initial(self, instant: str, files: Iterable[FileStatistics]) -> Iterable[Record]:
        """The records with which the partition begins; `files` are those that `needs` says, `instant` is that of the
        initialisation.
        """
        ...

    def group_count(self, settings: Mapping[str, str], records: int = 0) -> int:
        """How many file groups a new partition gets: as `settings` (Hudi's option names) say, or for about `records`
        records.

        Raises ConfigError for a setting that is no positive number.
        """
        ...

    def file_ids(self, count: int) -> list[str]:
        """The ids of `count` file groups, in order."""
        ...


def numbered_file_ids(prefix: str, count: int) -> list[str]:
    """`<prefix>0000-0` and so on (HoodieTableMetadataUtil.getFileIDForFileGroup)."""
    return [f"{prefix}{number:04d}-0" for number in range(count)]
