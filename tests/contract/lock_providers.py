"""Every lock provider behind one face: how to make its locks, and what Hudi's own writers leave when they hold them."""

from __future__ import annotations

import dataclasses
import functools
import json
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from kazoo.client import KazooClient

from hudi_core.config.concurrency_config import DynamodbConfig, HeartbeatConfig, ZookeeperConfig
from hudi_core.storage.base import Storage
from hudi_core.storage.registry import open_storage
from hudi_core.transaction.locks.base import TableLock
from hudi_core.transaction.locks.dynamodb import DynamodbLock, dynamodb_client
from hudi_core.transaction.locks.filesystem import LOCK_PATH, FileSystemLock
from hudi_core.transaction.locks.storage_lease import LEASE_PATH, StorageLease
from hudi_core.transaction.locks.zookeeper import ZookeeperLock
from hudi_core.transaction.owner import Owner

TABLE = "locks"
HUDI_NAME = "ip-10-0-0-1_0"


@dataclass(frozen=True)
class LockSpec:
    """One lock: `provider` and where it is (a table's address, ZooKeeper's host:port, DynamoDB's endpoint). Crosses to
    other processes.
    """

    provider: str
    address: str
    options: Mapping[str, str] = field(default_factory=dict, hash=False)
    key: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def storage(self) -> Storage:
        """The table's storage."""
        return _open(self.address, tuple(sorted(self.options.items())))

    def lock(
        self,
        who: str = "one",
        *,
        wait_ms: int = 20_000,
        lease_ms: int = 60_000,
        elsewhere: bool = False,
        storage: Storage | None = None,
    ) -> TableLock:
        """A lock of the owner `who`, on another machine if `elsewhere`; its holder may be silent for `lease_ms`."""
        owner = Owner.current(who)
        if elsewhere:
            owner = dataclasses.replace(owner, boot_id="of another machine")
        if self.provider == "filesystem":
            return FileSystemLock(storage or self.storage, owner, expire_minutes=lease_ms / 60_000, wait_ms=wait_ms)
        if self.provider == "default":
            beats = HeartbeatConfig(lease_ms // 10, 10)
            return FileSystemLock(storage or self.storage, owner, heartbeat=beats, wait_ms=wait_ms)
        if self.provider == "lease":
            seconds = lease_ms / 1000
            return StorageLease(
                storage or self.storage, owner, validity_seconds=seconds, renew_seconds=seconds / 10, wait_ms=wait_ms
            )
        if self.provider == "zookeeper":
            return ZookeeperLock(ZookeeperConfig(self.address, self._path, lease_ms, 15_000, wait_ms), owner)
        return DynamodbLock(self.dynamodb, self.dynamodb_config(wait_ms, lease_ms), owner)

    @property
    def dynamodb(self) -> Any:
        """A boto3 client."""
        return _dynamodb(self.address)

    def dynamodb_config(self, wait_ms: int = 1000, lease_ms: int = 60_000) -> DynamodbConfig:
        """Of this lock."""
        return DynamodbConfig(TABLE, self.key, None, self.address, wait_ms, lease_ms, None, 10_000)

    @property
    def _path(self) -> str:
        return f"/hudi/locks/{self.key}"

    @contextmanager
    def held_by_hudi(self) -> Iterator[None]:
        """A Hudi writer took the lock, even from another holder, and releases it at the end."""
        if self.provider in ("filesystem", "default"):
            self.storage.write(LOCK_PATH, b"")
            yield
            self.storage.delete(LOCK_PATH)
        elif self.provider == "lease":
            self.storage.write(LEASE_PATH, hudi_lease(expired=False))
            yield
            self.storage.write(LEASE_PATH, hudi_lease(expired=True))
        elif self.provider == "zookeeper":
            with self._hudi_node():
                yield
        else:
            self._put_hudi_item()
            yield
            self.dynamodb.delete_item(TableName=TABLE, Key={"key": {"S": self.key}})

    @contextmanager
    def _hudi_node(self) -> Iterator[None]:
        client = KazooClient(hosts=self.address)
        client.start()
        try:
            client.ensure_path(self._path)
            for name in client.get_children(self._path):
                client.delete(f"{self._path}/{name}")
            client.create(
                f"{self._path}/_c_{uuid.uuid4()}-lock-",
                f"application_id={HUDI_NAME}".encode(),
                ephemeral=True,
                sequence=True,
            )
            yield
        finally:
            client.stop()
            client.close()

    def _put_hudi_item(self) -> None:
        item = {
            "key": self.key,
            "ownerName": HUDI_NAME,
            "leaseDuration": "60000",
            "recordVersionNumber": str(uuid.uuid4()),
        }
        self.lock().holder()  # makes the table
        self.dynamodb.put_item(TableName=TABLE, Item={name: {"S": value} for name, value in item.items()})


def hudi_lease(*, expired: bool, valid_seconds: float = 300, owner: str = HUDI_NAME) -> bytes:
    """The object that StorageLockFile.toByteArray writes."""
    text = json.dumps(
        {"expired": expired, "validUntil": int((time.time() + valid_seconds) * 1000), "owner": owner},
        separators=(",", ":"),
    )
    return text.encode()


@functools.cache
def _open(address: str, options: tuple[tuple[str, str], ...]) -> Storage:
    return open_storage(address, dict(options))


@functools.cache
def _dynamodb(endpoint: str) -> Any:
    config = DynamodbConfig(TABLE, "", None, endpoint, 1000, 1000, None, 10_000)
    return dynamodb_client(config, {"key": "testing", "secret": "testing"})


def hold_until_killed(spec: LockSpec, lease_ms: int, elsewhere: bool, ready: Any) -> None:
    """Takes the lock in a process of its own, says so, and keeps it."""
    spec.lock("killed", lease_ms=lease_ms, elsewhere=elsewhere).acquire()
    ready.put(True)
    time.sleep(300)
