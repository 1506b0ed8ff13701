"""How errors cross between Spark's tasks and the driver: as JSON, whole and typed.

Runs on both sides, and imports neither Spark nor Arrow.
"""

from __future__ import annotations

import json
import re

from hudi_core.errors import ExecutionError, HudiError
from hudi_core.request.outcome import error_from_json, error_to_json

_MARKER = "HUDI_TASK_ERROR"
_MARKED = re.compile(rf"{_MARKER} (\{{.*\}})")


class TaskFailure(Exception):
    """Raised out of a Spark task so that Spark runs it again; its text carries the typed error for the driver.

    An error that is not the engine's own is a defect, or the machine's state (disk full, out of memory).
    """

    def __init__(self, error: Exception) -> None:
        if not isinstance(error, HudiError):
            error = ExecutionError(f"{type(error).__name__}: {error}")
        super().__init__(f"{_MARKER} {json.dumps(error_to_json(error))}")


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
