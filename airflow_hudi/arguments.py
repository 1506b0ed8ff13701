"""Mistakes that a DAG file shows: operators and sensors refuse them when they are made, which is when it is imported.

What is rendered, or comes from another task, is known and checked when the task runs. Which name was meant:
hudi_core/request/texts.py.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, timedelta
from functools import cache, wraps
from typing import Any, Final, ParamSpec, TypeVar

from airflow.sdk.bases.operator import BaseOperatorMeta

from hudi_core.errors import ConfigError
from hudi_core.request.texts import check_choice, nearest

P = ParamSpec("P")
T = TypeVar("T")
_TEMPLATE: Final = ("{{", "{%", "{#")
_OF_MAPPED: Final = "_airflow_from_mapped"
"""The argument by which Airflow makes the task of a mapped operator, in the worker."""


class CheckedArguments(BaseOperatorMeta):
    """The metaclass of operators and sensors whose method `check_arguments` raises ConfigError for literals that mean
    nothing. Arguments that do not exist are a TypeError, which for the provider's own classes names the one that may be
    meant. A class of a user may take more than its signature names.
    """

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """Makes one. The arguments of mapped tasks are checked when they run."""
        if cls.__module__.partition(".")[0] == __package__:
            refuse_unknown(cls.__name__, kwargs, _names_of(cls))
        made = super().__call__(*args, **kwargs)
        if not kwargs.get(_OF_MAPPED):
            made.check_arguments()
        return made


def refuse_unknown(what: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raises TypeError for names of arguments that `what` does not have."""
    names = set(known)
    unknown = [name for name in given if name not in names and not name.startswith("_airflow_")]
    if not unknown:
        return
    meant = {name: nearest(name, names) for name in unknown}
    said = (f"{name!r}" + (f" (did you mean {meant[name]!r}?)" if meant[name] else "") for name in unknown)
    raise TypeError(f"{what} has no argument {', '.join(said)}")


def suggests_names(function: Callable[P, T]) -> Callable[P, T]:
    """Decorates a function of DAG files: an argument that does not exist is a TypeError as refuse_unknown makes it."""
    what = function.__qualname__.removesuffix(".__init__")

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        refuse_unknown(what, kwargs, names_of_arguments(function))
        return function(*args, **kwargs)

    return call


def names_of_arguments(function: Callable[..., Any]) -> list[str]:
    """The names of a function's own arguments."""
    variadic = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    found = inspect.signature(function).parameters.items()
    return [name for name, parameter in found if parameter.kind not in variadic and name != "self"]


@cache
def _names_of(cls: type[Any]) -> frozenset[str]:
    """The names of the arguments of a class and its bases."""
    made = (vars(base).get("__init__") for base in cls.__mro__ if base is not object)
    return frozenset(name for init in made if init is not None for name in names_of_arguments(init))


def is_literal(*values: Any) -> bool:
    """Whether the values are as the task will have them: no template, nothing that another task returns."""
    return all(map(_is_literal, values))


def _is_literal(value: Any) -> bool:
    if isinstance(value, str):
        return not any(mark in value for mark in _TEMPLATE)
    if isinstance(value, Mapping):
        return is_literal(*value, *value.values())
    if isinstance(value, Sequence | set | frozenset):
        return is_literal(*value)
    return value is None or isinstance(value, bool | int | float | date | timedelta)


def literals(given: Any) -> Any:
    """Of a dict the entries that are literals, of anything else the whole where it is one, else None."""
    if isinstance(given, Mapping):
        return {name: value for name, value in given.items() if is_literal(name, value)}
    return given if is_literal(given) else None


def check_literal_choice(name: str, value: Any, known: Iterable[str]) -> None:
    """Raises ConfigError for a literal that is not empty and none of the known names."""
    if value and is_literal(value):
        check_choice(name, value, known)


def names_in(given: Sequence[str] | str) -> tuple[str, ...]:
    """The names in a list, or in a text that separates them by commas or lines."""
    items = given.replace("\n", ",").split(",") if isinstance(given, str) else given
    return tuple(name.strip() for name in items if name.strip())


def partitions_in(given: Sequence[str] | str) -> tuple[str, ...]:
    """The paths in a list, as they are, or the names in a text: a path may have blanks at its ends, and that of the
    partition of a table without partition columns is empty.
    """
    return names_in(given) if isinstance(given, str) else tuple(given)


def flag(value: bool | str, *, name: str) -> bool:
    """An argument that is true or false, or was rendered to one of these words. Raises ConfigError for any other."""
    text = str(value).strip().lower()
    if text not in ("true", "false"):
        raise ConfigError(f"{name} is {value!r}", remedy="true or false")
    return text == "true"
