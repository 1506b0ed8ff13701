"""Options of writing base files and merging rows (HoodieWriteConfig), of key generators, buckets and queries, and of
the size of plans. filegroup/merge/payload_store.py writes rows beyond the memory of a merge to files.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from hudi_core.config.keys import (
    ConfigKey,
    boolean,
    flag,
    keys_in,
    names,
    number,
    one_of,
    optional,
    read_fields,
    real_number,
    whole_number,
)
from hudi_core.frozen import dataclass

_MODELS: Final = "org.apache.hudi.common.model."


class Payload(str, Enum):
    """Payload classes by their names in properties and options."""

    LATEST = _MODELS + "OverwriteWithLatestAvroPayload"
    DEFAULT = _MODELS + "DefaultHoodieRecordPayload"
    EVENT_TIME = _MODELS + "EventTimeAvroPayload"
    NON_DEFAULTS = _MODELS + "OverwriteNonDefaultsWithLatestAvroPayload"
    PARTIAL_UPDATE = _MODELS + "PartialUpdateAvroPayload"
    AWS_DMS = _MODELS + "AWSDmsAvroPayload"
    POSTGRES = _MODELS + "debezium.PostgresDebeziumAvroPayload"


_MAX = 2**53
_MOST_SORTED = 512 << 20
"""The most bytes of rows in one sort: Arrow takes texts of a column as one array of at most 2 GiB. The last batch, or
overlapping pieces, come on top.
"""

PARQUET_CODEC = ConfigKey(
    "hoodie.parquet.compression.codec", None, one_of("UNCOMPRESSED", "SNAPPY", "GZIP", "LZ4", "LZ4_RAW", "ZSTD")
)
PARQUET_ROW_GROUP_BYTES = number("hoodie.parquet.block.size", 120 * 1024 * 1024, within=(1 << 16, _MAX))
ROW_GROUP_ROWS = number("airflow_hudi.parquet.row_group.rows", 128 << 10, within=(1, _MAX))
COPY_ROW_GROUPS = flag("airflow_hudi.compaction.copy_row_groups", default=True)
GZIP_LIBRARY = ConfigKey("airflow_hudi.parquet.gzip.library", "auto", one_of("auto", "isal", "libdeflate", "pyarrow"))
GZIP_LEVEL: ConfigKey[int | None] = ConfigKey("airflow_hudi.parquet.gzip.level", None, whole_number(1, 12))
DELTA_ENCODINGS = flag("airflow_hudi.parquet.delta_encodings", default=True)
BLOOM_ENTRIES = number("hoodie.index.bloom.num_entries", 60_000, within=(1, 10**9))
BLOOM_ERROR_RATE = ConfigKey("hoodie.index.bloom.fpp", 1e-9, real_number(0.0, 1.0))
BLOOM_MAX_ENTRIES = number("hoodie.bloom.index.filter.dynamic.max.entries", 100_000, within=(1, 10**9))
DELETE_FIELD = optional("hoodie.payload.delete.field")
DELETE_MARKER = optional("hoodie.payload.delete.marker")
MERGE_FUNCTION = optional("airflow_hudi.merge.function")
USE_RECORD_POSITIONS = flag("hoodie.merge.use.record.positions", default=True)
WRITE_RECORD_POSITIONS = flag("hoodie.write.record.positions", default=True)
LOG_BLOCK_FORMAT = ConfigKey("hoodie.logfile.data.block.format", "AVRO", one_of("AVRO", "PARQUET", "HFILE"))
MEMORY_BYTES = number("airflow_hudi.memory.bytes", 1 << 30, within=(1 << 20, _MAX))
QUERY_MEMORY_BYTES = 256 << 20
"""The memory of a task of a query when `airflow_hudi.memory.bytes` is not set."""
BATCH_ROWS = number("airflow_hudi.batch.rows", 65_536, within=(1, 10**7))
VERIFY = ConfigKey("airflow_hudi.verify", "counts", one_of("counts", "full"))
PLAN_MAX_BYTES: ConfigKey[int | None] = ConfigKey("airflow_hudi.plan.max.bytes", None, whole_number(1, _MAX))
SMALL_FILE_BYTES = number("hoodie.parquet.small.file.limit", 100 << 20, within=(-_MAX, _MAX))
RECORD_SIZE_THRESHOLD = ConfigKey("hoodie.record.size.estimation.threshold", 1.0, real_number(0.0, 1e9))
ALLOW_CORRUPT = flag("airflow_hudi.allow_corrupt_log_blocks")

WRITE_KEYS = keys_in(globals())


@dataclass(frozen=True, slots=True)
class WriteConfig:
    """Options of writing and merging; units are those of the keys."""

    bloom_entries: int = BLOOM_ENTRIES.field()
    bloom_error_rate: float = BLOOM_ERROR_RATE.field()
    bloom_max_entries: int = BLOOM_MAX_ENTRIES.field()
    parquet_codec: str | None = PARQUET_CODEC.field()
    row_group_bytes: int = PARQUET_ROW_GROUP_BYTES.field()
    row_group_rows: int = ROW_GROUP_ROWS.field()
    copy_row_groups: bool = COPY_ROW_GROUPS.field()
    gzip_library: str = GZIP_LIBRARY.field()
    gzip_level: int | None = GZIP_LEVEL.field()
    delta_encodings: bool = DELTA_ENCODINGS.field()
    memory_bytes: int = MEMORY_BYTES.field()
    batch_rows: int = BATCH_ROWS.field()
    allow_corrupt_log_blocks: bool = ALLOW_CORRUPT.field()
    log_block_format: str = LOG_BLOCK_FORMAT.field()

    @property
    def sorted_bytes(self) -> int:
        """Bytes of rows that a task sorts at once: a quarter of the budget, since sorting takes as much again."""
        return min(_MOST_SORTED, max(1 << 20, self.memory_bytes // 4))

    @property
    def merged_bytes(self) -> int:
        """The least bytes of sorted pieces that a task merges at once."""
        return min(_MOST_SORTED, self.memory_bytes // 8)

    @property
    def piece_bytes(self) -> int:
        """Bytes of a piece of sorted rows. A merge holds some pieces of each part of `sorted_bytes`."""
        return min(1 << 20, max(64 << 10, self.sorted_bytes // 64))

    @staticmethod
    def of(options: Mapping[str, str]) -> WriteConfig:
        return read_fields(WriteConfig, options)


_TIME: Final = "hoodie.keygen.timebased."
_OLD_TIME: Final = "hoodie.deltastreamer.keygen.timebased."


def _of_time(name: str) -> ConfigKey[str | None]:
    return optional(_TIME + name, aliases=(_OLD_TIME + name,))


TIME_TYPE: ConfigKey[str | None] = ConfigKey(
    _TIME + "timestamp.type",
    None,
    one_of("UNIX_TIMESTAMP", "EPOCHMILLISECONDS", "EPOCHMICROSECONDS", "DATE_STRING", "MIXED", "SCALAR"),
    (_OLD_TIME + "timestamp.type",),
)
TIME_UNIT = ConfigKey(
    _TIME + "timestamp.scalar.time.unit",
    "SECONDS",
    one_of("NANOSECONDS", "MICROSECONDS", "MILLISECONDS", "SECONDS", "MINUTES", "HOURS", "DAYS"),
    (_OLD_TIME + "timestamp.scalar.time.unit",),
)
TIME_INPUT = _of_time("input.dateformat")
TIME_DELIMITER = _of_time("input.dateformat.list.delimiter.regex")
TIME_OUTPUT = _of_time("output.dateformat")
TIME_ZONE = _of_time("timezone")
TIME_INPUT_ZONE = _of_time("input.timezone")
TIME_OUTPUT_ZONE = _of_time("output.timezone")
TYPED_PARTITION_FIELDS = names("hoodie.datasource.write.partitionpath.field")
WRITERS_KEYS = names("hoodie.datasource.write.recordkey.field")
WRITERS_ORDERING = names("hoodie.datasource.write.precombine.field")
CONSISTENT_TIMESTAMPS = flag("hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled")
NEW_ENCODING: ConfigKey[bool | None] = ConfigKey("hoodie.write.complex.keygen.new.encoding", None, boolean)
WRITERS_PAYLOAD = optional("hoodie.datasource.write.payload.class")
COMBINE_INSERTS = flag("hoodie.combine.before.insert")
COMBINE_UPSERTS = flag("hoodie.combine.before.upsert", default=True)
DUPLICATE_INSERTS = flag("hoodie.merge.allow.duplicate.on.inserts", default=True)
DROP_DUPLICATES = flag("hoodie.datasource.write.insert.drop.duplicates")
DUPLICATE_POLICY = ConfigKey("hoodie.datasource.insert.dup.policy", "NONE", one_of("NONE", "DROP", "FAIL"))
INDEX_TYPE = optional("hoodie.index.type")
MOVES_BY_SIMPLE = flag("hoodie.simple.index.update.partition.path", default=True)
MOVES_BY_BLOOM = flag("hoodie.bloom.index.update.partition.path", default=True)
MOVES_BY_RECORD = flag("hoodie.record.index.update.partition.path")
NUM_BUCKETS: ConfigKey[int | None] = ConfigKey("hoodie.bucket.index.num.buckets", None, whole_number(1, 9_999))
PARTITION_BUCKETS = optional("hoodie.bucket.index.partition.expressions")
HASH_FIELDS = names("hoodie.bucket.index.hash.field")
BUCKET_ENGINE = ConfigKey("hoodie.index.bucket.engine", "SIMPLE", one_of("SIMPLE", "CONSISTENT_HASHING"))
SLASHED_DATES = flag("hoodie.datasource.write.slash.separated.date.partitioning")

KEYGEN_KEYS = keys_in(globals(), but=WRITE_KEYS)


def with_properties(properties: Mapping[str, str], options: Mapping[str, str]) -> dict[str, str]:
    """Returns the options together with those in the table's properties, which take precedence."""
    return {**options, **properties}


TIMELINE_ZONE = ConfigKey("airflow_hudi.timeline.zone", "LOCAL", str)
READ_ZONE = optional("airflow_hudi.read.zone")
DATA_SKIPPING = flag("hoodie.enable.data.skipping", default=True)
FOOTER_SKIPPING = flag("airflow_hudi.read.footer_skipping")
STRICT = flag("airflow_hudi.read.strict")
FULL_SCAN = ConfigKey("hoodie.datasource.read.incr.fallback.fulltablescan.enable", None, boolean)
END_SCHEMA = flag("hoodie.datasource.read.schema.use.end.instanttime")
HOLLOW_COMMITS = ConfigKey("hoodie.read.timeline.holes.resolution.policy", "FAIL", one_of("FAIL", "BLOCK"))
SKIP_COMPACTION = flag("hoodie.datasource.read.incr.skip_compact")
SKIP_CLUSTERING = flag("hoodie.datasource.read.incr.skip_cluster")
REPORT_REPLACED = flag("airflow_hudi.incremental.report_replaced")

READ_KEYS = keys_in(globals(), but=(*WRITE_KEYS, *KEYGEN_KEYS))
