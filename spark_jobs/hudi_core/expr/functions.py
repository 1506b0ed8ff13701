"""The functions that a predicate may call, evaluated on Arrow arrays as Spark evaluates them on rows, and their names
in the SQL dialects.

They are those that expression indexes are built with (HoodieExpressionIndex) and that Arrow computes exactly. The first
argument is an operand, the others are literals.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.errors import ConfigError
from hudi_core.expr.tree import Call, Column, Literal, Operand
from hudi_core.expr.wall_time import WallTime
from hudi_core.frozen import dataclass

Compute: TypeAlias = Callable[[pa.Array, Sequence[Literal], str], pa.Array]
"""Takes an array, the literals after it and the zone of local time. The result has the array's length and nulls."""

_FROM_UNIXTIME_FORMAT: Final = "yyyy-MM-dd HH:mm:ss"
_BLANK: Final = " "
"""Spark trims only blanks; without characters, Arrow's functions trim all white space."""
_MAX_INT: Final = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class Function:
    """How a function is computed, and the least and most literals after the operand."""

    compute: Compute
    least: int = 0
    most: int = 0


def call(name: str, array: pa.Array, literals: Sequence[Literal], zone: str) -> pa.Array:
    """Returns the function's values. Raises ConfigError for an unknown name, a wrong count or type of arguments."""
    function = FUNCTIONS.get(name)
    if function is None:
        remedy = f"known are {', '.join(sorted(FUNCTIONS))}"
        raise ConfigError(f"the function {name} is not supported in predicates", remedy=remedy)
    if not function.least <= len(literals) <= function.most:
        message = f"{name} takes {function.least + 1} to {function.most + 1} arguments, not {len(literals) + 1}"
        raise ConfigError(message, remedy="correct the expression")
    try:
        return function.compute(array, literals, zone)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError, UnicodeDecodeError) as error:
        remedy = "correct the expression"
        raise ConfigError(f"{name} cannot be computed of {array.type}: {error}", remedy=remedy) from error


def _text_function(compute: Callable[[pa.Array], pa.Array]) -> Compute:
    def apply(array: pa.Array, literals: Sequence[Literal], zone: str) -> pa.Array:
        return compute(_text(array))

    return apply


def _text(array: pa.Array) -> pa.Array:
    if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
        raise ConfigError(f"a function of text cannot be computed of {array.type}", remedy="correct the expression")
    return array


def _cased(by_arrow: Callable[[pa.Array], pa.Array], by_python: Callable[[str], str]) -> Callable[[pa.Array], pa.Array]:
    """Returns a function that maps case as Java does: one character to several where Unicode says so (ß to SS). Python
    does that, Arrow does not.
    """

    def apply(array: pa.Array) -> pa.Array:
        if pc.all(pc.string_is_ascii(array)).as_py() is not False:
            return by_arrow(array)
        # Only texts beyond ASCII get here, each distinct one once.
        encoded = array.dictionary_encode()
        mapped = pa.array(
            [None if value is None else by_python(value) for value in encoded.dictionary.to_pylist()], array.type
        )
        return mapped.take(encoded.indices)

    return apply


def _part(compute: Callable[[pa.Array], pa.Array]) -> Compute:
    """Returns a function for a part of a date or time that is the same in all cycles of the calendar."""

    def apply(array: pa.Array, literals: Sequence[Literal], zone: str) -> pa.Array:
        return pc.cast(compute(WallTime.of(array, zone).seconds), pa.int32())

    return apply


def _from_unixtime(array: pa.Array, literals: Sequence[Literal], zone: str) -> pa.Array:
    if not pa.types.is_integer(array.type):
        remedy = "correct the expression"
        raise ConfigError(f"from_unixtime takes seconds since 1970 as an integer, not {array.type}", remedy=remedy)
    pattern = _text_of(literals[0], "from_unixtime") if literals else _FROM_UNIXTIME_FORMAT
    return WallTime.of_unix_seconds(array, zone).format(pattern)


def _substring(array: pa.Array, literals: Sequence[Literal], zone: str) -> pa.Array:
    start = _whole_of(literals[0])
    length = _whole_of(literals[1]) if len(literals) > 1 else None
    if start < 0:
        remedy = "count from the start, with 1"
        raise ConfigError("substring from the end of a text is not supported in predicates", remedy=remedy)
    first = max(0, start - 1)
    # Spark counts the length from the requested start, 0 being the same as 1.
    return pc.utf8_slice_codeunits(_text(array), first, None if length is None else first + max(0, length))


def _text_of(literal: Literal, name: str) -> str:
    if not isinstance(literal.value, str):
        raise ConfigError(f"{name} takes a text here, not {literal.value!r}", remedy="correct the expression")
    return literal.value


