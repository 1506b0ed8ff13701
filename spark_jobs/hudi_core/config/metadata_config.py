"""Options of the metadata table, by Hudi's own names (HoodieMetadataConfig).

They describe how an index is initialized. The modules of the metadata table take names and defaults from here, and
check the text when they use it: a table may have options for an index that it does not have.
"""

from __future__ import annotations

from hudi_core.config.keys import ConfigKey, flag, keys_in, names, number, one_of, optional, real_number

METADATA_DELTA_COMMITS = number(
    "hoodie.metadata.compact.max.delta.commits",
    10,
    "number of deltacommits of the metadata table since its last compaction that make the next one due",
)
STATISTICS_COLUMNS = names(
    "hoodie.metadata.index.column.stats.column.list",
    "columns of `column_stats` and `partition_stats`, separated by commas, for an index that is initialized; in table "
    "version 6 for every commit",
)
STATISTICS_COLUMN_COUNT = number(
    "hoodie.metadata.index.column.stats.max.columns.to.index",
    32,
    "number of columns of an index that is initialized without that list (table versions 8 and 9)",
)
COLUMN_STATS_GROUPS = number(
    "hoodie.metadata.index.column.stats.file.group.count",
    2,
    "number of file groups with which `column_stats` is initialized",
)
PARTITION_STATS_GROUPS = number(
    "hoodie.metadata.index.partition.stats.file.group.count",
    1,
    "number of file groups with which `partition_stats` is initialized",
)
BLOOM_FILTER_GROUPS = number(
    "hoodie.metadata.index.bloom.filter.file.group.count",
    4,
    "number of file groups with which `bloom_filters` is initialized",
)
EXPRESSION_INDEX_GROUPS = number(
    "hoodie.metadata.index.expression.file.group.count",
    2,
    "number of file groups with which an expression index is initialized",
)
EXPRESSION_FILTER_TYPE = ConfigKey(
    "hoodie.bloom.index.filter.type",
    "DYNAMIC_V0",
    one_of("DYNAMIC_V0", "SIMPLE"),
    "type of the bloom filters of an expression index; an index that is defined with SIMPLE is refused",
)
EXPRESSION_ZONE = optional(
    "spark.sql.session.timeZone",
    "time zone in which expression indexes compute local times; on Spark the zone of the session",
)
RECORD_INDEX_MINIMUM = number(
    "hoodie.metadata.global.record.level.index.min.filegroup.count",
    10,
    "least number of file groups with which a record index or a secondary index is initialized; the number itself when "
    "it equals the largest",
    aliases=("hoodie.metadata.record.index.min.filegroup.count",),
)
RECORD_INDEX_MAXIMUM = number(
    "hoodie.metadata.global.record.level.index.max.filegroup.count",
    10_000,
    "largest number of file groups with which a record index or a secondary index is initialized",
    aliases=("hoodie.metadata.record.index.max.filegroup.count",),
)
PARTITIONED_RECORD_INDEX_MINIMUM = number(
    "hoodie.metadata.record.level.index.min.filegroup.count",
    1,
    "least number of file groups of each data partition with which a partitioned record index is initialized",
)
PARTITIONED_RECORD_INDEX_MAXIMUM = number(
    "hoodie.metadata.record.level.index.max.filegroup.count",
    10,
    "largest number of file groups of each data partition with which a partitioned record index is initialized",
)
RECORD_INDEX_GROWTH = ConfigKey(
    "hoodie.metadata.record.index.growth.factor",
    2.0,
    real_number(0.0, float("inf")),
    "how many times the present number of records a new row-level index is sized for",
)
RECORD_INDEX_GROUP_BYTES = number(
    "hoodie.metadata.record.index.max.filegroup.size",
    1 << 30,
    "bytes of a file group of a new row-level index, from which the number of its file groups is estimated",
)

METADATA_TABLE_KEYS = keys_in(globals())
"""The options above. `check_options` does not read them: see the module's docstring."""

REBUILD_ROW_INDEXES = flag(
    "airflow_hudi.metadata.rebuild_row_indexes",
    "whether `metadata update` drops and rebuilds record and secondary indexes that cannot be updated with a "
    "missing commit",
)
