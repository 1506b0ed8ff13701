"""What the functions of each SQL dialect are called in the expression tree."""

from __future__ import annotations

import re
from typing import Final

from hudi_core.errors import ConfigError
from hudi_core.expr.tree import Call, Literal, Operand

_SAME_NAME: Final = (
    "abs",
    "day",
    "hour",
    "length",
    "lower",
    "ltrim",
    "minute",
    "month",
    "rtrim",
    "second",
    "substring",
)
_EVERYWHERE: Final = {
    **{name: name for name in (*_SAME_NAME, "trim", "upper", "year")},
    "date": "to_date",
    "substr": "substring",
}
_SPARK: Final = {
    **_EVERYWHERE,
    "char_length": "length",
    "character_length": "length",
    "date_format": "date_format",
    "dayofmonth": "day",
    "from_unixtime": "from_unixtime",
    "lcase": "lower",
    "len": "length",
    "to_date": "to_date",
    "ucase": "upper",
}
_TRINO: Final = {**_EVERYWHERE, "date_format": "date_format", "day_of_month": "day", "format_datetime": "date_format"}
"""Presto's from_unixtime gives a timestamp, not a text: it is not among them."""
_NAMES: Final = {"spark": _SPARK, "hive": _SPARK, "presto": _TRINO, "trino": _TRINO}
_MYSQL_FORMAT: Final = re.compile(r"%(.)|([A-Za-z']+)|(.)", re.DOTALL)
_JAVA_OF_MYSQL: Final = {
    "Y": "yyyy",
    "m": "MM",
    "d": "dd",
    "H": "HH",
    "i": "mm",
    "s": "ss",
    "S": "ss",
    "T": "HH:mm:ss",
    "%": "%",
}


def call_of(dialect: str, name: str, arguments: tuple[Operand, ...]) -> Call | None:
    """The call that `name(arguments)` means in `dialect`, if known. Raises ConfigError for a date pattern."""
    meant = _NAMES[dialect].get(name)
    if meant is None or not arguments:
        return None
    if name == "date_format" and _NAMES[dialect] is _TRINO and len(arguments) == 2:
        return Call(meant, (arguments[0], _java_format(arguments[1])))
    return Call(meant, arguments)


def _java_format(pattern: Operand) -> Operand:
    """Presto's date_format takes MySQL's patterns."""
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        return pattern
    return Literal("text", _MYSQL_FORMAT.sub(_java_part, pattern.value))


def _java_part(found: re.Match[str]) -> str:
    code, letters, other = found.groups()
    if code is None:
        # Letters have a meaning in Java's patterns unless they are quoted.
        return other if letters is None else "'" + letters.replace("'", "''") + "'"
    if code not in _JAVA_OF_MYSQL:
        raise ConfigError(f"%{code} in a date pattern is not supported", remedy="supported are %Y %m %d %H %i %s %T")
    return _JAVA_OF_MYSQL[code]