def _whole_of(literal: Literal) -> int:
    value = literal.value
    if literal.kind != "integer" or not isinstance(value, int) or abs(value) > _MAX_INT:
        raise ConfigError(f"substring takes an integer of 32 bits here, not {value!r}", remedy="correct the expression")
    return value


FUNCTIONS: Final[dict[str, Function]] = {
    "abs": Function(lambda array, literals, zone: pc.abs(array)),
    "lower": Function(_text_function(_cased(pc.utf8_lower, str.lower))),
    "upper": Function(_text_function(_cased(pc.utf8_upper, str.upper))),
    "trim": Function(_text_function(partial(pc.utf8_trim, characters=_BLANK))),
    "ltrim": Function(_text_function(partial(pc.utf8_ltrim, characters=_BLANK))),
    "rtrim": Function(_text_function(partial(pc.utf8_rtrim, characters=_BLANK))),
    "length": Function(_text_function(pc.utf8_length)),
    "substring": Function(_substring, 1, 2),
    "year": Function(lambda array, literals, zone: WallTime.of(array, zone).year()),
    "month": Function(_part(pc.month)),
    "day": Function(_part(pc.day)),
    "hour": Function(_part(pc.hour)),
    "minute": Function(_part(pc.minute)),
    "second": Function(_part(pc.second)),
    "to_date": Function(lambda array, literals, zone: WallTime.of(array, zone).date()),
    "date_format": Function(
        lambda array, literals, zone: WallTime.of(array, zone).format(_text_of(literals[0], "date_format")), 1, 1
    ),
    "from_unixtime": Function(_from_unixtime, 0, 1),
}
_OF_TIME: Final = frozenset({"year", "month", "day", "hour", "minute", "second", "to_date", "date_format"})


def evaluate(operand: Operand, batch: pa.RecordBatch, zone: str) -> pa.Array:
    """Returns the operand's value in each row of `batch`, whose columns it names exactly. Raises ConfigError for an
    unknown function, and for a literal.
    """
    if isinstance(operand, Column):
        array = batch.column(batch.schema.get_field_index(operand.path[0]))
        for name in operand.path[1:]:
            # Takes the nulls of the structs above into the field.
            array = pc.struct_field(array, name)
        return array
    if isinstance(operand, Literal):
        raise ConfigError(f"the literal {operand.value!r} is where a column is needed", remedy="correct the expression")
    head, rest = operand.arguments[0] if operand.arguments else None, operand.arguments[1:]
    literals = [argument for argument in rest if isinstance(argument, Literal)]
    if head is None or isinstance(head, Literal) or len(literals) != len(rest):
        remedy = "correct the expression"
        raise ConfigError(f"{operand.name} is supported of a column, followed by literals", remedy=remedy)
    return call(operand.name, evaluate(head, batch, zone), literals, zone)


def needs_zone(operand: Operand, batch: pa.RecordBatch, zone: str) -> bool:
    """Whether the operand's values depend on the zone of local time. `batch` has its columns, and may be empty."""
    if isinstance(operand, (Column, Literal)):
        return False
    head = operand.arguments[0]
    if needs_zone(head, batch, zone) or operand.name == "from_unixtime":
        return True
    kind = evaluate(head, batch, zone).type
    return operand.name in _OF_TIME and bool(pa.types.is_timestamp(kind)) and kind.tz is not None


_SAME_NAME: Final = "abs day hour length lower ltrim minute month rtrim second substring trim upper year"
_EVERYWHERE: Final = {**{name: name for name in _SAME_NAME.split()}, "date": "to_date", "substr": "substring"}
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
"""Presto's from_unixtime gives a timestamp and not a text, so it is not among them."""
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
    """Returns the call that `name(arguments)` means in `dialect`, or None. Raises ConfigError for a date pattern."""
    meant = _NAMES[dialect].get(name)
    if meant is None or not arguments:
        return None
    if name == "date_format" and _NAMES[dialect] is _TRINO and len(arguments) == 2:
        return Call(meant, (arguments[0], _java_format(arguments[1])))
    return Call(meant, arguments)


def _java_format(pattern: Operand) -> Operand:
    """Returns Java's pattern for a pattern of MySQL, which Presto's date_format takes."""
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        return pattern
    return Literal("text", _MYSQL_FORMAT.sub(_java_part, pattern.value))


def _java_part(match: re.Match[str]) -> str:
    code, letters, other = match.groups()
    if code is None:
        # Letters have a meaning in Java's patterns unless they are quoted.
        return other if letters is None else "'" + letters.replace("'", "''") + "'"
    if code not in _JAVA_OF_MYSQL:
        raise ConfigError(f"%{code} in a date pattern is not supported", remedy="supported are %Y %m %d %H %i %s %T")
    return _JAVA_OF_MYSQL[code]
