"""The functions of expression indexes over Arrow arrays, as Spark computes them (ExpressionIndexSparkFunctions), and
the content of an index for the values of a file (SparkMetadataWriterUtils.getExprIndexRecords).

This module computes only exact values and refuses all others: an index of other values would hide rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.codec.bloom import BloomFilter
from hudi_core.config.metadata_config import EXPRESSION_ZONE
from hudi_core.errors import UnsupportedError, ZoneUnknownError
from hudi_core.expr.wall_time import WallTime
from hudi_core.frozen import dataclass
from hudi_core.metadata_table.extract.column_ranges import RowRanges
from hudi_core.metadata_table.partition_type import COLUMN_STATS, DEFINITIONS_PATH
from hudi_core.metadata_table.records.file_statistics import ColumnRange, Expression, FilterText

_BOTH: Final = (
    r"\x{0528}-\x{052F}\x{2C2F}\x{2C5F}\x{A698}-\x{A69B}\x{A796}-\x{A79F}\x{A7AB}-\x{A7F7}\x{104B0}-\x{104FF}\x{10570}-\x{105BF}"
    r"\x{10C80}-\x{10CFF}\x{10D50}-\x{10D8F}\x{118A0}-\x{118DF}\x{16E40}-\x{16E7F}\x{1C89}\x{1C8A}\x{1E900}-\x{1E943}"
)
"""The blocks and ranges in which both cases are new."""
NEW_CAPITALS: Final = rf"[\x{{037F}}\x{{13A0}}-\x{{13F5}}\x{{1C90}}-\x{{1CBF}}{_BOTH}]"
"""The letters that are new upper cases, or that got a new lower case: Yot, Cherokee, Mtavruli."""
NEW_SMALL: Final = (
    r"[\x{019B}\x{025C}\x{0261}\x{0264}\x{026A}\x{026C}\x{0282}\x{0287}\x{029D}\x{029E}\x{03F3}\x{10D0}-\x{10FF}\x{13F8}-\x{13FD}"
    rf"\x{{1C80}}-\x{{1C88}}\x{{1D8E}}\x{{A794}}\x{{AB53}}\x{{AB70}}-\x{{ABBF}}{_BOTH}]"
)
"""The letters that are new lower cases, or that got a new upper case: Georgian, Cherokee, phonetic alphabets."""

SESSION_ZONE: Final = EXPRESSION_ZONE.name
"""The option that names the time zone of the Spark sessions that query the index."""
_UTC_NAMES: Final = frozenset({"UTC", "Etc/UTC", "GMT", "Z", "+00:00"})
_DEFAULT_PATTERN: Final = "yyyy-MM-dd HH:mm:ss"

Function = Callable[[pa.Array], pa.Array]
_REMEDY: Final = (
    "drop that index with `hudictl metadata drop TABLE --partition expr_index_…`, or let Hudi's writer keep it"
)
_ZONE_REMEDY: Final = (
    f"give the zone that the table's writers have, such as --option {EXPRESSION_ZONE.name}=UTC; or {_REMEDY}"
)


def function_of(
    name: str, options: Mapping[str, str], arrow_type: pa.DataType, zone: str | None
) -> tuple[Function, pa.DataType]:
    """Returns the function and the type of its values. Raises UnsupportedError where values may differ from Spark's."""
    make = _FUNCTIONS.get(name.lower() or "identity")
    if make is None:
        raise _refused(name, "this release does not compute it")
    found = make(_Call(name, arrow_type, options, zone))
    # This call on an empty array also refuses an unknown zone.
    return found, found(pa.array([], arrow_type)).type


