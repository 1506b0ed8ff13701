"""Options of writing base files and merging rows (HoodieWriteConfig), and those of key generators where the table's
properties do not hold them (KeyGeneratorOptions, TimestampKeyGeneratorConfig). Rows beyond the memory of a merge go to
files: filegroup/merge/payload_store.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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

_MAX = 2**53
_MOST_SORTED = 512 << 20
"""Arrow takes texts of a column as one array of 2 GiB at most; the last batch, or overlapping pieces, come on top."""

PARQUET_CODEC = ConfigKey(
    "hoodie.parquet.compression.codec",
    None,
    one_of("UNCOMPRESSED", "SNAPPY", "GZIP", "LZ4", "LZ4_RAW", "ZSTD"),
    "compression of base files, of those that Spark reads; when absent, the codec of the file that is replaced",
)
PARQUET_ROW_GROUP_BYTES = number(
    "hoodie.parquet.block.size", 120 * 1024 * 1024, "bytes of a row group of a base file", within=(1 << 16, _MAX)
)
ROW_GROUP_ROWS = number(
    "airflow_hudi.parquet.row_group.rows",
    128 << 10,
    "rows of a row group of a base file at most; compaction copies row groups that no log record touches",
    within=(1, _MAX),
)
COPY_ROW_GROUPS = flag(
    "airflow_hudi.compaction.copy_row_groups",
    "copy row groups that no log record touches instead of decoding them",
    default=True,
)
GZIP_LIBRARY = ConfigKey(
    "airflow_hudi.parquet.gzip.library",
    "auto",
    one_of("auto", "isal", "libdeflate", "pyarrow"),
    "what compresses base files of gzip: `isal`, `libdeflate`, `pyarrow`, or `auto`, the first of them that is there",
)
GZIP_LEVEL: ConfigKey[int | None] = ConfigKey(
    "airflow_hudi.parquet.gzip.level",
    None,
    whole_number(1, 12),
    "its level: `isal` 1 to 3 (default 1), `libdeflate` 1 to 12 (5), `pyarrow` 1 to 9 (6)",
)
DELTA_ENCODINGS = flag(
    "airflow_hudi.parquet.delta_encodings",
    "write delta encodings where neighbouring values are alike; readers before Spark 3.3 need `false`",
    default=True,
)
BLOOM_ENTRIES = number(
    "hoodie.index.bloom.num_entries",
    60_000,
    "number of keys for which the bloom filter of a base file is sized at first",
    within=(1, 10**9),
)
BLOOM_ERROR_RATE = ConfigKey(
    "hoodie.index.bloom.fpp", 1e-9, real_number(0.0, 1.0), "rate of false positives of the bloom filter of a base file"
)
BLOOM_MAX_ENTRIES = number(
    "hoodie.bloom.index.filter.dynamic.max.entries",
    100_000,
    "number of keys up to which a bloom filter grows",
    within=(1, 10**9),
)
DELETE_FIELD = optional(
    "hoodie.payload.delete.field", "column that marks a row as deleted (DefaultHoodieRecordPayload)"
)
DELETE_MARKER = optional(
    "hoodie.payload.delete.marker", "value of that column that deletes (DefaultHoodieRecordPayload)"
)
MERGE_FUNCTION = optional(
    "airflow_hudi.merge.function", "name of a merge function that this process registered (register_merger)"
)
USE_RECORD_POSITIONS = flag(
    "hoodie.merge.use.record.positions",
    "merge log records with the base rows whose positions their blocks name, and with those of their keys alone where "
    "false; from table version 8 on",
    default=True,
)
MEMORY_BYTES = number(
    "airflow_hudi.memory.bytes",
    1 << 30,
    "bytes of log records that one task holds in memory before it spills to disk",
    within=(1 << 20, _MAX),
)
QUERY_MEMORY_BYTES = 256 << 20
"""What a task of a query holds where `airflow_hudi.memory.bytes` is not set."""
BATCH_ROWS = number(
    "airflow_hudi.batch.rows",
    65_536,
    "number of rows of a base file that are read at once at most; fewer are where an eighth of "
    "`airflow_hudi.memory.bytes` holds fewer",
    within=(1, 10**7),
)
VERIFY = ConfigKey(
    "airflow_hudi.verify",
    "counts",
    one_of("counts", "full"),
    "what a compaction or clustering proves before it is published: `counts`, of rows in and out, or `full`, which "
    "reads what was planned and what was written once more and compares a hash over all rows",
)
PLAN_MAX_BYTES: ConfigKey[int | None] = ConfigKey(
    "airflow_hudi.plan.max.bytes",
    None,
    whole_number(1, _MAX),
    "bytes that a plan of a compaction, log compaction or clustering reads at most, one file slice or group of them in "
    "any case: of what is due that which gains most for its bytes; what is left out is due at once",
)
SMALL_FILE_BYTES = number(
    "hoodie.parquet.small.file.limit",
    100 << 20,
    "times `hoodie.record.size.estimation.threshold`: bytes of base files from which a commit shows an overwrite how "
    "large a row is",
    within=(-_MAX, _MAX),
)
RECORD_SIZE_THRESHOLD = ConfigKey(
    "hoodie.record.size.estimation.threshold",
    1.0,
    real_number(0.0, 1e9),
    "times `hoodie.parquet.small.file.limit`: bytes of base files from which a commit shows an overwrite how large a "
    "row is, and so how many files a partition needs",
)
ALLOW_CORRUPT = flag(
    "airflow_hudi.allow_corrupt_log_blocks",
    "rewrite a file slice although a corrupt log block holds rows of a completed commit, which are lost by that",
)

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

    @property
    def sorted_bytes(self) -> int:
        """Bytes of rows that a task sorts at once: a quarter of the budget, since sorting takes as much again."""
        return min(_MOST_SORTED, max(1 << 20, self.memory_bytes // 4))

    @property
    def merged_bytes(self) -> int:
        """Bytes of sorted pieces that a task merges at once, at least."""
        return min(_MOST_SORTED, self.memory_bytes // 8)

    @property
    def piece_bytes(self) -> int:
        """Bytes of a piece of sorted rows: a merge holds some of each part of `sorted_bytes`, of which there are the
        more, the less memory there is.
        """
        return min(1 << 20, max(64 << 10, self.sorted_bytes // 64))

    @staticmethod
    def of(options: Mapping[str, str]) -> WriteConfig:
        return read_fields(WriteConfig, options)


_TIME: Final = "hoodie.keygen.timebased."
_OLD_TIME: Final = "hoodie.deltastreamer.keygen.timebased."


def _of_time(name: str, doc: str) -> ConfigKey[str | None]:
    return ConfigKey(_TIME + name, None, lambda value: value or None, doc, (_OLD_TIME + name,))


TIME_TYPE: ConfigKey[str | None] = ConfigKey(
    _TIME + "timestamp.type",
    None,
    one_of("UNIX_TIMESTAMP", "EPOCHMILLISECONDS", "EPOCHMICROSECONDS", "DATE_STRING", "MIXED", "SCALAR"),
    "what a partition column of times holds",
    (_OLD_TIME + "timestamp.type",),
)
TIME_UNIT = ConfigKey(
    _TIME + "timestamp.scalar.time.unit",
    "SECONDS",
    one_of("NANOSECONDS", "MICROSECONDS", "MILLISECONDS", "SECONDS", "MINUTES", "HOURS", "DAYS"),
    "unit of the numbers of type SCALAR",
    (_OLD_TIME + "timestamp.scalar.time.unit",),
)
TIME_INPUT = _of_time("input.dateformat", "format of the texts in a partition column of times; several with commas")
TIME_DELIMITER = _of_time(
    "input.dateformat.list.delimiter.regex", "what divides these formats; this release reads commas alone"
)
TIME_OUTPUT = _of_time("output.dateformat", "format of the partition paths of times")
TIME_ZONE = _of_time("timezone", "zone of both: a region, or an offset such as GMT+8:00")
TIME_INPUT_ZONE = _of_time("input.timezone", "zone of texts without one")
TIME_OUTPUT_ZONE = _of_time(
    "output.timezone", "zone of the partition paths; without it, of texts that of the input, or their own"
)
TYPED_PARTITION_FIELDS = names(
    "hoodie.datasource.write.partitionpath.field",
    "partition columns with their types (`day:SIMPLE,at:TIMESTAMP`), for a custom key generator of table version 6",
)
CONSISTENT_TIMESTAMPS = flag(
    "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled",
    "keys and partition paths have timestamps as text with fractions, which this release does not write",
)
NEW_ENCODING: ConfigKey[bool | None] = ConfigKey(
    "hoodie.write.complex.keygen.new.encoding",
    None,
    boolean,
    "keys of the complex key generator with one field are its bare values; only for versions 6 and 8, and where no row "
    "shows it",
)
COMBINE_INSERTS = flag(
    "hoodie.combine.before.insert",
    "of rows of a partition with one key an overwrite writes the one with the greatest ordering value, of several the "
    "last",
)
INDEX_TYPE = optional(
    "hoodie.index.type", "the index by which writers find rows; with a global one an overwrite combines none"
)
NUM_BUCKETS: ConfigKey[int | None] = ConfigKey(
    "hoodie.bucket.index.num.buckets",
    None,
    whole_number(1, 9_999),
    "buckets of each partition of a table whose writers have the index type BUCKET; an overwrite needs it",
)
PARTITION_BUCKETS = optional(
    "hoodie.bucket.index.partition.expressions",
    "numbers of buckets of single partitions, which an overwrite does not write",
)
HASH_FIELDS = names(
    "hoodie.bucket.index.hash.field", "fields of the record key by which rows have their bucket; all without it"
)
BUCKET_ENGINE = ConfigKey(
    "hoodie.index.bucket.engine",
    "SIMPLE",
    one_of("SIMPLE", "CONSISTENT_HASHING"),
    "how many buckets there are: a fixed number, or as their sizes need, which an overwrite does not write",
)
SLASHED_DATES = flag(
    "hoodie.datasource.write.slash.separated.date.partitioning",
    "dates in partition paths are divided by slashes; this release does not write them",
)

KEYGEN_KEYS = keys_in(globals(), but=WRITE_KEYS)


def with_properties(properties: Mapping[str, str], options: Mapping[str, str]) -> dict[str, str]:
    """The options, and those that the table's properties hold, which come first."""
    return {**options, **properties}
