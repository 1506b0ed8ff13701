"""Texts that people give: names of which there are only some, time zones, durations, sizes and numbers. Which mistakes
of a DAG file are errors at its import: airflow_hudi/arguments.py.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Final
from zoneinfo import ZoneInfo

from hudi_core.errors import ConfigError


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that a misspelt one is most like; None where it is like none."""
    return next(iter(difflib.get_close_matches(name, [*known], 1)), None)


def one_of(given: object, known: Iterable[str]) -> str:
    """The remedy for a name that is not known: which one may be meant, and all of them."""
    names = [*known]
    meant = nearest(str(given), names)
    return ("" if meant is None else f"did you mean {meant}? ") + f"one of {', '.join(names)}"


def check_choice(what: str, given: object, known: Iterable[str]) -> None:
    """Raises ConfigError unless the argument `what` is one of the known names."""
    names = [*known]
    if given not in names:
        raise ConfigError(f"{what} is {given!r}", remedy=one_of(given, names))


def region(name: str) -> ZoneInfo | None:
    """The zone of the IANA database that has this name; None where there is none."""
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        # ZoneInfoNotFoundError is a KeyError; a name that is a path is a ValueError, one that is a folder an OSError.
        return None


_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_BYTES: Final[Mapping[str, int]] = {
    "": 1,
    **{f"{unit}B": 1000**at for at, unit in enumerate("KMGT", 1)},
    **{f"{unit}iB": 1024**at for at, unit in enumerate("KMGT", 1)},
}
_DURATION: Final = re.compile(r"(\d{1,9}) ?([smhd])")
_SIZE: Final = re.compile(r"(\d{1,15}) ?([KMGT]i?B)?")


def seconds_of(text: str) -> int:
    """Of a duration such as `90s`, `30m`, `6h` or `2d`. Raises ValueError."""
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise ValueError("is no duration such as 90s, 30m, 6h or 2d")
    return int(found[1]) * _SECONDS[found[2]]


def bytes_of(text: str) -> int:
    """Of a size such as `1048576`, `10GiB` or `500 MB`. Raises ValueError."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise ValueError("is no size such as 1048576, 10GiB or 500MB")
    return int(found[1]) * _BYTES[found[2] or ""]


def whole_number_of(text: str) -> int:
    """A number from 1 on. Raises ValueError."""
    if not re.fullmatch(r"[1-9]\d{0,8}", text.strip()):
        raise ValueError("is no whole number from 1 on")
    return int(text)


def ratio_of(text: str) -> float:
    """A number above 0. Raises ValueError."""
    if not re.fullmatch(r"\d{1,6}(\.\d{1,6})?", text.strip()) or float(text) <= 0:
        raise ValueError("is no number above 0, such as 0.3")
    return float(text)