@dataclass(frozen=True)
class _Call:
    name: str
    arrow_type: pa.DataType
    options: Mapping[str, str]
    session_zone: str | None

    @property
    def is_text(self) -> bool:
        return bool(pa.types.is_string(self.arrow_type))

    @property
    def is_date(self) -> bool:
        return bool(pa.types.is_date32(self.arrow_type))

    @property
    def is_instant(self) -> bool:
        return bool(pa.types.is_timestamp(self.arrow_type) and self.arrow_type.tz is not None)

    def require(self, fits: bool) -> None:
        """Raises UnsupportedError for a column that Spark would cast first."""
        if not fits:
            raise _refused(self.name, f"the column is {self.arrow_type}, which Spark would cast first")

    def number(self, key: str) -> int:
        text = self.options.get(key, "")
        try:
            return int(text)
        except ValueError as error:
            raise _refused(self.name, f"its option {key} is {text!r}") from error

    def pattern(self) -> DatePattern:
        """Returns the pattern of the option `format`, whose default serves from_unixtime. Raises UnsupportedError."""
        try:
            return DatePattern(self.options.get("format", _DEFAULT_PATTERN))
        except UnsupportedError as error:
            raise _refused(self.name, error.message) from error

    def wall_time(self, values: pa.Array) -> WallTime:
        """Returns the wall time of dates, or of timestamps and whole seconds since 1970 in the session zone. Raises
        UnsupportedError, ZoneUnknownError where no zone is set.
        """
        if self.is_date:
            return WallTime.of(values, "UTC")
        zone = self.session_zone
        if not zone:
            reason = f"its values depend on Spark's session zone, and {SESSION_ZONE} does not name it"
            raise _refused(self.name, reason, ZoneUnknownError)
        counts, unit = values.cast(pa.int64()), values.type.unit if self.is_instant else "s"
        if zone in _UTC_NAMES:
            return WallTime.of(counts.cast(pa.timestamp(unit)), "UTC")
        try:
            return WallTime.of(pc.local_timestamp(counts.cast(pa.timestamp(unit, tz=zone))), "UTC")
        except (pa.ArrowInvalid, pa.ArrowKeyError) as error:
            raise _refused(self.name, f"the zone {zone} does not give the time of a value: {error}") from error


def _refused(name: str, reason: str, error: type[UnsupportedError] = UnsupportedError) -> UnsupportedError:
    remedy = _ZONE_REMEDY if error is ZoneUnknownError else _REMEDY
    return error(f"an expression index on `{name}` cannot be kept true: {reason}", path=DEFINITIONS_PATH, remedy=remedy)


def _unchanged(fits: Callable[[_Call], bool], call: _Call) -> Function:
    call.require(fits(call))
    return lambda values: values


def _cased(plain: Function, full: Callable[[str], str], new: str, call: _Call) -> Function:
    """Returns the function `lower` or `upper`. Java maps by the full rules (`ß` to `SS`), Arrow by the simple rules.
    Texts beyond ASCII are mapped one by one (0.5 µs each). Letters of `new` (a regular expression's class) are refused.
    """
    call.require(call.is_text)

    def cased(values: pa.Array) -> pa.Array:
        others = pc.fill_null(pc.invert(pc.string_is_ascii(values)), False)
        if not pc.any(others).as_py():
            return plain(values)
        if pc.any(pc.match_substring_regex(values, new)).as_py():
            raise _refused(call.name, "a value has letters whose other case depends on the JVM's release of Unicode")
        changed = pa.array([full(text) for text in values.filter(others).to_pylist()], pa.string())
        return pc.replace_with_mask(plain(values), others, changed)

    return cased


def _trimmed(trim: Callable[..., pa.Array], call: _Call) -> Function:
    call.require(call.is_text)
    return partial(trim, characters=call.options.get("trimString", " "))


def _length(call: _Call) -> Function:
    call.require(call.is_text or pa.types.is_binary(call.arrow_type))
    length: Function = pc.utf8_length if call.is_text else pc.binary_length
    return length


def _substring(call: _Call) -> Function:
    """Returns UTF8String.substringSQL as a function: positions count from 1, negative ones from the end; 0 means 1."""
    call.require(call.is_text)
    start, length = call.number("pos"), call.number("len")
    if length <= 0:
        return lambda values: pc.if_else(pc.is_valid(values), "", pa.scalar(None, pa.string()))
    first = start - 1 if start > 0 else start
    stop = first + length
    return lambda values: pc.utf8_slice_codeunits(values, first, None if first < 0 <= stop else stop)


