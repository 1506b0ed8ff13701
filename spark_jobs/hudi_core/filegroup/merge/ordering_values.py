"""Says which ordering values may be compared, and as which type; winning_version.py says which version wins by them.

The sources are HoodieMergedLogRecordScanner and HoodieAvroUtils.unwrapAvroValueWrapper of Hudi 0.15; OrderingValues,
ArrayComparable, RecordContext and OrderingValueEngineTypeConverter of Hudi 1.x.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hudi_core.codec.avro.resolve import AvroField, AvroType, resolve
from hudi_core.codec.avro.schema import AvroSchema
from hudi_core.codec.columns import column_of
from hudi_core.config.rows_config import Payload
from hudi_core.errors import ConfigError, UnsupportedError
from hudi_core.filegroup.merge.record_keys import as_mask
from hudi_core.filegroup.merge.row_merge import Default, field_defaults
from hudi_core.filegroup.merge.table_policy import MergePolicy, Rules
from hudi_core.frozen import dataclass
from hudi_core.model.names import alike

_WHOLE = frozenset({"int", "long"})
_PLAIN = frozenset({"boolean", "int", "long", "float", "double"})
"""Types whose Java class is the same in a record and in a delete entry. In 0.15, a string is a Utf8 in one and a String
in the other, a date an Integer and a LocalDate: Hudi never compares those, and the delete wins. 1.x converts text, and
from 1.1 on decimals.
"""
_DIGITS = 38
_DELETE_SCALE = 15
"""The scale of decimals in delete entries (DecimalWrapper)."""


@dataclass(frozen=True, slots=True)
class OrderingColumn:
    """One ordering column. `kind` is its Avro type, and the only type of a delete's ordering value that compares with
    it. `delete_factor` converts a delete's raw value into the unit of the column. `name` may lead into structs: `a.b`.
    """

    name: str
    kind: str
    type: pa.DataType
    delete_factor: int = 1
    same_class: bool = True

    def from_rows(self, batch: pa.RecordBatch) -> pa.Array:
        """Returns the rows' values as `type`, with nulls as they are; all null when the rows lack the column."""
        column = column_of(batch, self.name)
        return pa.nulls(batch.num_rows, self.type) if column is None else self.normal(column)

    def normal(self, column: pa.Array) -> pa.Array:
        if column.type.equals(self.type):
            return column
        if pa.types.is_date32(column.type) or pa.types.is_time32(column.type):
            column = column.cast(pa.int32())
        elif pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("us", tz=column.type.tz))  # The unit of deletes (delete_factor).
        return column.cast(self.type)


