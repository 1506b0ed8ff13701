"""Partition paths that are times formatted from a column, as TimestampBasedAvroKeyGenerator makes them.

Formats are those of Joda-Time, of which the letters below are read; others are refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Final
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.config.keygen_config import (
    TIME_INPUT,
    TIME_INPUT_ZONE,
    TIME_OUTPUT,
    TIME_OUTPUT_ZONE,
    TIME_TYPE,
    TIME_ZONE,
)
from hudi_core.errors import ConfigError, FormatError, UnsupportedError
from hudi_core.request.zones import region

_UNITS: Final = {"UNIX_TIMESTAMP": "s", "EPOCHMILLISECONDS": "ms", "EPOCHMICROSECONDS": "us"}
_TEXTS: Final = ("DATE_STRING", "MIXED")
_LETTERS: Final = {
    "yyyy": "%Y",
    "MM": "%m",
    "dd": "%d",
    "HH": "%H",
    "mm": "%M",
    "ss": "%S",
    "Z": "%z",
}
_TOKEN: Final = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|([^A-Za-z'])")


@dataclass(frozen=True, slots=True)
class TimeFormat:
    """How a column's times become text. `kind` is the timestamp type of Hudi; formats are strftime's."""

    kind: str
    output: str
    output_zone: str
    input: str | None
    input_zone: str

    @staticmethod
    def of(settings: Mapping[str, str], *, path: str) -> TimeFormat:
        """Reads the table's properties and the options of the run. Raises ConfigError for one that is missing or wrong,
        UnsupportedError for a type or format that is not written here; both name `path`.
        """
        kind = TIME_TYPE.read(settings, path=path)
        if kind is None:
            raise ConfigError(
                f"the table does not record {TIME_TYPE.name}, which its partition paths depend on",
                path=path,
                remedy=f"give the writers' value, as in --option {TIME_TYPE.name}=EPOCHMILLISECONDS",
            )
        if kind not in _UNITS and kind not in _TEXTS:
            raise _not_written(f"{TIME_TYPE.name}={kind}", path)
        output = TIME_OUTPUT.read(settings, path=path)
        if output is None:
            raise ConfigError(f"{TIME_OUTPUT.name} is not set", path=path, remedy="give the writers' value")
        given = TIME_INPUT.read(settings, path=path)
        if kind in _TEXTS and given is None:
            raise ConfigError(f"{TIME_INPUT.name} is not set", path=path, remedy="give the writers' value")
        both = TIME_ZONE.read(settings, path=path)
        zones = [both or key.read(settings, path=path) or "UTC" for key in (TIME_OUTPUT_ZONE, TIME_INPUT_ZONE)]
        for zone in zones:
            _zone(zone, path)
        parsed = strftime(given, path=path) if kind in _TEXTS and given is not None else None
        written = strftime(output, path=path)
        if "%z" in written:
            raise _not_written(f"{TIME_OUTPUT.name}={output}", path)
        return TimeFormat(kind, written, zones[0], parsed, zones[1])

    def texts(self, column: pa.Array, *, path: str) -> pa.Array:
        """The times of a column as text. Raises FormatError naming `path` for a null and for text that is no time,
        UnsupportedError for a column of another type.
        """
        if column.null_count:
            raise FormatError(
                f"{column.null_count} rows have no value in the partition column of times",
                path=path,
                remedy="give each row a time, or write these rows with Hudi",
            )
        if pa.types.is_integer(column.type) and self.kind in _UNITS:
            times = column.cast(pa.int64()).cast(pa.timestamp(_UNITS[self.kind]))
        elif pa.types.is_string(column.type) and self.input is not None:
            times = self._parsed(column, path)
        else:
            raise _not_written(f"a partition column of type {column.type} with {TIME_TYPE.name}={self.kind}", path)
        # Years beyond four digits and before the first are written otherwise by Joda-Time.
        whole = pc.floor_temporal(times, unit="second").cast(pa.timestamp("s"))
        ends = pc.min_max(whole)
        if len(whole) and not _FIRST <= ends["min"].value <= ends["max"].value <= _LAST:
            raise FormatError("a partition column holds a time before the year 1 or after 9999", path=path)
        zoned = whole.cast(pa.timestamp("s", tz="UTC")).cast(pa.timestamp("s", tz=self.output_zone))
        return pc.strftime(zoned, format=self.output)

    def _parsed(self, column: pa.Array, path: str) -> pa.Array:
        encoded = column.dictionary_encode()
        zone, form = _zone(self.input_zone, path), self.input or ""
        values = []
        for text in encoded.dictionary.to_pylist():
            try:
                found = datetime.strptime(text, form)
            except ValueError as error:
                raise FormatError(f"{text!r} is no time as {TIME_INPUT.name} says", path=path) from error
            found = found if found.tzinfo is not None else found.replace(tzinfo=zone)
            values.append(found.astimezone(timezone.utc).replace(tzinfo=None))
        return pa.array(values, pa.timestamp("us")).take(encoded.indices)


_FIRST: Final = -62_135_596_800 + 2 * 86_400
_LAST: Final = 253_402_300_799 - 2 * 86_400
"""Seconds of the years 1 and 9999, without the days that a zone may move over their ends."""


def strftime(pattern: str, *, path: str) -> str:
    """A format of Joda-Time as one of strftime. Raises UnsupportedError for letters that are not known here."""
    found, at = [], 0
    while at < len(pattern):
        match = _TOKEN.match(pattern, at)
        if match is None:
            raise _not_written(f"the time format {pattern!r}", path)
        at = match.end()
        quoted, letter, plain = match.groups()
        if letter is None:
            text = plain if quoted is None else quoted.replace("''", "'") or "'"
            found.append(text.replace("%", "%%"))
        elif match[0] in _LETTERS:
            found.append(_LETTERS[match[0]])
        else:
            raise _not_written(f"the letters {match[0]!r} of the time format {pattern!r}", path)
    return "".join(found)


def _zone(name: str, path: str) -> ZoneInfo:
    found = region(name)
    if found is None:
        raise ConfigError(
            f"{name!r} is no time zone that is known here", path=path, remedy="use a region such as Europe/Berlin"
        )
    return found


def _not_written(what: str, path: str) -> UnsupportedError:
    return UnsupportedError(f"{what} makes partition paths that are not written here", path=path)
