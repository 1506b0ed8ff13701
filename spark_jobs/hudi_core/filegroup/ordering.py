"""Ordering values: which may be compared, and as what (HoodieMergedLogRecordScanner, HoodieAvroUtils.unwrapAvroValueWrapper of Hudi 0.15)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hudi_core.codec.avro.resolve import resolve
from hudi_core.errors import ConfigError, UnsupportedError

if TYPE_CHECKING:
    from hudi_core.codec.avro.schema import AvroSchema

_WHOLE = frozenset({"int", "long"})
_COMPARABLE_DELETES = frozenset({"boolean", "int", "long", "float", "double"})
"""Kinds whose Java class is the same in a record and in a delete entry. A string is a Utf8 in one and a String in the other, a date is an
Integer and a LocalDate, so Hudi never compares those and the delete wins."""


@dataclass(frozen=True, slots=True)
class Ordering:
    """How a table's rows of one key are ordered.

    `field` is None when the table has no ordering column, or its rows lack it: then every row's value is the int 0. `kind` is the Avro
    type of the column, and so the one kind of delete ordering value that compares with it. `delete_factor` turns a delete's raw value
    into the unit of the column (milliseconds into microseconds).
    """

    field: str | None
    kind: str
    type: pa.DataType
    delete_factor: int = 1

    @staticmethod
    def of(field: str | None, schema: AvroSchema, *, path: str) -> Ordering:
        """The ordering by `field` of records with this Avro schema; raises UnsupportedError for a type that has no order here."""
        types = {child.name: child.type for child in resolve(schema, path=path).fields}
        if field is None or field not in types:
            return Ordering(None, "int", pa.int64())
        kind, logical = types[field].kind, types[field].logical
        if kind in _WHOLE:
            return Ordering(field, kind, pa.int64(), 1000 if logical in ("timestamp-millis", "local-timestamp-millis") else 1)
        if logical == "decimal":
            return Ordering(field, "decimal", pa.decimal128(types[field].precision, types[field].scale))
        known: dict[str, pa.DataType] = {
            "boolean": pa.int8(),
            "float": pa.float64(),
            "double": pa.float64(),
            "string": pa.string(),
            "enum": pa.string(),
        }
        if kind not in known:
            raise UnsupportedError(f"ordering column {field!r} is of type {kind}, which has no order", path=path)
        return Ordering(field, kind, known[kind])

    @property
    def compares_deletes(self) -> bool:
        """Whether a delete's ordering value of this kind is compared with records'."""
        return self.kind in _COMPARABLE_DELETES

    def values(self, batch: pa.RecordBatch, *, path: str) -> pa.Array:
        """The rows' ordering values as `type`. Raises ConfigError when one is null, as Hudi does: nothing says which row is newer."""
        if self.field is None:
            return pa.array(np.zeros(batch.num_rows, dtype=np.int64))
        column = batch.column(batch.schema.get_field_index(self.field))
        if column.null_count:
            raise ConfigError(f"{column.null_count} log records have no value in the ordering column {self.field!r}", path=path)
        return self.normal(column)

    def normal(self, column: pa.Array) -> pa.Array:
        """A column's values as `type`; nulls stay."""
        if column.type.equals(self.type):
            return column
        if pa.types.is_date32(column.type) or pa.types.is_time32(column.type):
            column = column.cast(pa.int32())
        return column.cast(self.type)

    def of_deletes(self, entries: pa.Table) -> tuple[NDArray[np.bool_], pa.Array]:
        """Of a delete block's entries (codec.log.delete_columns): which always win, and the ordering values of the others as `type`.

        Natural are entries without a value, with the int 0 that stands for none, and with a value that Hudi does not compare.
        """
        if not self.compares_deletes or self.kind not in entries.column_names:
            return np.ones(entries.num_rows, dtype=np.bool_), pa.nulls(entries.num_rows, self.type)
        raw = entries.column(self.kind).combine_chunks()
        values = self.normal(raw)
        if self.delete_factor != 1:
            values = pc.multiply(values, self.delete_factor)
        natural = pc.is_null(raw) if self.kind != "int" else pc.fill_null(pc.equal(raw, 0), True)
        mask: NDArray[np.bool_] = natural.to_numpy(zero_copy_only=False)
        return mask, values


def ranks(values: pa.Array) -> NDArray[np.int64]:
    """Integers in the order of `values`, equal where they are equal. NaN is the greatest, as in Java; nulls get any rank."""
    if pa.types.is_int64(values.type):
        filled: NDArray[np.int64] = values.fill_null(0).to_numpy(zero_copy_only=False)
        return filled
    if pa.types.is_decimal(values.type):
        # Arrow sorts decimals and does not rank them: rank their place among the sorted distinct values.
        distinct = values.unique().drop_null()
        sorted_values = distinct.take(pc.sort_indices(distinct))
        return _numpy(pc.index_in(values, value_set=sorted_values))
    return _numpy(pc.rank(values, sort_keys="ascending", tiebreaker="dense"))


def _numpy(values: pa.Array) -> NDArray[np.int64]:
    result: NDArray[np.int64] = values.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    return result


def greater(left: pa.Array, right: pa.Array) -> NDArray[np.bool_]:
    """Where `left` > `right` as Java's compareTo has it; False where `left` is null."""
    above = pc.greater(left, right)
    if pa.types.is_floating(left.type):
        above = pc.or_(above, pc.and_(pc.is_nan(left), pc.invert(pc.is_nan(right))))
    result: NDArray[np.bool_] = above.fill_null(False).to_numpy(zero_copy_only=False)
    return result
