"""Typed configuration keys under Hudi's own names. Each key is, with its older names, beside the dataclass that it
fills: in this folder, or for services in services/ below it.
"""

from __future__ import annotations

import dataclasses
import json
import re
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import Enum
from functools import cache
from importlib.resources import files
from typing import Any, Generic, TypeVar, cast

from hudi_core.errors import ConfigError
from hudi_core.frozen import dataclass

T_co = TypeVar("T_co", covariant=True)
C = TypeVar("C")
N = TypeVar("N", int, float)
E = TypeVar("E", bound=Enum)
V = TypeVar("V")
MAX_INT = 2**31 - 1
"""Java's largest int."""
_KEY = "key"


@dataclass(frozen=True, slots=True)
class ConfigKey(Generic[T_co]):
    """One option: name, default, older names, how its text is read. `said` is a meaning that options.json lacks."""

    name: str
    default: T_co
    parse: Callable[[str], T_co]
    aliases: tuple[str, ...] = ()
    said: str = ""

    @property
    def doc(self) -> str:
        """The meaning of the option, for docs/reference/options.md and as the remedy for a text that is not valid."""
        return self.said or _meanings().get(self.name, "")

    def read(self, options: Mapping[str, str], *, path: str | None = None) -> T_co:
        """Returns the value from `options`. Raises ConfigError naming the key and `path` when its text is not valid."""
        for name in (self.name, *self.aliases):
            text = options.get(name)
            if text is None:
                continue
            try:
                return self.parse(text.strip())
            except ValueError as error:
                raise ConfigError(f"{name} is {text!r}: {error}", path=path, remedy=self.doc) from error
        return self.default

    def is_set(self, options: Mapping[str, str]) -> bool:
        """Whether the key, under any of its names, is in `options`."""
        return any(name in options for name in (self.name, *self.aliases))

    def field(self) -> T_co:
        """Returns a field of a dataclass that `read_fields` reads by this key. Its default is the key's."""
        return dataclasses.field(default=self.default, metadata={_KEY: self})


def read_fields(of: type[C], options: Mapping[str, str], *, source: str | None = None, **given: Any) -> C:
    """Returns an object of the dataclass `of`, from `given` and from the keys in `options`. Raises ConfigError."""
    declared = {item.name: item.metadata.get(_KEY) for item in dataclasses.fields(cast(Any, of))}
    read = {name: key.read(options, path=source) for name, key in declared.items() if key and name not in given}
    return of(**read, **given)


def keys_in(module: Mapping[str, object], *, but: Collection[object] = ()) -> tuple[ConfigKey[object], ...]:
    """Returns the options in a module's `globals()`, in the order of their definition, without `but`."""
    return tuple(value for value in module.values() if isinstance(value, ConfigKey) and value not in but)


@cache
def _meanings() -> dict[str, str]:
    """Returns the meanings of options by name, also from the job's zip."""
    meanings: dict[str, str] = json.loads((files("hudi_core.config") / "options.json").read_bytes())
    return meanings


def flag(name: str, *, default: bool = False, aliases: tuple[str, ...] = ()) -> ConfigKey[bool]:
    """An option that is true or false."""
    return ConfigKey(name, default, boolean, aliases)


def optional(name: str, *, aliases: tuple[str, ...] = ()) -> ConfigKey[str | None]:
    """An option of text; None when it is absent or empty."""
    return ConfigKey(name, None, lambda value: value or None, aliases)


def names(name: str, *, aliases: tuple[str, ...] = ()) -> ConfigKey[tuple[str, ...]]:
    """An option of a comma list; empty when it is absent."""
    return ConfigKey(name, (), name_list, aliases)


def number(
    name: str, default: int, *, within: tuple[int, int] = (1, MAX_INT), aliases: tuple[str, ...] = ()
) -> ConfigKey[int]:
    """An option of an integer within bounds, both inclusive."""
    return ConfigKey(name, default, whole_number(*within), aliases)


def name_list(value: str) -> tuple[str, ...]:
    """Returns the parts of a comma list, without blanks and empty parts."""
    return tuple(part.strip() for part in value.split(",") if part.strip())


def boolean(value: str) -> bool:
    """Reads `true` or `false`, in any case."""
    lowered = value.lower()
    if lowered not in ("true", "false"):
        raise ValueError("not true or false")
    return lowered == "true"


def whole_number(low: int, high: int) -> Callable[[str], int]:
    """Returns a parser of an integer within bounds, both inclusive."""
    return _within(int, "a whole number", low, high, lambda number: low <= number <= high)


def real_number(low: float, high: float) -> Callable[[str], float]:
    """Returns a parser of a number strictly between two bounds."""
    return _within(float, "a number", low, high, lambda number: low < number < high)


def _within(
    read: Callable[[str], N], kind: str, low: float, high: float, fits: Callable[[N], bool]
) -> Callable[[str], N]:
    def parse(value: str) -> N:
        try:
            number = read(value)
        except ValueError as error:
            raise ValueError(f"not {kind}") from error
        if not fits(number):
            raise ValueError(f"not between {low} and {high}")
        return number

    return parse


def regular_expression(value: str) -> str:
    """Returns a regular expression that compiles, as it is. Refuses one that Java reads in another way than Python."""
    try:
        with warnings.catch_warnings():
            # The warning is about `&&` and `[` in a set of characters, by which Java makes sets of sets.
            warnings.simplefilter("error", FutureWarning)
            re.compile(value)
    except (re.error, FutureWarning) as error:
        raise ValueError(f"not a regular expression, or one that Python does not read as Java does: {error}") from error
    return value


def one_of(*choices: str) -> Callable[[str], str]:
    """Returns a parser of one of `choices`, in any case. The value is as written in `choices`."""
    return _choice({choice.lower(): choice for choice in choices}, choices, str.lower)


def member_of(kind: type[E], spelled: Callable[[str], str] = str.upper) -> Callable[[str], E]:
    """Returns a parser of a member of an enum by its value. Text and value are compared as `spelled`."""
    return _choice({spelled(member.value): member for member in kind}, [member.value for member in kind], spelled)


def _choice(known: Mapping[str, V], shown: Sequence[str], spelled: Callable[[str], str]) -> Callable[[str], V]:
    def parse(value: str) -> V:
        chosen = known.get(spelled(value))
        if chosen is None:
            raise ValueError(f"not one of {', '.join(shown)}")
        return chosen

    return parse
