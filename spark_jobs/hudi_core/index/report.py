"""What a predicate ruled out before any row was read, and by which index."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from hudi_core.engine.protocol import Json
from hudi_core.metadata_table.partition_type import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    EXPRESSION_INDEX,
    PARTITION_STATS,
    RECORD_INDEX,
    SECONDARY_INDEX,
)

PARTITION_PATH: Final = "partition_path"
FOOTERS: Final = "footers"
KINDS: Final = (
    PARTITION_PATH,
    PARTITION_STATS,
    RECORD_INDEX,
    SECONDARY_INDEX,
    COLUMN_STATS,
    EXPRESSION_INDEX,
    BLOOM_FILTERS,
    FOOTERS,
)
"""In the order in which they are used."""


@dataclass(frozen=True, slots=True)
class PruneReport:
    """Counts of partitions, and of base and log files: considered and excluded; `by_kind` has the files by index.

    Files of a partition that was excluded before its files were listed are in no count.
    """

    partitions: int = 0
    partitions_pruned: int = 0
    files: int = 0
    files_pruned: int = 0
    by_kind: dict[str, int] = field(default_factory=dict)

    def to_json(self) -> Json:
        """As an object of these names."""
        return {
            "partitions": self.partitions,
            "partitions_pruned": self.partitions_pruned,
            "files": self.files,
            "files_pruned": self.files_pruned,
            "by_kind": {kind: self.by_kind[kind] for kind in KINDS if kind in self.by_kind},
        }
