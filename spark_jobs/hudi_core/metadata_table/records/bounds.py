"""The bounds of a range, as records store them (ValueType, ValueMetadata), and as values of an Arrow column. Version 1
(table versions 6 and 8) wraps the logical value; version 2 (table version 9) the physical value, with a type number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Context, Decimal, InvalidOperation
from typing import Annotated, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.errors import CorruptFileError, FormatError, UnsupportedError
from hudi_core.frozen import dataclass

_V1_SCALE = 15
"""HoodieMetadataColumnStats' DecimalWrapper is a decimal(30, 15)."""
_V1_PRECISION: Final = 30
CONTEXT: Final = Context(prec=76)
_NAMESPACE: Final = "org.apache.hudi.avro.model."


class Form(NamedTuple):
    """How bounds of a type are stored and read: wrappers in both versions ("": none), ordinals, Python, Arrow type."""

    wrapper_1: str
    wrapper_2: str
    ordinals: tuple[int, ...]
    python: type | tuple[type, ...]
    arrow: pa.DataType | None


_INSTANTS: Final = pa.timestamp("us", tz="UTC")
FORMS: Final = {
    "boolean": Form("BooleanWrapper", "BooleanWrapper", (2,), bool, pa.bool_()),
    "int": Form("IntWrapper", "IntWrapper", (3,), int, pa.int32()),
    "long": Form("LongWrapper", "LongWrapper", (4,), int, pa.int64()),
    "float": Form("FloatWrapper", "FloatWrapper", (5,), (float, int), pa.float32()),
    "double": Form("DoubleWrapper", "DoubleWrapper", (6,), (float, int), pa.float64()),
    "string": Form("StringWrapper", "StringWrapper", (7, 11), str, pa.string()),  # 11: uuid
    "bytes": Form("BytesWrapper", "BytesWrapper", (8, 9), bytes, pa.binary()),  # 9: fixed
    "decimal": Form("DecimalWrapper", "BytesWrapper", (10,), Decimal, None),
    "date": Form("DateWrapper", "IntWrapper", (12,), int, pa.date32()),
    "time_millis": Form("", "IntWrapper", (13,), int, pa.time32("ms")),
    "time_micros": Form("TimeMicrosWrapper", "LongWrapper", (14,), int, pa.time64("us")),
    # The second ordinal is for local timestamps.
    "timestamp_millis": Form("", "LongWrapper", (15, 18), int, _INSTANTS),
    "timestamp_micros": Form("TimestampMicrosWrapper", "LongWrapper", (16, 19), int, _INSTANTS),
    "timestamp_nanos": Form("", "LongWrapper", (17, 20), int, _INSTANTS),
}
_V1_LOGICAL: Final = {
    **{form.wrapper_1: logical for logical, form in FORMS.items() if form.wrapper_1},
    "LocalDateWrapper": "date",
}
WRAPPERS: Final = tuple(_V1_LOGICAL)
"""The records that wrap a bound, but the one for arrays, which have no order."""
_V2_LOGICAL: Final = {1: "null"} | {ordinal: logical for logical, form in FORMS.items() for ordinal in form.ordinals}


@dataclass(frozen=True, slots=True)
class Bound:
    """A minimum or maximum. By the logical type `value` is days, a count from midnight or 1970, a Decimal or plain."""

    logical: str
    value: Annotated[Any, bool | int | float | str | bytes | Decimal]


@dataclass(frozen=True, slots=True)
class ValueType:
    """How bounds are stored. Ordinal 0 means version 1, others version 2; `info` is a decimal's "precision,scale"."""

    ordinal: int
    info: str | None = None


def decode_bound(wrapped: Any, value_type: Any, *, path: str) -> Bound | None:
    """Returns the bound in a record's `minValue` or `maxValue`; None for no bound, or for an array, which has no order.
    `wrapped` is (wrapper's full name, {"value": …}) as codec.avro.datum decodes it, `value_type` the record's
    `valueType` or None. Raises CorruptFileError with `path`.
    """
    if wrapped is None:
        return None
    name, value = _unwrapped(wrapped, path)
    if value is None or name == "ArrayWrapper":
        return None
    logical, scale = _logical_type(name, value_type, path)
    if logical == "decimal":
        value = _decimal(value, scale, path)
    elif logical == "null":
        return None
    expected = FORMS[logical].python
    if not isinstance(value, expected) or (expected is int and isinstance(value, bool)):
        raise CorruptFileError(f"column statistics hold the {logical} {value!r}", path=path)
    return Bound(logical, value)


