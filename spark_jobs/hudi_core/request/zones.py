"""Time zones by name: of quiet hours, of the timeline, of expressions and of partition paths. Standard library only."""

from __future__ import annotations

from zoneinfo import ZoneInfo


def region(name: str) -> ZoneInfo | None:
    """The zone of the IANA database that has this name; None where there is none."""
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        # ZoneInfoNotFoundError is a KeyError; a name that is a path is a ValueError, one that is a folder an OSError.
        return None
