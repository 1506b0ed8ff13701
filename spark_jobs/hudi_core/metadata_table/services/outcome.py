"""What a run of one of the metadata table's own services did."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServiceOutcome:
    """The instants that were completed, or archived, oldest first; the files that were written or deleted, and the
    bytes written. Or why there was nothing to do.
    """

    instants: tuple[str, ...] = ()
    files: int = 0
    size: int = 0
    reason: str = ""
