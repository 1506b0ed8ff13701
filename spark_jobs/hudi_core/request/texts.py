"""Reads texts (names from a fixed set, time zones, durations, sizes, numbers), and fields of untrusted JSON objects,
whose types are checked. airflow_hudi/arguments.py says which mistakes of a DAG file are errors at its import.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any, Final, get_type_hints

from hudi_core.errors import ConfigError

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Returns the known name that a misspelt one is most like; None where it is like none."""
    import difflib  # Most processes do not need this import.

    return next(iter(difflib.get_close_matches(name, [*known], 1)), None)


def one_of(given: object, known: Iterable[str]) -> str:
    """Returns the remedy for a name that is not known: which one may be meant, and all of them."""
    names = [*known]
    meant = nearest(str(given), names)
    return ("" if meant is None else f"did you mean {meant}? ") + f"one of {', '.join(names)}"


def check_choice(what: str, given: object, known: Iterable[str]) -> None:
    """Raises ConfigError unless the argument `what` is one of the known names."""
    names = [*known]
    if given not in names:
        raise ConfigError(f"{what} is {given!r}", remedy=one_of(given, names))


def region(name: str) -> ZoneInfo | None:
    """Returns the zone of the IANA database that has this name; None where there is none."""
    from zoneinfo import ZoneInfo

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
    """Returns the seconds of a duration such as `90s`, `30m`, `6h` or `2d`. Raises ValueError."""
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise ValueError("is no duration such as 90s, 30m, 6h or 2d")
    return int(found[1]) * _SECONDS[found[2]]


def bytes_of(text: str) -> int:
    """Returns the bytes of a size such as `1048576`, `10GiB` or `500 MB`. Raises ValueError."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise ValueError("is no size such as 1048576, 10GiB or 500MB")
    return int(found[1]) * _BYTES[found[2] or ""]


def whole_number_of(text: str) -> int:
    """Returns a whole number from 1 on. Raises ValueError."""
    if not re.fullmatch(r"[1-9]\d{0,8}", text.strip()):
        raise ValueError("is no whole number from 1 on")
    return int(text)


def ratio_of(text: str) -> float:
    """Returns a number above 0. Raises ValueError."""
    if not re.fullmatch(r"\d{1,6}(\.\d{1,6})?", text.strip()) or float(text) <= 0:
        raise ValueError("is no number above 0, such as 0.3")
    return float(text)


def parse_object(text: str | bytes, *, what: str) -> dict[str, Any]:
    """Returns the JSON object in `text`. Raises ConfigError, naming `what`, for anything else."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{what} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ConfigError(f"{what} is not a JSON object")
    return value


def check_text(text: str, *, what: str) -> None:
    """Raises ConfigError, naming `what`, for a text that is not UTF-8 or has a NUL, which no storage library takes."""
    if not _has_text(text):
        raise ConfigError(
            f"{what} holds bytes that are not UTF-8, or a NUL: {text.encode('utf-8', 'backslashreplace')[:80]!r}",
            remedy="give it in UTF-8",
        )


def check_texts(values: Mapping[str, Any], *, where: str) -> None:
    """Raises ConfigError, naming `where`, for a name or a value that is no text. Shows no value."""
    wrong = sorted(str(name) for name, value in values.items() if not (_is_text(name) and _is_text(value)))
    if wrong:
        raise ConfigError(f"the values of {', '.join(wrong)} in {where} are no texts", remedy='write "true", "4", "2g"')


def _has_text(text: str) -> bool:
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:  # a surrogate, which stands for a byte of an argument, or is one of JSON's escapes
        return False


def read_fields(cls: type, value: Mapping[str, Any], *, what: str) -> dict[str, Any]:
    """Returns the arguments of the dataclass `cls` that `value` holds, with checked types. A field with a default may
    be absent, and null where it is text or optional. Raises ConfigError, naming `what`.
    """
    hints = get_type_hints(cls)
    found: dict[str, Any] = {}
    for item in fields(cls):
        expected, accepts, may_be_null = _FORMS[hints[item.name]]
        is_absent = item.name not in value or (value[item.name] is None and may_be_null)
        if is_absent and (item.default is not MISSING or item.default_factory is not MISSING):
            continue
        given = value.get(item.name)
        if not accepts(given):
            raise ConfigError(f"{what}: {item.name} must be {expected}", remedy="correct this field")
        for text in _texts_in(given):
            check_text(text, what=f"{what}: {item.name}")
        found[item.name] = tuple(given) if isinstance(given, list) else given
    return found


def _texts_in(given: Any) -> Iterable[str]:
    if isinstance(given, dict):
        return (*given, *given.values())
    return given if isinstance(given, list) else (given,) if isinstance(given, str) else ()


def _is_text(given: Any) -> bool:
    return isinstance(given, str)


def _is_number(given: Any) -> bool:
    return isinstance(given, int) and not isinstance(given, bool)


def _is_text_map(given: Any) -> bool:
    return isinstance(given, dict) and all(map(_is_text, given.values()))


def _are_texts(given: Any) -> bool:
    return isinstance(given, list) and all(map(_is_text, given))


_FORMS: Final[Mapping[Any, tuple[str, Callable[[Any], bool], bool]]] = {
    str: ("text", _is_text, True),
    str | None: ("text", _is_text, True),
    bool: ("true or false", lambda given: isinstance(given, bool), False),
    int: ("a whole number", _is_number, False),
    int | None: ("a whole number", _is_number, True),
    float: ("a number", lambda given: isinstance(given, int | float) and not isinstance(given, bool), False),
    Mapping[str, str]: ("an object of texts", _is_text_map, False),
    tuple[str, ...]: ("a list of texts", _are_texts, False),
}
"""The types that fields of requests and results have: the name of each, a check, and whether null counts as absent."""