@dataclass(frozen=True, slots=True)
class Ordering:
    """How a table's rows of one key are ordered, and what else of the table's Avro schema a merge uses.

    `columns` is empty when the table has no ordering column, or its rows lack it; every row's value is then the int 0.
    With `hudi_1`, null counts as the int 0, which compares with ints only, and a deleted row with the int 0 is a
    natural delete; Hudi 0.15 refuses null. `compared` has the types of delete ordering values that compare with those
    of records, `defaults` the fields' Avro defaults. With `by_arrival`, versions in log files are ordered as without a
    column: there, Hudi 0.15 takes a field within a struct for absent (SpillableMapUtils), but it finds the field when a
    payload class compares base rows.
    """

    columns: tuple[OrderingColumn, ...]
    hudi_1: bool = False
    compared: frozenset[str] = _PLAIN
    defaults: Mapping[str, Default] = field(default_factory=dict)
    by_arrival: bool = False

    @staticmethod
    def of(policy: MergePolicy, schema: AvroSchema, *, path: str) -> Ordering:
        """Returns the ordering of records with this Avro schema. Raises UnsupportedError for a type without order."""
        root = resolve(schema, path=path)
        fields = [_field_at(root, name) for name in policy.ordering_fields if policy.is_ordered]
        columns = tuple(_column(item.name, item.type, policy.is_hudi_1, path) for item in fields if item is not None)
        compared = _PLAIN | {"string"} if policy.is_hudi_1 else _PLAIN
        if policy.is_hudi_1 and not policy.string_deletes_win:
            compared = compared | {"decimal"}
        # When a table lacks one of several ordering columns, a value has the others and a constant.
        by_arrival = policy.rules is Rules.PAYLOAD_0_15 and any("." in column.name for column in columns)
        return Ordering(columns, policy.is_hudi_1, compared, field_defaults(schema), by_arrival)

    @property
    def type(self) -> pa.DataType:
        """The type of ordering values in logs: the one column's, a struct of several columns', int64 without any."""
        return _type_of(self._in_logs)

    @property
    def base_type(self) -> pa.DataType:
        return _type_of(self.columns)

    @property
    def _in_logs(self) -> tuple[OrderingColumn, ...]:
        return () if self.by_arrival else self.columns

    @property
    def has_text(self) -> bool:
        """Whether values are text. In Hudi 1.0, text has another class in delete entries than in rows."""
        return any(column.kind == "string" for column in self.columns)

    @property
    def same_class(self) -> bool:
        """Whether a log record's value has the Java class of a base row's value (ReflectionUtils.isSameClass). In 0.15,
        dates and decimals do not: SpillableMapUtils.getPreCombineVal leaves them as Avro stores them,
        HoodieAvroUtils.getNestedFieldVal makes a LocalDate and a BigDecimal. In CUSTOM mode of 1.x, text does not
        either.
        """
        return all(column.same_class for column in self.columns)

    def values(self, batch: pa.RecordBatch, *, path: str) -> pa.Array:
        """Returns the values of log records. Raises ConfigError when one is null and Hudi 0.15 keeps the table."""
        arrays = [self._row_values(column, batch) for column in self._in_logs]
        for column, values in zip(self._in_logs, arrays, strict=True):
            if values.null_count and not self.hudi_1:
                message = f"{values.null_count} log records have no value in the ordering column {column.name!r}"
                raise ConfigError(message, path=path)
        return _joined(arrays, self._in_logs, batch.num_rows)

    def base_values(self, batch: pa.RecordBatch) -> pa.Array:
        """Returns the values of base rows; null in a row that is older than the column."""
        return _joined([self._row_values(column, batch) for column in self.columns], self.columns, batch.num_rows)

    def log_ranks(self, values: pa.Array) -> NDArray[np.int64]:
        """Returns the `ranks` of versions in log files. Hudi 0.15 compares decimals there by their bytes
        (GenericData.Fixed.compareTo), without a sign: negative values are above all others.
        """
        by_value = ranks(values)
        if self.hudi_1 or not pa.types.is_decimal(values.type):
            return by_value
        negative = as_mask(pc.less(values, pa.scalar(Decimal(0), values.type)).fill_null(False))
        return np.where(negative, by_value + len(by_value), by_value)

    def against_base(self, batch: pa.RecordBatch, payload: Payload) -> pa.Array:
        """Returns what is compared with base_values, for log records that are ordered by arrival.
        DefaultHoodieRecordPayload looks into both rows. PartialUpdateAvroPayload has the int 0, which it compares only
        with an int.
        """
        if payload is not Payload.PARTIAL_UPDATE:
            return self.base_values(batch)
        is_int = len(self.columns) == 1 and self.columns[0].kind == "int" and self.columns[0].same_class
        return pa.repeat(pa.scalar(0 if is_int else None, self.base_type), batch.num_rows)

    def _row_values(self, column: OrderingColumn, batch: pa.RecordBatch) -> pa.Array:
        values = column.from_rows(batch)
        return values.fill_null(0) if self.hudi_1 and column.kind == "int" else values

    def defaulted(self, batch: pa.RecordBatch) -> NDArray[np.bool_]:
        """Whether each row has the int 0 (OrderingValues.isDefault): all without an ordering column, none with more."""
        if len(self.columns) != 1:
            return np.full(batch.num_rows, not self.columns)
        values = self.columns[0].from_rows(batch)
        return as_mask(pc.fill_null(pc.equal(values, 0), True) if self.columns[0].kind == "int" else pc.is_null(values))

    def of_deletes(self, entries: pa.Table) -> tuple[NDArray[np.bool_], pa.Array]:
        """Returns which entries of delete_columns always win, and the ordering values of the others as `type`. An entry
        is a natural delete when it has no value, the int 0, or a value that Hudi does not compare.
        """
        columns = self._in_logs
        if len(columns) <= 1:
            column = columns[0] if columns else OrderingColumn("", "int", pa.int64())
            natural, values = self._of_deletes(entries, column, column.kind)
            if column.kind == "int":
                natural = natural | as_mask(pc.fill_null(pc.equal(values, 0), True))
            return natural, values
        parts = [
            self._of_deletes(entries, column, f"{position}.{column.kind}") for position, column in enumerate(columns)
        ]
        natural = np.logical_or.reduce([part[0] for part in parts])
        return natural, _joined([part[1] for part in parts], columns, entries.num_rows)

    def _of_deletes(self, entries: pa.Table, column: OrderingColumn, name: str) -> tuple[NDArray[np.bool_], pa.Array]:
        if column.kind not in self.compared or name not in entries.column_names:
            return np.ones(entries.num_rows, dtype=np.bool_), pa.nulls(entries.num_rows, column.type)
        raw = entries.column(name).combine_chunks()
        values = column.normal(raw)
        if column.delete_factor != 1:
            values = pc.multiply(values, column.delete_factor)
        return as_mask(pc.is_null(raw)), values


def _type_of(columns: Sequence[OrderingColumn]) -> pa.DataType:
    if len(columns) == 1:
        return columns[0].type
    return pa.struct([(column.name, column.type) for column in columns]) if columns else pa.int64()


