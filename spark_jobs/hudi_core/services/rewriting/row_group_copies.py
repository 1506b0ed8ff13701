"""Says which rows of a base file a compaction copies without decoding them: row groups, and pieces of row groups, with
no key in the logs.

The keys alone decide. First the footer gives the range of a row group's keys. Then its key column is read, and each key
of the logs marks its row. Where log records have positions, these decide instead. A row group is cut where all columns
begin a page, so that pages around a marked row are merged and others copied. Small row groups are merged.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import field
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hudi_core.codec.parquet.cuts import RowGroupCuts
from hudi_core.codec.parquet.file import ParquetBaseFile
from hudi_core.codec.parquet.footer import schema_of
from hudi_core.codec.parquet.pieces import Piece
from hudi_core.codec.parquet.splice import RowGroupSource
from hudi_core.codec.parquet.statistics import chunk_ranges, leaf_columns
from hudi_core.codec.parquet.thrift import TooManyValuesError
from hudi_core.config.rows_config import WriteConfig
from hudi_core.filegroup.merge.log_merge import LogRecords
from hudi_core.filegroup.merge.record_keys import as_mask, key_texts
from hudi_core.filegroup.merge.table_policy import MergePolicy
from hudi_core.filegroup.merge.winning_version import Kind
from hudi_core.frozen import dataclass
from hudi_core.model.names import FILE_NAME, RECORD_KEY

_SMALL: Final = 4
"""Less than one part in so many of a full row group's rows and bytes is merged: a table that is compacted often keeps
row groups of that size, with small ones between them.
"""
_DICTIONARY_SHARE: Final = 8
"""A piece is merged if dictionaries take more than one part in so many of its bytes: each piece has them again."""
_KEYS_AT_ONCE: Final = 64 << 10

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BaseRows:
    """Rows of a base file that follow one another, with their keys where they were requested: the row groups `numbers`,
    one if `copied`, or `piece` of a row group.
    """

    numbers: list[int]
    copied: bool
    keys: list[pa.Array] = field(default_factory=list)
    piece: Piece | None = None


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
class CopyPlan:
    """Says which rows of a base file are copied. `keys` are those of the logs. Where their `positions`, ascending, are
    given, these decide. Where `keys` is None, rows do not have their keys in `_hoodie_record_key`, and no key is looked
    at. `codec` is that of the new file. `with_keys`: the keys of copied rows are returned. Memory: the keys of one row
    group, if they are returned; a mask over its rows and over the keys of the logs.
    """

    source: RowGroupSource
    keys: pa.Array | None
    config: WriteConfig
    codec: str
    with_keys: bool
    positions: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        self._base = self.source.file
        schema = schema_of(self._base.metadata)
        self._kept = [leaf for leaf in range(len(schema)) if schema.column(leaf).path != FILE_NAME]
        column = leaf_columns(self._base.metadata).get((RECORD_KEY,))
        self._ranges = None if column is None else chunk_ranges(self._base.metadata, column, pa.string())

    def parts(self) -> Iterator[BaseRows]:
        """Yields all rows of the base file in their order."""
        merged: list[int] = []
        for number in range(self._base.metadata.num_row_groups):
            parts = list(self._parts_of(number)) if self._may_copy(number) else []
            if not parts:
                merged.append(number)
                continue
            if merged:
                yield BaseRows(merged, copied=False)
                merged = []
            yield from parts
        if merged:
            yield BaseRows(merged, copied=False)

    def _may_copy(self, number: int) -> bool:
        group = self._base.metadata.row_group(number)
        names = [group.column(column).path_in_schema for column in range(group.num_columns)]
        codecs = {codec for name, codec in zip(names, self.source.codecs(number), strict=True) if name != FILE_NAME}
        return not self._is_small(group.num_rows, group.total_byte_size) and codecs == {self.codec}

    def _is_small(self, rows: int, plain_bytes: int) -> bool:
        return rows * _SMALL < self.config.row_group_rows and plain_bytes * _SMALL < self.config.row_group_bytes

    def _parts_of(self, number: int) -> Iterator[BaseRows]:
        """Yields the parts of a row group; none where all of it is merged."""
        touched, keys = self._touched(number)
        if not len(touched):
            yield BaseRows([number], copied=True, keys=keys)
            return
        group = self._base.metadata.row_group(number)
        between = int(np.diff(touched, prepend=-1, append=group.num_rows).max()) - 1
        if self._is_small(between, group.total_byte_size * between // group.num_rows):
            return
        cuts = RowGroupCuts(self.source, number, self._kept, all_read=True)
        runs = self._runs(cuts, touched)
        if any(copied for _, _, copied in runs):
            for first, end, copied in runs:
                kept = _slice_of(keys, first, end) if copied else []
                yield BaseRows([number], copied, kept, Piece(cuts, first, end))

    def _runs(self, cuts: RowGroupCuts, touched: NDArray[np.int64]) -> list[tuple[int, int, bool]]:
        """Returns the runs of rows (first, end, copied) of a row group. Small runs without a marked row are merged."""
        group = self._base.metadata.row_group(cuts.number)
        rows, row_bytes = cuts.rows, group.total_byte_size / group.num_rows
        is_touched = np.zeros(len(rows) - 1, np.bool_)
        is_touched[np.searchsorted(rows, touched, side="right") - 1] = True
        changes = np.flatnonzero(np.diff(is_touched)) + 1
        runs: list[tuple[int, int, bool]] = []
        for start, end in zip([0, *changes], [*changes, len(is_touched)], strict=True):
            first, last = int(rows[start]), int(rows[end])
            copied = not is_touched[start] and not self._is_small(last - first, int((last - first) * row_bytes))
            if copied:
                pages, dictionaries = cuts.stored_bytes(first, last)
                copied = dictionaries * _DICTIONARY_SHARE <= pages
            if runs and not copied and not runs[-1][2]:
                runs[-1] = runs[-1][0], last, False
            else:
                runs.append((first, last, copied))
        return runs

    def _touched(self, number: int) -> tuple[NDArray[np.int64], list[pa.Array]]:
        """Returns the rows of a row group that the logs name, ascending, and its keys, if needed. Raises
        CorruptFileError for a key that is null.
        """
        none, group_keys = np.empty(0, np.int64), list[pa.Array]()
        if self.keys is None:
            return none, group_keys
        named = none if self.positions is None else self._named(number, self.positions)
        candidates = self._candidates(number, self.keys if self.positions is None else self.keys[:0])
        has_all_keys = self._ranges is not None and self._ranges.null_count[number].as_py() == 0
        if has_all_keys and not (len(candidates) or self.with_keys):
            return named, group_keys
        rows, first = [named], 0
        for batch in self._base.batches([RECORD_KEY], _KEYS_AT_ONCE, [number]):
            keys = key_texts(batch.column(0), path=self._base.path)
            if len(candidates):
                rows.append(first + np.flatnonzero(as_mask(pc.is_in(keys.cast(candidates.type), value_set=candidates))))
            if self.with_keys:
                group_keys.append(keys)
            first += len(keys)
        return np.unique(np.concatenate(rows)), group_keys

    def _named(self, number: int, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        metadata = self._base.metadata
        first = sum(metadata.row_group(earlier).num_rows for earlier in range(number))
        low, high = np.searchsorted(positions, (first, first + metadata.row_group(number).num_rows))
        rows: NDArray[np.int64] = positions[low:high] - first
        return rows

    def _candidates(self, number: int, keys: pa.Array) -> pa.Array:
        """Returns the logs' keys in the range of the row group's keys; all where that range is not known."""
        if self._ranges is None or not len(keys):
            return keys
        low, high = self._ranges.minimum[number], self._ranges.maximum[number]
        if not (low.is_valid and high.is_valid):
            return keys
        inside = pc.and_(pc.greater_equal(keys, low.cast(keys.type)), pc.less_equal(keys, high.cast(keys.type)))
        return keys.filter(inside)


def _slice_of(arrays: list[pa.Array], first: int, end: int) -> list[pa.Array]:
    return pa.chunked_array(arrays, pa.string()).slice(first, end - first).chunks if arrays else []