def encode_bound(bound: Bound | None, value_type: ValueType) -> tuple[str, dict[str, Any]] | None:
    """Returns the `minValue` or `maxValue` of a record: (wrapper's full name, {"value": …}); None for no bound. In
    version 1 times and timestamps are plain numbers (`int`, `long`), and decimals have scale 15. Version 2 wraps by
    `value_type`. Raises FormatError for a bound that the encoding cannot store.
    """
    if bound is None:
        return None
    form = FORMS[bound.logical]
    wrapper = form.wrapper_2 if value_type.ordinal else form.wrapper_1
    if not wrapper or (value_type.ordinal and value_type.ordinal not in form.ordinals):
        raise FormatError(f"a {bound.logical} cannot be stored as a bound of value type {value_type.ordinal}")
    value = bound.value
    if bound.logical == "decimal":
        scale = _scale(value_type.info, "value type") if value_type.ordinal else _V1_SCALE
        value = _unscaled(value, scale, whole=not value_type.ordinal)
    return _NAMESPACE + wrapper, {"value": value}


def _unscaled(value: Decimal, scale: int, *, whole: bool) -> bytes:
    """Returns the decimal's digits at `scale` as bytes (BigInteger.toByteArray). Raises FormatError for a decimal of
    more digits, and with `whole` for more than 30 digits in total.
    """
    scaled = value.scaleb(scale, context=CONTEXT)
    number = int(scaled)
    if number != scaled:
        raise FormatError(f"the decimal {value} has more than {scale} digits behind the point")
    if whole and abs(number) >= 10**_V1_PRECISION:
        raise FormatError(f"the decimal {value} has more than {_V1_PRECISION} digits at scale {scale}")
    bits = (number if number >= 0 else -number - 1).bit_length()
    return number.to_bytes(bits // 8 + 1, "big", signed=True)


def _unwrapped(wrapped: Any, path: str) -> tuple[str, Any]:
    if isinstance(wrapped, tuple) and len(wrapped) == 2 and isinstance(wrapped[1], dict):
        name = str(wrapped[0]).rsplit(".", 1)[-1]
        if name == "ArrayWrapper" or "value" in wrapped[1]:
            return name, wrapped[1].get("value")
    raise CorruptFileError(f"column statistics hold a bound of the form {type(wrapped).__name__}", path=path)


def bound_type(wrapper: str, ordinal: int) -> str:
    """Returns the logical type of a bound; `ordinal` is its value type's (-1: version 1). Raises CorruptFileError."""
    value_type = None if ordinal < 0 else {"typeOrdinal": ordinal, "additionalInfo": "0,0"}
    return _logical_type(wrapper, value_type, "column statistics")[0]


def _logical_type(wrapper: str, value_type: Any, path: str) -> tuple[str, int]:
    if value_type is None:
        if wrapper not in _V1_LOGICAL:
            raise CorruptFileError(f"column statistics hold a bound in an unknown {wrapper}", path=path)
        return _V1_LOGICAL[wrapper], _V1_SCALE
    ordinal = value_type.get("typeOrdinal") if isinstance(value_type, dict) else None
    if not isinstance(ordinal, int) or ordinal not in _V2_LOGICAL:
        raise CorruptFileError(f"column statistics have the value type {ordinal!r}", path=path)
    logical = _V2_LOGICAL[ordinal]
    return logical, _scale(value_type.get("additionalInfo"), path) if logical == "decimal" else 0


def _scale(info: Any, path: str) -> int:
    parts = str(info).split(",")
    if len(parts) != 2 or not all(part.strip().isdecimal() and len(part) < 5 for part in parts):
        raise CorruptFileError(f"column statistics hold a decimal of the type {info!r}", path=path)
    return int(parts[1])


def _decimal(value: Any, scale: int, path: str) -> Decimal:
    if not isinstance(value, bytes) or len(value) > 64:
        raise CorruptFileError("column statistics hold a decimal that is not some bytes", path=path)
    # Not scaleb, which rounds to the context's 28 digits.
    return Decimal(f"{int.from_bytes(value, 'big', signed=True)}E-{scale}")


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


def logical_and_type(arrow_type: pa.DataType, version: int) -> tuple[str, ValueType]:
    """Returns Bound.logical for an Arrow column, and how an index stores its bounds. Raises UnsupportedError for a type
    without an order.
    """
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
        is_second = pa.types.is_fixed_size_binary(arrow_type) or (is_timestamp and arrow_type.tz is None)
        info = f"{arrow_type.precision},{arrow_type.scale}" if found == "decimal" else None
        return found, ValueType(FORMS[found].ordinals[is_second], info)
    # Version 1 stores times and timestamps as plain numbers, like Parquet.
    return ("int" if found == "time_millis" else "long") if found.startswith("time") else found, ValueType(0)


def bound_of(scalar: pa.Scalar, logical: str, *, upper: bool = False) -> Bound | None:
    """Returns a column's value as a bound; None for null. `logical` is the type that logical_and_type returned. Spark
    also stores texts that are not UTF-8. The bound of such a text is the part before the first wrong byte; an `upper`
    bound has the last Unicode character after this part.
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
    """Returns a float of a column that is now double, by its text: 1.1, not 1.10000002384 (avro.arrow_conform)."""
    return float(str(np.float32(value)))


_MICROS: Final = {"timestamp_millis": (1000, 1), "timestamp_micros": (1, 1), "timestamp_nanos": (1, 1000)}


def to_arrow(
    bounds: Sequence[Bound | None], arrow_type: pa.DataType, *, long_unit: str = "us", upper: bool = False
) -> pa.Array:
    """Returns the bounds as an Arrow column of a type that Spark reports. A bound is null where it is unknown, or where
    the column now has another order: a number of a column that has become text. `long_unit` is the unit of a timestamp
    column's numbers by the table's schema, `ms` or `us`. Nanoseconds are rounded so that the range grows (`upper`: up).
    An infinite upper bound becomes NaN (nan_for_infinity).
    """
    values = [None if bound is None else _as_column(bound, arrow_type, long_unit, upper) for bound in bounds]
    if pa.types.is_date32(arrow_type) or pa.types.is_time32(arrow_type):
        return pa.array(values, pa.int32()).cast(arrow_type)
    if pa.types.is_timestamp(arrow_type) or pa.types.is_time64(arrow_type):
        return pa.array(values, pa.int64()).cast(arrow_type)
    found = pa.array(values, arrow_type)
    return nan_for_infinity(found) if upper else found


def nan_for_infinity(upper: pa.Array) -> pa.Array:
    """Returns upper bounds, with NaN for a float's infinity: our writers store infinity for values with NaN."""
    if not pa.types.is_floating(upper.type):
        return upper
    return pc.if_else(pc.equal(upper, math.inf), pa.scalar(math.nan, upper.type), upper)


def natural_type(bounds: Sequence[Bound | None]) -> pa.DataType:
    """Returns the Arrow type of the bounds themselves; the null type when there are no bounds or their types differ."""
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
"""The types of bounds that have the order of a column's values, by the column's type; also for a widened column."""


def _micros(bound: Bound, arrow_type: pa.DataType, long_unit: str, upper: bool) -> int | None:
    # These microseconds come from a file that labels milliseconds as microseconds (codec.avro.arrow_types).
    is_wrong = bound.logical == "timestamp_micros" and long_unit == "ms" and arrow_type.tz is not None
    if bound.logical == "long" or is_wrong:
        return int(bound.value) * (1000 if long_unit == "ms" else 1)
    if bound.logical not in _MICROS:
        return None
    factor, divisor = _MICROS[bound.logical]
    value = int(bound.value) * factor
    return -(-value // divisor) if upper else value // divisor


def _rescaled(bound: Bound, arrow_type: pa.DataType) -> Decimal | None:
    """Returns the value at the column's scale; None when that loses digits."""
    if bound.logical not in ("decimal", "int", "long"):
        return None
    value = Decimal(bound.value)
    try:
        exact = value.quantize(Decimal((0, (1,), -arrow_type.scale)), context=CONTEXT)
    except InvalidOperation:
        return None
    return exact if exact == value and len(exact.as_tuple().digits) <= arrow_type.precision else None