def _joined(arrays: Sequence[pa.Array], columns: Sequence[OrderingColumn], rows: int) -> pa.Array:
    if not columns:
        return pa.array(np.zeros(rows, dtype=np.int64))
    return arrays[0] if len(arrays) == 1 else pa.StructArray.from_arrays(arrays, fields=list(_type_of(columns)))


def _field_at(root: AvroType, name: str) -> AvroField | None:
    """Returns the field of a dotted name, with the schema's spelling; None when the schema has no such field."""
    at = AvroField("", root)
    for part in name.split("."):
        names = alike((child.name for child in at.type.fields), part)
        child = next((child for child in at.type.fields if child.name in names), None)
        if child is None:
            return None
        at = AvroField(f"{at.name}.{child.name}" if at.name else child.name, child.type)
    return at


def _column(name: str, avro: AvroType, hudi_1: bool, path: str) -> OrderingColumn:
    kind, logical = avro.kind, avro.logical
    if kind in _WHOLE:
        factor = 1000 if logical in ("timestamp-millis", "local-timestamp-millis") else 1
        return OrderingColumn(name, kind, pa.int64(), factor, logical != "date")
    if logical == "decimal":
        if not hudi_1:
            return OrderingColumn(name, "decimal", pa.decimal128(avro.precision, avro.scale), same_class=False)
        scale = max(avro.scale, _DELETE_SCALE)
        digits = avro.precision - avro.scale + scale
        wide = pa.decimal128(_DIGITS, scale) if digits <= _DIGITS else pa.decimal256(2 * _DIGITS, scale)
        return OrderingColumn(name, "decimal", wide, same_class=False)
    known: dict[str, pa.DataType] = {"boolean": pa.int8(), "float": pa.float64(), "double": pa.float64()}
    known |= {"string": pa.string(), "enum": pa.string()}
    if kind not in known:
        raise UnsupportedError(f"ordering column {name!r} is of type {kind}, which has no order", path=path)
    return OrderingColumn(name, kind, known[kind], same_class=not hudi_1 or kind in _PLAIN)


def ranks(values: pa.Array) -> NDArray[np.int64]:
    """Returns integers in the order of `values` by Java's compareTo, equal for equal values. Nulls get any rank."""
    if pa.types.is_struct(values.type):
        keys = [ranks(part) for part in values.flatten()]
        order = np.lexsort(keys[::-1])
        steps = np.logical_or.reduce([part[order][1:] != part[order][:-1] for part in keys])
        result = np.empty(len(order), dtype=np.int64)
        result[order] = np.cumsum(np.r_[0, steps])
        return result
    if pa.types.is_int64(values.type):
        filled: NDArray[np.int64] = values.fill_null(0).to_numpy(zero_copy_only=False)
        return filled
    if pa.types.is_floating(values.type):
        return _java_numbers(values)
    if pa.types.is_decimal(values.type):
        # Arrow sorts decimals, but does not rank them: the rank is the place among the sorted distinct values.
        distinct = values.unique().drop_null()
        sorted_values = distinct.take(pc.sort_indices(distinct))
        return _numpy(pc.index_in(values, value_set=sorted_values))
    return _numpy(pc.rank(values, sort_keys="ascending", tiebreaker="dense"))


def greater(left: pa.Array, right: pa.Array) -> NDArray[np.bool_]:
    """Whether each `left` > `right` by Java's compareTo; False when one is null."""
    if pa.types.is_struct(left.type):
        above = np.zeros(len(left), dtype=np.bool_)
        tied = ~nulls(left) & ~nulls(right)
        for one, other in zip(left.flatten(), right.flatten(), strict=True):
            over = greater(one, other)
            above |= tied & over
            tied &= ~over & ~greater(other, one)
        return above
    if pa.types.is_floating(left.type):
        above = _java_numbers(left) > _java_numbers(right)
        return above & ~nulls(left) & ~nulls(right)
    return as_mask(pc.greater(left, right).fill_null(False))


def nulls(values: pa.Array) -> NDArray[np.bool_]:
    if pa.types.is_struct(values.type):
        lacking: NDArray[np.bool_] = np.logical_or.reduce([nulls(part) for part in values.flatten()])
        return lacking
    return as_mask(pc.is_null(values))


def _java_numbers(values: pa.Array) -> NDArray[np.int64]:
    """Returns integers in the order of Double.compareTo and Float.compareTo: -0.0 is below 0.0, NaN above all."""
    numbers = np.array(values.fill_null(0.0), np.float64)
    numbers[np.isnan(numbers)] = np.nan
    bits: NDArray[np.int64] = numbers.view(np.int64)
    return np.where(bits < 0, bits ^ np.iinfo(np.int64).max, bits)


def _numpy(values: pa.Array) -> NDArray[np.int64]:
    result: NDArray[np.int64] = values.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    return result
