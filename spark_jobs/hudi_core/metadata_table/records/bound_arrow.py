"""Bounds of a range as values of an Arrow column. As metadata records hold them: bound_encoding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.errors import UnsupportedError
from hudi_core.metadata_table.records.bound_encoding import CONTEXT, FORMS, V2_LOGICAL, Bound, ValueType

_LOGICAL: Final[dict[int, str]] = {
    **{form.arrow.id: logical for logical, form in FORMS.items() if form.arrow is not None},
    pa.int8().id: "int",
    pa.int16().id: "int",
    pa.large_string().id: "string",
    pa.large_binary().id: "bytes",
    pa.binary(1).id: "bytes",
}
_TIMES: Final = {"ms": "time_millis", "us": "time_micros"}
_TIMESTAMPS: Final = {"ms": "timestamp_millis", "us": "timestamp_micros", "ns": "timestamp_nanos"}
_LAST: Final = "\U0010ffff"
_FIXED: Final = 9
_LOCAL: Final = 3
"""What is added to the ordinals of timestamps without a zone."""


def logical_and_type(arrow_type: pa.DataType, version: int) -> tuple[str, ValueType]:
    """Bound.logical of an Arrow column, and how an index stores it. UnsupportedError for a type without an order."""
    is_timestamp = pa.types.is_timestamp(arrow_type)
    if is_timestamp:
        found = _TIMESTAMPS.get(arrow_type.unit)
    elif pa.types.is_time(arrow_type):
        found = _TIMES.get(arrow_type.unit)
    else:
        found = "decimal" if pa.types.is_decimal(arrow_type) else _LOGICAL.get(arrow_type.id)
    if found is None:
        raise UnsupportedError(f"a column of the type {arrow_type} has no bounds that an index stores")
    if version > 1:
        ordinal = _FIXED if pa.types.is_fixed_size_binary(arrow_type) else V2_LOGICAL.index(found)
        info = f"{arrow_type.precision},{arrow_type.scale}" if found == "decimal" else None
        return found, ValueType(ordinal + _LOCAL if is_timestamp and arrow_type.tz is None else ordinal, info)
    # Times and timestamps are stored as the plain numbers that Parquet holds.
    return ("int" if found == "time_millis" else "long") if found.startswith("time") else found, ValueType(0)


def bound_of(scalar: pa.Scalar, logical: str, *, upper: bool = False) -> Bound | None:
    """The bound that a value of a column is; None for null. `logical` is that of logical_and_type.

    Spark stores texts that are not UTF-8, too: they are bounded by what is before the first such byte, with the last
    character behind it where the bound is an `upper` one.
    """
    if not scalar.is_valid:
        return None
    if pa.types.is_string(scalar.type) or pa.types.is_large_string(scalar.type):
        raw = scalar.as_buffer().to_pybytes()
        try:
            return Bound(logical, raw.decode("utf-8"))
        except UnicodeDecodeError as error:
            return Bound(logical, raw[: error.start].decode("utf-8") + (_LAST if upper else ""))
    counted = pa.types.is_date32(scalar.type) or pa.types.is_time(scalar.type) or pa.types.is_timestamp(scalar.type)
    return Bound(logical, scalar.value if counted else scalar.as_py())


def widened_float(value: float) -> float:
    """A float in a column that is a double now: by its text, 1.1 and not 1.10000002384 (codec.avro.arrow_conform)."""
    return float(str(np.float32(value)))


_MICROS: Final = {"timestamp_millis": (1000, 1), "timestamp_micros": (1, 1), "timestamp_nanos": (1, 1000)}


def to_arrow(
    bounds: Sequence[Bound | None], arrow_type: pa.DataType, *, long_unit: str = "us", upper: bool = False
) -> pa.Array:
    """The bounds as a column of a type that Spark reports; null where one is unknown, or does not order as the column
    does now, as numbers of a column that has become text.

    `long_unit` is what the numbers of a timestamp column count by the table's schema, `ms` or `us`. Nanoseconds are
    rounded away from the range (`upper`: up), and an upper bound that is infinite is NaN (nan_for_infinity).
    """
    values = [None if bound is None else _as_column(bound, arrow_type, long_unit, upper) for bound in bounds]
    if pa.types.is_date32(arrow_type) or pa.types.is_time32(arrow_type):
        return pa.array(values, pa.int32()).cast(arrow_type)
    if pa.types.is_timestamp(arrow_type) or pa.types.is_time64(arrow_type):
        return pa.array(values, pa.int64()).cast(arrow_type)
    found = pa.array(values, arrow_type)
    return nan_for_infinity(found) if upper else found


def nan_for_infinity(upper: pa.Array) -> pa.Array:
    """Upper bounds, with NaN where a float's is infinity: writers here store that for values with NaN."""
    if not pa.types.is_floating(upper.type):
        return upper
    return pc.if_else(pc.equal(upper, math.inf), pa.scalar(math.nan, upper.type), upper)


