"""Wall times as text by the date patterns that Java and Spark share (DateTimeFormatter), of letters that are digits."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

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


def numbers_of(counts: pa.Array) -> Numbers:
    """An array of int64 as NumPy's, null as 0."""
    return np.asarray(pc.fill_null(counts, 0).to_numpy(zero_copy_only=False), np.int64)


class WallTimes(NamedTuple):
    """Wall times in seconds since 1970, and the dates they are on."""

    seconds: Numbers
    dates: NDArray[np.datetime64]

    @staticmethod
    def of(seconds: pa.Array) -> WallTimes:
        numbers = numbers_of(seconds)
        return WallTimes(numbers, (numbers // DAY_SECONDS).astype("datetime64[D]"))


PARTS: Final[dict[str, Callable[[WallTimes], Numbers]]] = {
    "y": lambda times: times.dates.astype("datetime64[Y]").astype(np.int64) + 1970,
    "M": lambda times: times.dates.astype("datetime64[M]").astype(np.int64) % 12 + 1,
    "d": lambda times: (times.dates - times.dates.astype("datetime64[M]")).astype(np.int64) + 1,
    "H": lambda times: times.seconds % DAY_SECONDS // 3600,
    "m": lambda times: times.seconds // 60 % 60,
    "s": lambda times: times.seconds % 60,
}
"""The parts of wall times by their letters, by the proleptic Gregorian calendar."""
_Part = Callable[[WallTimes], "pa.Array | str"]


class DatePattern:
    """A pattern of `yyyy`, `MM`, `dd`, `HH`, `mm`, `ss`, their one-letter forms, quoted text and signs."""

    def __init__(self, pattern: str) -> None:
        """Raises UnsupportedError for a letter whose text depends on a locale, a zone or a calendar of weeks."""
        tokens = [match.group() for match in _TOKEN.finditer(pattern)]
        if not tokens or "".join(tokens) != pattern:
            raise UnsupportedError(f"the date pattern {pattern!r} is not read")
        self._parts = [_part(token, pattern) for token in tokens]

    def format(self, seconds: pa.Array) -> pa.Array:
        """Of wall times (seconds since 1970, int64), null of null. UnsupportedError for years that have no text."""
        times = WallTimes.of(seconds)
        years = PARTS["y"](times)
        if len(years) and not _YEARS[0] <= years.min() <= years.max() <= _YEARS[1]:
            raise UnsupportedError(
                "a time lies before the year 1 or far beyond 9999, for which this release has no text"
            )
        texts = [make(times) for make in self._parts]
        # The first column makes the texts as many as the times, also of a pattern of quoted text alone.
        empty = pa.array([""] * len(seconds), pa.string())
        joined = pc.binary_join_element_wise(empty, *texts, "")
        return pc.if_else(pc.is_valid(seconds), joined, pa.scalar(None, pa.string()))


def _part(token: str, pattern: str) -> _Part:
    if token.startswith("'"):
        text = "'" if token == "''" else token[1:-1].replace("''", "'")
        return lambda times: text
    if not token[0].isalpha():
        if any(char in "[]{}#" for char in token):
            raise UnsupportedError(f"the date pattern {pattern!r} has optional parts")
        return lambda times: token
    letter, width = token[0], len(token)
    if letter == "y" and width == 4:
        return lambda times: _year(PARTS["y"](times))
    take = PARTS.get(letter)
    if take is None or letter == "y" or width > 2:
        raise UnsupportedError(
            f"the date pattern {pattern!r} has the letters {token!r}, whose text this release does not make"
        )
    return lambda times: _digits(take(times), width)


def _digits(numbers: Numbers, width: int) -> pa.Array:
    return pc.utf8_lpad(pa.array(numbers).cast(pa.string()), width, "0")


def _year(numbers: Numbers) -> pa.Array:
    """Four digits; with a sign where there are more (SignStyle.EXCEEDS_PAD)."""
    text = _digits(numbers, 4)
    return pc.if_else(pa.array(numbers > 9999), pc.binary_join_element_wise("+", text, ""), text)
