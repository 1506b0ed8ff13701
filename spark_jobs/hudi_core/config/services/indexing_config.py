"""Options of indexing: which indexes to build, and how long a build waits for writers. Names are Hudi's where it has
them.
"""

from __future__ import annotations

from hudi_core.config.keys import ConfigKey, flag, keys_in, number, one_of, optional, whole_number

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
    low=0,
    high=10**6,
)

INDEXING_KEYS = keys_in(globals())
"""Every option of this module."""
