"""Ranges of columns from the rows themselves (HoodieTableMetadataUtil.collectColumnRangeMetadata): batch by batch,
vectorised.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.metadata_table.indexed_table import field_path
from hudi_core.metadata_table.records.file_statistics import ColumnRange
from hudi_core.metadata_table.records.stat_values import Bound, order_of
from hudi_core.metadata_table.records.value_types import bound_of, logical_and_type


class RowRanges:
    """Gathers the range of one column. Memory: two bounds."""

    def __init__(self, column: str, kind: pa.DataType, version: int, *, bound_type: str | None = None) -> None:
        """`kind` is the column's Arrow type; raises UnsupportedError for one without an order. `bound_type` is what
        bounds are said to be.
        """
        self._column = column
        name, self._type = logical_and_type(kind, version)
        self._kind = bound_type or name
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
        least, greatest = _bounds(array, self._kind)
        if self._least is None or order_of(least) < order_of(self._least):
            self._least = least
        if self._greatest is None or order_of(greatest) > order_of(self._greatest):
            self._greatest = greatest

    def result(self, size: int = 0, uncompressed: int = 0) -> ColumnRange:
        """The range so far; sizes are in bytes, and 0 where the values are not a Parquet file's."""
        return ColumnRange(
            self._column, self._least, self._greatest, self.nulls, self.values, size, uncompressed, self._type
        )


def _bounds(array: pa.Array, kind: str) -> tuple[Bound, Bound]:
    """Of an array with a value that is not null; NaN is the greatest value."""
    if pa.types.is_floating(array.type):
        nans = pc.is_nan(array)
        if pc.any(nans).as_py():
            rest = array.filter(pc.invert(nans)).drop_null()
            nan = Bound(kind, float("nan"))
            return (_found(pc.min(rest), kind) if len(rest) else nan), nan
    if pa.types.is_boolean(array.type) or pa.types.is_fixed_size_binary(array.type):
        # Not every release of Arrow finds the least of these.
        values = array.drop_null().cast(pa.uint8() if pa.types.is_boolean(array.type) else pa.binary())
        ends = pc.min_max(values)
        if pa.types.is_boolean(array.type):
            return Bound(kind, bool(ends["min"].as_py())), Bound(kind, bool(ends["max"].as_py()))
        return _found(ends["min"], kind), _found(ends["max"], kind)
    ends = pc.min_max(array)
    return _found(ends["min"], kind), _found(ends["max"], kind)


def _found(scalar: pa.Scalar, kind: str) -> Bound:
    bound = bound_of(scalar, kind)
    if bound is None:
        raise ValueError("no least value in an array that has values")
    return bound


def column_of(batch: pa.RecordBatch, name: str) -> pa.Array | None:
    """A column by dotted name, null where a struct around it is; None when it is not there."""
    path: Sequence[pa.Field] | None = field_path(batch.schema, name)
    if path is None:
        return None
    array = batch.column(path[0].name)
    for step in path[1:]:
        array = pc.struct_field(array, step.name)
    return array
