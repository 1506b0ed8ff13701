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
_DAY: Final = 86400
_Numbers = NDArray[np.int64]
_YEARS: Final = (1, 999_999)
"""Eras and years beyond are refused: `y` is the year of the era, and Java's signs differ there."""


class DatePattern:
    """A pattern of `yyyy`, `MM`, `dd`, `HH`, `mm`, `ss`, their one-letter forms, quoted text and signs."""

    def __init__(self, pattern: str) -> None:
        """Raises UnsupportedError for a letter whose text depends on a locale, a zone or a calendar of weeks."""
        self._parts: list[Callable[[_Clock], pa.Array | str]] = []
        end = 0
        for match in _TOKEN.finditer(pattern):
            if match.start() != end:
                break
            end = match.end()
            self._parts.append(_part(match.group(), pattern))
        if end != len(pattern) or not self._parts:
            raise UnsupportedError(f"the date pattern {pattern!r} is not read")

    def format(self, seconds: pa.Array) -> pa.Array:
        """The text of each wall time, given in seconds since 1970 (int64); null of null. Raises UnsupportedError for
        years that it has not.
        """
        clock = _Clock(pc.fill_null(seconds, 0).to_numpy(zero_copy_only=False).astype(np.int64))
        clock.check()
        texts = [
            part if isinstance(part, pa.Array) else pa.scalar(part) for part in (make(clock) for make in self._parts)
        ]
        joined = (
            pc.binary_join_element_wise(*texts, pa.scalar(""))
            if any(isinstance(text, pa.Array) for text in texts)
            else None
        )
        if joined is None:
            joined = pa.array(["".join(text.as_py() for text in texts)] * len(seconds), pa.string())
        return pc.if_else(pc.is_valid(seconds), joined, pa.scalar(None, pa.string()))


class _Clock:
    """The parts of wall times."""

    def __init__(self, seconds: _Numbers) -> None:
        days = seconds // _DAY
        rest = seconds - days * _DAY
        dates = days.astype("datetime64[D]")
        months = dates.astype("datetime64[M]")
        self.year: _Numbers = dates.astype("datetime64[Y]").astype(np.int64) + 1970
        self.month: _Numbers = months.astype(np.int64) % 12 + 1
        self.day: _Numbers = (dates - months).astype(np.int64) + 1
        self.hour: _Numbers = rest // 3600
        self.minute: _Numbers = rest // 60 % 60
        self.second: _Numbers = rest % 60

    def check(self) -> None:
        if len(self.year) and (self.year.min() < _YEARS[0] or self.year.max() > _YEARS[1]):
            raise UnsupportedError(
                "a time lies before the year 1 or far beyond 9999, for which this release has no text"
            )


def _part(token: str, pattern: str) -> Callable[[_Clock], pa.Array | str]:
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
    take: Callable[[_Clock], _Numbers] | None = {
        "M": lambda clock: clock.month,
        "d": lambda clock: clock.day,
        "H": lambda clock: clock.hour,
        "m": lambda clock: clock.minute,
        "s": lambda clock: clock.second,
    }.get(letter)
    if take is None or width > 2:
        raise UnsupportedError(
            f"the date pattern {pattern!r} has the letters {token!r}, whose text this release does not make"
        )
    found = take
    return lambda clock: _digits(found(clock), width)


def _digits(numbers: _Numbers, width: int) -> pa.Array:
    return pc.utf8_lpad(pa.array(numbers).cast(pa.string()), width, "0")


def _year(numbers: _Numbers) -> pa.Array:
    """Four digits; with a sign where there are more (SignStyle.EXCEEDS_PAD)."""
    text = _digits(numbers, 4)
    return pc.if_else(pa.array(numbers > 9999), pc.binary_join_element_wise("+", text, ""), text)
