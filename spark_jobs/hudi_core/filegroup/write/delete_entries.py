"""The entries of the delete blocks of a log file: keys with ordering values, as Hudi stores these (HoodieAppendHandle,
HoodieAvroUtils.wrapValueIntoAvro). Memory: keys and ordering values, twice.

Hudi 1.x fails to read its own entries with a date, and 1.0 those with a decimal: such rows stay marked rows.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hudi_core.codec.avro.schema import AvroSchema
from hudi_core.codec.columns import column_of
from hudi_core.codec.log.content import DECIMAL_SCALE, delete_block
from hudi_core.codec.log.delete_columns import encode_deletes
from hudi_core.filegroup.merge.ordering_values import Ordering, OrderingColumn
from hudi_core.filegroup.merge.record_keys import as_mask, record_keys
from hudi_core.filegroup.merge.table_policy import MergePolicy, Rules

_WHOLE_DIGITS: Final = 30 - DECIMAL_SCALE
"""The digits before the point of a decimal in a delete entry."""
_CAST: Final = {"int": pa.int32(), "long": pa.int64(), "float": pa.float32(), "double": pa.float64()}


class _Entries(NamedTuple):
    keys: pa.Array
    values: list[tuple[str, pa.Array]]
    positions: NDArray[np.int64]


class DeleteEntries:
    """The deletes of a file group, in the order in which they come. `schema` is the table's, without meta fields."""

    def __init__(self, policy: MergePolicy, schema: AvroSchema, partition: str, *, path: str) -> None:
        self.count = self.nbytes = 0
        self._policy, self._schema, self._partition, self._path = policy, schema, partition, path
        self._added: list[_Entries] = []

    def add_rows(self, rows: pa.RecordBatch, positions: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Adds deletes with the ordering values of rows. Returns which rows were added: those with all of these values,
        none where an entry cannot hold them. Raises UnsupportedError for an ordering field of a type without order.
        """
        values = [_ordering_value(rows, column, self._policy) for column in self._columns]
        known = [value for value in values if value is not None]
        if len(known) < len(values):
            return np.zeros(rows.num_rows, np.bool_)
        has_all = np.logical_and.reduce([as_mask(array.is_valid()) for _, array in known], initial=True)
        mask = pa.array(np.broadcast_to(has_all, rows.num_rows))
        some = [(kind, array.filter(mask)) for kind, array in known]
        keys = record_keys(rows, self._policy.key_fields, path=self._path)
        self._add(keys.filter(mask), some, positions[as_mask(mask)])
        return as_mask(mask)

    def add_keys(self, keys: pa.Array, positions: NDArray[np.int64]) -> None:
        """Adds deletes of these keys whatever the rows' ordering values are."""
        # A copy: `keys` holds whole rows in memory.
        self._add(pa.concat_arrays([keys, keys.slice(0, 0)]), [], positions)

    def _add(self, keys: pa.Array, values: list[tuple[str, pa.Array]], positions: NDArray[np.int64]) -> None:
        natural = [("int", pa.repeat(pa.scalar(0, pa.int32()), len(keys)))]
        self._added.append(_Entries(keys, values or natural, positions))
        self.count += len(keys)
        self.nbytes += keys.nbytes + sum(array.nbytes for _, array in values)

    @cached_property
    def _columns(self) -> tuple[OrderingColumn, ...]:
        # Hudi stores the values also where a merge does not compare them.
        policy = self._policy if self._policy.is_ordered else replace(self._policy, rules=Rules.EVENT_TIME)
        return Ordering.of(policy, self._schema, path=self._path).columns

    @property
    def positions(self) -> NDArray[np.int64]:
        return np.concatenate([entries.positions for entries in self._added])

    def take(self, order: NDArray[np.int64] | None) -> bytes:
        """Returns the content of a delete block with the entries, and forgets these. `order` are the numbers of entries
        in its order, where all have positions: then rows stay in their partitions, and all entries are of one kind.
        """
        by_kinds: dict[tuple[str, ...], list[_Entries]] = {}
        for item in self._added:
            by_kinds.setdefault(tuple(kind for kind, _ in item.values), []).append(item)
        entries = b""
        for kinds, items in by_kinds.items():
            keys = pa.concat_arrays([item.keys for item in items])
            arrays = [pa.concat_arrays([item.values[at][1] for item in items]) for at in range(len(kinds))]
            if order is not None:
                keys, *arrays = (array.take(pa.array(order)) for array in (keys, *arrays))
            values = list(zip(kinds, arrays, strict=True))
            entries += encode_deletes(keys, self._partition, values, path=self._path)
        count, self.count, self.nbytes, self._added = self.count, 0, 0, []
        return delete_block(count, entries)


def _ordering_value(rows: pa.RecordBatch, column: OrderingColumn, policy: MergePolicy) -> tuple[str, pa.Array] | None:
    """Returns the kind of delete entries' values (content.ORDERING_KINDS), and the rows' values as such; None where an
    entry cannot hold them, or readers fail.
    """
    values = column_of(rows, column.name)
    if values is None:
        return column.kind, pa.nulls(rows.num_rows, _CAST.get(column.kind, column.type))
    if pa.types.is_decimal(values.type):
        fits = values.type.scale <= DECIMAL_SCALE and values.type.precision - values.type.scale <= _WHOLE_DIGITS
        is_hudi_1_0 = policy.is_hudi_1 and policy.string_deletes_win
        return ("decimal", values.cast(pa.decimal128(30, DECIMAL_SCALE))) if fits and not is_hudi_1_0 else None
    if pa.types.is_date32(values.type):
        return None if policy.is_hudi_1 else ("date", values)
    kind = "string" if column.kind == "enum" else column.kind
    return kind, values.cast(_CAST[kind]) if kind in _CAST else values
