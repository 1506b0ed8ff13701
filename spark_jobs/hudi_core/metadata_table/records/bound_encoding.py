"""The bounds of a range as metadata records hold them, in both encodings (ValueType, ValueMetadata): version 1 (tables
6 and 8) wraps the logical value, version 2 (table 9) the physical one with a type number beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Annotated, Any, Final, NamedTuple

import pyarrow as pa

from hudi_core.errors import CorruptFileError, FormatError

_V1_SCALE = 15
"""HoodieMetadataColumnStats' DecimalWrapper is a decimal(30, 15)."""
_V1_PRECISION: Final = 30
CONTEXT: Final = Context(prec=76)
_NAMESPACE: Final = "org.apache.hudi.avro.model."


class Form(NamedTuple):
    """The wrappers of both versions ("": none), the Python type, and the Arrow type (None: by value)."""

    wrapper_1: str
    wrapper_2: str
    python: type | tuple[type, ...]
    arrow: pa.DataType | None


_INSTANTS: Final = pa.timestamp("us", tz="UTC")
FORMS: Final = {
    "boolean": Form("BooleanWrapper", "BooleanWrapper", bool, pa.bool_()),
    "int": Form("IntWrapper", "IntWrapper", int, pa.int32()),
    "long": Form("LongWrapper", "LongWrapper", int, pa.int64()),
    "float": Form("FloatWrapper", "FloatWrapper", (float, int), pa.float32()),
    "double": Form("DoubleWrapper", "DoubleWrapper", (float, int), pa.float64()),
    "bytes": Form("BytesWrapper", "BytesWrapper", bytes, pa.binary()),
    "string": Form("StringWrapper", "StringWrapper", str, pa.string()),
    "date": Form("DateWrapper", "IntWrapper", int, pa.date32()),
    "decimal": Form("DecimalWrapper", "BytesWrapper", Decimal, None),
    "time_millis": Form("", "IntWrapper", int, pa.time32("ms")),
    "time_micros": Form("TimeMicrosWrapper", "LongWrapper", int, pa.time64("us")),
    "timestamp_millis": Form("", "LongWrapper", int, _INSTANTS),
    "timestamp_micros": Form("TimestampMicrosWrapper", "LongWrapper", int, _INSTANTS),
    "timestamp_nanos": Form("", "LongWrapper", int, _INSTANTS),
}
_V1_LOGICAL: Final = {
    **{form.wrapper_1: logical for logical, form in FORMS.items() if form.wrapper_1},
    "LocalDateWrapper": "date",
}
WRAPPERS: Final = tuple(_V1_LOGICAL)
"""The records that a bound is wrapped in, but for arrays, which have no order."""
V2_LOGICAL: Final = (
    "",
    "null",
    "boolean",
    "int",
    "long",
    "float",
    "double",
    "string",
    "bytes",
    "bytes",
    "decimal",
    "string",
    "date",
    "time_millis",
    "time_micros",
    "timestamp_millis",
    "timestamp_micros",
    "timestamp_nanos",
    "timestamp_millis",
    "timestamp_micros",
    "timestamp_nanos",
)
"""By ValueType's ordinal; 0 is version 1, 9 is fixed, 11 is uuid, 18 to 20 are local timestamps."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A minimum or maximum: days, counts since midnight or 1970, Decimal, or a plain value, by its logical type."""

    logical: str
    value: Annotated[Any, bool | int | float | str | bytes | Decimal]


@dataclass(frozen=True, slots=True)
class ValueType:
    """How a column's bounds are stored: ordinal 0 is version 1, else 2 with a decimal's "precision,scale" in `info`."""

    ordinal: int
    info: str | None = None


def decode_bound(wrapped: Any, value_type: Any, *, path: str) -> Bound | None:
    """The bound in a record's `minValue` or `maxValue`; None for none, or an array, which has no order.

    `wrapped` is (wrapper's full name, {"value": …}) as codec.avro.datum decodes it, `value_type` the record's
    `valueType` or None. Raises CorruptFileError naming `path`.
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
    """The `minValue` or `maxValue` of a record: (wrapper's full name, {"value": …}); None for no bound.

    Version 1 takes times and timestamps as plain numbers (`int`, `long`); decimals have scale 15. Version 2 wraps by
    `value_type`. Raises FormatError for a bound that the encoding does not hold.
    """
    if bound is None:
        return None
    form = FORMS[bound.logical]
    wrapper = form.wrapper_2 if value_type.ordinal else form.wrapper_1
    if not wrapper or (value_type.ordinal and V2_LOGICAL[value_type.ordinal] != bound.logical):
        raise FormatError(f"a {bound.logical} cannot be stored as a bound of value type {value_type.ordinal}")
    value = bound.value
    if bound.logical == "decimal":
        scale = _scale(value_type.info, "value type") if value_type.ordinal else _V1_SCALE
        value = _unscaled(value, scale, whole=not value_type.ordinal)
    return _NAMESPACE + wrapper, {"value": value}


def _unscaled(value: Decimal, scale: int, *, whole: bool) -> bytes:
    """The decimal's digits at that scale as BigInteger.toByteArray; `whole`: at most 30 digits."""
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
    """The logical type of a bound, by the ordinal of its value type (-1: version 1). Raises CorruptFileError."""
    value_type = None if ordinal < 0 else {"typeOrdinal": ordinal, "additionalInfo": "0,0"}
    return _logical_type(wrapper, value_type, "column statistics")[0]


def _logical_type(wrapper: str, value_type: Any, path: str) -> tuple[str, int]:
    if value_type is None:
        if wrapper not in _V1_LOGICAL:
            raise CorruptFileError(f"column statistics hold a bound in an unknown {wrapper}", path=path)
        return _V1_LOGICAL[wrapper], _V1_SCALE
    ordinal = value_type.get("typeOrdinal") if isinstance(value_type, dict) else None
    if not isinstance(ordinal, int) or not 1 <= ordinal < len(V2_LOGICAL):
        raise CorruptFileError(f"column statistics have the value type {ordinal!r}", path=path)
    logical = V2_LOGICAL[ordinal]
    return logical, _scale(value_type.get("additionalInfo"), path) if logical == "decimal" else 0


def _scale(info: Any, path: str) -> int:
    parts = str(info).split(",")
    if len(parts) != 2 or not all(part.strip().isdecimal() and len(part) < 5 for part in parts):
        raise CorruptFileError(f"column statistics hold a decimal of the type {info!r}", path=path)
    return int(parts[1])


def _decimal(value: Any, scale: int, path: str) -> Decimal:
    if not isinstance(value, bytes) or len(value) > 64:
        raise CorruptFileError("column statistics hold a decimal that is not some bytes", path=path)
    # Not scaleb: that rounds to the context's 28 digits.
    return Decimal(f"{int.from_bytes(value, 'big', signed=True)}E-{scale}")
