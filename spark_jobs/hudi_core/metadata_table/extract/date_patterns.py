"""Wall times as text by the date patterns that Java and Spark share (DateTimeFormatter), for the letters whose text is
digits alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hudi_core.errors import UnsupportedError

_TOKEN: Final = re.compile(r"'(?:[^']|'')*'|([A-Za-z])\1*|[^A-Za-z']+")
DAY_SECONDS: Final = 86400
Numbers = NDArray[np.int64]
_YEARS: Final = (1, 999_999)
"""Eras and years beyond are refused: `y` is the year of the era, and Java's signs differ there."""


class WallClock:
    """The parts of wall times, given in seconds since 1970 (int64; null as 0), by the proleptic Gregorian calendar."""

    def __init__(self, seconds: pa.Array) -> None:
        self._seconds: Numbers = pc.fill_null(seconds, 0).to_numpy(zero_copy_only=False).astype(np.int64)
        self._dates = (self._seconds // DAY_SECONDS).astype("datetime64[D]")

    @property
    def year(self) -> Numbers:
        """The year."""
        return np.asarray(self._dates.astype("datetime64[Y]"), np.int64) + 1970

    @property
    def month(self) -> Numbers:
        """1 to 12."""
        return np.asarray(self._dates.astype("datetime64[M]"), np.int64) % 12 + 1

    @property
    def day(self) -> Numbers:
        """1 to 31."""
        return np.asarray(self._dates - self._dates.astype("datetime64[M]"), np.int64) + 1

    @property
    def hour(self) -> Numbers:
        """0 to 23."""
        return self._seconds % DAY_SECONDS // 3600

    @property
    def minute(self) -> Numbers:
        """0 to 59."""
        return self._seconds // 60 % 60

    @property
    def second(self) -> Numbers:
        """0 to 59."""
        return self._seconds % 60


_Part = Callable[[WallClock], "pa.Array | str"]
_LETTERS: Final[dict[str, Callable[[WallClock], Numbers]]] = {
    "M": lambda clock: clock.month,
    "d": lambda clock: clock.day,
    "H": lambda clock: clock.hour,
    "m": lambda clock: clock.minute,
    "s": lambda clock: clock.second,
}


class DatePattern:
    """A pattern of `yyyy`, `MM`, `dd`, `HH`, `mm`, `ss`, their one-letter forms, quoted text and signs."""

    def __init__(self, pattern: str) -> None:
        """Raises UnsupportedError for a letter whose text depends on a locale, a zone or a calendar of weeks."""
        tokens = [match.group() for match in _TOKEN.finditer(pattern)]
        if not tokens or "".join(tokens) != pattern:
            raise UnsupportedError(f"the date pattern {pattern!r} is not read")
        self._parts = [_part(token, pattern) for token in tokens]

    def format(self, seconds: pa.Array) -> pa.Array:
        """The text of each wall time, given in seconds since 1970 (int64); null of null. Raises UnsupportedError for
        years that it has not.
        """
        clock = WallClock(seconds)
        years = clock.year
        if len(years) and not _YEARS[0] <= years.min() <= years.max() <= _YEARS[1]:
            raise UnsupportedError(
                "a time lies before the year 1 or far beyond 9999, for which this release has no text"
            )
        texts = [make(clock) for make in self._parts]
        # The first column makes the texts as many as the times, also of a pattern of quoted text alone.
        empty = pa.array([""] * len(seconds), pa.string())
        joined = pc.binary_join_element_wise(empty, *texts, "")
        return pc.if_else(pc.is_valid(seconds), joined, pa.scalar(None, pa.string()))


def _part(token: str, pattern: str) -> _Part:
    if token.startswith("'"):
        text = "'" if token == "''" else token[1:-1].replace("''", "'")
        return lambda clock: text
    if not token[0].isalpha():
        if any(char in "[]{}#" for char in token):
            raise UnsupportedError(f"the date pattern {pattern!r} has optional parts")
        return lambda clock: token
    letter, width = token[0], len(token)
    if letter == "y" and width == 4:
        return lambda clock: _year(clock.year)
    take = _LETTERS.get(letter)
    if take is None or width > 2:
        raise UnsupportedError(
            f"the date pattern {pattern!r} has the letters {token!r}, whose text this release does not make"
        )
    return lambda clock: _digits(take(clock), width)


def _digits(numbers: Numbers, width: int) -> pa.Array:
    return pc.utf8_lpad(pa.array(numbers).cast(pa.string()), width, "0")


def _year(numbers: Numbers) -> pa.Array:
    """Four digits; with a sign where there are more (SignStyle.EXCEEDS_PAD)."""
    text = _digits(numbers, 4)
    return pc.if_else(pa.array(numbers > 9999), pc.binary_join_element_wise("+", text, ""), text)
