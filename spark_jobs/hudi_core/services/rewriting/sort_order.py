"""The order of rows in a clustering, or in shards of an overwrite, as binary keys that sort by their unsigned bytes.

Linear: by the columns, one after the other, ascending and nulls first, as Spark sorts.

z-order and hilbert: by the place on a space-filling curve through the ranks of the values among sampled ones
(SpaceCurveSortingHelper, build method `sample`), so that columns of any type and spread count alike. The record key
comes last, so that the order is total and the same in every run, except for rows without meta columns.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hudi_core.codec.columns import column_of
from hudi_core.config.services.clustering_config import SORT_COLUMNS, Layout
from hudi_core.errors import ConfigError, UnsupportedError
from hudi_core.frozen import dataclass
from hudi_core.model.names import RECORD_KEY

SORT_KEY: Final = "_airflow_hudi_sort_key"
"""The column that orders the rows of merged_pieces."""
_CURVE_BITS: Final = 63
_MOST_BITS: Final = 10
"""Bits of one column on a curve: up to 1023 sampled values tell its values apart."""


@dataclass(frozen=True, slots=True)
class SortOrder:
    """The columns (dotted where nested) and the layout of an order. `sampled` makes the `bounds` of a curve."""

    columns: tuple[str, ...]
    layout: Layout = Layout.LINEAR
    bounds: bytes = b""

    def check(self, schema: pa.Schema) -> None:
        """Raises ConfigError for a column that `schema` lacks, UnsupportedError for one of a type without order."""
        if not self.layout.is_linear and len(self.columns) > _CURVE_BITS:
            raise ConfigError(
                f"{SORT_COLUMNS.name} names more than {_CURVE_BITS} columns for a curve",
                remedy="name fewer, or leave hoodie.layout.optimize.strategy out",
            )
        self.keys(pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema))

    @property
    def read_columns(self) -> list[str]:
        return list(dict.fromkeys([*(name.split(".")[0] for name in self.columns), RECORD_KEY]))

    @property
    def bits(self) -> int:
        return min(_MOST_BITS, _CURVE_BITS // max(1, len(self.columns)))

    def keys(self, batch: pa.RecordBatch) -> pa.Array:
        """Returns the key (binary) of each row. The batch has at least `read_columns`."""
        columns = [_column(batch, name) for name in self.columns]
        record_keys = batch.column(batch.schema.get_field_index(RECORD_KEY)).cast(pa.binary()).fill_null(b"")
        if self.layout.is_linear or not self.bounds:
            parts = [_sortable(column, name) for column, name in zip(columns, self.columns, strict=True)]
        else:
            bounds = _bounds(self.bounds)
            ranks = np.stack([_ranks(column, bound) for column, bound in zip(columns, bounds, strict=True)])
            curve = hilbert(ranks, self.bits) if self.layout is Layout.HILBERT else interleaved(ranks, self.bits)
            parts = [_binary(curve.astype(">u8").view(np.uint8).reshape(-1, 8))]
        return pc.binary_join_element_wise(*parts, record_keys, pa.scalar(b"", pa.binary()))

    def sampled(self, batch: pa.RecordBatch, weights: NDArray[np.float64]) -> SortOrder:
        """Returns this order with bounds that divide the rows of a sample, each with its weight, into equal parts."""
        bounds = [_quantiles(_column(batch, name), weights, 2**self.bits - 1) for name in self.columns]
        row = pa.RecordBatch.from_arrays(
            [pa.ListArray.from_arrays([0, len(values)], values) for values in bounds],
            names=[str(at) for at in range(len(bounds))],
        )
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, row.schema) as writer:
            writer.write_batch(row)
        return SortOrder(self.columns, self.layout, sink.getvalue().to_pybytes())


def interleaved(ranks: NDArray[np.uint64], bits: int) -> NDArray[np.uint64]:
    """Returns the places on the z-curve of points with coordinates `ranks` (columns by rows) of so many bits."""
    places = np.zeros(ranks.shape[1], np.uint64)
    for bit in range(bits - 1, -1, -1):
        for column in ranks:
            places = (places << np.uint64(1)) | ((column >> np.uint64(bit)) & np.uint64(1))
    return places


def hilbert(ranks: NDArray[np.uint64], bits: int) -> NDArray[np.uint64]:
    """Returns places on the Hilbert curve, like `interleaved` (J. Skilling, Programming the Hilbert curve, 2004)."""
    axes = ranks.copy()
    one = np.uint64(1)
    for bit in range(bits - 1, 0, -1):
        high, low = one << np.uint64(bit), (one << np.uint64(bit)) - one
        for column in axes:
            is_set = (column & high) != 0
            swapped = np.where(is_set, np.uint64(0), (axes[0] ^ column) & low)
            axes[0] ^= np.where(is_set, low, swapped)
            column ^= swapped
    for at in range(1, len(axes)):
        axes[at] ^= axes[at - 1]
    turned = np.zeros(axes.shape[1], np.uint64)
    for bit in range(bits - 1, 0, -1):
        high = one << np.uint64(bit)
        turned ^= np.where((axes[-1] & high) != 0, high - one, np.uint64(0))
    return interleaved(axes ^ turned, bits)


def _column(batch: pa.RecordBatch, name: str) -> pa.Array:
    column = column_of(batch, name)
    if column is None:
        raise ConfigError(
            f"{SORT_COLUMNS.name} names {name}, which is no column of the table", remedy="name columns of the table"
        )
    return column


def _sortable(column: pa.Array, name: str) -> pa.Array:
    """Returns the values as binary that sorts as they do and ends by itself, nulls first."""
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        valid = column.is_valid()
        text = pc.replace_substring(column.cast(pa.binary()).fill_null(b""), b"\0", b"\0\xff")
        whole = pc.binary_join_element_wise(pa.scalar(b"\1"), text, pa.scalar(b"\0\0"), pa.scalar(b"", pa.binary()))
        return pc.if_else(valid, whole, pa.scalar(b"\0", pa.binary()))
    data = _fixed(column, name)
    valid = np.asarray(column.is_valid())
    data = np.where(valid[:, None], data, np.uint8(0))
    return _binary(np.concatenate([valid[:, None].astype(np.uint8), data], axis=1))


def _fixed(column: pa.Array, name: str) -> NDArray[np.uint8]:
    """Returns values of a fixed width as bytes that sort as they do: rows by width. The bytes of nulls are anything."""
    kind, count = column.type, len(column)
    if pa.types.is_boolean(kind):
        return np.asarray(column.fill_null(False)).astype(np.uint8).reshape(count, 1)
    if pa.types.is_floating(kind):
        values = np.asarray(column.cast(pa.float64()).fill_null(0.0)) + 0.0
        values[np.isnan(values)] = np.nan
        bits = values.view(np.uint64)
        sign = np.uint64(1 << 63)
        return _big_endian(np.where(bits & sign != 0, ~bits, bits | sign))
    if pa.types.is_decimal(kind):
        width = kind.bit_width // 8
        filled = column.fill_null(pa.scalar(0, kind))
        raw = np.frombuffer(filled.buffers()[1], np.uint8)[filled.offset * width :][: count * width]
        turned: NDArray[np.uint8] = raw.reshape(count, width)[:, ::-1].copy()
        turned[:, 0] ^= 0x80
        return turned
    if pa.types.is_fixed_size_binary(kind):
        width = kind.byte_width
        filled = column.fill_null(pa.scalar(bytes(width), kind))
        turned_bytes: NDArray[np.uint8] = np.frombuffer(filled.buffers()[1], np.uint8)[filled.offset * width :]
        return turned_bytes[: count * width].reshape(count, width)
    if pa.types.is_temporal(kind):
        column = column.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
        kind = column.type
    if not pa.types.is_integer(kind):
        raise UnsupportedError(f"rows are not sorted by {name}, of type {kind}", remedy=f"change {SORT_COLUMNS.name}")
    values = np.asarray(column.cast(pa.int64()).fill_null(0))
    return _big_endian(values.view(np.uint64) ^ np.uint64(1 << 63))


def _big_endian(values: NDArray[np.uint64]) -> NDArray[np.uint8]:
    return values.astype(">u8").view(np.uint8).reshape(len(values), 8)


def _binary(data: NDArray[np.uint8]) -> pa.Array:
    """Returns rows of bytes, all of one width, as a binary array."""
    count, width = data.shape
    offsets = np.arange(0, (count + 1) * width, width, dtype=np.int32)
    return pa.Array.from_buffers(
        pa.binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data))]
    )


def _quantiles(column: pa.Array, weights: NDArray[np.float64], most: int) -> pa.Array:
    """Returns `most` values that divide the weighted ones into equal parts, ascending, frequent ones several times."""
    order = pc.sort_indices(column).to_numpy()
    order = order[np.asarray(column.is_valid())[order]]
    if not len(order):
        return column.slice(0, 0)
    reached = np.cumsum(weights[order])
    at = np.searchsorted(reached, reached[-1] * np.arange(1, most + 1) / (most + 1), side="right")
    return column.take(pa.array(order[np.minimum(at, len(order) - 1)]))


def _ranks(column: pa.Array, bounds: pa.Array) -> NDArray[np.uint64]:
    """Returns how many of the ascending `bounds` each value reaches; 0 where it is null."""
    both = pa.concat_arrays([bounds, column])
    order = pc.sort_indices(both).to_numpy()
    is_bound = order < len(bounds)
    ranks = np.empty(len(both), np.uint64)
    # The sort is stable: a value that equals a bound comes behind it.
    ranks[order] = np.cumsum(is_bound)
    return np.where(np.asarray(column.is_valid()), ranks[len(bounds) :], np.uint64(0))


@lru_cache(maxsize=8)
def _bounds(data: bytes) -> Sequence[pa.Array]:
    (row,) = pa.ipc.open_stream(data)
    return [column.values for column in row.columns]


def merged_pieces(batches: Iterator[pa.RecordBatch], schema: pa.Schema, hold: int) -> Iterator[pa.Table]:
    """Yields the rows of sorted pieces in the order of their keys, with the columns of `schema`. Rows below the next
    piece's first key are final. Takes at least `hold` bytes together.
    """
    keyed = schema.append(pa.field(SORT_KEY, pa.binary()))
    waiting: list[pa.Table] = []
    size, limit = 0, hold
    for batch in batches:
        for first, value in zip(batch.column(0), batch.column(1), strict=True):
            if size >= limit:
                rows = by_key(pa.concat_tables(waiting))
                final = place(rows.column(SORT_KEY).combine_chunks(), first.as_py())
                yield rows.slice(0, final).select(schema.names)
                waiting = [rows.slice(final).combine_chunks()]
                size = waiting[0].nbytes
                limit = size + hold
            waiting.append(pa.Table.from_batches([pa.ipc.read_record_batch(value.as_buffer(), keyed)]))
            size += waiting[-1].nbytes
    if waiting:
        yield by_key(pa.concat_tables(waiting)).select(schema.names)


def by_key(rows: pa.Table) -> pa.Table:
    return rows.take(pc.sort_indices(rows.column(SORT_KEY))).combine_chunks()


def place(keys: pa.Array, key: bytes) -> int:
    """Returns how many of the ascending keys are below `key`."""
    return bisect.bisect_left(range(len(keys)), key, key=lambda at: keys[at].as_py())
