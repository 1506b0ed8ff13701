"""Which lock a table has, by Hudi's own options and an allow-list of class names; no class is ever loaded.

Hudi runs without a lock provider when it considers itself the only writer, and only logs that. Even then our processes
exclude each other by the file-system lock; Hudi's writers use that lock only where they are configured for it. So this
module looks for signs of writers that take no lock; a sign is a warning, or the run is refused.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from typing import Literal, cast

from hudi_core.codec.hashing import xxh64
from hudi_core.config.concurrency_config import (
    CONCURRENCY_MODE,
    DYNAMODB_PARTITION_KEY,
    FOREIGN_MINUTES,
    PROVIDER,
    UNCONFIGURED,
    ZOOKEEPER_BASE_PATH,
    ZOOKEEPER_LOCK_KEY,
    DynamodbConfig,
    HeartbeatConfig,
    LeaseConfig,
    LockConfig,
    ZookeeperConfig,
    required,
    writers_base_path,
)
from hudi_core.config.table_config import TableConfig
from hudi_core.errors import ConfigError, LockError, StorageNotFoundError, UnsupportedError
from hudi_core.frozen import dataclass
from hudi_core.model.names import CLAIMS, is_released
from hudi_core.model.partition import join
from hudi_core.storage.base import Storage
from hudi_core.storage.overlapped import both
from hudi_core.storage.registry import open_storage
from hudi_core.timeline.instant import Action, State
from hudi_core.timeline.naming import naming_for
from hudi_core.transaction.locks.base import TableLock
from hudi_core.transaction.locks.filesystem import BREAKS, FileSystemLock
from hudi_core.transaction.locks.storage_lease import StorageLease
from hudi_core.transaction.owner import Owner
from hudi_core.transaction.writer_heartbeats import read_heartbeats

_SHOWN = 3
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
class WriterSigns:
    """Signs of another writer, ages in seconds. An instant with claims is ours, unless its last owner released it."""

    heartbeats: Mapping[str, float]
    """The instants whose heartbeat is fresh, with its age."""
    inflight: Mapping[str, float]
    """The instants that became inflight lately, with the time since then."""
    concurrency_mode: str | None
    """`hoodie.write.concurrency.mode` where options or table properties set it."""

    def describe(self) -> tuple[str, ...]:
        words = [
            f"{instant} has a heartbeat {age:.0f} s old" for instant, age in sorted(self.heartbeats.items())[:_SHOWN]
        ]
        inflight = sorted((instant, age) for instant, age in self.inflight.items() if instant not in self.heartbeats)
        words += [f"{instant} went inflight {age:.0f} s ago" for instant, age in inflight[:_SHOWN]]
        if self.concurrency_mode not in (None, "SINGLE_WRITER"):
            words.append(f"{CONCURRENCY_MODE.name} is {self.concurrency_mode}")
        return tuple(words)


def check_alone(signs: WriterSigns, mode: Literal["warn", "refuse"], uri: str) -> str | None:
    """Returns the warning about another writer, or None. Raises LockError for a sign when `mode` is "refuse"."""
    words = signs.describe()
    if not words:
        return None
    message = f"no lock provider is configured, and another writer may be alive: {'; '.join(words)}"
    remedy = (
        f"set {PROVIDER.name} and its options to what all writers of the table use; when none is alive, run again later"
    )
    if mode == "refuse":
        raise LockError(message, path=uri, remedy=remedy)
    return f"{uri}: {message} ({remedy})"


def read_signs(
    storage: Storage,
    config: TableConfig,
    options: Mapping[str, str],
    *,
    claimed: str = "",
    now: Callable[[], float] = time.time,
) -> WriterSigns:
    """Reads other writers' signs by two listings and one per instant; `claimed` is no sign, `now` is in seconds."""
    beats, young = both(
        storage,
        partial(read_heartbeats, storage, HeartbeatConfig.of(options), now=now),
        partial(_young_inflight, storage, config, FOREIGN_MINUTES.read(options) * 60, now(), claimed),
    )
    fresh = {instant: beats.age(instant) or 0.0 for instant in beats.live() if instant != claimed}
    instants = fresh.keys() | young.keys()
    claims = {instant: [info.name for info in storage.list_files(f"{CLAIMS}/{instant}")] for instant in instants}
    ours = {instant for instant, names in claims.items() if names}
    is_set = CONCURRENCY_MODE.is_set(options)
    mode = CONCURRENCY_MODE.read(options if is_set else config.raw, path=None if is_set else config.path)
    beating = {instant: age for instant, age in fresh.items() if instant not in ours or is_released(claims[instant])}
    return WriterSigns(beating, {instant: age for instant, age in young.items() if instant not in ours}, mode)


