"""The kind `bloom_filters`: the filter over record keys that each base file's footer holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from hudi_core.metadata_table.indexed_table import IndexedTable, positive_setting
from hudi_core.metadata_table.keys import bloom_filter_key
from hudi_core.metadata_table.partitions.protocol import numbered_file_ids
from hudi_core.metadata_table.record import RecordType
from hudi_core.metadata_table.records.file_statistics import (
    CommitUpdate,
    DataFileRef,
    FileStatistics,
    FilterText,
    Needs,
    Record,
)

GROUPS: Final = "hoodie.metadata.index.bloom.filter.file.group.count"
_DEFAULT_GROUPS: Final = 4


class BloomFiltersPartition:
    """See Kind. A base file whose footer has no filter gets no record: it may hold any key."""

    needs = Needs(bloom=True, older_slices=True)

    def __init__(self, partition: str, table: IndexedTable) -> None:
        self.partition = partition

    def of_commit(self, statistics: CommitUpdate) -> Iterator[Record]:
        """The filters of the base files written."""
        return iter(()) if statistics.by_partition else file_filters(statistics.instant, statistics.written)

    def initial(self, instant: str, files: Iterable[FileStatistics]) -> Iterator[Record]:
        """Those of all base files."""
        return file_filters(instant, files)

    def group_count(self, settings: Mapping[str, str], records: int = 0) -> int:
        """As GROUPS says, or four."""
        return positive_setting(settings, GROUPS, _DEFAULT_GROUPS)

    def file_ids(self, count: int) -> list[str]:
        """See Kind."""
        return numbered_file_ids("bloom-filters-", count)


def filter_record(instant: str, file: DataFileRef, found: FilterText) -> Record:
    """The record of a base file's filter (HoodieMetadataPayload.createBloomFilterMetadataRecord)."""
    body = {
        "type": found.type_code,
        "timestamp": instant,
        "bloomFilter": found.text.encode("ascii"),
        "isDeleted": False,
    }
    return bloom_filter_key(file.partition, file.name), {
        "type": int(RecordType.BLOOM_FILTER),
        "BloomFilterMetadata": body,
    }


def file_filters(instant: str, files: Iterable[FileStatistics]) -> Iterator[Record]:
    """The records of base files that have a filter."""
    return (
        filter_record(instant, statistics.file, statistics.bloom)
        for statistics in files
        if statistics.bloom is not None and statistics.file.is_base
    )
