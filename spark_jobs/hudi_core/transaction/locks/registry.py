"""Which lock a table has: Hudi's own options decide, and the file-system lock is taken where they name none.

There is an allow-list of Hudi's class names; no class is ever loaded.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, cast

from hudi_core.codec.hashing import xxh64
from hudi_core.config.lock_config import (
    DYNAMODB_PARTITION_KEY,
    PROVIDER,
    UNCONFIGURED,
    ZOOKEEPER_BASE_PATH,
    ZOOKEEPER_LOCK_KEY,
    DynamodbConfig,
    LeaseConfig,
    LockConfig,
    ZookeeperConfig,
    required,
    writers_base_path,
)
from hudi_core.config.table_config import TableConfig
from hudi_core.config.transaction_config import HeartbeatConfig
from hudi_core.errors import ConfigError, UnsupportedError
from hudi_core.storage.base import Storage
from hudi_core.storage.registry import open_storage
from hudi_core.transaction.locks.base import TableLock
from hudi_core.transaction.locks.filesystem import BREAKS, FileSystemLock
from hudi_core.transaction.locks.storage_lease import StorageLease
from hudi_core.transaction.locks.unlocked_writers import check_alone, read_signs
from hudi_core.transaction.owner import Owner

_CLIENT = "org.apache.hudi.client.transaction.lock."
_AWS = "org.apache.hudi.aws.transaction.lock."
_HASH_SEED = 0xFFFFFFFFDABADABA
_IMPLICIT_KEY = "lock_key"
_SETTLE_MS = 100
_MAX_WARNED = 1000
_BREAKS_OUTSIDE = ".airflow_hudi/locks"

log = logging.getLogger(__name__)
_warned: set[tuple[str, frozenset[str]]] = set()


@dataclass(frozen=True, slots=True)
class _Request:
    """What a lock is made from."""

    storage: Storage
    config: TableConfig
    options: Mapping[str, str]
    owner: Owner
    storage_options: Mapping[str, str]


def table_lock(
    storage: Storage,
    config: TableConfig,
    options: Mapping[str, str],
    owner: Owner,
    *,
    storage_options: Mapping[str, str] | None = None,
) -> TableLock:
    """The lock that all writers of the table share, not taken yet. `hoodie.write.lock.provider` names it. Without it,
    and for Hudi's in-process lock, our processes exclude each other by the file-system lock; when another writer may be
    alive that is logged, or refused (airflow_hudi.lock.unconfigured; always for the in-process lock). Raises
    ConfigError for options that do not fit, UnsupportedError for a provider that this release does not have, and
    LockError for a refusal.
    """
    request = _Request(storage, config, options, owner, storage_options or {})
    provider = PROVIDER.read(options)
    if provider is None:
        return _default(request, cast('Literal["warn", "refuse"]', UNCONFIGURED.read(options)))
    make = _PROVIDERS.get(provider)
    if make is None:
        known = ", ".join(sorted(_PROVIDERS))
        raise UnsupportedError(
            f"{PROVIDER.name} is {provider!r}, which this release does not have",
            path=storage.uri,
            remedy=f"let all writers of the table use one of {known}",
        )
    return make(request)


def implicit_key(options: Mapping[str, str], uri: str) -> str:
    """The lock's name by the table's address: 16 hexadecimal digits (HashID.generateXXHashAsString)."""
    return f"{xxh64(writers_base_path(options, uri).encode(), _HASH_SEED):016X}"


def _default(request: _Request, mode: Literal["warn", "refuse"]) -> TableLock:
    signs = read_signs(request.storage, request.config, request.options)
    warning = check_alone(signs, mode, request.storage.uri)
    seen = (request.storage.uri, frozenset(signs.heartbeats) | frozenset(signs.inflight))
    if warning is not None and seen not in _warned:
        if len(_warned) >= _MAX_WARNED:
            _warned.clear()
        _warned.add(seen)
        log.warning(warning)
    return _file_system(request, settle_ms=0, heartbeat=HeartbeatConfig.of(request.options))


def _file_system(request: _Request, settle_ms: int = _SETTLE_MS, heartbeat: HeartbeatConfig | None = None) -> TableLock:
    lock = LockConfig.of(request.options, request.storage.uri)
    storage = request.storage if lock.outside is None else open_storage(lock.outside, request.storage_options)
    if not storage.supports_exclusive_create:
        raise ConfigError(
            f"{storage.uri} cannot create a file exclusively, so it cannot carry a lock file",
            path=lock.path,
            remedy="use another lock provider",
        )
    breaks = BREAKS if lock.outside is None else _BREAKS_OUTSIDE
    return FileSystemLock(
        storage,
        request.owner,
        path=lock.path,
        breaks=breaks,
        expire_minutes=lock.expire_minutes,
        wait_ms=lock.wait_ms,
        settle_ms=settle_ms,
        heartbeat=heartbeat,
    )


def _storage_lease(request: _Request) -> TableLock:
    lease = LeaseConfig.of(request.options)
    return StorageLease(
        request.storage,
        request.owner,
        validity_seconds=lease.validity_seconds,
        renew_seconds=lease.renew_seconds,
        wait_ms=lease.wait_ms,
    )


def _zookeeper(request: _Request) -> TableLock:
    base_path = required(ZOOKEEPER_BASE_PATH, request.options)
    return _zookeeper_at(request, base_path, ZOOKEEPER_LOCK_KEY.read(request.options) or request.config.name)


def _zookeeper_implicit(request: _Request) -> TableLock:
    return _zookeeper_at(request, f"/tmp/{implicit_key(request.options, request.storage.uri)}", _IMPLICIT_KEY)


def _zookeeper_at(request: _Request, base_path: str, key: str) -> TableLock:
    config = ZookeeperConfig.of(request.options, base_path, key)
    with _optional("zookeeper", "ZooKeeper"):
        from hudi_core.transaction.locks.zookeeper import ZookeeperLock  # here, since kazoo is optional
    return ZookeeperLock(config, request.owner)


def _dynamodb(request: _Request) -> TableLock:
    return _dynamodb_at(request, DYNAMODB_PARTITION_KEY.read(request.options) or request.config.name)


def _dynamodb_implicit(request: _Request) -> TableLock:
    return _dynamodb_at(request, implicit_key(request.options, request.storage.uri))


def _dynamodb_at(request: _Request, key: str) -> TableLock:
    config = DynamodbConfig.of(request.options, key)
    with _optional("dynamodb", "DynamoDB"):
        from hudi_core.transaction.locks.dynamodb import DynamodbLock  # here, since boto3 is optional
        from hudi_core.transaction.locks.dynamodb_table import dynamodb_client
    return DynamodbLock(dynamodb_client(config, request.storage_options), config, request.owner)


@contextmanager
def _optional(extra: str, name: str) -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise ConfigError(
            f"the lock is in {name}: {error}", remedy=f"pip install 'airflow-hudi[{extra}]' on the driver"
        ) from error


def _hive_metastore(request: _Request) -> TableLock:
    raise UnsupportedError(
        "the writers of this table lock it in a Hive metastore, which this release cannot do",
        path=request.storage.uri,
        remedy="let all writers of the table use ZooKeeper, DynamoDB or the storage lease",
    )


def _noop(request: _Request) -> TableLock:
    raise ConfigError(
        "NoopLockProvider locks nothing",
        path=request.storage.uri,
        remedy="name a real provider, or omit the option when no other process writes",
    )


# InProcessLockProvider excludes threads of one JVM only, so no other process may write while we do.
_PROVIDERS: Mapping[str, Callable[[_Request], TableLock]] = {
    f"{_CLIENT}FileSystemBasedLockProvider": _file_system,
    f"{_CLIENT}ZookeeperBasedLockProvider": _zookeeper,
    f"{_CLIENT}ZookeeperBasedImplicitBasePathLockProvider": _zookeeper_implicit,
    f"{_CLIENT}StorageBasedLockProvider": _storage_lease,
    f"{_CLIENT}InProcessLockProvider": lambda request: _default(request, "refuse"),
    f"{_CLIENT}NoopLockProvider": _noop,
    f"{_AWS}DynamoDBBasedLockProvider": _dynamodb,
    f"{_AWS}DynamoDBBasedImplicitPartitionKeyLockProvider": _dynamodb_implicit,
    "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider": _hive_metastore,
}
