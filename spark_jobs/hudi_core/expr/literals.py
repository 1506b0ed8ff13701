"""Finds the place of a literal among the values of a column's type, so that the column itself need not be cast.

`id < 2.5` becomes `id <= 2`, `day = TIMESTAMP '… 12:00'` is false for every day, and an integer beyond the type's range
is above all of its values. Only columns compared with doubles are cast, as in Spark.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa

from hudi_core.errors import ConfigError
from hudi_core.expr.sql_literals import number_text
from hudi_core.expr.tree import EQ, GE, GT, LE, LT, NE, Literal
from hudi_core.expr.wall_time import parse_date, parse_timestamp, zone_of
from hudi_core.frozen import dataclass

_EPOCH: Final = dt.datetime(1970, 1, 1)
_MICROS: Final = {"s": (1, 1_000_000), "ms": (1, 1_000), "us": (1, 1), "ns": (1_000, 1)}
"""By unit: so many of the unit are so many microseconds."""
_EXACT: Final = decimal.Context(prec=120, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
_INTEGER_BITS: Final = {pa.int8(): 8, pa.int16(): 16, pa.int32(): 32, pa.int64(): 64}
_MAX_DIGITS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Place:
    """The largest value up to the literal; `exact` when equal. `side`: 1 for a literal above all values, -1 below."""

    kind: pa.DataType
    value: pa.Scalar | None
    exact: bool = True
    side: int = 0


def place(kind: pa.DataType, literal: Literal, zone: str, *, where: str) -> Place:
    """Returns the place of a literal. `zone` is that of local time, `where` names the column. Raises ConfigError for a
    literal that cannot be compared with the column.
    """
    for fits, rule in _RULES:
        if fits(kind):
            at = rule(kind, literal, zone)
            if at is not None:
                return at
            break
    shown = literal.value if isinstance(literal.value, (int, float, decimal.Decimal)) else repr(str(literal.value))
    message = f"column {where!r} is {kind} and cannot be compared with the {literal.kind} {shown}"
    raise ConfigError(message, remedy=_remedy(kind))


def fold(operator: str, at: Place) -> bool | tuple[str, pa.Scalar]:
    """Returns `column operator literal` with a value of the column's type, or its result for all non-null values."""
    if at.side:
        return operator == NE or operator in ((LT, LE) if at.side > 0 else (GT, GE))
    if at.exact:
        return operator, at.value
    if operator in (EQ, NE):
        return operator == NE
    return (LE if operator in (LT, LE) else GT), at.value


def _at(kind: pa.DataType, value: Any, *, exact: bool = True) -> Place:
    return Place(kind, pa.scalar(value, kind), exact)


def _beyond(kind: pa.DataType, number: int | decimal.Decimal) -> Place:
    return Place(kind, None, side=1 if number > 0 else -1)


def _remedy(kind: pa.DataType) -> str:
    if pa.types.is_nested(kind):
        return "a struct, list or map can only be tested for NULL; name a field of a struct as column.field"
    if _is_text(kind):
        return "write the literal as text, in quotes"
    return "write a literal of the column's type"


def _integer(kind: pa.DataType, literal: Literal, zone: str) -> Place | None:
    bits = _INTEGER_BITS[kind]
    if literal.kind == "double":
        return _at(pa.float64(), literal.value)
    number = _number(literal, fractions=False)
    if number is None:
        return None
    floor = math.floor(number)
    if not -(1 << bits - 1) <= floor < 1 << bits - 1:
        return _beyond(kind, floor)
    return _at(kind, floor, exact=floor == number)


def _decimal(kind: pa.DataType, literal: Literal, zone: str) -> Place | None:
    if literal.kind == "double":
        return _at(pa.float64(), literal.value)
    number = _number(literal)
    if number is None:
        return None
    step = decimal.Decimal(1).scaleb(-kind.scale)
    highest = _EXACT.subtract(decimal.Decimal(10) ** (kind.precision - kind.scale), step)
    if abs(number) > highest:
        return _beyond(kind, number)
    floor = number.quantize(step, rounding=decimal.ROUND_FLOOR, context=_EXACT)
    if floor < -highest:
        return Place(kind, None, side=-1)
    return _at(kind, floor, exact=floor == number)


def _double(kind: pa.DataType, literal: Literal, zone: str) -> Place | None:
    if literal.kind == "text":
        try:
            return Place(kind, _float_scalar(float(number_text(str(literal.value))), kind))
        except ValueError:
            return None
    if literal.kind == "integer":
        return Place(kind, _float_scalar(_as_float(literal.value), kind))
    if literal.kind in ("double", "decimal"):
        # Spark compares a float column with a double or a decimal as doubles.
        return _at(pa.float64(), _as_float(literal.value))
    return None


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _float_scalar(value: float, kind: pa.DataType) -> pa.Scalar:
    if not pa.types.is_float32(kind):
        return pa.scalar(value, pa.float64())
    with np.errstate(over="ignore"):
        return pa.scalar(np.float32(value), kind)


