"""Checks the arguments of operators and sensors when Airflow imports the DAG file. Rendered arguments, and those from
another task, are checked when the task runs. hudi_core/request/texts.py suggests names for unknown ones.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from datetime import date, timedelta
from functools import cache, wraps
from typing import Any, Final, ParamSpec, TypeVar, get_type_hints

from airflow.sdk.bases.operator import BaseOperatorMeta

from hudi_core.config import policy_file
from hudi_core.config.policy_file import TablePolicies
from hudi_core.errors import ConfigError
from hudi_core.request.texts import check_choice, check_texts, nearest
from hudi_core.verbs.request import Request

P = ParamSpec("P")
T = TypeVar("T")
_TEMPLATE: Final = ("{{", "{%", "{#")
_OF_MAPPED: Final = "_airflow_from_mapped"
"""The argument that Airflow passes when it makes the task of a mapped operator, in the worker."""
REQUIRED: Final[Any] = inspect.Parameter.empty
"""The value of a field without a default."""
_OF_AIRFLOW: Final = (
    *("template_fields", "template_ext", "template_fields_renderers", "ui_color", "ui_fgcolor"),
    *("operator_extra_links", "start_from_trigger", "start_trigger_args"),
)
"""Attributes of operators that are not arguments."""
_SELF: Final = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
_OTHERS: Final = inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD)


class CheckedArguments(BaseOperatorMeta):
    """The metaclass of operators and sensors. It does three things:

    - It makes arguments of fields. An annotated name with a value in the body of a class is an argument with this
      default. Each field of the class's verb (`request`) or condition (`waits_for`) is an argument and a template
      field. A class without an `__init__` gets one, which keeps these arguments as they are given.
    - It calls the method `check_arguments`, which raises ConfigError for invalid literals. It raises ConfigError itself
      for a literal that is not empty and not among the words in the class's `_argument_choices`.
    - It raises TypeError for an unknown argument of the provider's own classes, and suggests the nearest name.
    """

    def __new__(cls, name: str, bases: tuple[Any, ...], namespace: dict[str, Any], **options: Any) -> Any:
        known = frozenset(name for base in bases for name in _names_of(base))
        arguments = _fields_in(namespace) | _fields_of_verb(bases, namespace, known)
        defaults = {name: field.default for name, field in arguments.items() if field.default is not REQUIRED}

        def __init__(self: Any, **given: Any) -> None:
            given = defaults | given
            values = {name: given.pop(name) for name in arguments if name not in known}
            of_base: Any = super(made, self).__init__
            of_base(**given)
            for name, value in values.items():
                setattr(self, name, value)

        if arguments and "__init__" not in namespace:
            parameters = (_SELF, *arguments.values(), _OTHERS)
            __init__.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
            namespace["__init__"] = __init__
        made: Any = super().__new__(cls, name, bases, namespace, **options)  # type: ignore[no-untyped-call]
        return made

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """Makes an operator or sensor, and checks its arguments. Mapped tasks check them when they run."""
        if cls.__module__.partition(".")[0] == __package__:
            refuse_unknown(cls.__name__, kwargs, _names_of(cls) - getattr(cls, "no_arguments", frozenset()))
        made = super().__call__(*args, **kwargs)
        if not kwargs.get(_OF_MAPPED):
            made.check_arguments()
            for name, known in getattr(cls, "_argument_choices", {}).items():
                check_literal_choice(name, getattr(made, name), known)
        return made


def _fields_in(namespace: Mapping[str, Any]) -> dict[str, inspect.Parameter]:
    return {
        name: _argument(name, namespace[name], hint)
        for name, hint in namespace.get("__annotations__", {}).items()
        if name in namespace and name not in _OF_AIRFLOW and not name.startswith("_")
        if "ClassVar" not in str(hint)
    }


def _fields_of_verb(
    bases: Iterable[type[Any]], namespace: dict[str, Any], known: frozenset[str]
) -> dict[str, inspect.Parameter]:
    """Returns the fields of the class's verb or condition that no base has. A field without a default is required."""
    made_of = namespace.get("request", namespace.get("waits_for"))
    if not isinstance(made_of, type):
        return {}
    arguments = {}
    for field in own_fields(made_of):
        if field.name not in known and field.name not in namespace:
            default = None if field.default_factory is not MISSING else field.default
            arguments[field.name] = _argument(field.name, REQUIRED if default is MISSING else default, field.type)
    inherited = (name for base in bases for name in getattr(base, "template_fields", ()))
    namespace.setdefault("template_fields", tuple(dict.fromkeys((*arguments, *inherited))))
    namespace.setdefault("__doc__", made_of.__doc__)
    return arguments


