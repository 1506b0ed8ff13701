"""What a restore came to, as `hudictl` prints it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hudi_core.services.restore.candidates import Restorable
from hudi_core.services.rollback.result import NOTHING, Removed


@dataclass(frozen=True, slots=True)
class RestoreResult:
    """`instant` is the restore's own, None in a dry run and when nothing had to go; `target` what the table went back
    to.

    `target` is None where a dry run names none and only lists.

    `reason` says why nothing had to go. `restorable`: in a dry run, every completed commit, and for those that cannot
    be restored why not.
    """

    instant: str | None
    target: str | None
    removed: Removed = NOTHING
    reason: str | None = None
    restorable: tuple[Restorable, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The document of `hudictl restore --json`."""
        document: dict[str, Any] = {
            "instant": self.instant,
            "target": self.target,
            "removed": self.removed.to_dict(),
            "reason": self.reason,
        }
        if self.restorable or self.target is None:
            document["restorable"] = [item.to_dict() for item in self.restorable]
        return document