def _date_shift(sign: int, call: _Call) -> Function:
    call.require(call.is_date)
    days = pa.scalar(sign * call.number("days"), pa.int32())
    return lambda values: pc.add_checked(values.cast(pa.int32()), days).cast(pa.date32())


def _unix_timestamp(call: _Call) -> Function:
    """Returns `unix_timestamp`. Like Java, Spark cuts seconds before 1970 towards zero and does not round down."""
    call.require(call.is_instant)
    micros = pa.timestamp("us", tz=call.arrow_type.tz)
    return lambda values: pc.divide(values.cast(micros, safe=False).cast(pa.int64()), 1_000_000)


def _formatted(fits: Callable[[_Call], bool], call: _Call) -> Function:
    call.require(fits(call))
    pattern = call.pattern()
    return lambda values: pattern.format(call.wall_time(values))


def _part(letter: str, of_dates: bool, call: _Call) -> Function:
    call.require(call.is_instant or (of_dates and call.is_date))
    return lambda values: pc.cast(_PARTS[letter](call.wall_time(values)), pa.int32())


_TOKEN: Final = re.compile(r"'(?:[^']|'')*'|([A-Za-z])\1*|[^A-Za-z']+")
_YEARS: Final = (1, 999_999)
"""The first and last year that have a text. Others are refused: `y` is the year of the era, and Java's signs differ."""
_PARTS: Final[dict[str, Callable[[WallTime], pa.Array]]] = {
    "y": WallTime.years,
    "M": lambda time: pc.month(time.seconds),
    "d": lambda time: pc.day(time.seconds),
    "H": lambda time: pc.hour(time.seconds),
    "m": lambda time: pc.minute(time.seconds),
    "s": lambda time: pc.second(time.seconds),
}


class DatePattern:
    """A date pattern that Java and Spark share (DateTimeFormatter). It may have `yyyy`, `MM`, `dd`, `HH`, `mm`, `ss`,
    the one-letter forms of all but the year, quoted text and signs.
    """

    def __init__(self, pattern: str) -> None:
        """Reads a pattern. Raises UnsupportedError for a letter whose text depends on locale, zone or week calendar."""
        tokens = [match.group() for match in _TOKEN.finditer(pattern)]
        if not tokens or "".join(tokens) != pattern:
            raise UnsupportedError(f"the date pattern {pattern!r} is not read")
        self._pieces = [_piece(token, pattern) for token in tokens]

    def format(self, time: WallTime) -> pa.Array:
        """Returns the texts of times; null for null. Raises UnsupportedError for a year that has no text."""
        years = pc.min_max(time.years())
        if years["min"].is_valid and not _YEARS[0] <= years["min"].as_py() <= years["max"].as_py() <= _YEARS[1]:
            raise UnsupportedError(
                "a time lies before the year 1 or far beyond 9999, for which this release has no text"
            )
        # This column makes one text per time, also for a pattern that has only quoted text.
        empty = pc.if_else(time.seconds.is_valid(), "", pa.scalar(None, pa.string()))
        return pc.binary_join_element_wise(empty, *(piece(time) for piece in self._pieces), "")


def _piece(token: str, pattern: str) -> Callable[[WallTime], pa.Array | str]:
    if token.startswith("'"):
        text = "'" if token == "''" else token[1:-1].replace("''", "'")
        return lambda time: text
    if not token[0].isalpha():
        if any(char in "[]{}#" for char in token):
            raise UnsupportedError(f"the date pattern {pattern!r} has optional parts")
        return lambda time: token
    letter, width = token[0], len(token)
    if letter not in _PARTS or (width != 4 if letter == "y" else width > 2):
        raise UnsupportedError(
            f"the date pattern {pattern!r} has the letters {token!r}, whose text this release does not make"
        )
    if letter == "y":
        return lambda time: _year(time.years())
    return lambda time: _digits(_PARTS[letter](time), width)


