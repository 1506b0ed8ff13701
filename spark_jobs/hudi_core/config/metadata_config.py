"""Options of the metadata table, by Hudi's own names (HoodieMetadataConfig).

They describe how an index is initialized. The modules of the metadata table take names and defaults from here, and
check the text when they use it: a table may have options for an index that it does not have.
"""

from __future__ import annotations

from hudi_core.config.keys import ConfigKey, name_list, one_of, optional_text, real_number, whole_number

_MAX = 2**31 - 1
_COUNT = whole_number(1, _MAX)

METADATA_DELTA_COMMITS: ConfigKey[int] = ConfigKey(
    "hoodie.metadata.compact.max.delta.commits",
    10,
    _COUNT,
    "number of deltacommits of the metadata table since its last compaction that make the next one due",
)
STATISTICS_COLUMNS: ConfigKey[tuple[str, ...]] = ConfigKey(
    "hoodie.metadata.index.column.stats.column.list",
    (),
    name_list,
    "columns of `column_stats` and `partition_stats`, separated by commas, for an index that is initialized; in table "
    "version 6 for every commit",
)
STATISTICS_COLUMN_COUNT: ConfigKey[int] = ConfigKey(
    "hoodie.metadata.index.column.stats.max.columns.to.index",
    32,
    _COUNT,
    "number of columns of an index that is initialized without that list (table versions 8 and 9)",
)
COLUMN_STATS_GROUPS: ConfigKey[int] = ConfigKey(
    "hoodie.metadata.index.column.stats.file.group.count",
    2,
    _COUNT,
    "number of file groups with which `column_stats` is initialized",
)
PARTITION_STATS_GROUPS: ConfigKey[int] = ConfigKey(
    "hoodie.metadata.index.partition.stats.file.group.count",
    1,
    _COUNT,
    "number of file groups with which `partition_stats` is initialized",
)
BLOOM_FILTER_GROUPS: ConfigKey[int] = ConfigKey(
    "hoodie.metadata.index.bloom.filter.file.group.count",
    4,
    _COUNT,
    "number of file groups with which `bloom_filters` is initialized",
)
EXPRESSION_INDEX_GROUPS: ConfigKey[int] = ConfigKey(
    "hoodie.metadata.index.expression.file.group.count",
    2,
    _COUNT,
    "number of file groups with which an expression index is initialized",
)
EXPRESSION_FILTER_TYPE: ConfigKey[str] = ConfigKey(
    "hoodie.bloom.index.filter.type",
    "DYNAMIC_V0",
    one_of("DYNAMIC_V0", "SIMPLE"),
    "type of the bloom filters of an expression index; an index that is defined with SIMPLE is refused",
)
EXPRESSION_ZONE: ConfigKey[str | None] = ConfigKey(
    "spark.sql.session.timeZone",
    None,
    optional_text,
    "time zone in which expression indexes compute local times; on Spark the zone of the session",
)
RECORD_INDEX_MINIMUM: ConfigKey[int] = ConfigKey(
    "hoodie.metadata.global.record.level.index.min.filegroup.count",
    10,
    _COUNT,
    "least number of file groups with which a record index or a secondary index is initialized; the number itself when "
    "it equals the largest",
    aliases=("hoodie.metadata.record.index.min.filegroup.count",),
)
RECORD_INDEX_MAXIMUM: ConfigKey[int] = ConfigKey(
    "hoodie.metadata.global.record.level.index.max.filegroup.count",
    10_000,
    _COUNT,
    "largest number of file groups with which a record index or a secondary index is initialized",
    aliases=("hoodie.metadata.record.index.max.filegroup.count",),
)
PARTITIONED_RECORD_INDEX_MINIMUM: ConfigKey[int] = ConfigKey(
    "hoodie.metadata.record.level.index.min.filegroup.count",
    1,
    _COUNT,
    "least number of file groups of each data partition with which a partitioned record index is initialized",
)
PARTITIONED_RECORD_INDEX_MAXIMUM: ConfigKey[int] = ConfigKey(
    "hoodie.metadata.record.level.index.max.filegroup.count",
    10,
    _COUNT,
    "largest number of file groups of each data partition with which a partitioned record index is initialized",
)
RECORD_INDEX_GROWTH: ConfigKey[float] = ConfigKey(
    "hoodie.metadata.record.index.growth.factor",
    2.0,
    real_number(0.0, float("inf")),
    "how many times the present number of records a new row-level index is sized for",
)
RECORD_INDEX_GROUP_BYTES: ConfigKey[int] = ConfigKey(
    "hoodie.metadata.record.index.max.filegroup.size",
    1 << 30,
    _COUNT,
    "bytes of a file group of a new row-level index, from which the number of its file groups is estimated",
)

METADATA_TABLE_KEYS: tuple[ConfigKey[object], ...] = (
    METADATA_DELTA_COMMITS,
    STATISTICS_COLUMNS,
    STATISTICS_COLUMN_COUNT,
    COLUMN_STATS_GROUPS,
    PARTITION_STATS_GROUPS,
    BLOOM_FILTER_GROUPS,
    EXPRESSION_INDEX_GROUPS,
    EXPRESSION_FILTER_TYPE,
    EXPRESSION_ZONE,
    RECORD_INDEX_MINIMUM,
    RECORD_INDEX_MAXIMUM,
    PARTITIONED_RECORD_INDEX_MINIMUM,
    PARTITIONED_RECORD_INDEX_MAXIMUM,
    RECORD_INDEX_GROWTH,
    RECORD_INDEX_GROUP_BYTES,
)
"""Every option of this module. `check_options` does not read them: see the module's docstring."""
