"""The file groups of a record index or a secondary index: how many, their names, and which of them hold the keys of a
data partition (HoodieTableMetadataUtil). codec.hashing chooses among those by the key.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from hudi_core.config.keys import ConfigKey
from hudi_core.config.metadata_config import (
    PARTITIONED_RECORD_INDEX_MAXIMUM,
    PARTITIONED_RECORD_INDEX_MINIMUM,
    RECORD_INDEX_GROUP_BYTES,
    RECORD_INDEX_GROWTH,
    RECORD_INDEX_MAXIMUM,
    RECORD_INDEX_MINIMUM,
)
from hudi_core.errors import ConfigError
from hudi_core.metadata_table.partitions.protocol import not_blank, numbered_file_ids

PREFIX: Final = "record-index-"
_RECORD_BYTES: Final = 48
"""HoodieBackedTableMetadataWriter.RECORD_INDEX_AVERAGE_RECORD_SIZE."""
_ESCAPED: Final = re.compile(r"[\x00-\x1f\"#%'*/:=?\\\x7f{\[\]^_-]")
"""What PartitionPathEncodeUtils.escapeFileName escapes: `_` and `-`, too, which part the pieces of a file's name."""


def global_group_count(settings: Mapping[str, str], records: int) -> int:
    """The file groups of a global record index, or of a secondary index, initialized with `records` records.

    Raises ConfigError for a setting that is no positive number.
    """
    return _estimate(settings, records, RECORD_INDEX_MINIMUM, RECORD_INDEX_MAXIMUM)


def partitioned_group_count(settings: Mapping[str, str], records: int) -> int:
    """The file groups of one data partition with `records` records, in a record index that is partitioned; errors as
    global_group_count.

    A data partition that comes later gets the least number: that for no records.
    """
    return _estimate(settings, records, PARTITIONED_RECORD_INDEX_MINIMUM, PARTITIONED_RECORD_INDEX_MAXIMUM)


def _estimate(settings: Mapping[str, str], records: int, minimum: ConfigKey[int], maximum: ConfigKey[int]) -> int:
    """HoodieTableMetadataUtil.estimateFileGroupCount, whose count grows in single precision."""
    given = not_blank(settings)
    least, most = minimum.read(given), maximum.read(given)
    if least == most:
        return least
    grown = math.ceil(float(np.float32(records) * np.float32(RECORD_INDEX_GROWTH.read(given))))
    estimate = grown // (RECORD_INDEX_GROUP_BYTES.read(given) // _RECORD_BYTES or 1)
    return most if estimate >= most else max(estimate, least)


@dataclass(frozen=True, slots=True)
class RecordGroups:
    """The file groups of a record index, which are numbered through: `counts` are those of each data partition; of a
    global index those of None.
    """

    counts: Mapping[str | None, int]

    @property
    def total(self) -> int:
        """The number of file groups."""
        return sum(self.counts.values())

    def of(self, partition: str) -> tuple[int, int]:
        """The first file group that the keys of a data partition go to, and how many there are. Raises ConfigError for
        an unknown partition.
        """
        if None in self.counts:
            return 0, self.counts[None]
        if partition not in self.counts:
            raise ConfigError(
                f"the record index has no file groups for the data partition {partition!r}",
                path=".hoodie/metadata/record_index",
                remedy="its file groups are created before its first records",
            )
        first = sum(count for name, count in self.counts.items() if name is not None and name < partition)
        return first, self.counts[partition]

    def file_ids(self) -> list[str]:
        """Their ids by number. A data partition's name is in the ids of its file groups."""
        if None in self.counts:
            return numbered_file_ids(PREFIX, self.counts[None])
        names = sorted(name for name in self.counts if name is not None)
        return [
            file_id
            for name in names
            for file_id in numbered_file_ids(f"{PREFIX}{escape_file_name(name)}-", self.counts[name])
        ]


def escape_file_name(text: str) -> str:
    """A partition path as a part of a file's name (PartitionPathEncodeUtils.escapeFileName)."""
    return _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", text)