def _number(literal: Literal, *, fractions: bool = True) -> decimal.Decimal | None:
    """Returns the number of an integer, a decimal, or a text of one; None for other literals."""
    value = literal.value
    if literal.kind == "text":
        # Spark cuts '2.5' to 2 beside an integer column, which is never intended.
        try:
            text = number_text(str(value))
            value = decimal.Decimal(text) if fractions else int(text)
        except (ValueError, decimal.InvalidOperation):
            return None
    elif literal.kind not in ("integer", "decimal"):
        return None
    number = decimal.Decimal(value) if isinstance(value, (int, decimal.Decimal)) else None
    if number is None or not number.is_finite() or abs(number.adjusted()) > _MAX_DIGITS:
        return None
    return number


def _text(kind: pa.DataType, literal: Literal, zone: str) -> Place | None:
    return _at(kind, literal.value) if literal.kind == "text" else None


def _binary(kind: pa.DataType, literal: Literal, zone: str) -> Place | None:
    if literal.kind == "text":
        return _at(pa.binary(), str(literal.value).encode())
    return _at(pa.binary(), literal.value) if literal.kind == "bytes" else None


def _boolean(kind: pa.DataType, literal: Literal, zone: str) -> Place | None:
    value = literal.value
    if literal.kind == "text":
        value = {"true": True, "false": False}.get(str(value).strip().lower())
    # Arrow does not order booleans; as integers false precedes true.
    return _at(pa.int8(), int(value)) if isinstance(value, bool) else None


def _date(kind: pa.DataType, literal: Literal, zone: str) -> Place | None:
    if literal.kind == "text":
        return _at(kind, parse_date(str(literal.value)))
    if isinstance(literal.value, dt.datetime):
        # Spark takes the day for its first moment in the zone.
        wall = _in_zone(literal.value, zone)
        midnight = dt.datetime.combine(wall.date(), dt.time())
        return _at(kind, wall.date(), exact=instant(wall, zone) == instant(midnight, zone))
    return _at(kind, literal.value) if isinstance(literal.value, dt.date) else None


def _timestamp(kind: pa.DataType, literal: Literal, zone: str) -> Place | None:
    value = parse_timestamp(str(literal.value)) if literal.kind == "text" else literal.value
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        value = dt.datetime.combine(value, dt.time())
    if not isinstance(value, dt.datetime):
        return None
    micros = _micros_of(_in_zone(value, zone).replace(tzinfo=None)) if kind.tz is None else instant(value, zone)
    times, per = _MICROS[kind.unit]
    floor, rest = divmod(micros * times, per)
    if not -(1 << 63) <= floor < 1 << 63:
        return _beyond(kind, floor)
    return Place(kind, pa.scalar(floor, pa.int64()).cast(kind), rest == 0)


def _in_zone(value: dt.datetime, zone: str) -> dt.datetime:
    """Returns the local time of the zone; a value without a zone is that already. Raises ConfigError beyond the years 1
    to 9999.
    """
    try:
        return value if value.tzinfo is None else value.astimezone(zone_of(zone))
    except OverflowError as error:
        message = f"the timestamp {value} is not within the years 1 to 9999 in {zone}"
        raise ConfigError(message, remedy="write it in local time") from error


def instant(value: dt.datetime, zone: str) -> int:
    """Returns microseconds since 1970 in UTC. A timestamp without a zone is local time of `zone`."""
    aware = value if value.tzinfo is not None else value.replace(tzinfo=zone_of(zone))
    offset = aware.utcoffset() or dt.timedelta()
    return _micros_of(aware.replace(tzinfo=None)) - offset // dt.timedelta(microseconds=1)


def _micros_of(wall: dt.datetime) -> int:
    return (wall - _EPOCH) // dt.timedelta(microseconds=1)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


_RULES: Final[tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType, Literal, str], Place | None]], ...]] = (
    (_INTEGER_BITS.__contains__, _integer),
    (pa.types.is_decimal, _decimal),
    (lambda kind: bool(pa.types.is_float32(kind) or pa.types.is_float64(kind)), _double),
    (_is_text, _text),
    (
        lambda kind: bool(
            pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind)
        ),
        _binary,
    ),
    (pa.types.is_boolean, _boolean),
    (pa.types.is_date32, _date),
    (pa.types.is_timestamp, _timestamp),
)