def _argument(name: str, default: Any, hint: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def own_fields(made_of: type[Any]) -> list[Field[Any]]:
    """Returns the fields of a condition, or the fields of a verb without those that every verb has."""
    shared = {field.name for field in fields(Request)}
    return [field for field in fields(made_of) if field.init and field.name not in shared]


def verb_values(request: type[Request], operator: Any, *, literals_only: bool = False) -> dict[str, Any]:
    """Returns the values of a verb's fields from an operator's arguments, or only from literals. Raises ConfigError."""
    hints, names = get_type_hints(request), [field.name for field in own_fields(request)]
    known = [name for name in names if not literals_only or is_literal(getattr(operator, name))]
    return {name: _verb_value(hints[name], operator, name) for name in known}


def _verb_value(hint: Any, operator: Any, name: str) -> Any:
    value = getattr(operator, name)
    if hint is bool:
        return flag(value, name=name)
    if hint is int:
        return whole_number(value, name=name)
    if hint == tuple[str, ...]:
        return partitions_in(value or ())
    if hint == Mapping[str, str]:
        return as_texts(value, where=name)
    return value or None if hint == str | None else value


def refuse_unknown(what: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raises TypeError for given argument names that are not among the `known` names of `what`."""
    names = set(known)
    unknown = [name for name in given if name not in names and not name.startswith("_airflow_")]
    if not unknown:
        return
    meant = {name: nearest(name, names) for name in unknown}
    said = (f"{name!r}" + (f" (did you mean {meant[name]!r}?)" if meant[name] else "") for name in unknown)
    raise TypeError(f"{what} has no argument {', '.join(said)}")


def suggests_names(function: Callable[P, T]) -> Callable[P, T]:
    """Decorates a function of DAG files: an unknown argument raises the TypeError of refuse_unknown."""
    what = function.__qualname__.removesuffix(".__init__")

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        refuse_unknown(what, kwargs, names_of_arguments(function))
        return function(*args, **kwargs)

    return call


def names_of_arguments(function: Callable[..., Any]) -> list[str]:
    """Returns the names of a function's arguments, without `self`, `*args` and `**kwargs`."""
    variadic = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    found = inspect.signature(function).parameters.items()
    return [name for name, parameter in found if parameter.kind not in variadic and name != "self"]


@cache
def _names_of(cls: type[Any]) -> frozenset[str]:
    made = (vars(base).get("__init__") for base in cls.__mro__ if base is not object)
    return frozenset(name for init in made if init is not None for name in names_of_arguments(init))


def is_literal(*values: Any) -> bool:
    """Returns whether all values are literals: no templates, and no results of other tasks."""
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
    """Returns the entries of a dict that are literals. Returns any other value if it is a literal, else None."""
    if isinstance(given, Mapping):
        return {name: value for name, value in given.items() if is_literal(name, value)}
    return given if is_literal(given) else None


def check_literal_choice(name: str, value: Any, known: Iterable[str]) -> None:
    """Raises ConfigError for a literal that is not empty and not one of the known names."""
    if value and is_literal(value):
        check_choice(name, value, known)


def names_in(given: Sequence[str] | str) -> tuple[str, ...]:
    """Returns the names in a list, or in a text that separates them by commas or lines, without blanks at the ends."""
    items = given.replace("\n", ",").split(",") if isinstance(given, str) else given
    return tuple(name.strip() for name in items if name.strip())


def partitions_in(given: Sequence[str] | str) -> tuple[str, ...]:
    """Returns the paths in a list unchanged, or the names in a text. A path may be empty or have blanks at its ends."""
    return names_in(given) if isinstance(given, str) else tuple(given)


def flag(value: bool | str, *, name: str) -> bool:
    """Returns the boolean of an argument that is, or was rendered to, true or false. Raises ConfigError for others."""
    text = str(value).strip().lower()
    if text not in ("true", "false"):
        raise ConfigError(f"{name} is {value!r}", remedy="true or false")
    return text == "true"


def whole_number(value: int | str, *, name: str) -> int:
    """Returns the number of an argument that is, or was rendered to, a whole number. Raises ConfigError for others."""
    try:
        return int(value)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{name} is {value!r}", remedy="a whole number") from error


def as_texts(given: Mapping[str, Any] | None, *, where: str) -> dict[str, str]:
    """Returns the mapping with numbers and booleans as texts. Raises ConfigError, with `where`, for other values."""
    if not given:
        return {}
    if not isinstance(given, Mapping):
        raise ConfigError(f"{where} is a {type(given).__name__}", remedy="give a dict of names and values")
    found = {
        name: str(value).lower() if isinstance(value, bool) else str(value) if isinstance(value, int | float) else value
        for name, value in given.items()
    }
    check_texts(found, where=where)
    return found


def read_policies(policy: str | Mapping[str, Any]) -> TablePolicies:
    """Reads policies from a YAML file's path, or one policy. Raises ConfigError that names the file and the line."""
    if isinstance(policy, str):
        return policy_file.read_policies(policy)
    where = "the argument policy"
    try:
        text = json.dumps(policy)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"it holds what a file cannot: {error}", path=where, remedy="texts and numbers") from error
    return policy_file.parse_policies(text, path=where)


def tables_of(names: Sequence[str], policies: TablePolicies | None) -> list[str]:
    """Returns the given tables, or those of the policies, each once. Raises ConfigError if no table is named."""
    found = names or (() if policies is None else tuple(policies.tables))
    if not found:
        raise ConfigError("no table is named", remedy="set tables=, or name them in the policy file")
    return list(dict.fromkeys(found))