def _young_inflight(storage: Storage, config: TableConfig, limit: float, now: float, claimed: str) -> dict[str, float]:
    """Returns the ages of inflight instants up to `limit`, but `claimed` and rollbacks: a restore's stay inflight."""
    naming = naming_for(config.layout_version)
    ages: dict[str, float] = {}
    for instant in naming.instants(storage.list_names(config.timeline_folder)):
        if instant.state is not State.INFLIGHT or instant.action == Action.ROLLBACK:
            continue
        if instant.requested_time == claimed:
            continue
        name = naming.file_name(instant.requested_time, instant.action, State.INFLIGHT)
        try:
            age = max(0.0, now - storage.stat(join(config.timeline_folder, name)).modified)
        except StorageNotFoundError:
            age = 0.0  # it moved on since the folder was listed
        if age <= limit:
            ages[instant.requested_time] = age
    return ages


def table_lock(
    storage: Storage,
    config: TableConfig,
    options: Mapping[str, str],
    owner: Owner,
    *,
    storage_options: Mapping[str, str] | None = None,
    instant: str = "",
) -> TableLock:
    """Returns the lock that all writers of the table share, not taken yet. `owner` has claimed `instant`. Where a
    writer that takes no lock may be alive, `with` logs a warning or raises LockError (airflow_hudi.lock.unconfigured;
    always for Hudi's in-process lock). Raises ConfigError for wrong options, UnsupportedError for an unknown provider.
    """
    make = _PROVIDERS.get(provider := PROVIDER.read(options))
    if make is None:
        known = ", ".join(sorted(name for name in _PROVIDERS if name is not None))
        message = f"{PROVIDER.name} is {provider!r}, which this release does not have"
        raise UnsupportedError(message, path=storage.uri, remedy=f"let all writers of the table use one of {known}")
    return make(_Locks(storage, config, options, owner, storage_options or {}, instant))


def implicit_key(options: Mapping[str, str], uri: str) -> str:
    """Returns the lock's name by the table's address: 16 hexadecimal digits (HashID.generateXXHashAsString)."""
    return f"{xxh64(writers_base_path(options, uri).encode(), _HASH_SEED):016X}"


