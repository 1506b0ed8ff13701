"""Bloom filters of base files in the metadata table: `bloom_filters`, and expression indexes of that type
(HoodieMetadataBloomFilter).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hudi_core.codec.bloom import BloomFilter
from hudi_core.errors import CorruptFileError
from hudi_core.metadata_table.record import RecordType


@dataclass(frozen=True, slots=True)
class StoredFilter:
    """A base file's filter as it is stored: its type code and its base64 text; `instant` is the commit that wrote it,
    `path` where it lies.
    """

    type_code: str
    text: bytes
    instant: str
    is_deleted: bool
    path: str

    def parse(self) -> BloomFilter:
        """The filter; raises CorruptFileError."""
        return BloomFilter.parse(self.text, self.type_code, path=self.path)


class BloomFilterRules:
    """group_reader.RecordRules of the partitions that hold filters."""

    keyless = False

    def decode(self, key: str, datum: dict[str, Any], *, path: str) -> StoredFilter:
        """The filter of a datum, not parsed yet; raises CorruptFileError naming `path`."""
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

    def merge(self, older: StoredFilter, newer: StoredFilter, *, path: str) -> StoredFilter:
        """The newer one: a file's filter never changes."""
        return newer