def natural_type(bounds: Sequence[Bound | None]) -> pa.DataType:
    """The Arrow type of the bounds themselves; null type when there are none or they differ."""
    found = {bound.logical for bound in bounds if bound is not None}
    if len(found) != 1:
        return pa.null()
    (logical,) = found
    if logical == "decimal":
        scale = max(-int(bound.value.as_tuple().exponent) for bound in bounds if bound is not None)
        return pa.decimal128(38, scale)
    return FORMS[logical].arrow


def _as_column(bound: Bound, arrow_type: pa.DataType, long_unit: str, upper: bool) -> Any:
    if pa.types.is_timestamp(arrow_type):
        return _micros(bound, arrow_type, long_unit, upper)
    if pa.types.is_decimal(arrow_type):
        return _rescaled(bound, arrow_type)
    if bound.logical not in _COMPARABLE.get(arrow_type.id, ()):
        return None
    if bound.logical == "float" and pa.types.is_float64(arrow_type):
        return widened_float(bound.value)
    if pa.types.is_floating(arrow_type):
        return float(bound.value)
    if pa.types.is_integer(arrow_type) and not -(1 << (arrow_type.bit_width - 1)) <= bound.value < 1 << (
        arrow_type.bit_width - 1
    ):
        return None
    return bound.value


_COMPARABLE: Final[dict[int, frozenset[str]]] = {
    pa.bool_().id: frozenset({"boolean"}),
    pa.int32().id: frozenset({"int", "long"}),
    pa.int64().id: frozenset({"int", "long"}),
    pa.float32().id: frozenset({"int", "long", "float"}),
    pa.float64().id: frozenset({"int", "long", "float", "double"}),
    pa.string().id: frozenset({"string"}),
    pa.binary().id: frozenset({"bytes"}),
    pa.date32().id: frozenset({"date", "int"}),
    pa.time32("ms").id: frozenset({"time_millis", "int"}),
    pa.time64("us").id: frozenset({"time_micros", "long"}),
}
"""By the column's type: the types of bounds that order as its values do, also those of a column that was widened."""


def _micros(bound: Bound, arrow_type: pa.DataType, long_unit: str, upper: bool) -> int | None:
    # Microseconds are those of a file that labels milliseconds so (codec.avro.arrow_types).
    is_wrong = bound.logical == "timestamp_micros" and long_unit == "ms" and arrow_type.tz is not None
    if bound.logical == "long" or is_wrong:
        return int(bound.value) * (1000 if long_unit == "ms" else 1)
    if bound.logical not in _MICROS:
        return None
    factor, divisor = _MICROS[bound.logical]
    value = int(bound.value) * factor
    return -(-value // divisor) if upper else value // divisor


def _rescaled(bound: Bound, arrow_type: pa.DataType) -> Decimal | None:
    """The value at the column's scale; unknown when that loses digits."""
    if bound.logical not in ("decimal", "int", "long"):
        return None
    value = Decimal(bound.value)
    try:
        exact = value.quantize(Decimal((0, (1,), -arrow_type.scale)), context=CONTEXT)
    except InvalidOperation:
        return None
    return exact if exact == value and len(exact.as_tuple().digits) <= arrow_type.precision else None