@dataclass(frozen=True, slots=True)
class _Locks:
    """Makes the lock of a table, for any provider."""

    storage: Storage
    config: TableConfig
    options: Mapping[str, str]
    owner: Owner
    storage_options: Mapping[str, str]
    instant: str

    def unconfigured(self) -> TableLock:
        return self._beside_writers(cast('Literal["warn", "refuse"]', UNCONFIGURED.read(self.options)))

    def in_process(self) -> TableLock:
        """Returns the lock for InProcessLockProvider, which excludes threads of one JVM only: no other may write."""
        return self._beside_writers("refuse")

    def _beside_writers(self, mode: Literal["warn", "refuse"]) -> TableLock:
        lock = self.file_system(settle_ms=0, heartbeat=HeartbeatConfig.of(self.options))
        lock.check_alone = partial(self._check_alone, mode)
        return lock

    def _check_alone(self, mode: Literal["warn", "refuse"]) -> None:
        signs = read_signs(self.storage, self.config, self.options, claimed=self.instant)
        warning = check_alone(signs, mode, self.storage.uri)
        seen = (self.storage.uri, frozenset(signs.heartbeats) | frozenset(signs.inflight))
        if warning is not None and seen not in _warned:
            if len(_warned) >= _MAX_WARNED:
                _warned.clear()
            _warned.add(seen)
            log.warning(warning)

    def file_system(self, settle_ms: int = _SETTLE_MS, heartbeat: HeartbeatConfig | None = None) -> TableLock:
        lock = LockConfig.of(self.options, self.storage.uri)
        storage = self.storage if lock.outside is None else open_storage(lock.outside, self.storage_options)
        if not storage.supports_exclusive_create:
            message = f"{storage.uri} cannot create a file exclusively, so it cannot carry a lock file"
            raise ConfigError(message, path=lock.path, remedy="use another lock provider")
        return FileSystemLock(
            storage,
            self.owner,
            path=lock.path,
            breaks=BREAKS if lock.outside is None else _BREAKS_OUTSIDE,
            expire_minutes=lock.expire_minutes,
            wait_ms=lock.wait_ms,
            settle_ms=settle_ms,
            heartbeat=heartbeat,
        )

    def storage_lease(self) -> TableLock:
        return StorageLease(self.storage, self.owner, **asdict(LeaseConfig.of(self.options)))

    def zookeeper(self) -> TableLock:
        base_path = required(ZOOKEEPER_BASE_PATH, self.options)
        return self._zookeeper_at(base_path, ZOOKEEPER_LOCK_KEY.read(self.options) or self.config.name)

    def zookeeper_implicit(self) -> TableLock:
        return self._zookeeper_at(f"/tmp/{implicit_key(self.options, self.storage.uri)}", _IMPLICIT_KEY)

    def _zookeeper_at(self, base_path: str, key: str) -> TableLock:
        config = ZookeeperConfig.of(self.options, base_path, key)
        with _optional("zookeeper", "ZooKeeper"):
            from hudi_core.transaction.locks.zookeeper import ZookeeperLock  # here, since kazoo is optional
        return ZookeeperLock(config, self.owner)

    def dynamodb(self) -> TableLock:
        return self._dynamodb_at(DYNAMODB_PARTITION_KEY.read(self.options) or self.config.name)

    def dynamodb_implicit(self) -> TableLock:
        return self._dynamodb_at(implicit_key(self.options, self.storage.uri))

    def _dynamodb_at(self, key: str) -> TableLock:
        config = DynamodbConfig.of(self.options, key)
        with _optional("dynamodb", "DynamoDB"):
            from hudi_core.transaction.locks.dynamodb import DynamodbLock, dynamodb_client  # here: boto3 is optional
        return DynamodbLock(dynamodb_client(config, self.storage_options), config, self.owner)

    def hive_metastore(self) -> TableLock:
        message = "the writers of this table lock it in a Hive metastore, which this release cannot do"
        remedy = "let all writers of the table use ZooKeeper, DynamoDB or the storage lease"
        raise UnsupportedError(message, path=self.storage.uri, remedy=remedy)

    def noop(self) -> TableLock:
        message = "NoopLockProvider locks nothing"
        remedy = "name a real provider, or omit the option when no other process writes"
        raise ConfigError(message, path=self.storage.uri, remedy=remedy)


@contextmanager
def _optional(extra: str, name: str) -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise ConfigError(
            f"the lock is in {name}: {error}", remedy=f"pip install 'airflow-hudi-engine[{extra}]' on the driver"
        ) from error


_PROVIDERS: Mapping[str | None, Callable[[_Locks], TableLock]] = {
    None: _Locks.unconfigured,
    f"{_CLIENT}FileSystemBasedLockProvider": _Locks.file_system,
    f"{_CLIENT}ZookeeperBasedLockProvider": _Locks.zookeeper,
    f"{_CLIENT}ZookeeperBasedImplicitBasePathLockProvider": _Locks.zookeeper_implicit,
    f"{_CLIENT}StorageBasedLockProvider": _Locks.storage_lease,
    f"{_CLIENT}InProcessLockProvider": _Locks.in_process,
    f"{_CLIENT}NoopLockProvider": _Locks.noop,
    f"{_AWS}DynamoDBBasedLockProvider": _Locks.dynamodb,
    f"{_AWS}DynamoDBBasedImplicitPartitionKeyLockProvider": _Locks.dynamodb_implicit,
    "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider": _Locks.hive_metastore,
}
