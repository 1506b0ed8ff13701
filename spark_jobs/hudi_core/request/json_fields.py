"""Reads fields of untrusted JSON objects with their types checked."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, Final, get_type_hints

from hudi_core.errors import ConfigError


def parse_object(text: str | bytes, *, what: str) -> dict[str, Any]:
    """The JSON object in `text`; raises ConfigError, naming `what`, for anything else."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"{what} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ConfigError(f"{what} is not a JSON object")
    return value


def read_fields(cls: type, value: Mapping[str, Any], *, what: str) -> dict[str, Any]:
    """The arguments of the dataclass `cls` that `value` holds, each of its field's type.

    A field with a default may be absent, and null where it is text or optional. Raises ConfigError, naming `what`.
    """
    hints = get_type_hints(cls)
    found: dict[str, Any] = {}
    for item in fields(cls):
        form = _FORMS[hints[item.name]]
        is_absent = item.name not in value or (value[item.name] is None and form.may_be_null)
        if is_absent and (item.default is not MISSING or item.default_factory is not MISSING):
            continue
        given = value.get(item.name)
        if not form.accepts(given):
            raise ConfigError(f"{what}: {item.name} must be {form.name}")
        found[item.name] = tuple(given) if isinstance(given, list) else given
    return found


@dataclass(frozen=True, slots=True)
class _Form:
    name: str
    accepts: Callable[[Any], bool]
    may_be_null: bool = False


def _is_text(given: Any) -> bool:
    return isinstance(given, str)


def _is_number(given: Any) -> bool:
    return isinstance(given, int) and not isinstance(given, bool)


_FORMS: Final[Mapping[Any, _Form]] = {
    str: _Form("text", _is_text, may_be_null=True),
    str | None: _Form("text", _is_text, may_be_null=True),
    bool: _Form("true or false", lambda given: isinstance(given, bool)),
    int: _Form("a whole number", _is_number),
    int | None: _Form("a whole number", _is_number, may_be_null=True),
    Mapping[str, str]: _Form(
        "an object of texts", lambda given: isinstance(given, dict) and all(map(_is_text, given.values()))
    ),
    tuple[str, ...]: _Form("a list of texts", lambda given: isinstance(given, list) and all(map(_is_text, given))),
}
"""The types that fields of requests have."""
