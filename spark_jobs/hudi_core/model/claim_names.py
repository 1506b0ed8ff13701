"""Names of the files by which a process claims an instant; their content is transaction.claim_file's.

Files below `.hoodie/.airflow_hudi/claims/<instant>/`, `<epoch>` having six digits or more:
- `<epoch>.json`, created exclusively: its owner. The highest epoch owns the instant.
- `<epoch>.heartbeat`, rewritten at the owner's interval: alive. Its modification time counts.
- `<epoch>.released`: the owner is done with it, whatever came of the run.
- `<epoch>.decision`: what the owner is about to complete, or that its successor closed the epoch.
- `dropped.plan`: the plan of an instant that is being unscheduled.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

CLAIMS: Final = ".hoodie/.airflow_hudi/claims"
HUDI_HEARTBEATS: Final = ".hoodie/.heartbeat"
"""Folder of the heartbeats of Hudi's writers, one file an instant (HoodieHeartbeatClient). Claims renew them, too."""
CLOCKS: Final = ".hoodie/.airflow_hudi/clock"
"""Folder in which files are made to learn the time of the storage. No folder of claims: these go with their instant."""
_EPOCH = r"(\d{6}|[1-9]\d{6,15})"
_CLAIM = re.compile(rf"{_EPOCH}\.json\Z", re.ASCII)
_NUMBER = re.compile(rf"{_EPOCH}\.(?:json|decision)\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class ClaimFolder:
    instant: str

    @property
    def path(self) -> str:
        return f"{CLAIMS}/{self.instant}"

    @property
    def hudi_heartbeat(self) -> str:
        return f"{HUDI_HEARTBEATS}/{self.instant}"

    @property
    def dropped_plan(self) -> str:
        return f"{self.path}/dropped.plan"

    def claim(self, epoch: int) -> str:
        return f"{self.path}/{epoch:06d}.json"

    def heartbeat(self, epoch: int) -> str:
        return f"{self.path}/{epoch:06d}.heartbeat"

    def released(self, epoch: int) -> str:
        return f"{self.path}/{epoch:06d}.released"

    def decision(self, epoch: int) -> str:
        return f"{self.path}/{epoch:06d}.decision"


def epochs_of(names: Iterable[str]) -> list[int]:
    """The epochs of the claims among the names of a claim folder's files, ascending."""
    return sorted(int(match[1]) for match in map(_CLAIM.match, names) if match is not None)


def last_number(names: Iterable[str]) -> int:
    """The highest number of a claim or decision among the names of a claim folder's files, 0 without one: a removal of
    claims that was cut off leaves a decision without its claim.
    """
    return max((int(match[1]) for match in map(_NUMBER.match, names) if match is not None), default=0)


def is_released(names: Iterable[str]) -> bool:
    """Whether the last owner released the instant, by the names of a claim folder's files. False without a claim."""
    names = set(names)
    epochs = epochs_of(names)
    return bool(epochs) and f"{epochs[-1]:06d}.released" in names
