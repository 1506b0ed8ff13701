"""The input of partition types, as plain values: statistics of data files, and the changes of files by an action."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Final

from hudi_core.codec.bloom import BloomFilter
from hudi_core.errors import CorruptFileError
from hudi_core.frozen import dataclass
from hudi_core.metadata_table.partition_type import COLUMN_STATS
from hudi_core.metadata_table.record import Datum, RecordRules, RecordType
from hudi_core.metadata_table.records.bounds import Bound, ValueType
from hudi_core.model.names import BaseFileName, LogFileName, parse_data_file
from hudi_core.timeline.actions.write_stats import WriteStat
from hudi_core.view.file_group import DataFile

Record = tuple[str, Datum | None]
"""A key and its Avro datum; None is the deletion of the key, an entry of a DELETE block (`record_index`)."""

REWRITES: Final = frozenset({"COMPACT", "LOG_COMPACT", "CLUSTER"})
"""The operations (`operationType`) that write no new values."""
MAX_DELETIONS: Final = 1 << 18
"""The most deletions of statistics or filters that a clean writes into one partition; some 600 bytes each while they
are sorted. Further deletions are omitted: readers use only records of listed files, and no file name comes twice.
"""


@dataclass(frozen=True, slots=True)
class DataFileRef:
    """A data file: its partition path, plain name and size in bytes, and whether it is a base file or a log file."""

    partition: str
    name: str
    size: int
    is_base: bool

    @staticmethod
    def of(file: DataFile) -> DataFileRef:
        return DataFileRef(file.partition, file.name, file.size, isinstance(parse_data_file(file.name), BaseFileName))

    @property
    def is_cdc(self) -> bool:
        """Whether the file is a log file of changes (CDC), of which indexes have no records."""
        name = parse_data_file(self.name)
        return isinstance(name, LogFileName) and name.cdc


@dataclass(frozen=True, slots=True)
class ColumnRange:
    """The range of one column in one file or partition (HoodieColumnRangeMetadata). Bounds are None where all values
    are null or nothing is known. Counts are rows; sizes are bytes of the column's chunks (0 for a log file).
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
    """A bloom filter in the form of a footer: its type code (`DYNAMIC_V0`, `SIMPLE`) and its base64 text."""

    type_code: str
    text: str


@dataclass(frozen=True, slots=True)
class FileStatistics:
    """The statistics of one data file. `rows` counts the rows of a base file, or the records of a log file's data
    blocks. `ranges` are the ranges of the indexed columns, also of columns that the file lacks. `expressions` are by
    metadata partition, without expression indexes that have nothing for such a file. `partial` is True for a log file
    whose rows lack columns: these columns have ranges without values.
    """

    file: DataFileRef
    ranges: tuple[ColumnRange, ...] = ()
    bloom: FilterText | None = None
    rows: int = 0
    expressions: Mapping[str, ColumnRange | FilterText] = field(default_factory=dict)
    partial: bool = False

    @property
    def bounds_rows(self) -> bool:
        """Whether the file counts in its partition's range: no base file without rows, and no log file of changes."""
        return bool(self.ranges) or self.rows > 0 or not (self.file.is_base or self.file.is_cdc)


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression index, for readers of rows. `index_type` is `column_stats` or `bloom_filters`; `zone` is Spark's
    session zone, if known; `version` is the encoding's; `bloom` has entries, error rate and most entries.
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
    """The changes of a write, compaction, clustering or overwrite: the input of the partition types. `operation` is the
    commit's `operationType` (enum name). `stats` and `replaced` (file ids) are by partition path; `written` are the
    statistics of the written base and log files. `remaining` and `recorded` are for types with `needs.remaining`, and
    take a partition that the commit changed: `remaining` reads the statistics of the other files in its file slices
    after the commit, `recorded` the index's ranges of the whole partition, by column. With `by_partition` the records
    of single files are made elsewhere (staged), and `written` has one entry for all files of a partition
    (range_merge.merge_statistics). `overtakes` means that a write with an older instant is pending, while log files of
    the metadata table merge in the order of instants. Then a range that replaces the older record would also replace
    the range of that write, and hide its rows when it completes (docs/decisions/0010).
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
        """Whether rows are only rewritten: then the ranges of whole partitions stay true, and are never narrowed."""
        return self.operation in REWRITES

    def written_in(self) -> dict[str, list[FileStatistics]]:
        found: dict[str, list[FileStatistics]] = {}
        for item in self.written:
            found.setdefault(item.file.partition, []).append(item)
        return dict(sorted(found.items()))


@dataclass(frozen=True, slots=True)
class FileChanges:
    """The written (size in bytes) and deleted files, by partition path; files of `dropped_partitions` are `deleted`."""

    written: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    deleted: Mapping[str, frozenset[str]] = field(default_factory=dict)
    dropped_partitions: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Needs:
    ranges: bool = False
    bloom: bool = False
    expression: Expression | None = None
    remaining: bool = False
    """Whether the type needs statistics of all other files in written partitions (CommitUpdate.remaining)."""
    older_slices: bool = False
    """Whether the type starts with the files of all file slices, for queries of the past; else of the latest."""


@dataclass(frozen=True, slots=True)
class StoredFilter:
    """A record's filter: type code and base64 text (HoodieMetadataBloomFilter). `path` is the record's file."""

    type_code: str
    text: bytes
    instant: str
    is_deleted: bool
    path: str

    def parse(self) -> BloomFilter:
        return BloomFilter.parse(self.text, self.type_code, path=self.path)


class BloomFilterRules(RecordRules[StoredFilter]):
    """The rules of records with filters. Decoding does not parse the filters."""

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
