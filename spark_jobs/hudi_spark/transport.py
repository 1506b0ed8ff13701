"""How units, results and errors cross between the driver and Spark's tasks: as JSON, whole and typed.

Runs on both sides, and imports neither Spark nor Arrow.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from hudi_core import errors
from hudi_core.engine.protocol import Json
from hudi_core.errors import ExecutionError, HudiError
from hudi_core.errors import is_transient as is_transient

_MARKER = "HUDI_TASK_ERROR"
_MARKED = re.compile(rf"{_MARKER} (\{{.*\}})")


class TaskFailure(Exception):
    """Raised out of a Spark task so that Spark runs it again; its text carries the typed error for the driver."""

    def __init__(self, error: HudiError) -> None:
        super().__init__(f"{_MARKER} {json.dumps(error_to_json(error))}")


@dataclass(frozen=True, slots=True)
class PackedUnits:
    """The units of one run. Every task receives all of them, so what they share is held once and each is compressed."""

    shared: bytes
    own: tuple[bytes, ...]

    def unit(self, index: int) -> Json:
        """The unit at `index`, as it was packed."""
        unit: Json = json.loads(zlib.decompress(self.shared))
        unit.update(json.loads(zlib.decompress(self.own[index])))
        return unit


def pack_units(units: Sequence[Json]) -> PackedUnits:
    """Packs JSON objects; the keys that all units hold with one value (table, schema, timeline) are stored once."""
    first = units[0]
    shared = {key: value for key, value in first.items() if all(key in unit and unit[key] == value for unit in units)}
    own = [{key: value for key, value in unit.items() if key not in shared} for unit in units]
    return PackedUnits(_deflate(shared), tuple(_deflate(unit) for unit in own))


def error_to_json(error: HudiError) -> Json:
    """`{"type", "message", "path", "remedy"}`: an error as hudictl and the job report it."""
    return {"type": type(error).__name__, "message": error.message, "path": error.path, "remedy": error.remedy}


def error_from_json(value: Json) -> HudiError:
    """The error that `error_to_json` described; an unknown type becomes ExecutionError."""
    kind = getattr(errors, str(value.get("type")), None)
    if not (isinstance(kind, type) and issubclass(kind, HudiError)):
        kind = ExecutionError
    return kind(str(value.get("message")), path=value.get("path"), remedy=value.get("remedy"))


def error_in_text(text: str) -> HudiError | None:
    """The error that a TaskFailure put into a Spark failure's text; None when there is none or Spark cut it off."""
    match = _MARKED.search(text)
    if match is None:
        return None
    try:
        value = json.loads(match.group(1))
    except json.JSONDecodeError:
        return None
    return error_from_json(value)


def _deflate(value: Json) -> bytes:
    return zlib.compress(json.dumps(value).encode(), level=1)
