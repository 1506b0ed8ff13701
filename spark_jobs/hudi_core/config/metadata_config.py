"""Options of the metadata table (HoodieMetadataConfig), and of indexing: which indexes to build, and how long a build
waits for writers. Names are Hudi's where it has them.

Those of the metadata table describe how an index is initialized. Its modules take names and defaults from here, and
check the text when they use it: a table may have options for an index that it does not have.
"""

from __future__ import annotations

from hudi_core.config.keys import ConfigKey, flag, keys_in, names, number, one_of, optional, real_number, whole_number

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


COLUMN_STATS_ENABLE = flag(
    "hoodie.metadata.index.column.stats.enable", "indexing builds the column statistics (`column_stats`)"
)
BLOOM_FILTERS_ENABLE = flag(
    "hoodie.metadata.index.bloom.filter.enable", "indexing builds the bloom filters of base files (`bloom_filters`)"
)
PARTITION_STATS_ENABLE = flag(
    "hoodie.metadata.index.partition.stats.enable", "indexing builds the partition statistics (`partition_stats`)"
)
RECORD_INDEX_ENABLE = flag(
    "hoodie.metadata.global.record.level.index.enable",
    "indexing builds the record index over all partitions (`record_index`)",
    aliases=("hoodie.metadata.record.index.enable",),
)
PARTITIONED_RECORD_INDEX_ENABLE = flag(
    "hoodie.metadata.record.level.index.enable",
    "indexing builds a record index for each data partition (`record_index`; table version 9)",
)
INDEX_NAME = optional(
    "hoodie.index.name",
    "name of a secondary or an expression index, without its prefix; when absent, the name of the column",
)
SECONDARY_COLUMN = optional(
    "hoodie.metadata.index.secondary.column",
    "indexing builds a secondary index on this column (`secondary_index_<name>`)",
)
EXPRESSION_COLUMN = optional(
    "hoodie.metadata.index.expression.column",
    "indexing builds an index on an expression of this column (`expr_index_<name>`)",
)
EXPRESSION_OPTIONS = optional(
    "hoodie.metadata.index.expression.options",
    "the expression and its settings as name=value, separated by commas: expr=from_unixtime,format=yyyy-MM-dd",
)
EXPRESSION_TYPE = ConfigKey(
    "hoodie.expression.index.type",
    "COLUMN_STATS",
    one_of("COLUMN_STATS", "BLOOM_FILTERS", "SECONDARY_INDEX"),
    "what an expression index holds: COLUMN_STATS or BLOOM_FILTERS",
)
FILE_GROUPS = ConfigKey(
    "airflow_hudi.indexing.file_groups",
    None,
    whole_number(1, 10_000),
    "number of file groups that the named row-level indexes (`record_index`, `secondary_index_*`) are to have, "
    "for a partitioned record index in each data partition; an existing index with another number is resized",
)
CATCHUP_MINUTES = number(
    "airflow_hudi.indexing.catchup_minutes",
    15,
    "minutes that indexing, and a command that creates an index of all rows, drops a row-level index or adds a "
    "column, waits for writes that were pending, before it ends with exit code 3",
    within=(0, 10**6),
)

INDEXING_KEYS = keys_in(globals(), but=(*METADATA_TABLE_KEYS, REBUILD_ROW_INDEXES))
