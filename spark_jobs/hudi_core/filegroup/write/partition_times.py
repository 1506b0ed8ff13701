"""Makes partition paths of times formatted from a column, as TimestampBasedAvroKeyGenerator does, and of timestamps, as
Spark SQL does. key_generator.py makes other partition paths.

Formats are those of Joda-Time. Only the letters below are read; others are refused by name. Spark SQL writes local time
where writers of DataFrames put numbers (SqlKeyGenerator.convertPartitionPathToSqlType). No property of a table says
which of the two its writers are; its partitions show it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.config.rows_config import (
    READ_ZONE,
    TIME_DELIMITER,
    TIME_INPUT,
    TIME_INPUT_ZONE,
    TIME_OUTPUT,
    TIME_OUTPUT_ZONE,
    TIME_TYPE,
    TIME_UNIT,
    TIME_ZONE,
)
from hudi_core.config.table_config import TableConfig
from hudi_core.errors import ConfigError, FormatError, UnsupportedError
from hudi_core.expr.wall_time import zone_of
from hudi_core.filegroup.read.partition_values import DEFAULT_PARTITION, path_parts
from hudi_core.frozen import dataclass
from hudi_core.request.texts import region

_UNITS: Final = {"UNIX_TIMESTAMP": "SECONDS", "EPOCHMILLISECONDS": "MILLISECONDS", "EPOCHMICROSECONDS": "MICROSECONDS"}
_TEXTS: Final = ("DATE_STRING", "MIXED")
_MILLI: Final = 10**6
_SECOND: Final = 10**9
_NANOS: Final = {
    "NANOSECONDS": 1,
    "MICROSECONDS": 10**3,
    "MILLISECONDS": _MILLI,
    "SECONDS": _SECOND,
    "MINUTES": 60 * _SECOND,
    "HOURS": 3_600 * _SECOND,
    "DAYS": 86_400 * _SECOND,
}
_FIRST: Final = (-62_135_596_800 + 2 * 86_400) * _SECOND
_LAST: Final = (253_402_300_799 - 2 * 86_400) * _SECOND
"""Nanoseconds of the first and the last time of the years 1 to 9999, less two days that a zone may move it."""
_WRITTEN: Final = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "hh": "%I", "mm": "%M", "ss": "%S"}
_READ: Final = {**_WRITTEN, "SSS": "%f", "SSSSSS": "%f", "Z": "%z", "ZZ": "%z"}
_TOKEN: Final = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|([^A-Za-z'])")
_OFFSET: Final = re.compile(r"GMT([+-])(\d{1,2})(?::?(\d\d))?")
_OTHER_RULES: Final = {"EST": "America/New_York", "MST": "America/Denver"}
"""Joda-Time takes these names for these regions (DateTimeZone.getConvertedId); elsewhere they have no summer time."""


@dataclass(frozen=True, slots=True)
class TimeFormat:
    """How a column's times become text; formats are strftime's. `unit` is that of numbers, a name of TimeUnit. It is
    None for texts, which the first fitting one of `inputs` reads. A zone is None when the settings have none. `moved`
    minutes are added to local time, as in another zone.
    """

    output: str
    output_zone: str | None
    unit: str | None
    inputs: tuple[str, ...] = ()
    input_zone: str | None = None
    moved: int = 0

    @staticmethod
    def of(settings: Mapping[str, str], *, path: str) -> TimeFormat:
        """Returns the format of the settings. Raises ConfigError for a wrong setting, UnsupportedError for a format
        that is not written here.
        """
        kind = TIME_TYPE.read(settings, path=path)
        if kind is None:
            message = f"the table does not record {TIME_TYPE.name}, which its partition paths depend on"
            remedy = f"give the writers' value, as in --option {TIME_TYPE.name}=EPOCHMILLISECONDS"
            raise ConfigError(message, path=path, remedy=remedy)
        output = TIME_OUTPUT.read(settings, path=path)
        if output is None:
            raise ConfigError(f"{TIME_OUTPUT.name} is not set", path=path, remedy="give the writers' value")
        inputs = _inputs(settings, path) if kind in _TEXTS else ()
        both = TIME_ZONE.read(settings, path=path)
        names = [both or key.read(settings, path=path) for key in (TIME_OUTPUT_ZONE, TIME_INPUT_ZONE)]
        output_zone, input_zone = (None if name is None else _zone(name, path) for name in names)
        unit = None if inputs else _UNITS.get(kind) or TIME_UNIT.read(settings, path=path)
        return TimeFormat(strftime(output, _WRITTEN, path=path), output_zone, unit, inputs, input_zone)

    @property
    def missing_zone(self) -> str | None:
        """The option of a zone, without which paths are in the zone of the writers' JVM; None when paths do not depend
        on it. Texts without an offset, and without any zone, have their own time in the path.
        """
        if self.unit is not None:
            return TIME_OUTPUT_ZONE.name if self.output_zone is None else None
        is_open = self.output_zone is not None and self.input_zone is None
        return TIME_INPUT_ZONE.name if is_open and not all("%z" in form for form in self.inputs) else None

    def texts(self, column: pa.Array, *, path: str) -> pa.Array:
        """Formats times. Raises FormatError naming `path` for a null or for no time, UnsupportedError for the type."""
        if column.null_count:
            message = f"{column.null_count} rows have no value in the partition column of times"
            raise FormatError(message, path=path, remedy="give each row a time, or write these rows with Hudi")
        if pa.types.is_integer(column.type) and self.unit is not None:
            local = self._of_numbers(column.cast(pa.int64()), self.unit, path)
        elif pa.types.is_string(column.type) and self.unit is None:
            encoded = column.dictionary_encode()
            times = [self._of_text(text, path) for text in encoded.dictionary.to_pylist()]
            local = pa.array(times, pa.timestamp("s")).take(encoded.indices)
        else:
            expected = "text" if self.unit is None else f"numbers of {self.unit}"
            raise _not_written(f"a partition column of type {column.type} where {TIME_TYPE.name} says {expected}", path)
        if self.moved:
            local = pc.add(local, pa.scalar(60 * self.moved, pa.duration("s")))
        return pc.strftime(local, format=self.output)

    def _of_numbers(self, column: pa.Array, unit: str, path: str) -> pa.Array:
        """Returns local time in seconds, by way of milliseconds, to which TimeUnit.convert cuts towards zero."""
        nanos, ends = _NANOS[unit], pc.min_max(column)
        if len(column) and not _FIRST <= ends["min"].as_py() * nanos <= ends["max"].as_py() * nanos <= _LAST:
            message = f"a partition column of numbers of {unit} holds a time before the year 1 or after 9999"
            raise FormatError(message, path=path)
        is_finer = nanos < _MILLI
        millis = pc.divide(column, _MILLI // nanos) if is_finer else pc.multiply(column, nanos // _MILLI)
        seconds = pc.floor_temporal(millis.cast(pa.timestamp("ms")), unit="second").cast(pa.timestamp("s"))
        return pc.local_timestamp(seconds.cast(pa.timestamp("s", self.output_zone or "UTC")))

    def _of_text(self, text: str, path: str) -> datetime:
        """Returns local time in the output's zone, else the input's, else as the text has it (HoodieDateTimeParser)."""
        for form in self.inputs:
            with suppress(ValueError, OverflowError):
                moment = datetime.strptime(text, form)
                into = self.output_zone or self.input_zone
                if into is not None:
                    if moment.tzinfo is None:
                        moment = moment.replace(tzinfo=zone_of(self.input_zone or "UTC"))
                    moment = moment.astimezone(zone_of(into))
                return moment.replace(tzinfo=None, microsecond=0)
        raise FormatError(f"{text!r} is no time as {TIME_INPUT.name} says", path=path)


def _inputs(settings: Mapping[str, str], path: str) -> tuple[str, ...]:
    named = TIME_INPUT.read(settings, path=path)
    if named is None:
        raise ConfigError(f"{TIME_INPUT.name} is not set", path=path, remedy="give the writers' value")
    divided = TIME_DELIMITER.read(settings, path=path)
    if divided not in (None, ","):
        raise _not_written(f"{TIME_DELIMITER.name}={divided}", path)
    forms = tuple(strftime(form, _READ, path=path) for form in map(str.strip, named.split(",")) if form)
    if not all("%Y" in form for form in forms):
        # Without a year, Joda-Time takes 2000, strptime 1900.
        raise _not_written(f"{TIME_INPUT.name}={named} without a year", path)
    return forms


def strftime(pattern: str, letters: Mapping[str, str], *, path: str) -> str:
    """Returns a format of Joda-Time as one of strftime. Raises UnsupportedError for letters that `letters` lacks."""
    parts, at = [], 0
    while at < len(pattern):
        match = _TOKEN.match(pattern, at)
        if match is None:
            raise _not_written(f"the time format {pattern!r}", path)
        at = match.end()
        quoted, letter, plain = match.groups()
        if letter is None:
            text = plain if quoted is None else quoted.replace("''", "'") or "'"
            parts.append(text.replace("%", "%%"))
        elif match[0] in letters:
            parts.append(letters[match[0]])
        else:
            raise _not_written(f"the letters {match[0]!r} of the time format {pattern!r}", path)
    return "".join(parts)


def _zone(name: str, path: str) -> str:
    """Returns the region or offset of a name of java.util.TimeZone, in Arrow's form. Java has offsets in this form
    alone, and takes other names that it does not know for GMT. Raises ConfigError for a name that is not known here.
    """
    offset = _OFFSET.fullmatch(name)
    if offset is not None and int(offset[2]) < 24 and int(offset[3] or 0) < 60:
        return f"{offset[1]}{int(offset[2]):02}:{offset[3] or '00'}"
    name = _OTHER_RULES.get(name, name)
    if region(name) is None:
        raise ConfigError(
            f"{name!r} is no time zone that is known here",
            path=path,
            remedy="in an option use a region such as Europe/Berlin, or an offset such as GMT+8:00; overwrite a table "
            "whose properties have this name with Hudi",
        )
    return name


def _not_written(what: str, path: str) -> UnsupportedError:
    remedy = "overwrite the table with Hudi"
    return UnsupportedError(f"{what} makes partition paths that are not written here", path=path, remedy=remedy)


_NUMBER: Final = re.compile(r"-?\d+")
_LOCAL_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d \d\d%3A\d\d%3A\d\d")
_FORMAT: Final = "%Y-%m-%d %H%%3A%M%%3A%S"
"""The colons are escaped, whatever the table says about URL encoding."""
_MICROS_PER_MILLI: Final = 1000


@dataclass(frozen=True, slots=True)
class SqlTimes:
    """Timestamps as local time of `zone`: of the options if `is_given`, otherwise UTC, as for queries."""

    zone: str
    is_given: bool

    @staticmethod
    def of(
        config: TableConfig, options: Mapping[str, str], columns: pa.Schema, fields: Collection[str], known: list[str]
    ) -> SqlTimes | None:
        """Returns the form of timestamps in a table with the partitions `known`; None when they are numbers. `fields`
        are its partition columns whose values are in the path as they are, `columns` the table's, without those dropped
        from rows. Raises UnsupportedError when partitions do not show the form or have another one, ConfigError for an
        unknown zone.
        """
        found = {name: _forms(config, name, known) for name in fields}
        times = {name for name in fields if name in columns.names and pa.types.is_timestamp(columns.field(name).type)}
        for name in sorted(times):
            forms = found[name]
            if len(forms) != 1 or None in forms:
                shown = "partitions show both, or neither" if forms else "no partition shows"
                raise UnsupportedError(
                    f"the timestamps of {name!r} are microseconds in paths, as by writers of DataFrames, or local "
                    f"time, as by Spark SQL, and {shown} which",
                    path=config.path,
                    remedy="overwrite it with Hudi" if forms else "write its first partition with the table's writer",
                )
        local = {
            name for name in fields if found[name] == {_LOCAL_TIME} and (name in times or name not in columns.names)
        }
        if not local:
            return None
        for name in sorted(local & times):
            kind = columns.field(name).type
            if kind.unit != "us" or kind.tz is None:
                message = f"local time of the column {name!r} of {kind} in partition paths"
                raise UnsupportedError(message, path=config.path)
        zone = READ_ZONE.read(options, path=config.path)
        # Arrow takes offsets without the letters of datetime.timezone.
        return SqlTimes(str(zone_of(zone or "UTC")).removeprefix("UTC") or "UTC", zone is not None)

    def texts(self, column: pa.Array, *, path: str) -> pa.Array:
        """Returns timestamps as text, escaped. Raises FormatError naming `path` for years beyond 1 to 9999."""
        micros = column.cast(pa.timestamp("us", column.type.tz), safe=False).cast(pa.int64())
        millis = pc.divide(micros, _MICROS_PER_MILLI)  # Towards zero, as TimeUnit.convert does.
        texts = TimeFormat(_FORMAT, self.zone, "MILLISECONDS").texts(millis.fill_null(0), path=path)
        return pc.if_else(column.is_valid(), texts, DEFAULT_PARTITION)


def _forms(config: TableConfig, name: str, known: list[str]) -> set[re.Pattern[str] | None]:
    """Returns the forms of a column's values in paths, with None for a value of neither form."""
    forms: set[re.Pattern[str] | None] = set()
    for partition in known:
        part = path_parts(partition, config.partition_fields).get(name, DEFAULT_PARTITION).removeprefix(f"{name}=")
        if part != DEFAULT_PARTITION:
            forms.add(next((form for form in (_NUMBER, _LOCAL_TIME) if form.fullmatch(part)), None))
    return forms
