"""The content of a claim file, as JSON; its name is model.claim_names'."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from hudi_core.errors import CorruptFileError
from hudi_core.transaction.owner import Owner

_VERSION: Final = 1
MAX_INTERVAL_MS: Final = 10**8
MAX_MISSES: Final = 1000
_REMEDY = "look who wrote it; delete it when nobody runs the instant"


@dataclass(frozen=True, slots=True)
class ClaimRecord:
    """What a claim file says. `interval_ms` is in milliseconds, `claimed` in seconds since the epoch by the storage's
    clock, 0 in a record that was not read from a file.
    """

    path: str
    epoch: int
    token: str
    owner: Owner
    interval_ms: int
    tolerable_misses: int
    claimed: float = 0.0

    @property
    def tolerance_seconds(self) -> float:
        """How old a heartbeat may be: interval times tolerable misses (HoodieHeartbeatClient.isHeartbeatExpired)."""
        return self.interval_ms * self.tolerable_misses / 1000

    def encode(self) -> bytes:
        """The file's content."""
        body = {
            "version": _VERSION,
            "token": self.token,
            "owner": self.owner.to_json(),
            "interval_ms": self.interval_ms,
            "tolerable_misses": self.tolerable_misses,
        }
        return json.dumps(body).encode()

    @staticmethod
    def decode(data: bytes, *, path: str, epoch: int, claimed: float) -> ClaimRecord:
        """The inverse of encode; raises CorruptFileError naming `path` for anything else."""
        try:
            value: Any = json.loads(data)
        except ValueError as error:
            raise CorruptFileError("the claim is not JSON", path=path, remedy=_REMEDY) from error
        if not isinstance(value, dict) or value.get("version") != _VERSION or not isinstance(value.get("owner"), dict):
            raise CorruptFileError("the claim has no owner or another version", path=path, remedy=_REMEDY)
        token, interval, misses = value.get("token"), value.get("interval_ms"), value.get("tolerable_misses")
        if (
            not (isinstance(token, str) and isinstance(interval, int) and isinstance(misses, int))
            or not 1 <= interval <= MAX_INTERVAL_MS
            or not 1 <= misses <= MAX_MISSES
        ):
            raise CorruptFileError("the claim's token or heartbeat interval is not one", path=path, remedy=_REMEDY)
        return ClaimRecord(path, epoch, token, Owner.from_json(value["owner"], path=path), interval, misses, claimed)
