"""JSON laid out as Jackson's default pretty printer does, which is how version 6 commit files look on disk."""

from __future__ import annotations

import json
from typing import Any, Final

from hudi_core.errors import CorruptFileError

_LEAST: Final = -(1 << 63)
_MOST: Final = (1 << 63) - 1
_REMEDY = "the file is damaged; restore it from a backup, or roll the instant back with Hudi's CLI"


def dump(value: Any) -> bytes:
    """The UTF-8 text of a JSON value: two spaces per level, `"key" : value`, `[ a, b ]` on one line."""
    return _render(value, 0).encode()


def _render(value: Any, depth: int) -> str:
    if isinstance(value, dict):
        if not value:
            return "{ }"
        pad = "  " * (depth + 1)
        members = (
            f"{pad}{json.dumps(str(key), ensure_ascii=False)} : {_render(item, depth + 1)}"
            for key, item in value.items()
        )
        return "{\n" + ",\n".join(members) + "\n" + "  " * depth + "}"
    if isinstance(value, list | tuple):
        return "[ " + ", ".join(_render(item, depth) for item in value) + " ]" if value else "[ ]"
    return json.dumps(value, ensure_ascii=False)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no number")  # as Jackson says, which refuses what Python reads


def load_object(data: bytes, *, path: str) -> dict[str, Any]:
    """Parses a JSON object; raises CorruptFileError naming `path` for anything else."""
    try:
        value = json.loads(data, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise CorruptFileError(f"not valid JSON: {error}", path=path, remedy=_REMEDY) from error
    if not isinstance(value, dict):
        raise CorruptFileError("not a JSON object", path=path, remedy=_REMEDY)
    return value


def member(raw: dict[str, Any], name: str, kind: type | tuple[type, ...], *, path: str, default: Any = None) -> Any:
    """The member `name` of `raw`, `default` when absent or null; raises CorruptFileError when it is not of `kind`."""
    value = raw.get(name)
    if value is None:
        return default
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
        raise CorruptFileError(f"{name!r} holds a {type(value).__name__}", path=path, remedy=_REMEDY)
    if kind is int and isinstance(value, int) and not _LEAST <= value <= _MOST:
        raise CorruptFileError(f"{name!r} holds a number that is no long", path=path, remedy=_REMEDY)
    return value
