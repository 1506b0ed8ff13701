"""The kind `partition_stats`: the range of each indexed column over all files of a partition's slices, made anew whenever one changes.

Hudi 1.x makes the range of a partition that a commit writes to from what `column_stats` holds of the standing files and from the new ones,
marks it tight, and so replaces the older record (HoodieMetadataWriteUtils.convertMetadataToPartitionStatRecords).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from hudi_core.errors import UnsupportedError
from hudi_core.metadata_table.kinds.indexed_table import IndexedTable
from hudi_core.metadata_table.kinds.kind import (
    ColumnRange,
    CommitFacts,
    FileFacts,
    Needs,
    Record,
    numbered_file_ids,
    positive_setting,
)
from hudi_core.metadata_table.kinds.stat_records import partition_deletion, partition_record
from hudi_core.metadata_table.kinds.value_types import as_type, merged

GROUPS: Final = "hoodie.metadata.index.partition.stats.file.group.count"
_DEFAULT_GROUPS: Final = 1
_DELETES_PARTITIONS: Final = "DELETE_PARTITION"


class PartitionStatsKind:
    """See Kind. Only partitioned tables have it."""

    needs = Needs(ranges=True, standing=True)

    def __init__(self, partition: str, table: IndexedTable) -> None:
        """Raises UnsupportedError for a table without partitions, of which Hudi makes none."""
        if not table.is_partitioned:
            raise UnsupportedError("statistics of partitions for a table without partitions", remedy="drop that index with Hudi's own tools")
        self.partition = partition
        self._version = table.version_of(partition)
        self._columns = table.indexed_types()

    def of_commit(self, facts: CommitFacts) -> Iterator[Record]:
        """The ranges of the partitions written to, made anew; deletions for those that the commit emptied. Nothing of CommitFacts.leaves_partitions.

        Raises UnsupportedError when the range of a partition cannot be told: an older record would stand, and hide rows.
        """
        if facts.leaves_partitions:
            return
        by_partition: dict[str, list[FileFacts]] = defaultdict(list)
        for item in facts.written:
            by_partition[item.file.partition].append(item)
        for name in sorted(by_partition):
            yield from self._ranges(name, [*by_partition[name], *facts.standing.get(name, ())])
        for name in sorted(facts.replaced):
            if name not in by_partition:
                yield from self._emptied(name, facts)

    def initial(self, instant: str, files: Iterable[FileFacts]) -> Iterator[Record]:
        """Those of all partitions. Memory: the facts of one partition where `files` come partition by partition."""
        held: list[FileFacts] = []
        for facts in files:
            if held and facts.file.partition != held[0].file.partition:
                yield from self._ranges(held[0].file.partition, held)
                held = []
            held.append(facts)
        if held:
            yield from self._ranges(held[0].file.partition, held)

    def group_count(self, settings: Mapping[str, str], records: int = 0) -> int:
        """As GROUPS says, or one."""
        return positive_setting(settings, GROUPS, _DEFAULT_GROUPS)

    def file_ids(self, count: int) -> list[str]:
        """See Kind."""
        return numbered_file_ids("partition-stats-", count)

    def _emptied(self, name: str, facts: CommitFacts) -> Iterator[Record]:
        """A partition whose groups were replaced and that nothing was written to: what is left stands, if anything is.

        Where it is not known what stands, the older record stays: it holds of fewer files, too.
        """
        left = facts.standing.get(name)
        if left:
            yield from self._ranges(name, left)
        if left or (left is None and facts.operation != _DELETES_PARTITIONS):
            return
        for column in self._columns:
            yield partition_deletion(name, column, self._version)

    def _ranges(self, name: str, files: Iterable[FileFacts]) -> Iterator[Record]:
        # A base file without rows (a compaction of deletes leaves one) has no ranges, and bounds nothing.
        files = [facts for facts in files if facts.ranges or facts.rows or not facts.file.is_base]
        if not files:
            return
        by_column: dict[str, list[ColumnRange]] = defaultdict(list)
        for facts in files:
            for found in facts.ranges:
                by_column[found.column].append(found)
        for column, kind in self._columns.items():
            ranges = by_column[column]
            whole = merged(ranges) if len(ranges) == len(files) else None
            record = None if whole is None else partition_record(name, as_type(whole, kind, self._version))
            if record is None:
                raise UnsupportedError(
                    f"the range of the column {column!r} in the partition {name!r} cannot be told",
                    remedy="drop the index partition_stats; Hudi's next write builds it anew",
                )
            yield record
