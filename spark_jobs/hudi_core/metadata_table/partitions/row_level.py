"""Row-level indexes (`record_index`, `secondary_index_*`): what their partition types add to protocol.PartitionType.

Their records come from rows: record keys and pairs are read from data files on executors and brought to the index's
file groups by an exchange, whose unit is the change of one data file group.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import ClassVar, Final, Protocol

import pyarrow as pa

from hudi_core.errors import HudiError
from hudi_core.metadata_table.extract.slice_change import ChangeReader, SliceChange
from hudi_core.metadata_table.partitions.protocol import PartitionType, unknown_partition
from hudi_core.metadata_table.partitions.record_groups import global_group_count

Counts = Mapping[str | None, int]
"""File groups: all of them under None, or those of each data partition (RecordIndex.parts)."""
DEFINITIONS: Final = ".hoodie/.index_defs/index.json"
_REWRITES: Final = frozenset({"COMPACT", "LOG_COMPACT"})


class IndexRows(Protocol):
    """What makes the rows of one such index: RecordIndexRows, SecondaryIndexRows."""

    @property
    def partition(self) -> str:
        """The metadata partition."""
        ...

    @property
    def shards(self) -> int:
        """The index's file groups: the shards of its exchange, in the order of their ids."""
        ...

    def of_change(self, reader: ChangeReader, change: SliceChange) -> Iterator[pa.RecordBatch]:
        """The exchange's rows of one file group's change."""
        ...

    def conflict(self, key: bytes) -> HudiError:
        """The error where a key comes with two different records."""
        ...


class RowLevelPartition(PartitionType):
    """A row-level index. A clean moves no row, so it changes none."""

    row_level: ClassVar[bool] = True

    def check_commit(self) -> None:
        """Always refuses: no records follow from statistics of files (write.row_updates)."""
        raise unknown_partition(self.partition)

    @classmethod
    @abstractmethod
    def rows_class(cls) -> type[IndexRows]:
        """The dataclass of `rows`, which crosses an engine (row_units)."""

    @abstractmethod
    def rows(self, counts: Counts, schema: str, zone: str) -> IndexRows:
        """What makes the rows of the index; `schema` is that of the stored records (record.block_schema), `zone` that
        of instants.

        Raises UnsupportedError for a column that this release cannot keep an index on, CorruptFileError for an index
        without a definition.
        """

    def group_counts(self, records: Mapping[str, int]) -> dict[str | None, int]:
        """How many file groups a new index gets, for the number of rows in each data partition; errors as
        global_group_count.
        """
        return {None: global_group_count(self.table.settings, sum(records.values()))}

    def row_file_ids(self, counts: Counts) -> list[str]:
        """The ids of the file groups, in the order of an exchange's shards."""
        return self.file_ids(counts[None])


def moves_rows(operation: str | None) -> bool:
    """Whether a commit of an operation (`operationType`) can change such an index: compactions leave each row where and
    as it is.
    """
    return operation not in _REWRITES
