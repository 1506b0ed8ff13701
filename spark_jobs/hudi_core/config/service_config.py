"""Options of services, under Hudi's own names where Hudi has them, else below `airflow_hudi.`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hudi_core.config.archive_config import ARCHIVE_KEYS
from hudi_core.config.clean_config import CLEAN_KEYS
from hudi_core.config.indexing_config import INDEXING_KEYS
from hudi_core.config.keys import ConfigKey, boolean, one_of, optional_text, real_number, text, whole_number
from hudi_core.config.lock_config import LOCK_KEYS
from hudi_core.config.read_config import READ_KEYS
from hudi_core.config.transaction_config import TRANSACTION_KEYS
from hudi_core.config.verb_config import DOCTOR_KEYS, METADATA_KEYS, ROLLBACK_KEYS
from hudi_core.errors import ConfigError

_MAX = 2**53

HEARTBEAT_INTERVAL_MS: ConfigKey[int] = ConfigKey(
    "hoodie.client.heartbeat.interval_in_ms",
    60_000,
    whole_number(1, 10**8),
    "milliseconds between two heartbeats of a run",
)
HEARTBEAT_MISSES: ConfigKey[int] = ConfigKey(
    "hoodie.client.heartbeat.tolerable.misses",
    2,
    whole_number(1, 1000),
    "heartbeats that may be missed before a run counts as dead",
)
BLOOM_ENTRIES: ConfigKey[int] = ConfigKey(
    "hoodie.index.bloom.num_entries",
    60_000,
    whole_number(1, 10**9),
    "number of keys for which the bloom filter of a base file is sized at first",
)
BLOOM_ERROR_RATE: ConfigKey[float] = ConfigKey(
    "hoodie.index.bloom.fpp", 1e-9, real_number(0.0, 1.0), "rate of false positives of the bloom filter of a base file"
)
BLOOM_MAX_ENTRIES: ConfigKey[int] = ConfigKey(
    "hoodie.bloom.index.filter.dynamic.max.entries",
    100_000,
    whole_number(1, 10**9),
    "number of keys up to which a bloom filter grows",
)
PARQUET_CODEC: ConfigKey[str | None] = ConfigKey(
    "hoodie.parquet.compression.codec",
    None,
    one_of("UNCOMPRESSED", "SNAPPY", "GZIP", "LZ4", "LZ4_RAW", "ZSTD", "BROTLI"),
    "compression of base files; when absent, the codec of the file that is replaced",
)
PARQUET_ROW_GROUP_BYTES: ConfigKey[int] = ConfigKey(
    "hoodie.parquet.block.size", 120 * 1024 * 1024, whole_number(1 << 16, _MAX), "bytes of a row group of a base file"
)
DELETE_FIELD: ConfigKey[str | None] = ConfigKey(
    "hoodie.payload.delete.field",
    None,
    optional_text,
    "column that marks a row as deleted (DefaultHoodieRecordPayload)",
)
DELETE_MARKER: ConfigKey[str | None] = ConfigKey(
    "hoodie.payload.delete.marker",
    None,
    optional_text,
    "value of that column that deletes (DefaultHoodieRecordPayload)",
)
MEMORY_BYTES: ConfigKey[int] = ConfigKey(
    "airflow_hudi.memory.bytes",
    1 << 30,
    whole_number(1 << 20, _MAX),
    "bytes of log records that one task holds in memory before it spills to disk",
)
BATCH_ROWS: ConfigKey[int] = ConfigKey(
    "airflow_hudi.batch.rows", 65_536, whole_number(1, 10**7), "number of rows of a base file that are read at once"
)
ALLOW_CORRUPT: ConfigKey[bool] = ConfigKey(
    "airflow_hudi.allow_corrupt_log_blocks",
    False,
    boolean,
    "compact a file slice although one of its log blocks is corrupt",
)
TIMELINE_ZONE: ConfigKey[str] = ConfigKey(
    "airflow_hudi.timeline.zone",
    "LOCAL",
    text,
    "time zone of the writers of a table whose instants are LOCAL, such as Europe/Berlin",
)
MERGE_FUNCTION: ConfigKey[str | None] = ConfigKey(
    "airflow_hudi.merge.function",
    None,
    optional_text,
    "name of a merge function that this process registered (register_merger)",
)
DATA_SKIPPING: ConfigKey[bool] = ConfigKey(
    "hoodie.enable.data.skipping",
    True,
    boolean,
    "skip files by the indexes of the metadata table when a query has a predicate",
)
FOOTER_SKIPPING: ConfigKey[bool] = ConfigKey(
    "airflow_hudi.read.footer_skipping",
    False,
    boolean,
    "skip base files by their footers where no index covers them; opens each of them to plan",
)
READ_ZONE: ConfigKey[str | None] = ConfigKey(
    "airflow_hudi.read.zone",
    None,
    optional_text,
    "time zone of local time in predicates, such as Europe/Berlin; UTC when absent",
)

KEYS: tuple[ConfigKey[object], ...] = (
    *LOCK_KEYS,
    HEARTBEAT_INTERVAL_MS,
    HEARTBEAT_MISSES,
    BLOOM_ENTRIES,
    BLOOM_ERROR_RATE,
    BLOOM_MAX_ENTRIES,
    PARQUET_CODEC,
    PARQUET_ROW_GROUP_BYTES,
    DELETE_FIELD,
    DELETE_MARKER,
    MEMORY_BYTES,
    BATCH_ROWS,
    ALLOW_CORRUPT,
    TIMELINE_ZONE,
    MERGE_FUNCTION,
    DATA_SKIPPING,
    FOOTER_SKIPPING,
    READ_ZONE,
    *READ_KEYS,
    *CLEAN_KEYS,
    *ARCHIVE_KEYS,
    *TRANSACTION_KEYS,
    *ROLLBACK_KEYS,
    *DOCTOR_KEYS,
    *INDEXING_KEYS,
    *METADATA_KEYS,
)
"""Every option that this release reads, for `hudictl` and the user guide."""


def check_options(options: Mapping[str, str]) -> None:
    """Raises ConfigError for an option of ours that does not exist or any known option whose value is not valid.

    Options of Hudi that this release has no use for are let through: job configurations are shared with Hudi's own
    jobs.
    """
    known = {name for key in KEYS for name in (key.name, *key.aliases)}
    unknown = sorted(name for name in options if name.startswith("airflow_hudi.") and name not in known)
    if unknown:
        ours = ", ".join(sorted(name for name in known if name.startswith("airflow_hudi.")))
        raise ConfigError(f"unknown options: {', '.join(unknown)}", remedy=f"known options of airflow_hudi: {ours}")
    for key in KEYS:
        key.read(options)


@dataclass(frozen=True, slots=True)
class HeartbeatConfig:
    """The rhythm of a run's heartbeat: milliseconds between two, and how many may be missed."""

    interval_ms: int
    tolerable_misses: int

    @staticmethod
    def of(options: Mapping[str, str]) -> HeartbeatConfig:
        """Reads the heartbeat options."""
        return HeartbeatConfig(HEARTBEAT_INTERVAL_MS.read(options), HEARTBEAT_MISSES.read(options))
