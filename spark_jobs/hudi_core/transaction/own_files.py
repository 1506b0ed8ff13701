"""JSON files that our processes write for each other (claims, decisions, locks); what is not one is refused."""

from __future__ import annotations

import json
from typing import Any

from hudi_core.errors import CorruptFileError


def parse_own(data: bytes, what: str, *, path: str) -> dict[str, Any]:
    """The JSON object in `data`; raises CorruptFileError naming `path` when `what` is none."""
    try:
        value: Any = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise damaged(f"{what} is not JSON", path) from error
    if not isinstance(value, dict):
        raise damaged(f"{what} is not a JSON object", path)
    return value


def damaged(reason: str, path: str) -> CorruptFileError:
    """The error for a file that no process of ours wrote like this."""
    return CorruptFileError(
        reason,
        path=path,
        remedy="find out which process wrote it; delete it when no process of ours, and no writer of the table, runs",
    )
