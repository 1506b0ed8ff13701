"""Names of which there are only some: whether a given one is among them, and else which of them it is near to."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

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
