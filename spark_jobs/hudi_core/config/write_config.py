"""How base files are written, as one value that crosses to the tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hudi_core.config.service_config import (
    ALLOW_CORRUPT,
    BATCH_ROWS,
    BLOOM_ENTRIES,
    BLOOM_ERROR_RATE,
    BLOOM_MAX_ENTRIES,
    DELETE_FIELD,
    DELETE_MARKER,
    MEMORY_BYTES,
    PARQUET_CODEC,
    PARQUET_ROW_GROUP_BYTES,
)


@dataclass(frozen=True, slots=True)
class WriteConfig:
    """Options of writing and merging; units are in service_config's keys of the same meaning."""

    bloom_entries: int
    bloom_error_rate: float
    bloom_max_entries: int
    parquet_codec: str | None
    row_group_bytes: int
    delete_field: str | None
    delete_marker: str | None
    memory_bytes: int
    batch_rows: int
    allow_corrupt_log_blocks: bool

    @staticmethod
    def of(options: Mapping[str, str]) -> WriteConfig:
        """Reads the options; raises ConfigError naming the key whose value is not valid."""
        return WriteConfig(
            bloom_entries=BLOOM_ENTRIES.read(options),
            bloom_error_rate=BLOOM_ERROR_RATE.read(options),
            bloom_max_entries=BLOOM_MAX_ENTRIES.read(options),
            parquet_codec=PARQUET_CODEC.read(options),
            row_group_bytes=PARQUET_ROW_GROUP_BYTES.read(options),
            delete_field=DELETE_FIELD.read(options),
            delete_marker=DELETE_MARKER.read(options),
            memory_bytes=MEMORY_BYTES.read(options),
            batch_rows=BATCH_ROWS.read(options),
            allow_corrupt_log_blocks=ALLOW_CORRUPT.read(options),
        )
