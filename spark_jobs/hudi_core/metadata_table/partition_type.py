"""Partition types of the metadata table: their names, and what follows from a name alone (MetadataPartitionType). Keys
of records: keys.py.
"""

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

STATISTICS: Final = (COLUMN_STATS, PARTITION_STATS)
"""Partitions of one definition: it names the columns, and the version of the values, of both."""
MADE_OF: Final = {COLUMN_STATS: frozenset({PARTITION_STATS})}
"""Partitions that cannot be kept without another one: Hudi removes both by one switch (isMetadataIndexDisabled)."""
_LEAVES_ROWS: Final = frozenset({"COMPACT", "LOG_COMPACT"})


def is_secondary_index(name: str) -> bool:
    return name.startswith(SECONDARY_PREFIX) and name != SECONDARY_PREFIX


def is_row_level(name: str) -> bool:
    """Whether a metadata partition has a record for each row of the table, made of rows by an exchange."""
    return name == RECORD_INDEX or is_secondary_index(name)


def moves_rows(operation: str | None) -> bool:
    """Whether a commit of an operation can change row-level indexes: compactions leave each row where and as it is."""
    return operation not in _LEAVES_ROWS


def needs_definition(name: str) -> bool:
    """Whether an index exists by its definition (`.hoodie/.index_defs`): Hudi looks for it there, listed or not."""
    return name.startswith((SECONDARY_PREFIX, EXPRESSION_PREFIX))
