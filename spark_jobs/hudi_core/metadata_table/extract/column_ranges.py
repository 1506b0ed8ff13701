"""Computes the range of a column, from rows batch by batch (HoodieTableMetadataUtil.collectColumnRangeMetadata) or from
a Parquet footer (ParquetUtils.readColumnStatsFromMetadata). Which of both a file needs says data_file.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_core.codec.parquet.statistics import leaf_columns
from hudi_core.metadata_table.records.bound_arrow import bound_of, logical_and_type
from hudi_core.metadata_table.records.bound_encoding import Bound
from hudi_core.metadata_table.records.file_statistics import ColumnRange
from hudi_core.metadata_table.records.range_merge import merged, outer_bound


class RowRanges:
    """Gathers the range of one column. Memory: two bounds."""

    def __init__(self, column: str, arrow_type: pa.DataType, version: int, *, bound_type: str | None = None) -> None:
        """`arrow_type` is the column's; raises UnsupportedError for one without an order. `bound_type` is the logical
        type of the bounds, where it is another.
        """
        self._column = column
        name, self._type = logical_and_type(arrow_type, version)
        self._logical = bound_type or name
        self._least: Bound | None = None
        self._greatest: Bound | None = None
        self.nulls = 0
        self.values = 0

    def add(self, array: pa.Array) -> None:
        """More values of the column."""
        self.values += len(array)
        self.nulls += array.null_count
        if array.null_count == len(array):
            return
        least, greatest = _bounds(array, self._logical)
        self._least = outer_bound(self._least, least, upper=False)
        self._greatest = outer_bound(self._greatest, greatest, upper=True)

    def result(self, size: int = 0, uncompressed: int = 0) -> ColumnRange:
        """The range so far; sizes are in bytes, and 0 where the values are not a Parquet file's."""
        return ColumnRange(
            self._column, self._least, self._greatest, self.nulls, self.values, size, uncompressed, self._type
        )


def _bounds(array: pa.Array, logical: str) -> tuple[Bound | None, Bound | None]:
    """Of an array with a value that is not null; NaN is the greatest value."""
    if pa.types.is_floating(array.type):
        nans = pc.is_nan(array)
        if pc.any(nans).as_py():
            nan = Bound(logical, float("nan"))
            return bound_of(pc.min(array.filter(pc.invert(nans))), logical) or nan, nan
    if pa.types.is_boolean(array.type):
        values = array.drop_null()
        return Bound(logical, pc.all(values).as_py()), Bound(logical, pc.any(values).as_py())
    # Not every release of Arrow finds the least of fixed-size binary.
    ends = pc.min_max(array.cast(pa.binary()) if pa.types.is_fixed_size_binary(array.type) else array)
    return bound_of(ends["min"], logical), bound_of(ends["max"], logical)


_HUDI_WRITER: Final = "parquet-mr"
"""Gives no bounds for a column chunk with NaN. Others, pyarrow among them, give the bounds of the other values."""
_INTEGERS: Final = ("INT32", "INT64")
_PHYSICAL: Final = {
    "boolean": ("BOOLEAN",),
    "int": _INTEGERS,
    "long": _INTEGERS,
    "float": ("FLOAT",),
    "double": ("DOUBLE",),
    "string": ("BYTE_ARRAY",),
    "bytes": ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"),
    "decimal": (*_INTEGERS, "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"),
    "date": _INTEGERS,
}


class FooterRanges:
    """The ranges in one footer."""

    def __init__(self, metadata: pq.FileMetaData) -> None:
        self._groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
        self._schema = metadata.schema
        self._leaves = leaf_columns(metadata)
        self._knows_nan = str(metadata.created_by or "").startswith(_HUDI_WRITER)

    def range(self, column: str, arrow_type: pa.DataType, version: int) -> ColumnRange | None:
        """The range of a column (dotted name, `arrow_type` in the file) over all row groups; None where the footer has
        none.

        That is so for chunks with values but without bounds (parquet-mr omits those of 4 KB, and any with NaN), for
        floats of writers that ignore NaN, texts that are cut inside of a character, and types whose footers order
        otherwise.
        """
        number = self._number(column)
        if number is None or not self._groups:
            return None
        name, value_type = logical_and_type(arrow_type, version)
        physical = self._schema.column(number).physical_type
        if physical not in _PHYSICAL.get(name, _INTEGERS) or (name in ("float", "double") and not self._knows_nan):
            return None
        parts = []
        for group in self._groups:
            chunk = group.column(number)
            bounds = _chunk_bounds(chunk, name, arrow_type)
            if bounds is None:
                return None
            least, greatest, nulls = bounds
            sizes = chunk.total_compressed_size, chunk.total_uncompressed_size
            parts.append(ColumnRange(column, least, greatest, nulls, chunk.num_values, *sizes, value_type))
        return merged(parts)

    def sizes(self, column: str) -> tuple[int, int]:
        """Compressed and uncompressed bytes of a column's chunks; zeros for a column that has none of its own."""
        number = self._number(column)
        chunks = [] if number is None else [group.column(number) for group in self._groups]
        compressed = sum(chunk.total_compressed_size for chunk in chunks)
        return compressed, sum(chunk.total_uncompressed_size for chunk in chunks)

    def _number(self, column: str) -> int | None:
        return self._leaves.get((column,), self._leaves.get(tuple(column.split("."))))


def _chunk_bounds(chunk: Any, name: str, arrow_type: pa.DataType) -> tuple[Bound | None, Bound | None, int] | None:
    """Bounds and how many values are null; a chunk without any statistics is one of nulls alone to Hudi, and of unknown
    values here.
    """
    found = chunk.statistics if chunk.is_stats_set else None
    if found is None or not found.has_null_count:
        return None
    if found.null_count == chunk.num_values:
        return None, None, int(found.null_count)
    if not found.has_min_max:
        return None
    least, greatest = _stored_bound(found.min_raw, name, arrow_type), _stored_bound(found.max_raw, name, arrow_type)
    return None if least is None or greatest is None else (least, greatest, int(found.null_count))


def _stored_bound(raw: Any, name: str, arrow_type: pa.DataType) -> Bound | None:
    """A text that is cut inside of a character gives none."""
    if name == "decimal":
        unscaled = int.from_bytes(raw, "big", signed=True) if isinstance(raw, bytes) else int(raw)
        # Not scaleb: that rounds to the context's 28 digits.
        return Bound(name, Decimal(f"{unscaled}E-{arrow_type.scale}"))
    if name == "string":
        try:
            return Bound(name, raw.decode() if isinstance(raw, bytes) else str(raw))
        except UnicodeDecodeError:
            return None
    return Bound(name, raw)
