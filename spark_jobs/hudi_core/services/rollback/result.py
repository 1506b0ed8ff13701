"""What a rollback came to, as `hudictl` prints it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Removed:
    """What went, or in a dry run would go: files with their sizes in bytes by path, and the requested times of
    instants.
    """

    files: Mapping[str, int] = field(default_factory=dict, hash=False)
    instants: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Counts of files and bytes, and the instants."""
        return {"files": len(self.files), "bytes": sum(self.files.values()), "instants": list(self.instants)}


NOTHING: Final = Removed()


@dataclass(frozen=True, slots=True)
class RollbackResult:
    """`instant` is the rollback's own, None in a dry run and where nothing but the timeline had to change; `target`
    what it rolled back.

    `reason` says why there was nothing to do; `target` is None then.
    """

    instant: str | None
    target: str | None
    removed: Removed = NOTHING
    reason: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The document of `hudictl rollback --json`."""
        return {
            "instant": self.instant,
            "target": self.target,
            "removed": self.removed.to_dict(),
            "reason": self.reason,
        }
