"""Literals of SQL text, and casts of them, as values of the expression tree."""

from __future__ import annotations

import decimal
import struct
from collections.abc import Sequence
from typing import Any, Final

from hudi_core.errors import ConfigError
from hudi_core.expr.tree import NULL, Literal, Operand
from hudi_core.expr.wall_time import parse_date, parse_timestamp

_INTEGERS: Final = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_TEXTS: Final = frozenset({"VARCHAR", "TEXT", "CHAR", "NVARCHAR", "NCHAR"})
_TIMESTAMPS: Final = frozenset({"TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPLTZ", "TIMESTAMPNTZ", "DATETIME"})
_BINARIES: Final = frozenset({"BINARY", "VARBINARY"})
_FLOATING: Final = frozenset({"FLOAT", "DOUBLE"})
_NUMERIC: Final = frozenset({"integer", "decimal", "double", "boolean"})
_DECIMAL: Final = {"spark": (10, 0), "hive": (10, 0), "presto": (38, 0), "trino": (38, 0)}
"""Precision and scale of a DECIMAL that is written without them, by dialect."""
_MAX_PRECISION: Final = 38
_MAX_DIGITS: Final = 1000


def number(text: str) -> Literal:
    """Reads a number: `5` is an integer, `5.0` a decimal, `5e0` a double. Raises ConfigError for another text."""
    try:
        if len(text) > _MAX_DIGITS:
            raise ValueError(text)
        if "e" in text.lower():
            return Literal("double", float(text))
        if "." in text:
            return Literal("decimal", decimal.Decimal(text))
        return Literal("integer", int(text))
    except (ValueError, decimal.InvalidOperation) as error:
        raise ConfigError(f"{text[:_MAX_DIGITS]!r} is no number", remedy="correct the expression") from error


def number_text(text: str) -> str:
    """Returns the text without blanks at its ends. Raises ValueError for a number that only Python reads: `5_000`, or
    digits of other scripts.
    """
    if "_" in text or not text.strip().isascii():
        raise ValueError(text)
    return text.strip()


def negative(operand: Operand) -> Literal | None:
    if not isinstance(operand, Literal) or operand.kind not in ("integer", "decimal", "double"):
        return None
    return Literal(operand.kind, -operand.value)  # type: ignore[operator]


def hexadecimal(text: str) -> Literal | None:
    try:
        return Literal("bytes", bytes.fromhex(text))
    except ValueError:
        return None


def adjacent(parts: Sequence[Operand]) -> Literal | None:
    texts = [part.value for part in parts if isinstance(part, Literal) and isinstance(part.value, str)]
    return Literal("text", "".join(texts)) if len(texts) == len(parts) else None


def decimal_sizes(sizes: Sequence[int], dialect: str) -> tuple[int, ...] | None:
    """Returns precision and scale of a DECIMAL written with none, one or both; None when there is no such type."""
    both = (*sizes, *_DECIMAL[dialect][len(sizes) :])
    return both if len(both) == 2 and both[1] <= both[0] <= _MAX_PRECISION else None


def cast_literal(literal: Literal, target: str, sizes: Sequence[int]) -> Literal | None:
    """Returns the literal as the SQL type `target` (sqlglot's name). `sizes` are precision and scale; without them, a
    DECIMAL takes all digits. None for a type that is not supported. Raises ConfigError for a value that the type does
    not take.
    """
    if literal.value is None:
        return NULL
    try:
        return _cast(literal, target, sizes)
    except (ValueError, OverflowError, decimal.InvalidOperation) as error:
        raise ConfigError(f"{literal.value!r} cannot be cast to {target}", remedy="correct the expression") from error


def _cast(literal: Literal, target: str, sizes: Sequence[int]) -> Literal | None:
    value: Any = literal.value
    text = str(value)
    if target in _INTEGERS:
        whole = int(value if literal.kind in _NUMERIC else number_text(text))
        if not -(1 << _INTEGERS[target] - 1) <= whole < 1 << _INTEGERS[target] - 1:
            raise ValueError(text)
        return Literal("integer", whole)
    if target in _FLOATING:
        wide = float(value if literal.kind in _NUMERIC else number_text(text))
        return Literal("double", struct.unpack("f", struct.pack("f", wide))[0] if target == "FLOAT" else wide)
    if target == "DECIMAL":
        return Literal("decimal", _decimal(text, sizes))
    if target == "BOOLEAN" and literal.kind in ("text", "boolean"):
        if text.lower() not in ("true", "false"):
            raise ValueError(text)
        return Literal("boolean", text.lower() == "true")
    if target in _TEXTS and literal.kind in ("text", "integer"):
        return Literal("text", text)
    if target in _BINARIES and literal.kind in ("text", "bytes"):
        return Literal("bytes", value.encode() if isinstance(value, str) else value)
    if literal.kind != "text":
        same = {"DATE": "date"}.get(target, "timestamp" if target in _TIMESTAMPS else "")
        return literal if literal.kind == same else None
    if target == "DATE":
        return Literal("date", parse_date(text))
    return Literal("timestamp", parse_timestamp(text)) if target in _TIMESTAMPS else None


def _decimal(text: str, sizes: Sequence[int]) -> decimal.Decimal:
    """Returns the number with the digits of `sizes`; without them, as it is, such as `DECIMAL '1.50'`."""
    exact = decimal.Decimal(number_text(text))
    if len(sizes) != 2:
        return exact
    precision, scale = sizes
    step = decimal.Decimal(1).scaleb(-scale)
    return exact.quantize(step, rounding=decimal.ROUND_HALF_UP, context=decimal.Context(prec=max(precision, 1)))
