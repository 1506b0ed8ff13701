"""Bloom filters of base files as they are stored: `bloom_filters`, and expression indexes of that type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hudi_core.codec.bloom import BloomFilter
from hudi_core.errors import CorruptFileError
from hudi_core.metadata_table.record import RecordRules, RecordType


@dataclass(frozen=True, slots=True)
class StoredFilter:
    """Its type code and its base64 text (HoodieMetadataBloomFilter); `path` is where it lies."""

    type_code: str
    text: bytes
    instant: str
    is_deleted: bool
    path: str

    def parse(self) -> BloomFilter:
        """Raises CorruptFileError."""
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
