"""The table's lock as an item in DynamoDB, in the layout of AWS's lock client (AmazonDynamoDBLockClient).

    key  ownerName  leaseDuration (milliseconds, as text)  recordVersionNumber  [isReleased]  [data]

Every change draws a new record version number and names the old one as its condition. Nobody's clock is compared with
another's: a contender watches the number, and takes the lock over when it did not change for the holder's whole lease.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hudi_core.config.lock_config import DynamodbConfig
from hudi_core.errors import CorruptFileError
from hudi_core.transaction.heartbeat_thread import Renewal
from hudi_core.transaction.locks.base import LockHolder, PolledLock, lost
from hudi_core.transaction.locks.dynamodb_table import LockTable
from hudi_core.transaction.owner import Owner, drop_token, hold_token, is_left_behind

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


class DynamodbLock(PolledLock):
    """The lock named `config.key`. A thread renews it three times per lease, as DynamoDBBasedLockProviderBase does."""

    def __init__(self, client: Any, config: DynamodbConfig, owner: Owner) -> None:
        """`client` is a boto3 client of DynamoDB."""
        super().__init__(f"dynamodb:{config.table}/{config.key}", owner, config.wait_ms)
        self._table = LockTable(client, config, self.name)
        self._lease_ms = config.lease_ms
        self._mutex = threading.Lock()  # the renewing thread against release() and check()
        self._owner_name = ""
        self._version = ""
        self._alive_until = 0.0  # on the monotonic clock
        self._renewal: Renewal | None = None
        self._taken_away = False
        self._watched: tuple[str, float] | None = None  # a holder's version, and when it was seen first
        self._extra_seconds = 0.0
        self._seen: LockHolder | None = None

    def acquire(self) -> None:
        """TableLock.acquire; a holder's lease is added to the time to wait, since it must be watched for that long."""
        self._watched, self._extra_seconds = None, 0.0
        super().acquire()

    def _take(self) -> bool:
        self._seen, self._failure = None, None
        current = self._read()
        condition: tuple[str, str] | None = None
        if current is not None:
            if not current.released and not self._is_dead(current):
                self._seen = _holder_of(current)
                return False
            condition = ("recordVersionNumber", current.version)
        token = uuid.uuid4().hex
        name = f"{self._owner.describe()} {token}"[:_MAX_NAME]
        hold_token(token)
        taken = False
        try:
            taken = self._put(token, name, condition)
        finally:
            if not taken:
                drop_token(token)
        return taken

    def _put(self, token: str, name: str, condition: tuple[str, str] | None) -> bool:
        started, version = time.monotonic(), str(uuid.uuid4())
        ours = json.dumps({"token": token, "owner": self._owner.to_json(), "acquired": time.time()})
        item = {"ownerName": name, "leaseDuration": str(self._lease_ms), "recordVersionNumber": version, _OURS: ours}
        if not self._table.put(item, condition):
            current = self._read()
            if current is None or current.name != name:
                return False
            version = current.version  # our own request arrived although its answer was lost
        self._token, self._owner_name, self._version = token, name, version
        self._alive_until = started + self._lease_ms / 1000
        self._taken_away = False
        self._renewal = Renewal(
            self._renew, interval_seconds=self._lease_ms / 1000 / _RENEWALS_PER_LEASE, name=self.name
        )
        self._renewal.start()
        return True

    def _is_dead(self, item: _Item) -> bool:
        """Whether the holder may be succeeded: provably dead, or its version did not change during its whole lease."""
        if item.owner is not None and is_left_behind(item.owner, item.token):
            return True
        now = time.monotonic()
        if self._watched is None or self._watched[0] != item.version:
            self._watched = (item.version, now)
            if self._wait_seconds > 0:  # else it is one try
                self._extra_seconds = max(self._extra_seconds, item.lease_ms / 1000)
        return now - self._watched[1] > item.lease_ms / 1000

    def _patience(self) -> float:
        return self._extra_seconds

    def _blocker(self) -> LockHolder | None:
        return self._seen

    def _renew(self) -> bool:
        with self._mutex:
            started, version = time.monotonic(), str(uuid.uuid4())
            changed = self._table.update(
                {"leaseDuration": str(self._lease_ms), "recordVersionNumber": version}, self._mine()
            )
            if not changed:
                current = self._read()
                if current is None or current.name != self._owner_name or current.released:
                    self._taken_away = True
                    return False
                version = current.version  # an earlier renewal arrived although its answer was lost
            self._version, self._alive_until = version, started + self._lease_ms / 1000
            return True

    def _mine(self) -> dict[str, str]:
        return {"recordVersionNumber": self._version, "ownerName": self._owner_name}

    def check(self) -> None:
        """TableLock.check; costs one consistent read."""
        with self._mutex:
            if self._token is None:
                raise lost(self.name, self.holder())
            reason = ""
            if self._taken_away:
                reason = "another took it"
            elif time.monotonic() >= self._alive_until:
                reason = f"it was not renewed for {self._lease_ms / 1000:g} s"
            current = self._read()
            if reason or current is None or current.released or current.name != self._owner_name:
                raise lost(self.name, None if current is None or current.released else _holder_of(current), reason)

    def release(self) -> bool:
        """TableLock.release: deletes the item, as Hudi's writers do."""
        token, self._token = self._token, None
        if token is None:
            return False
        try:
            if self._renewal is not None:
                self._renewal.stop()
            with self._mutex:
                return not self._taken_away and self._delete()
        finally:
            self._renewal = None
            drop_token(token)  # also when DynamoDB failed: the next run of this process may then take the lock at once

    def _delete(self) -> bool:
        if self._table.delete(self._mine()):
            return True
        current = self._read()
        if current is None or current.name != self._owner_name:
            return current is None  # deleted: our own request arrived although its answer was lost
        self._version = current.version  # and here an earlier renewal did
        return self._table.delete(self._mine())

    def holder(self) -> LockHolder | None:
        """TableLock.holder."""
        current = self._read()
        return None if current is None or current.released else _holder_of(current)

    def _read(self) -> _Item | None:
        found = self._table.read()
        return None if found is None else _decode(found, self.name)

    def how_to_break(self, holder: LockHolder) -> str:
        """TableLock.how_to_break."""
        return (
            "a dead holder is succeeded automatically after its lease; if it is proven dead before that, "
            f"delete the item {self.name}"
        )


