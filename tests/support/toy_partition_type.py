"""A partition type that only tests have: the size of each data file. One module, and one line of the registry
(docs/decisions/0013).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

from hudi_core.config.keys import ConfigKey
from hudi_core.metadata_table.partitions.protocol import Data, MergeData, PartitionType
from hudi_core.metadata_table.record import RecordRules
from hudi_core.metadata_table.records.file_statistics import Expression, FileChanges, FileStatistics, Needs, Record

TYPE = 99


def merge_sizes(key: str, older: Data, newer: Data, *, path: str) -> Data:
    """The newer record, which says how many were merged into it."""
    merged = older["BloomFilterMetadata"]["type"] + "+" + newer["BloomFilterMetadata"]["type"]
    return {**newer, "BloomFilterMetadata": {**newer["BloomFilterMetadata"], "type": merged}}


class FileSizesPartition(PartitionType):
    """Records lie in the fields of a filter: the stored schema has none for them."""

    name = "file_sizes"
    by_file = updated_by_clean = True
    merges: ClassVar[Mapping[int, MergeData]] = {TYPE: merge_sizes}
    groups = ConfigKey("toy.file.group.count", 2, int)
    needs = Needs(older_slices=True)

    @classmethod
    def of_files(cls, instant: str, files: Iterable[FileStatistics], expression: Expression | None) -> Iterator[Record]:
        """One record a file."""
        return (_record(item.file.partition, item.file.name, instant, str(item.file.size)) for item in files)

    def of_clean(self, instant: str, changes: FileChanges) -> Iterator[Record]:
        """A deletion for each file."""
        for partition, names in changes.deleted.items():
            for name in names:
                yield _record(partition, name, instant, None)


def _record(partition: str, name: str, instant: str, size: str | None) -> Record:
    body = {
        "type": "size",
        "timestamp": instant,
        "bloomFilter": b"" if size is None else size.encode(),
        "isDeleted": size is None,
    }
    return f"{partition}/{name}", {"type": TYPE, "BloomFilterMetadata": body}


class FileSizesRules(RecordRules[int | None]):
    """The size, None of a deleted file."""

    def decode(self, key: str, datum: dict[str, Any], *, path: str) -> int | None:
        body = datum["BloomFilterMetadata"]
        return None if body["isDeleted"] else int(body["bloomFilter"])
