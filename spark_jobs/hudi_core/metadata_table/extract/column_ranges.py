"""The range of a column, from rows batch by batch (HoodieTableMetadataUtil.collectColumnRangeMetadata) or from a
Parquet footer (ParquetUtils.readColumnStatsFromMetadata).
"""

from __future__ import annotations

import math

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_core.codec.parquet.statistics import chunk_ranges, leaf_columns, leaf_path
from hudi_core.metadata_table.records.bounds import Bound, bound_of, logical_and_type
from hudi_core.metadata_table.records.file_statistics import ColumnRange
from hudi_core.metadata_table.records.range_merge import outer_bound


class RowRanges:
    """Gathers the range of one column. Memory: two bounds."""

    def __init__(self, column: str, arrow_type: pa.DataType, version: int, *, bound_type: str | None = None) -> None:
        """Takes `bound_type`, the logical type of the bounds, where it is not the column's. Raises UnsupportedError for
        a type without an order.
        """
        self._column = column
        name, self._type = logical_and_type(arrow_type, version)
        self._logical = bound_type or name
        self._least: Bound | None = None
        self._greatest: Bound | None = None
        self.nulls = 0
        self.values = 0

    def add(self, array: pa.Array) -> None:
        self.values += len(array)
        self.nulls += array.null_count
        if array.null_count == len(array):
            return
        least, greatest = _bounds(array, self._logical)
        self._least = outer_bound(self._least, least, upper=False)
        self._greatest = outer_bound(self._greatest, greatest, upper=True)

    def result(self, size: int = 0, uncompressed: int = 0) -> ColumnRange:
        """Returns the range so far. Sizes are in bytes, 0 where the values are not from a Parquet file."""
        return ColumnRange(
            self._column, self._least, self._greatest, self.nulls, self.values, size, uncompressed, self._type
        )


def _bounds(array: pa.Array, logical: str) -> tuple[Bound | None, Bound | None]:
    """Returns the bounds of an array with a value that is not null. NaN is the greatest value."""
    if pa.types.is_floating(array.type):
        return _float_bounds(array, logical)
    if pa.types.is_boolean(array.type):
        values = array.drop_null()
        return Bound(logical, pc.all(values).as_py()), Bound(logical, pc.any(values).as_py())
    # Not every release of Arrow finds the least of fixed-size binary.
    ends = pc.min_max(array.cast(pa.binary()) if pa.types.is_fixed_size_binary(array.type) else array)
    return bound_of(ends["min"], logical), bound_of(ends["max"], logical, upper=True)


def _float_bounds(array: pa.Array, logical: str) -> tuple[Bound, Bound]:
    """Returns the bounds of floats. A least zero becomes -0.0, as in parquet-mr: range_merge takes 0.0 for Hudi's range
    of a chunk with NaN. The greatest of values with NaN becomes infinity, which records.bounds reads as NaN: by a bound
    of NaN, Hudi 1.2 would skip files that match.
    """
    nans, nan, infinity = pc.is_nan(array), Bound(logical, math.nan), Bound(logical, math.inf)
    ends = pc.min_max(array.filter(pc.invert(nans)))
    least = bound_of(ends["min"], logical) or nan
    greatest = infinity if pc.any(nans).as_py() else bound_of(ends["max"], logical) or infinity
    return Bound(logical, -0.0) if least.value == 0 else least, greatest


class FooterRanges:
    def __init__(self, metadata: pq.FileMetaData) -> None:
        self._metadata = metadata
        self._groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
        self._leaves = leaf_columns(metadata)

    def range(self, column: str, arrow_type: pa.DataType, version: int) -> ColumnRange | None:
        """Returns the range over all row groups; `arrow_type` is the column's type in the file. None where a chunk has
        values but no bounds (parquet-mr omits bounds of 4 KB and NaN) or no statistics, or chunk_ranges cannot read it.
        """
        number = self._number(column)
        found = None if number is None or not self._groups else chunk_ranges(self._metadata, number, arrow_type)
        if found is None or found.null_count.null_count:
            return None
        nulls, values = found.null_count.to_pylist(), found.value_count.to_pylist()
        with_values = pa.array([null_count < count for null_count, count in zip(nulls, values, strict=True)])
        minimum, maximum = found.minimum.filter(with_values), found.maximum.filter(with_values)
        if minimum.null_count or maximum.null_count:
            return None
        name, value_type = logical_and_type(arrow_type, version)
        least = _bounds(minimum, name)[0] if len(minimum) else None
        greatest = _bounds(maximum, name)[1] if len(maximum) else None
        return ColumnRange(column, least, greatest, sum(nulls), sum(values), *self.sizes(column), value_type)

    def sizes(self, column: str) -> tuple[int, int]:
        """Returns the compressed and uncompressed bytes of a column's chunks; zeros for a column without chunks."""
        number = self._number(column)
        chunks = [] if number is None else [group.column(number) for group in self._groups]
        compressed = sum(chunk.total_compressed_size for chunk in chunks)
        return compressed, sum(chunk.total_uncompressed_size for chunk in chunks)

    def _number(self, column: str) -> int | None:
        path = leaf_path(self._leaves, (column,)) or leaf_path(self._leaves, tuple(column.split(".")))
        return None if path is None else self._leaves[path]
