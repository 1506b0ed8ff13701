"""Makes the statistics of a piece of a column chunk: from the bounds of its pages, or from its values."""

from __future__ import annotations

import io
import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_core.codec.columns import leaves_with_nan
from hudi_core.codec.parquet.footer import Bounds, Chunk, Column, File, Group, footer_bytes
from hudi_core.codec.parquet.page_index import PageBounds
from hudi_core.codec.parquet.statistics import raw_value
from hudi_core.codec.parquet.thrift import BINARY, I64, Struct, read_struct

_LONGEST: Final = 61
"""parquet-mr cuts the texts in a page's bounds at 64 bytes (parquet.columnindex.truncate.length), between characters: a
text that is cut has 61 bytes at least.
"""


def page_statistics(
    stored: Struct, column: pq.ColumnSchema, bounds: PageBounds | None, first: int, end: int
) -> Struct | None:
    """Returns the statistics of the pages from `first` up to `end` of a column chunk, with the kinds of bounds that
    `stored`, the chunk's own, has. None where the bounds of the pages are missing, or may not be values: where they are
    long, or do not give the bounds of the chunk.
    """
    if bounds is None or bounds.nulls is None:
        return None
    statistics: Struct = {Bounds.nulls: (I64, sum(bounds.nulls[first:end]))}
    with_values = [number for number in range(first, end) if not bounds.is_null[number]]
    if not with_values or not any(number in stored for number in (*Bounds.least, *Bounds.greatest)):
        return statistics
    value = raw_value(column)
    if value is None:
        return None
    for numbers, raw, choose in ((Bounds.least, bounds.least, min), (Bounds.greatest, bounds.greatest, max)):
        every = [one for one, is_null in zip(raw, bounds.is_null, strict=True) if not is_null]
        if not all(_is_value(raw[number], column) for number in with_values):
            return None
        try:
            of_chunk = value(choose(every, key=value))
            if any(value(stored[number][1]) != of_chunk for number in numbers if number in stored):
                return None
            bound = choose((raw[number] for number in with_values), key=value)
        except struct.error:
            return None
        statistics |= {number: (BINARY, bound) for number in numbers if number in stored}
    return dict(sorted(statistics.items()))


def _is_value(bound: bytes, column: pq.ColumnSchema) -> bool:
    """Whether a bound of a page is not cut."""
    if column.physical_type == "FIXED_LEN_BYTE_ARRAY":
        return len(bound) == int(column.length)
    return str(column.physical_type) != "BYTE_ARRAY" or len(bound) < _LONGEST


def decoded_statistics(
    batches: Iterable[pa.RecordBatch], columns: Sequence[pq.ColumnSchema], stored: Mapping[int, Struct]
) -> dict[int, Struct]:
    """Returns the statistics of leaf columns of `batches`, as Arrow writes them: by the number of the leaf, with the
    kinds of bounds in `stored`. `columns` are all leaves. NaN is the greatest value, as in files of ours. Memory: a
    batch, and a file of it.
    """
    by_leaf = {leaf: _Folded(columns[leaf]) for leaf in stored}
    for batch in batches:
        table = pa.Table.from_batches([batch])
        chunks, with_nan = _written_chunks(table), leaves_with_nan(table)
        for leaf, folded in by_leaf.items():
            folded.add(chunks[leaf][Chunk.metadata][1], has_nan=leaf in with_nan)
    return {leaf: folded.statistics(stored[leaf]) for leaf, folded in by_leaf.items()}


def _written_chunks(table: pa.Table) -> list[Struct]:
    """Returns the column chunks of a file of the table."""
    file = io.BytesIO()
    rows = max(1, table.num_rows)
    pq.write_table(table, file, row_group_size=rows, compression="none", use_dictionary=False, store_schema=False)
    footer, _ = read_struct(footer_bytes(file.getvalue()))
    chunks: list[Struct] = footer[File.row_groups][1].values[0][Group.columns][1].values
    return chunks


class _Folded:
    """The statistics of a column so far."""

    def __init__(self, column: pq.ColumnSchema) -> None:
        self._column = column
        self._value = raw_value(column)
        self._nulls = 0
        self._ends: list[bytes] = []
        """The least and the greatest value; empty before the first."""
        self._is_bounded = self._value is not None
        self._has_nan = False

    def add(self, chunk: Struct, *, has_nan: bool) -> None:
        statistics: Struct = chunk[Column.statistics][1]
        nulls = statistics[Bounds.nulls][1]
        self._nulls += nulls
        self._has_nan |= has_nan
        if not {Bounds.least[1], Bounds.greatest[1]} <= statistics.keys():
            # Arrow writes no bounds of nulls, of NaN alone, and of very long values.
            self._is_bounded &= has_nan or nulls == chunk[Column.num_values][1]
        elif self._is_bounded:
            both = [*self._ends, *(statistics[number][1] for number in (Bounds.least[1], Bounds.greatest[1]))]
            self._ends = [min(both, key=self._value), max(both, key=self._value)]

    def statistics(self, stored: Struct) -> Struct:
        """Returns the statistics with the kinds of bounds that `stored` has."""
        kept: Struct = {Bounds.nulls: (I64, self._nulls)}
        if self._ends and self._is_bounded:
            least, greatest = self._ends
            if self._has_nan:
                greatest = struct.pack("<f" if self._column.physical_type == "FLOAT" else "<d", math.nan)
            for numbers, bound in ((Bounds.least, least), (Bounds.greatest, greatest)):
                kept |= {number: (BINARY, bound) for number in numbers if number in stored}
        return dict(sorted(kept.items()))
