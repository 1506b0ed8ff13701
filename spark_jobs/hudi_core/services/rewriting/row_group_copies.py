"""Says which row groups of a base file a compaction copies without decoding them: those with no key in the logs.

The keys alone decide. First the footer gives the range of a row group's keys. Then its key column is read until a key
is met that the logs hold. Where log records have positions, these decide instead. Small row groups are merged.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hudi_core.codec.parquet.file import ParquetBaseFile
from hudi_core.codec.parquet.splice import RowGroupSource
from hudi_core.codec.parquet.statistics import chunk_ranges, leaf_columns
from hudi_core.codec.parquet.thrift import TooManyValuesError
from hudi_core.config.rows_config import WriteConfig
from hudi_core.filegroup.merge.log_merge import LogRecords
from hudi_core.filegroup.merge.record_keys import key_texts
from hudi_core.filegroup.merge.table_policy import MergePolicy
from hudi_core.filegroup.merge.winning_version import Kind
from hudi_core.model.names import FILE_NAME, RECORD_KEY

_SMALL: Final = 4
"""A row group with less than one part in so many of a full one's rows and bytes is merged."""
_KEYS_AT_ONCE: Final = 8192

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RowGroups:
    """Consecutive row groups to merge, or one to copy, with its keys where they were requested."""

    numbers: list[int]
    copied: bool
    keys: list[pa.Array] = field(default_factory=list)


def keys_remain(records: LogRecords) -> bool:
    """Whether the merge with these log records deletes no base row, so that all keys of the base file remain."""
    return records.merger is None and bool((records.kinds == Kind.RECORD).all())


def copy_source(
    base: ParquetBaseFile, schema: pa.Schema, policy: MergePolicy | None, config: WriteConfig
) -> RowGroupSource | None:
    """Returns the base file's row groups for a file of `schema`, or None. `policy` merges the rows."""
    if not config.copy_row_groups or (policy is not None and policy.key_fields != (RECORD_KEY,)):
        return None
    try:
        source = RowGroupSource(base)
        refusal = source.refusal(schema)
    except TooManyValuesError as error:
        refusal = f"its footer is not held in memory: {error}"
    if refusal is None:
        return source
    log.info("%s: every row group is decoded: %s", base.path, refusal)
    return None


@dataclass
class RowGroupPlan:
    """Says which row groups of a base file are copied. `keys` are those of the logs. Where their `positions`,
    ascending, are given, these decide. Where `keys` is None, rows do not have their keys in `_hoodie_record_key`, and
    no key is looked at. `codec` is that of the new file. `with_keys`: the keys of copied row groups are returned.
    Memory: the keys of one row group, and a mask over the keys of the logs.
    """

    source: RowGroupSource
    keys: pa.Array | None
    config: WriteConfig
    codec: str
    with_keys: bool
    positions: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        self._base = self.source.file
        column = leaf_columns(self._base.metadata).get((RECORD_KEY,))
        self._ranges = None if column is None else chunk_ranges(self._base.metadata, column, pa.string())

    def parts(self) -> Iterator[RowGroups]:
        merged: list[int] = []
        for number in range(self._base.metadata.num_row_groups):
            keys = self._keys_if_untouched(number) if self._may_copy(number) else None
            if keys is None:
                merged.append(number)
                continue
            if merged:
                yield RowGroups(merged, copied=False)
                merged = []
            yield RowGroups([number], copied=True, keys=keys)
        if merged:
            yield RowGroups(merged, copied=False)

    def _may_copy(self, number: int) -> bool:
        group = self._base.metadata.row_group(number)
        small = (
            group.num_rows * _SMALL < self.config.row_group_rows
            and group.total_byte_size * _SMALL < self.config.row_group_bytes
        )
        names = [group.column(column).path_in_schema for column in range(group.num_columns)]
        codecs = {codec for name, codec in zip(names, self.source.codecs(number), strict=True) if name != FILE_NAME}
        return not small and codecs == {self.codec}

    def _keys_if_untouched(self, number: int) -> list[pa.Array] | None:
        """Returns a row group's keys, if needed; None where the logs hold one. Raises CorruptFileError for nulls."""
        group_keys: list[pa.Array] = []
        if self.keys is None:
            return group_keys
        if self.positions is not None and self._is_named(number, self.positions):
            return None
        candidates = self._candidates(number, self.keys if self.positions is None else self.keys[:0])
        has_all_keys = self._ranges is not None and self._ranges.null_count[number].as_py() == 0
        if has_all_keys and not (len(candidates) or self.with_keys):
            return group_keys
        for batch in self._base.batches([RECORD_KEY], _KEYS_AT_ONCE, [number]):
            keys = key_texts(batch.column(0), path=self._base.path)
            if len(candidates) and pc.any(pc.is_in(candidates, value_set=keys.cast(candidates.type))).as_py():
                return None
            if self.with_keys:
                group_keys.append(keys)
        return group_keys

    def _is_named(self, number: int, positions: NDArray[np.int64]) -> bool:
        metadata = self._base.metadata
        first = sum(metadata.row_group(earlier).num_rows for earlier in range(number))
        low, high = np.searchsorted(positions, (first, first + metadata.row_group(number).num_rows))
        return bool(low < high)

    def _candidates(self, number: int, keys: pa.Array) -> pa.Array:
        """Returns the logs' keys in the range of the row group's keys; all where that range is not known."""
        if self._ranges is None or not len(keys):
            return keys
        low, high = self._ranges.minimum[number], self._ranges.maximum[number]
        if not (low.is_valid and high.is_valid):
            return keys
        inside = pc.and_(pc.greater_equal(keys, low.cast(keys.type)), pc.less_equal(keys, high.cast(keys.type)))
        return keys.filter(inside)
