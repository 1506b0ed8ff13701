"""Whether a key is one of the whole table or of its partition, by the type of the index (HoodieIndex.isGlobal)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hudi_core.config.keys import ConfigKey
from hudi_core.config.rows_config import INDEX_TYPE, MOVES_BY_BLOOM, MOVES_BY_RECORD, MOVES_BY_SIMPLE
from hudi_core.frozen import dataclass

WITHIN_PARTITIONS: Final = frozenset({"SIMPLE", "BLOOM", "BUCKET", "RECORD_LEVEL_INDEX"})
_OF_TABLE: Final[Mapping[str, ConfigKey[bool]]] = {
    "GLOBAL_SIMPLE": MOVES_BY_SIMPLE,
    "GLOBAL_BLOOM": MOVES_BY_BLOOM,
    "RECORD_INDEX": MOVES_BY_RECORD,
    "GLOBAL_RECORD_LEVEL_INDEX": MOVES_BY_RECORD,
}
INDEX_TYPES: Final = WITHIN_PARTITIONS | {*_OF_TABLE}
"""The index types by which keys are looked for. All of one scope give the same rows."""

BY_RECORD_INDEX: Final = frozenset({"RECORD_INDEX", "GLOBAL_RECORD_LEVEL_INDEX", "RECORD_LEVEL_INDEX"})
"""The index types whose keys are looked up in the record index. Other types' keys may have places that it lacks."""

KNOW_POSITIONS: Final = frozenset({"SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM"})
"""The index types that find the row of a key in its base file, where rows do not move to other partitions: rows that
may move are merged first, which loses the positions (HoodieIndexUtils.mergeForPartitionUpdatesIfNeeded).
"""


@dataclass(frozen=True, slots=True)
class KeyScope:
    """With `is_global` a key is one of the whole table. With `moves` a row leaves the partition that has its key for
    its own; else it changes there (`hoodie.*.index.update.partition.path`). `in_record_index` says that a record index
    has the key.
    """

    is_global: bool = False
    moves: bool = False
    in_record_index: bool = False

    @property
    def by_rows(self) -> bool:
        """Whether a key counts only where a row has it after all log files: a delete takes it out of a record index."""
        return self.is_global or self.in_record_index

    @staticmethod
    def of(options: Mapping[str, str]) -> KeyScope:
        moves = _OF_TABLE.get(index_type(options))
        if moves is None:
            return KeyScope(in_record_index=index_type(options) in BY_RECORD_INDEX)
        return KeyScope(True, moves.read(options))


def index_type(options: Mapping[str, str]) -> str:
    """Returns the type in capital letters."""
    return (INDEX_TYPE.read(options) or "SIMPLE").upper()