def _holder_of(item: _Item) -> LockHolder:
    since = time.time() if item.acquired is None else item.acquired
    return LockHolder(item.token, item.owner, since, f"a Hudi writer ({item.name})")


def _decode(found: Mapping[str, str], path: str) -> _Item:
    """An item of ours or of AWS's lock client; raises CorruptFileError."""
    name, lease, version = (
        found.get("ownerName", ""),
        found.get("leaseDuration", ""),
        found.get("recordVersionNumber", ""),
    )
    if not lease.isdigit() or not 0 < int(lease[:11]) <= _MAX_LEASE_MS or not version:
        raise CorruptFileError(
            "the item is no lock",
            path=path,
            remedy="find out which process wrote it; delete it when no writer of the table runs",
        )
    shown = "".join(char if char.isprintable() else "?" for char in name[:_MAX_NAME])
    owner, token, acquired = _ours(found.get(_OURS), path)
    return _Item(shown, int(lease), version, found.get("isReleased") is not None, owner, token or version, acquired)


def _ours(text: str | None, path: str) -> tuple[Owner | None, str, float | None]:
    if text is None:
        return None, "", None
    try:
        value: Any = json.loads(text)
    except ValueError:
        return None, "", None
    if (
        not isinstance(value, dict)
        or not isinstance(value.get("owner"), dict)
        or not isinstance(value.get("token"), str)
    ):
        return None, "", None
    acquired = value.get("acquired")
    return (
        Owner.from_json(value["owner"], path=path),
        value["token"],
        float(acquired) if isinstance(acquired, (int, float)) else None,
    )
