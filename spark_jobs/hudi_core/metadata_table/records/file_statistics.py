"""The input of partition types, as plain values: statistics of data files, and what an action did to files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from hudi_core.codec.bloom import BloomFilter
from hudi_core.errors import CorruptFileError
from hudi_core.metadata_table.partition_type import COLUMN_STATS
from hudi_core.metadata_table.record import Datum, RecordRules, RecordType
from hudi_core.metadata_table.records.bounds import Bound, ValueType
from hudi_core.model.names import BaseFileName, LogFileName, parse_data_file
from hudi_core.timeline.actions.write_stats import WriteStat
from hudi_core.view.file_group import DataFile

Record = tuple[str, Datum | None]
"""A key and its Avro datum; None is the deletion of the key, an entry of a DELETE block (`record_index`)."""

REWRITES: Final = frozenset({"COMPACT", "LOG_COMPACT", "CLUSTER"})
"""Operations (`operationType`) that write no new values."""
MAX_DELETIONS: Final = 1 << 18
"""Deletions of statistics or filters that a clean writes into one partition; some 600 bytes each while they are sorted.
Those of more files are omitted: readers use those of listed files only, and no file name comes twice.
"""


@dataclass(frozen=True, slots=True)
class DataFileRef:
    """A data file by its partition path, plain name and size in bytes; a base file, or else a log file."""

    partition: str
    name: str
    size: int
    is_base: bool

    @staticmethod
    def of(file: DataFile) -> DataFileRef:
        return DataFileRef(file.partition, file.name, file.size, isinstance(parse_data_file(file.name), BaseFileName))

    @property
    def is_cdc(self) -> bool:
        """Whether it is a log file of changes (CDC), of which indexes hold nothing."""
        name = parse_data_file(self.name)
        return isinstance(name, LogFileName) and name.cdc


@dataclass(frozen=True, slots=True)
class ColumnRange:
    """What one file (or partition) holds of one column (HoodieColumnRangeMetadata). Bounds are None where all values
    are null or nothing is known; counts are rows, sizes bytes of the column's chunks (0: of a log file).
    """

    column: str
    least: Bound | None
    greatest: Bound | None
    null_count: int
    value_count: int
    total_size: int
    total_uncompressed_size: int
    type: ValueType


@dataclass(frozen=True, slots=True)
class FilterText:
    """As a footer holds it: its type code (`DYNAMIC_V0`, `SIMPLE`) and its base64 text."""

    type_code: str
    text: str


@dataclass(frozen=True, slots=True)
class FileStatistics:
    """The statistics of one data file. `rows` counts the rows of a base file, the records of a log file's data blocks.
    `ranges` are those of the indexed columns, also of columns that the file lacks; `expressions` are by metadata
    partition, without those that have nothing for such a file. `partial`: a log file of rows that lack columns, whose
    ranges without values are of those columns.
    """

    file: DataFileRef
    ranges: tuple[ColumnRange, ...] = ()
    bloom: FilterText | None = None
    rows: int = 0
    expressions: Mapping[str, ColumnRange | FilterText] = field(default_factory=dict)
    partial: bool = False

    @property
    def bounds_rows(self) -> bool:
        """Whether it has a part in its partition's range, as a base file without rows and a log of changes have not."""
        return bool(self.ranges) or self.rows > 0 or not (self.file.is_base or self.file.is_cdc)


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression index, for readers of rows. `index_type` is `column_stats` or `bloom_filters`, `zone` Spark's
    session zone, if known, `version` that of its value encoding; `bloom` are entries, error rate and most entries.
    """

    partition: str
    column: str
    function: str
    options: Mapping[str, str]
    index_type: str
    version: int
    zone: str | None = None
    bloom: tuple[int, float, int] = (60000, 1e-9, 100000)

    @property
    def base_files_only(self) -> bool:
        return self.index_type != COLUMN_STATS


@dataclass(frozen=True, slots=True)
class CommitUpdate:
    """What a completed write, compaction, clustering or overwrite did: the input of the partition types. `operation` is
    the commit's `operationType` (enum name). `stats` and `replaced` file group ids are by partition path, `written` the
    statistics of the written base and log files. Of each partition that it wrote to or replaced groups of, `remaining`
    reads the statistics of the other files in the slices after it, for types with `needs.remaining`, and `recorded` the
    ranges, by column, that the index holds of the partition as a whole. `by_partition`: the records of single files are
    made elsewhere (staged), and `written` holds one entry for all files of a partition (range_merge.merge_statistics).
    `overtakes`: a write with an older instant is pending, and log files of the metadata table merge in the order of
    instants. A range that replaced the older record would also replace the one of that write, and hide its rows once it
    completes (docs/decisions/0010).
    """

    instant: str
    operation: str | None
    stats: Mapping[str, tuple[WriteStat, ...]]
    written: tuple[FileStatistics, ...]
    replaced: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    remaining: Callable[[str], tuple[FileStatistics, ...] | None] = lambda partition: None
    recorded: Callable[[str], Mapping[str, ColumnRange] | None] = lambda partition: None
    by_partition: bool = False
    overtakes: bool = False

    @property
    def rewrites(self) -> bool:
        """Whether rows are only rewritten: the ranges of whole partitions then hold, and are never narrowed."""
        return self.operation in REWRITES

    def written_in(self) -> dict[str, list[FileStatistics]]:
        found: dict[str, list[FileStatistics]] = {}
        for item in self.written:
            found.setdefault(item.file.partition, []).append(item)
        return dict(sorted(found.items()))


@dataclass(frozen=True, slots=True)
class FileChanges:
    """Files that came (with sizes in bytes) and went, by partition path; those of `dropped_partitions` are in
    `deleted`, too.
    """

    written: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    deleted: Mapping[str, frozenset[str]] = field(default_factory=dict)
    dropped_partitions: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Needs:
    ranges: bool = False
    bloom: bool = False
    expression: Expression | None = None
    remaining: bool = False
    """The same of all other files in the slices of the partitions that the commit wrote to (CommitUpdate.remaining)."""
    older_slices: bool = False
    """It is initialized with the files of all slices, of replaced file groups too (else with those of the latest
    slices), for queries of the past.
    """


@dataclass(frozen=True, slots=True)
class StoredFilter:
    """Its type code and its base64 text (HoodieMetadataBloomFilter); `path` is where it lies."""

    type_code: str
    text: bytes
    instant: str
    is_deleted: bool
    path: str

    def parse(self) -> BloomFilter:
        return BloomFilter.parse(self.text, self.type_code, path=self.path)


class BloomFilterRules(RecordRules[StoredFilter]):
    """Of the partitions that hold filters; those are not parsed yet."""

    def decode(self, key: str, datum: dict[str, Any], *, path: str) -> StoredFilter:
        body = datum.get("BloomFilterMetadata")
        if datum.get("type") != RecordType.BLOOM_FILTER or not isinstance(body, dict):
            raise CorruptFileError(
                f"metadata record {key!r} is of type {datum.get('type')!r}, not a bloom filter", path=path
            )
        return StoredFilter(
            str(body.get("type")),
            bytes(body.get("bloomFilter") or b""),
            str(body.get("timestamp")),
            body.get("isDeleted") is True,
            path,
        )
