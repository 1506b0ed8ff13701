"""Reads fields of untrusted JSON objects with their types checked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

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


def refuse_unknown(value: Mapping[str, Any], known: frozenset[str], *, what: str) -> None:
    """Raises ConfigError for unknown fields: they come from a newer release and would be ignored silently."""
    unknown = sorted(set(value) - known)
    if unknown:
        raise ConfigError(
            f"{what} has unknown fields: {', '.join(unknown)}", remedy="use the same release on both sides"
        )


def string(value: Mapping[str, Any], name: str, *, what: str) -> str:
    """A field that must be there, as text."""
    found = value.get(name)
    if not isinstance(found, str):
        raise ConfigError(f"{what}: {name} must be text")
    return found


def optional_string(value: Mapping[str, Any], name: str, *, what: str) -> str | None:
    """A field that may be null or absent, as text."""
    return None if value.get(name) is None else string(value, name, what=what)


def flag(value: Mapping[str, Any], name: str, *, what: str) -> bool:
    """A field that may be absent (false), as a truth value."""
    found = value.get(name, False)
    if not isinstance(found, bool):
        raise ConfigError(f"{what}: {name} must be true or false")
    return found


def number(value: Mapping[str, Any], name: str, *, what: str) -> int:
    """A field that must be there, as a whole number."""
    found = value.get(name)
    if not isinstance(found, int) or isinstance(found, bool):
        raise ConfigError(f"{what}: {name} must be a whole number")
    return found


def optional_number(value: Mapping[str, Any], name: str, *, what: str) -> int | None:
    """A field that may be null or absent, as a whole number."""
    return None if value.get(name) is None else number(value, name, what=what)


def real(value: Mapping[str, Any], name: str, *, what: str) -> float:
    """A field that must be there, as a number."""
    found = value.get(name)
    if not isinstance(found, (int, float)) or isinstance(found, bool):
        raise ConfigError(f"{what}: {name} must be a number")
    return float(found)


def text_map(value: Mapping[str, Any], name: str, *, what: str) -> dict[str, str]:
    """A field that may be absent (empty): an object of texts."""
    found = value.get(name, {})
    if not isinstance(found, dict) or not all(isinstance(item, str) for item in found.values()):
        raise ConfigError(f"{what}: {name} must be an object of texts")
    return dict(found)


def texts(value: Mapping[str, Any], name: str, *, what: str) -> tuple[str, ...]:
    """A field that may be absent (empty): a list of texts."""
    found = value.get(name, [])
    if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
        raise ConfigError(f"{what}: {name} must be a list of texts")
    return tuple(found)
