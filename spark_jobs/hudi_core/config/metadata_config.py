"""Options of the metadata table (HoodieMetadataConfig), and of indexing: which indexes to build, and how long a build
waits for writers. Names are Hudi's where Hudi has them.

The options of the metadata table describe how an index is initialized. Its modules take names and defaults from here,
and check the text when they use it: a table may have options for an index that it does not have.
"""

from __future__ import annotations

from hudi_core.config.keys import ConfigKey, flag, keys_in, names, number, one_of, optional, real_number, whole_number

METADATA_DELTA_COMMITS = number("hoodie.metadata.compact.max.delta.commits", 10)
STATISTICS_COLUMNS = names("hoodie.metadata.index.column.stats.column.list")
STATISTICS_COLUMN_COUNT = number("hoodie.metadata.index.column.stats.max.columns.to.index", 32)
COLUMN_STATS_GROUPS = number("hoodie.metadata.index.column.stats.file.group.count", 2)
PARTITION_STATS_GROUPS = number("hoodie.metadata.index.partition.stats.file.group.count", 1)
BLOOM_FILTER_GROUPS = number("hoodie.metadata.index.bloom.filter.file.group.count", 4)
EXPRESSION_INDEX_GROUPS = number("hoodie.metadata.index.expression.file.group.count", 2)
EXPRESSION_FILTER_TYPE = ConfigKey("hoodie.bloom.index.filter.type", "DYNAMIC_V0", one_of("DYNAMIC_V0", "SIMPLE"))
EXPRESSION_ZONE = optional("spark.sql.session.timeZone")
RECORD_INDEX_MINIMUM = number(
    "hoodie.metadata.global.record.level.index.min.filegroup.count",
    10,
    aliases=("hoodie.metadata.record.index.min.filegroup.count",),
)
RECORD_INDEX_MAXIMUM = number(
    "hoodie.metadata.global.record.level.index.max.filegroup.count",
    10_000,
    aliases=("hoodie.metadata.record.index.max.filegroup.count",),
)
PARTITIONED_RECORD_INDEX_MINIMUM = number("hoodie.metadata.record.level.index.min.filegroup.count", 1)
PARTITIONED_RECORD_INDEX_MAXIMUM = number("hoodie.metadata.record.level.index.max.filegroup.count", 10)
RECORD_INDEX_GROWTH = ConfigKey("hoodie.metadata.record.index.growth.factor", 2.0, real_number(0.0, float("inf")))
RECORD_INDEX_GROUP_BYTES = number("hoodie.metadata.record.index.max.filegroup.size", 1 << 30)

METADATA_TABLE_KEYS = keys_in(globals())
"""The options above. `check_options` does not read them: see the module's docstring."""

REBUILD_ROW_INDEXES = flag("airflow_hudi.metadata.rebuild_row_indexes")
METADATA_ENABLE = flag("hoodie.metadata.enable", default=True)


COLUMN_STATS_ENABLE = flag("hoodie.metadata.index.column.stats.enable")
BLOOM_FILTERS_ENABLE = flag("hoodie.metadata.index.bloom.filter.enable")
PARTITION_STATS_ENABLE = flag("hoodie.metadata.index.partition.stats.enable")
RECORD_INDEX_ENABLE = flag(
    "hoodie.metadata.global.record.level.index.enable", aliases=("hoodie.metadata.record.index.enable",)
)
PARTITIONED_RECORD_INDEX_ENABLE = flag("hoodie.metadata.record.level.index.enable")
INDEX_NAME = optional("hoodie.index.name")
SECONDARY_COLUMN = optional("hoodie.metadata.index.secondary.column")
EXPRESSION_COLUMN = optional("hoodie.metadata.index.expression.column")
EXPRESSION_OPTIONS = optional("hoodie.metadata.index.expression.options")
EXPRESSION_TYPE = ConfigKey(
    "hoodie.expression.index.type", "COLUMN_STATS", one_of("COLUMN_STATS", "BLOOM_FILTERS", "SECONDARY_INDEX")
)
FILE_GROUPS = ConfigKey("airflow_hudi.indexing.file_groups", None, whole_number(1, 10_000))
CATCHUP_MINUTES = number("airflow_hudi.indexing.catchup_minutes", 15, within=(0, 10**6))

INDEXING_KEYS = keys_in(globals(), but=(*METADATA_TABLE_KEYS, REBUILD_ROW_INDEXES, METADATA_ENABLE))
