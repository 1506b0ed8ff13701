"""Partition types of the metadata table: the names, and what a name says (MetadataPartitionType). keys.py has keys."""

from __future__ import annotations

from typing import Final

FILES_PARTITION: Final = "files"
COLUMN_STATS: Final = "column_stats"
BLOOM_FILTERS: Final = "bloom_filters"
RECORD_INDEX: Final = "record_index"
PARTITION_STATS: Final = "partition_stats"
SECONDARY_INDEX: Final = "secondary_index"
EXPRESSION_INDEX: Final = "expr_index"
SECONDARY_PREFIX: Final = f"{SECONDARY_INDEX}_"
EXPRESSION_PREFIX: Final = f"{EXPRESSION_INDEX}_"
DEFINITIONS_PATH: Final = ".hoodie/.index_defs/index.json"
"""The file of index definitions, unless the table's properties name another one."""

STATISTICS: Final = (COLUMN_STATS, PARTITION_STATS)
"""The partitions that share one definition, which names their columns and the version of their values."""
MADE_OF: Final = {COLUMN_STATS: frozenset({PARTITION_STATS})}
"""The partitions that need another one, by that one: Hudi removes both by one switch (isMetadataIndexDisabled)."""
_LEAVES_ROWS: Final = frozenset({"COMPACT", "LOG_COMPACT"})


def is_secondary_index(name: str) -> bool:
    return name.startswith(SECONDARY_PREFIX) and name != SECONDARY_PREFIX


def is_row_level(name: str) -> bool:
    """Returns whether a metadata partition has a record for each row of the table; an exchange makes these records."""
    return name == RECORD_INDEX or is_secondary_index(name)


def moves_rows(operation: str | None) -> bool:
    """Returns whether an operation can change row-level indexes. A compaction leaves each row in its file group."""
    return operation not in _LEAVES_ROWS


def needs_definition(name: str) -> bool:
    """Returns whether an index needs a definition (`.hoodie/.index_defs`): there Hudi looks for it, listed or not."""
    return name.startswith((SECONDARY_PREFIX, EXPRESSION_PREFIX))
