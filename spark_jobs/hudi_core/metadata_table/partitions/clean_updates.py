"""What a clean tells each kind of metadata (HoodieTableMetadataUtil.convertMetadataToRecords(HoodieCleanMetadata) of
0.15 and 1.x). Pure.

`files` lists the files as deleted, `bloom_filters` and `column_stats` get deletions for them, and so do expression
indexes by their type. Statistics of whole partitions only ever grow wider, and a record index and secondary indexes
name file groups, not files: the clean has nothing for them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from hudi_core.errors import UnsupportedError
from hudi_core.metadata_table.file_changes import FileChanges
from hudi_core.metadata_table.index_definitions import IndexDefinition
from hudi_core.metadata_table.keys import bloom_filter_key, column_id, file_id, partition_id
from hudi_core.metadata_table.partition_type import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    FILES_PARTITION,
    PARTITION_STATS,
    is_expression_index,
    is_row_level,
)
from hudi_core.metadata_table.record import FILE_NAME, Datum, FileDatum, RecordType, files_datum
from hudi_core.metadata_table.records.files import deletion_records
from hudi_core.model.names import BaseFileName, parse_data_file

_UNKNOWN: Final = -1
_NULL_TYPE: Final = {"typeOrdinal": 1, "additionalInfo": None}
"""The value type of a range without values, in indexes of version 2 (ValueMetadata.NULL_METADATA)."""
MAX_DELETIONS: Final = 1 << 18
"""Deletions of statistics or filters that a clean writes into one partition of the metadata table; some 600 bytes each
while they are sorted.

Those of more files are left out: readers ask for the statistics and filters of listed files only, and no file name
comes twice.
"""

Record = tuple[str, Datum]
"""A key and its Avro datum."""


@dataclass(frozen=True, slots=True)
class Indexed:
    """What the indexes of a table are about: `definitions` by metadata partition, and the columns that statistics hold
    without one.
    """

    definitions: Mapping[str, IndexDefinition]
    columns: Sequence[str]

    def partition_type(self, partition: str) -> str | None:
        """Whether a metadata partition holds records of COLUMN_STATS, of BLOOM_FILTERS, or of neither (None).

        Raises UnsupportedError for a partition that Hudi 0.15 to 1.2 do not make, and for an expression index without a
        known type.
        """
        if partition in (COLUMN_STATS, BLOOM_FILTERS):
            return partition
        if partition in (FILES_PARTITION, PARTITION_STATS) or is_row_level(partition):
            return None
        definition = self.definitions.get(partition)
        found = None if definition is None else definition.type.lower()
        if not is_expression_index(partition) or found not in (COLUMN_STATS, BLOOM_FILTERS):
            raise UnsupportedError(
                f"the metadata partition `{partition}` holds records that this release cannot keep true",
                path=f".hoodie/metadata/{partition}",
                remedy=(
                    f"drop it with `hudictl metadata drop TABLE --partition {partition}`, or the metadata table: "
                    "Hudi's next write builds it anew"
                ),
            )
        return found

    def columns_of(self, partition: str) -> Sequence[str]:
        """The columns whose statistics a metadata partition holds."""
        definition = self.definitions.get(partition)
        return definition.source_fields if definition is not None and definition.source_fields else self.columns

    def version_of(self, partition: str) -> int:
        """The version of an index; 1 where nothing says."""
        definition = self.definitions.get(partition)
        return 1 if definition is None else definition.version


def clean_records(
    instant: str, changes: FileChanges, partition_types: Collection[str], indexed: Indexed
) -> dict[str, Iterator[Record]]:
    """The records of clean `instant`, by metadata partition, of those of `kinds` that a clean has something for.

    `changes.deleted` are the files of its plan. Raises UnsupportedError as Indexed.kind.
    """
    found: dict[str, Iterator[Record]] = {}
    for name in sorted(partition_types):
        partition_type = indexed.partition_type(name)
        if partition_type == COLUMN_STATS:
            found[name] = _statistics(changes, indexed.columns_of(name), indexed.version_of(name))
        elif partition_type == BLOOM_FILTERS:
            found[name] = _filters(instant, changes)
    found[FILES_PARTITION] = (
        (record.key, files_datum(record)) for record in deletion_records(changes.deleted, changes.dropped_partitions)
    )
    return found


def _statistics(changes: FileChanges, columns: Sequence[str], version: int) -> Iterator[Record]:
    stubs = {column_id(column): _stub(column, version) for column in columns}
    written = 0
    for partition, names in sorted(changes.deleted.items()):
        place = partition_id(partition)
        for name in sorted(names):
            written += len(stubs)
            if written > MAX_DELETIONS:
                return
            file = file_id(name)
            for column, stub in stubs.items():
                yield column + place + file, FileDatum(stub, name)


def _stub(column: str, version: int) -> dict[str, Any]:
    """A range of which nothing is known (HoodieColumnRangeMetadata.stub), deleted; of any file."""
    return {
        "type": int(RecordType.COLUMN_STATS),
        "ColumnStatsMetadata": {
            "fileName": FILE_NAME,
            "columnName": column,
            "minValue": None,
            "maxValue": None,
            "valueCount": _UNKNOWN,
            "nullCount": _UNKNOWN,
            "totalSize": _UNKNOWN,
            "totalUncompressedSize": _UNKNOWN,
            "isDeleted": True,
            "valueType": _NULL_TYPE if version > 1 else None,
        },
    }


def _filters(instant: str, changes: FileChanges) -> Iterator[Record]:
    """Only base files have filters."""
    body = {"type": "", "timestamp": instant, "bloomFilter": b"", "isDeleted": True}
    datum = {"type": int(RecordType.BLOOM_FILTER), "BloomFilterMetadata": body}
    bases = (
        (partition, name)
        for partition, names in sorted(changes.deleted.items())
        for name in sorted(names)
        if _is_base(name)
    )
    for partition, name in islice(bases, MAX_DELETIONS):
        yield bloom_filter_key(partition, name), datum


def _is_base(name: str) -> bool:
    return isinstance(parse_data_file(name), BaseFileName)
