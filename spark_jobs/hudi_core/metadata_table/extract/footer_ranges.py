"""Ranges of columns from a Parquet footer (ParquetUtils.readColumnStatsFromMetadata)."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_core.codec.parquet.statistics import leaf_columns
from hudi_core.metadata_table.records.file_statistics import ColumnRange
from hudi_core.metadata_table.records.stat_values import Bound
from hudi_core.metadata_table.records.value_types import logical_and_type, merged

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
    """The ranges that one footer tells."""

    def __init__(self, metadata: pq.FileMetaData) -> None:
        self._groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
        self._schema = metadata.schema
        self._leaves = leaf_columns(metadata)
        self._knows_nan = str(metadata.created_by or "").startswith(_HUDI_WRITER)

    def range(self, column: str, kind: pa.DataType, version: int) -> ColumnRange | None:
        """The range of a column (dotted name, of the Arrow type `kind` in the file) over all row groups; None where the
        footer does not say it.

        It does not for chunks without bounds that hold values, as parquet-mr leaves them away when they are of 4 KB
        together or one is NaN, for floats of writers that pass over NaN, for texts that are cut inside of a character,
        and for types whose footers order otherwise.
        """
        number = self._number(column)
        if number is None or not self._groups:
            return None
        name, value_type = logical_and_type(kind, version)
        physical = self._schema.column(number).physical_type
        if physical not in _PHYSICAL.get(name, _INTEGERS) or (name in ("float", "double") and not self._knows_nan):
            return None
        parts = []
        for group in self._groups:
            chunk = group.column(number)
            bounds = _bounds(chunk, name, kind)
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
        return sum(chunk.total_compressed_size for chunk in chunks), sum(
            chunk.total_uncompressed_size for chunk in chunks
        )

    def _number(self, column: str) -> int | None:
        return self._leaves.get((column,), self._leaves.get(tuple(column.split("."))))


def _bounds(chunk: Any, name: str, kind: pa.DataType) -> tuple[Bound | None, Bound | None, int] | None:
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
    least, greatest = _bound(found.min_raw, name, kind), _bound(found.max_raw, name, kind)
    return None if least is None or greatest is None else (least, greatest, int(found.null_count))


def _bound(raw: Any, name: str, kind: pa.DataType) -> Bound | None:
    """A text that is cut inside of a character gives none."""
    if name == "decimal":
        unscaled = int.from_bytes(raw, "big", signed=True) if isinstance(raw, bytes) else int(raw)
        # Not scaleb: that rounds to the context's 28 digits.
        return Bound(name, Decimal(f"{unscaled}E-{kind.scale}"))
    if name == "string":
        try:
            return Bound(name, raw.decode() if isinstance(raw, bytes) else str(raw))
        except UnicodeDecodeError:
            return None
    return Bound(name, raw)
