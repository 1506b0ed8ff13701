"""From values of an indexed column to record keys: records of `secondary_index_*` (HoodieSecondaryIndexInfo,
SecondaryIndexKeyUtils).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from hudi_core.errors import CorruptFileError
from hudi_core.metadata_table.keys import parse_secondary_key, secondary_prefix
from hudi_core.metadata_table.read.partition import MetadataPartition
from hudi_core.metadata_table.record import RecordType


class SecondaryIndexRules:
    """group_reader.RecordRules of a secondary index: whether the pair in the key exists (False: it was deleted)."""

    keyless = True

    def decode(self, key: str, datum: dict[str, Any], *, path: str) -> bool:
        """Whether the pair exists; raises CorruptFileError naming `path`."""
        body = datum.get("SecondaryIndexMetadata")
        if (
            datum.get("type") != RecordType.SECONDARY_INDEX
            or not isinstance(body, dict)
            or not isinstance(body.get("isDeleted"), bool)
        ):
            raise CorruptFileError(
                f"metadata record {key!r} is of type {datum.get('type')!r}, not of a secondary index", path=path
            )
        return not body["isDeleted"]

    def merge(self, older: bool, newer: bool, *, path: str) -> bool:
        """The newer one."""
        return newer


def record_keys(
    partition: MetadataPartition[bool], values: Iterable[str | None], *, by_value: bool
) -> dict[str | None, list[str]]:
    """The record keys of the rows with each of `values`, sorted; values without rows are absent.

    `by_value` is index version 2: a value's keys are all in the file group that the value's part of the key hashes to.
    In version 1 the whole key is hashed, so that all file groups are read.
    """
    prefixes = sorted({secondary_prefix(value) for value in values})
    found: dict[str | None, list[str]] = defaultdict(list)
    for key, current in partition.with_prefixes(prefixes, prefixes if by_value else None):
        if current:
            value, record_key = parse_secondary_key(key)
            found[value].append(record_key)
    return {value: sorted(keys) for value, keys in found.items()}
