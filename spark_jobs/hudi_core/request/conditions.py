"""What makes a table service due besides its own triggers, and the texts of durations, sizes and numbers.

Standard library only, as operators and hudictl share it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from hudi_core.errors import ConfigError
from hudi_core.request.services import check_service

N = TypeVar("N")
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


@dataclass(frozen=True, slots=True)
class Conditions:
    """What makes a service due, each alone: so many commits since it ran last, the oldest of them `age` seconds old;
    so many `size` bytes of log files, or of files that are small; log files of `log_ratio` times the bytes of the base
    files; so many `small_files`. Without any, the service's own triggers decide.
    """

    commits: int | None = None
    age: int | None = None
    size: int | None = None
    log_ratio: float | None = None
    small_files: int | None = None

    @staticmethod
    def of(service: str, given: Mapping[str, str]) -> Conditions:
        """Of texts by name. Raises ConfigError for one that the service does not have, or that is not valid."""
        known = check_service(service).conditions
        for name in given:
            if name not in known:
                raise ConfigError(
                    f"{service} has no condition {name!r}",
                    remedy=f"it has {', '.join(known)}" if known else "leave it out: the service decides by itself",
                )

        def read(name: str, parse: Callable[[str], N]) -> N | None:
            if name not in given:
                return None
            try:
                value = parse(given[name])
                if not value:
                    raise ValueError("is not above 0")
            except ValueError as error:
                raise ConfigError(
                    f"{name} of {service}: {given[name]!r} {error}", remedy="correct it, or leave the condition out"
                ) from error
            return value

        return Conditions(
            read("commits", whole_number_of),
            read("age", seconds_of),
            read("bytes", bytes_of),
            read("log_ratio", ratio_of),
            read("small_files", whole_number_of),
        )

    @property
    def needs_files(self) -> bool:
        """Whether files have to be listed."""
        return (self.size, self.log_ratio, self.small_files) != (None, None, None)
