"""The partition type `bloom_filters`: the filter over record keys that each base file's footer holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from hudi_core.config.metadata_config import BLOOM_FILTER_GROUPS
from hudi_core.metadata_table.keys import bloom_filter_key
from hudi_core.metadata_table.partition_type import BLOOM_FILTERS
from hudi_core.metadata_table.partitions.protocol import PartitionType
from hudi_core.metadata_table.record import RecordType
from hudi_core.metadata_table.records.file_statistics import (
    MAX_DELETIONS,
    DataFileRef,
    Expression,
    FileChanges,
    FileStatistics,
    FilterText,
    Needs,
    Record,
)
from hudi_core.model.names import BaseFileName, parse_data_file


class BloomFiltersPartition(PartitionType):
    """A base file whose footer has no filter gets no record: it may hold any key."""

    name = BLOOM_FILTERS
    by_file = updated_by_clean = True
    groups = BLOOM_FILTER_GROUPS
    needs = Needs(bloom=True, older_slices=True)

    @classmethod
    def of_files(cls, instant: str, files: Iterable[FileStatistics], expression: Expression | None) -> Iterator[Record]:
        return (
            filter_record(instant, statistics.file, statistics.bloom)
            for statistics in files
            if statistics.bloom is not None and statistics.file.is_base
        )

    def of_clean(self, instant: str, changes: FileChanges) -> Iterator[Record]:
        return deleted_filters(instant, changes)


def filter_record(instant: str, file: DataFileRef, found: FilterText) -> Record:
    """HoodieMetadataPayload.createBloomFilterMetadataRecord."""
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


def deleted_filters(instant: str, changes: FileChanges) -> Iterator[Record]:
    body = {"type": "", "timestamp": instant, "bloomFilter": b"", "isDeleted": True}
    datum = {"type": int(RecordType.BLOOM_FILTER), "BloomFilterMetadata": body}
    bases = (
        (partition, name)
        for partition, names in sorted(changes.deleted.items())
        for name in sorted(names)
        if isinstance(parse_data_file(name), BaseFileName)
    )
    for partition, name in islice(bases, MAX_DELETIONS):
        yield bloom_filter_key(partition, name), datum
