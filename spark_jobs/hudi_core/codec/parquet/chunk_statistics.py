"""Makes the statistics of a piece of a column chunk: from the bounds of its pages, or from its values."""

from __future__ import annotations

import io
import struct
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_core.codec.columns import leaves_with_nan
from hudi_core.codec.parquet.footer import Bounds, Chunk, Column, File, Group, footer_bytes
from hudi_core.codec.parquet.page_index import PageBounds
from hudi_core.codec.parquet.page_sink import count_nan
from hudi_core.codec.parquet.statistics import raw_value
from hudi_core.codec.parquet.thrift import BINARY, I64, Struct, read_struct

_LONGEST: Final = 64
"""parquet-mr cuts longer texts in a page's bounds (parquet.columnindex.truncate.length)."""


def page_statistics(
    stored: Struct, column: pq.ColumnSchema, bounds: PageBounds | None, first: int, end: int
) -> Struct | None:
    """Returns the statistics of the pages from `first` up to `end` of a column chunk, with the kinds of bounds that
    `stored`, the chunk's own, has. None where the bounds of the pages are missing, or may not be values.
    """
    if bounds is None or bounds.nulls is None:
        return None
    statistics: Struct = {Bounds.nulls: (I64, sum(bounds.nulls[first:end]))}
    with_values = [number for number in range(first, end) if not bounds.is_null[number]]
    if not with_values or not any(number in stored for number in (*Bounds.least, *Bounds.greatest)):
        return statistics
    value = raw_value(column)
    ends = ((Bounds.least, bounds.least, min), (Bounds.greatest, bounds.greatest, max))
    for numbers, raw, choose in ends:
        values = [raw[number] for number in with_values]
        if value is None or (column.physical_type == "BYTE_ARRAY" and any(len(one) >= _LONGEST for one in values)):
            return None
        try:
            bound = choose(values, key=value)
        except struct.error:
            return None
        statistics |= {number: (BINARY, bound) for number in numbers if number in stored}
    return dict(sorted(statistics.items()))


def decoded_statistics(values: pa.Table, leaf: int, stored: Struct) -> Struct:
    """Returns the statistics of a leaf column of `values`, as Arrow writes them, with the kinds of bounds of `stored`.
    NaN is the greatest value, as in files of ours.
    """
    file = io.BytesIO()
    pq.write_table(
        values,
        file,
        row_group_size=max(1, values.num_rows),
        compression="none",
        use_dictionary=False,
        store_schema=False,
    )
    footer, _ = read_struct(footer_bytes(file.getvalue()))
    chunk: Struct = footer[File.row_groups][1].values[0][Group.columns][1].values[leaf]
    if leaf in leaves_with_nan(values):
        count_nan(chunk)
    statistics: Struct = chunk[Chunk.metadata][1].get(Column.statistics, (0, {}))[1]
    kept = {Bounds.nulls: statistics[Bounds.nulls]} if Bounds.nulls in statistics else {}
    for deprecated, number in (Bounds.least, Bounds.greatest):
        if number in statistics:
            kept |= {field: statistics[number] for field in (deprecated, number) if field in stored}
    return dict(sorted(kept.items()))