def _digits(numbers: pa.Array, width: int) -> pa.Array:
    return pc.utf8_lpad(numbers.cast(pa.string()), width, "0")


def _year(years: pa.Array) -> pa.Array:
    """Returns years as four digits, or as a sign and more digits (SignStyle.EXCEEDS_PAD)."""
    text = _digits(years, 4)
    return pc.if_else(pc.greater(years, 9999), pc.binary_join_element_wise("+", text, ""), text)


_FUNCTIONS: Final[Mapping[str, Callable[[_Call], Function]]] = {
    "identity": partial(_unchanged, lambda call: not pa.types.is_nested(call.arrow_type)),
    "lower": partial(_cased, pc.ascii_lower, str.lower, NEW_CAPITALS),
    "upper": partial(_cased, pc.ascii_upper, str.upper, NEW_SMALL),
    "trim": partial(_trimmed, pc.utf8_trim),
    "ltrim": partial(_trimmed, pc.utf8_ltrim),
    "rtrim": partial(_trimmed, pc.utf8_rtrim),
    "length": _length,
    "substring": _substring,
    "date_add": partial(_date_shift, 1),
    "date_sub": partial(_date_shift, -1),
    "to_date": partial(_unchanged, lambda call: call.is_date),
    "to_timestamp": partial(_unchanged, lambda call: call.is_instant),
    "unix_timestamp": _unix_timestamp,
    "from_unixtime": partial(_formatted, lambda call: pa.types.is_integer(call.arrow_type)),
    "date_format": partial(_formatted, lambda call: call.is_instant and "format" in call.options),
    "year": partial(_part, "y", True),
    "month": partial(_part, "M", True),
    "day": partial(_part, "d", True),
    "hour": partial(_part, "H", False),
}
"""The functions by name, without two of Hudi's: `split` returns arrays, and regular expressions are Java's."""


class ExpressionValues:
    """Gathers a file's range or filter of one expression. Memory: two bounds, or one byte per bit of the filter."""

    def __init__(self, expression: Expression, column: pa.DataType) -> None:
        """Takes the type of the source column in the table's schema. Raises UnsupportedError like check_expression."""
        self.expression = expression
        self._function, result = function_of(expression.function, expression.options, column, expression.zone)
        self._bloom: BloomFilter | None = None
        if expression.index_type == COLUMN_STATS:
            # Spark's timestamps count microseconds. Hudi gets them as timestamps, and version 1 wraps them as such.
            self._micros = pa.timestamp("us", tz=result.tz) if pa.types.is_timestamp(result) else None
            logical = None if self._micros is None else "timestamp_micros"
            self._ranges = RowRanges(expression.column, self._micros or result, expression.version, bound_type=logical)
        else:
            if not (pa.types.is_string(result) or pa.types.is_integer(result)):
                raise UnsupportedError(
                    f"a bloom filter over values of the type {result}, whose text in Java this release does not make"
                )
            entries, rate, most = expression.bloom
            self._bloom = BloomFilter(entries=entries, error_rate=rate, max_entries=most)

    def add(self, values: pa.Array) -> None:
        found = self._function(values)
        if self._bloom is None:
            self._ranges.add(found if self._micros is None else found.cast(self._micros))
        elif found.null_count < len(found):
            self._bloom.add_batch(pc.cast(found.drop_null(), pa.large_string()))

    def result(self, file_size: int) -> ColumnRange | FilterText:
        """Returns the range or filter of the file. As in Hudi, `value_count` of a range is without nulls, and its sizes
        are the file's size and twice that size.
        """
        if self._bloom is not None:
            return FilterText(self._bloom.type_code, self._bloom.to_base64())
        found = self._ranges.result(file_size, 2 * file_size)
        return replace(found, value_count=found.value_count - found.null_count)


def check_expression(expression: Expression, arrow_type: pa.DataType) -> None:
    """Raises UnsupportedError for an expression whose values cannot be computed exactly."""
    ExpressionValues(replace(expression, bloom=(1, 0.5, 1)), arrow_type)
