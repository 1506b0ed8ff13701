"""Keys and cells of metadata records, made one at a time: what the product's faster forms are compared with."""

from __future__ import annotations

from collections.abc import Iterable

from hudi_core.config.versions import V6
from hudi_core.metadata_table.keys import secondary_prefix
from hudi_core.metadata_table.record import FilesRecord, RecordEncoder, files_datum, stored_schema


def secondary_key(value: str | None, record_key: str) -> str:
    """The key of one record in a secondary index."""
    for char in ("\\", "$", "\0"):
        record_key = record_key.replace(char, f"\\{char}")
    return secondary_prefix(value) + record_key


def encode_items(records: Iterable[FilesRecord]) -> list[tuple[bytes, bytes]]:
    """The cells of an HFile block, sorted by key bytes, values by the schema of V6. Raises ValueError when two records
    share a key.
    """
    return RecordEncoder(stored_schema(V6)).cells((record.key, files_datum(record)) for record in records)
