"""The table's lock as an item in DynamoDB, in the layout of AWS's lock client (AmazonDynamoDBLockClient).

    key  ownerName  leaseDuration (milliseconds, as text)  recordVersionNumber  [isReleased]  [data]

Every change draws a new record version number and names the old one as its condition. Clocks are not compared: a
contender watches the number, and takes the lock over when it did not change for the holder's whole lease.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from hudi_core.config.lock_config import DynamodbConfig
from hudi_core.transaction.locks.base import LockHolder
from hudi_core.transaction.locks.dynamodb_table import LockTable
from hudi_core.transaction.locks.lease import LeasedLock
from hudi_core.transaction.own_files import damaged
from hudi_core.transaction.owner import Owner

_OURS = "airflowHudi"
_MAX_LEASE_MS = 10**9
_MAX_NAME = 1024
_RENEWALS_PER_LEASE = 3


@dataclass(frozen=True, slots=True)
class _Item:
    """The lock item. `version` is the record version number; `owner` is None unless one of our processes made it."""

    name: str
    lease_ms: int
    version: str
    released: bool
    owner: Owner | None
    token: str
    acquired: float | None


class DynamodbLock(LeasedLock[_Item]):
    """The lock named `config.key`. A thread renews it three times per lease, as DynamoDBBasedLockProviderBase does."""

    def __init__(self, client: Any, config: DynamodbConfig, owner: Owner) -> None:
        """`client` is a boto3 client of DynamoDB."""
        seconds = config.lease_ms / 1000
        super().__init__(
            f"dynamodb:{config.table}/{config.key}",
            owner,
            config.wait_ms,
            lease_seconds=seconds,
            renew_seconds=seconds / _RENEWALS_PER_LEASE,
        )
        self._table = LockTable(client, config, self.name)
        self._lease_text = str(config.lease_ms)
        self._owner_name = ""
        self._version = ""
        self._watched: tuple[str, float] | None = None  # a holder's version, and when it was seen first
        self._extra_seconds = 0.0

    def acquire(self) -> None:
        """TableLock.acquire; a holder's lease is added to the time to wait, since it must be watched for that long."""
        self._watched, self._extra_seconds = None, 0.0
        super().acquire()

    def _write_first(self, token: str, current: _Item | None) -> bool:
        started, version = time.monotonic(), str(uuid.uuid4())
        name = f"{self._owner.describe()} {token}"[:_MAX_NAME]
        ours = json.dumps({"token": token, "owner": self._owner.to_json(), "acquired": time.time()})
        item = {"ownerName": name, "leaseDuration": self._lease_text, "recordVersionNumber": version, _OURS: ours}
        if not self._table.put(item, None if current is None else {"recordVersionNumber": current.version}):
            found = self._read()
            if found is None or found.name != name:
                return False
            version = found.version  # our own request arrived although its answer was lost
        self._owner_name, self._version = name, version
        self._alive_until = started + self._lease_seconds
        return True

    def _is_held(self, current: _Item) -> bool:
        """False when its holder is provably dead, or did not change the version during its whole lease."""
        if not super()._is_held(current):
            return False
        now, lease = time.monotonic(), current.lease_ms / 1000
        if self._watched is None or self._watched[0] != current.version:
            self._watched = (current.version, now)
            if self._wait_seconds > 0:  # else it is one try
                self._extra_seconds = max(self._extra_seconds, lease)
        return now - self._watched[1] <= lease

    def _patience(self) -> float:
        return self._extra_seconds

    def _extend(self) -> bool:
        started, version = time.monotonic(), str(uuid.uuid4())
        if not self._table.update(
            {"leaseDuration": self._lease_text, "recordVersionNumber": version}, self._expected()
        ):
            current = self._read()
            if current is None or not self._is_ours(current):
                self._taken_away = True
                return False
            version = current.version  # an earlier renewal arrived although its answer was lost
        self._version, self._alive_until = version, started + self._lease_seconds
        return True

    def _expected(self) -> dict[str, str]:
        return {"recordVersionNumber": self._version, "ownerName": self._owner_name}

    def _is_ours(self, current: _Item) -> bool:
        return current.name == self._owner_name and not current.released

    def _give_back(self) -> bool:
        """Deletes the item, as Hudi's writers do."""
        if self._table.delete(self._expected()):
            return True
        current = self._read()
        if current is None or current.name != self._owner_name:
            return current is None  # deleted: our own request arrived although its answer was lost
        self._version = current.version  # and here an earlier renewal did
        return self._table.delete(self._expected())

    def _holder_of(self, current: _Item) -> LockHolder:
        since = time.time() if current.acquired is None else current.acquired
        return LockHolder(current.token, current.owner, since, f"a Hudi writer ({current.name})")

    def _read(self) -> _Item | None:
        found = self._table.read()
        return None if found is None else _decode(found, self.name)

    def how_to_break(self, holder: LockHolder) -> str:
        """TableLock.how_to_break."""
        return (
            "a dead holder is succeeded automatically after its lease; if it is proven dead before that, "
            f"delete the item {self.name}"
        )


def _decode(found: Mapping[str, str], path: str) -> _Item:
    """An item of ours or of AWS's lock client; raises CorruptFileError."""
    name, lease, version = (found.get(key, "") for key in ("ownerName", "leaseDuration", "recordVersionNumber"))
    if not lease.isdigit() or not 0 < int(lease[:11]) <= _MAX_LEASE_MS or not version:
        raise damaged("the item is no lock", path)
    shown = "".join(char if char.isprintable() else "?" for char in name[:_MAX_NAME])
    owner, token, acquired = _ours(found.get(_OURS), path)
    return _Item(shown, int(lease), version, found.get("isReleased") is not None, owner, token or version, acquired)


def _ours(text: str | None, path: str) -> tuple[Owner | None, str, float | None]:
    value: Any = None
    with suppress(ValueError, RecursionError):
        value = json.loads(text or "null")
    found = value if isinstance(value, dict) else {}
    owner, token, acquired = found.get("owner"), found.get("token"), found.get("acquired")
    if not isinstance(owner, dict) or not isinstance(token, str):
        return None, "", None
    return Owner.from_json(owner, path=path), token, float(acquired) if isinstance(acquired, (int, float)) else None
