"""Options of concurrent writing: clocks, heartbeats, conflicts, failed writes, and the table's lock: where it is, how
long a process waits for it, and how long a lease is valid (HoodieLockConfig). transaction/locks/base.py says how often
a lock is tried.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from typing import Final

from hudi_core.config.keys import ConfigKey, flag, keys_in, number, one_of, optional, read_fields, whole_number
from hudi_core.errors import ConfigError
from hudi_core.frozen import dataclass

_PACKAGE = "org.apache.hudi.client.transaction."


class Strategy(Enum):
    """How a commit finds conflicts with concurrent ones, by the simple name of Hudi's class. No class is loaded."""

    SIMPLE = "SimpleConcurrentFileWritesConflictResolutionStrategy"
    """The first to commit wins."""
    PREFER_WRITER = "PreferWriterConflictResolutionStrategy"
    """A service gives way to writers, also to writers that have not committed yet."""
    BUCKET = "BucketIndexConcurrentFileWritesConflictResolutionStrategy"
    """Like SIMPLE, for file groups that are buckets: two writers that create one bucket give it two file ids."""


def _strategy(value: str) -> Strategy:
    for strategy in Strategy:
        if value in (strategy.value, _PACKAGE + strategy.value):
            return strategy
    raise ValueError(f"none of {', '.join(strategy.value for strategy in Strategy)}")


MAX_SILENCE_MS: Final = 24 * 3600 * 1000
"""The longest silence of a run. After it, the run counts as dead, whatever its claim says: a day."""
HEARTBEAT_INTERVAL_MS = number("hoodie.client.heartbeat.interval_in_ms", 60_000, within=(1, MAX_SILENCE_MS))
HEARTBEAT_MISSES = number("hoodie.client.heartbeat.tolerable.misses", 2, within=(1, 1000))
CLOCK_SKEW_MS = number("hoodie.time.generator.max_expected_clock_skew_ms", 200, within=(0, 60_000))
CONCURRENCY_MODE = ConfigKey(
    "hoodie.write.concurrency.mode",
    None,
    one_of("SINGLE_WRITER", "OPTIMISTIC_CONCURRENCY_CONTROL", "NON_BLOCKING_CONCURRENCY_CONTROL"),
)
CONFLICT_STRATEGY = ConfigKey(
    "hoodie.write.lock.conflict.resolution.strategy",
    Strategy.SIMPLE,
    _strategy,
    aliases=("hoodie.write.conflict.resolution.strategy",),
)
FAILED_WRITES_POLICY = ConfigKey(
    "hoodie.cleaner.policy.failed.writes",
    "LAZY",
    one_of("EAGER", "LAZY", "NEVER"),
    aliases=("hoodie.clean.failed.writes.policy",),
)
SILENT_MINUTES = number("airflow_hudi.failed_writes.silent_minutes", 60, within=(0, 10**6))
EARLY_DETECTION = flag("hoodie.write.concurrency.early.conflict.detection.enable")
BLOCK_ON_REQUESTED = flag("hoodie.clustering.fail.on.pending.ingestion.during.conflict.resolution")
COMPACTION_YIELDS = flag("airflow_hudi.compaction.yields")
FILE_GROUP_LOCKS = flag("airflow_hudi.lock.file_groups")

TRANSACTION_KEYS = keys_in(globals())
"""The options above, of concurrent writers."""

ROLLBACK_USING_MARKERS = flag("hoodie.rollback.using.markers", default=True)
STALLED_MINUTES = number("airflow_hudi.doctor.stuck_minutes", 60, within=(0, 10**6))


@dataclass(frozen=True, slots=True)
class HeartbeatConfig:
    """The rhythm of a run's heartbeat: milliseconds between two beats, and how many may be missed."""

    interval_ms: int = HEARTBEAT_INTERVAL_MS.field()
    tolerable_misses: int = HEARTBEAT_MISSES.field()

    @staticmethod
    def of(options: Mapping[str, str]) -> HeartbeatConfig:
        """Reads the heartbeat options. Raises ConfigError for a silence of more than MAX_SILENCE_MS."""
        beat = read_fields(HeartbeatConfig, options)
        if beat.interval_ms * beat.tolerable_misses > MAX_SILENCE_MS:
            message = f"{HEARTBEAT_INTERVAL_MS.name} times {HEARTBEAT_MISSES.name} is more than a day"
            raise ConfigError(message, remedy=f"lower one of them: their product may be {MAX_SILENCE_MS}")
        return beat


_MAX = 2**53
_MAX_MS = 10**9
_MIN_LEASE_MS = 1000

PROVIDER = optional("hoodie.write.lock.provider")
LOCK_WAIT_MS = number("hoodie.write.lock.wait_time_ms", 60_000, within=(0, _MAX_MS))
LOCK_PATH = optional("hoodie.write.lock.filesystem.path")
LOCK_EXPIRE_MINUTES = number("hoodie.write.lock.filesystem.expire", 0, within=(0, 10**6))
UNCONFIGURED = ConfigKey("airflow_hudi.lock.unconfigured", "warn", one_of("warn", "refuse"))
FOREIGN_MINUTES = number("airflow_hudi.lock.foreign_inflight_minutes", 60, within=(0, 10**6))
BASE_PATH = optional("hoodie.base.path")

ZOOKEEPER_URL = optional("hoodie.write.lock.zookeeper.url")
ZOOKEEPER_PORT = ConfigKey("hoodie.write.lock.zookeeper.port", None, whole_number(1, 65_535))
ZOOKEEPER_BASE_PATH = optional("hoodie.write.lock.zookeeper.base_path")
ZOOKEEPER_LOCK_KEY = optional("hoodie.write.lock.zookeeper.lock_key")
ZOOKEEPER_SESSION_MS = number("hoodie.write.lock.zookeeper.session_timeout_ms", 60_000, within=(100, _MAX_MS))
ZOOKEEPER_CONNECTION_MS = number("hoodie.write.lock.zookeeper.connection_timeout_ms", 15_000, within=(1, _MAX_MS))

LEASE_VALIDITY_SECONDS = number("hoodie.write.lock.storage.validity.timeout.secs", 300, within=(10, 10**6))
LEASE_RENEW_SECONDS = number(
    "hoodie.write.lock.storage.renew.interval.secs",
    30,
    within=(1, 10**6),
    aliases=("hoodie.write.lock.storage.heartbeat.poll.secs",),
)

DYNAMODB_TABLE = optional("hoodie.write.lock.dynamodb.table")
DYNAMODB_PARTITION_KEY = optional("hoodie.write.lock.dynamodb.partition_key")
DYNAMODB_REGION = optional("hoodie.write.lock.dynamodb.region")
DYNAMODB_ENDPOINT = optional("hoodie.write.lock.dynamodb.endpoint_url")
DYNAMODB_BILLING = ConfigKey(
    "hoodie.write.lock.dynamodb.billing_mode", "PAY_PER_REQUEST", one_of("PAY_PER_REQUEST", "PROVISIONED")
)
DYNAMODB_READ_CAPACITY = number("hoodie.write.lock.dynamodb.read_capacity", 20, within=(1, _MAX))
DYNAMODB_WRITE_CAPACITY = number("hoodie.write.lock.dynamodb.write_capacity", 10, within=(1, _MAX))
DYNAMODB_CREATION_MS = number("hoodie.write.lock.dynamodb.table_creation_timeout", 600_000, within=(1, _MAX_MS))

LOCK_KEYS = keys_in(globals(), but=(*TRANSACTION_KEYS, ROLLBACK_USING_MARKERS, STALLED_MINUTES))

_S3A = re.compile(r"^s3a://", re.IGNORECASE)
_PORT = re.compile(r":\d+$")


@dataclass(frozen=True, slots=True)
class LockConfig:
    """The file-system lock. Times are in minutes (0: never) and milliseconds."""

    path: str
    """The lock file, relative to the table, or to `outside`."""
    expire_minutes: int
    wait_ms: int
    outside: str | None = None
    """The address of the folder that holds the lock file when that is not in the table."""

    @staticmethod
    def of(options: Mapping[str, str], uri: str = "") -> LockConfig:
        """Reads the options for the table at `uri`. A relative folder is below the table; for Hudi, below its working
        directory.
        """
        folder = LOCK_PATH.read(options)
        expire, wait = LOCK_EXPIRE_MINUTES.read(options), LOCK_WAIT_MS.read(options)
        if folder is None:
            return LockConfig(".hoodie/lock", expire, wait)
        if not folder.startswith("/") and "://" not in folder and not folder.startswith("file:"):
            return LockConfig(f"{folder.strip('/')}/lock", expire, wait)
        table = uri.rstrip("/") + "/"
        if uri and folder.startswith(table):
            return LockConfig(f"{folder[len(table) :].strip('/')}/lock".lstrip("/"), expire, wait)
        return LockConfig("lock", expire, wait, folder)


@dataclass(frozen=True, slots=True)
class ZookeeperConfig:
    """A lock in ZooKeeper: the servers, the path of the lock, and milliseconds."""

    url: str
    path: str
    session_ms: int = ZOOKEEPER_SESSION_MS.field()
    connection_ms: int = ZOOKEEPER_CONNECTION_MS.field()
    wait_ms: int = LOCK_WAIT_MS.field()

    @staticmethod
    def of(options: Mapping[str, str], base_path: str, lock_key: str) -> ZookeeperConfig:
        """Returns the lock at `<base_path>/<lock_key>`. Raises ConfigError for values that Curator or Hudi refuse or
        change.
        """
        url = required(ZOOKEEPER_URL, options)
        port = ZOOKEEPER_PORT.read(options)
        hosts = url.partition("/")[0].split(",")
        if port not in (None, 2181) and not all(_PORT.search(host) for host in hosts):
            raise ConfigError(
                f"{ZOOKEEPER_PORT.name} is {port}, but Hudi connects to port 2181 of a host without one in "
                f"{ZOOKEEPER_URL.name}",
                remedy=f"write host:{port} into {ZOOKEEPER_URL.name}, on all writers",
            )
        path = f"{base_path}/{lock_key}"
        parts = path.split("/")
        if not path.startswith("/") or any(part in ("", ".", "..") for part in parts[1:]) or not path.isprintable():
            message = f"{path!r} is no path in ZooKeeper"
            remedy = f"{ZOOKEEPER_BASE_PATH.name} begins with / and ends without one; the key has no empty part"
            raise ConfigError(message, remedy=remedy)
        return read_fields(ZookeeperConfig, options, url=url, path=path)


@dataclass(frozen=True, slots=True)
class LeaseConfig:
    """A storage lease. Times are in seconds, the time to wait in milliseconds."""

    validity_seconds: int = LEASE_VALIDITY_SECONDS.field()
    renew_seconds: int = LEASE_RENEW_SECONDS.field()
    wait_ms: int = LOCK_WAIT_MS.field()

    @staticmethod
    def of(options: Mapping[str, str]) -> LeaseConfig:
        """Reads the options. Raises ConfigError unless the lease outlives ten renewals (StorageBasedLockConfig)."""
        lease = read_fields(LeaseConfig, options)
        if lease.validity_seconds < 10 * lease.renew_seconds:
            raise ConfigError(
                f"{LEASE_VALIDITY_SECONDS.name} is {lease.validity_seconds}, less than ten times "
                f"{LEASE_RENEW_SECONDS.name} ({lease.renew_seconds})",
                remedy=f"renew at least every {lease.validity_seconds // 10} s, or let the lease be valid for longer",
            )
        return lease


@dataclass(frozen=True, slots=True)
class DynamodbConfig:
    """A lock in DynamoDB: table, key, where it is, and how to create the table. Times are in milliseconds."""

    table: str
    key: str
    region: str | None = DYNAMODB_REGION.field()
    endpoint_url: str | None = DYNAMODB_ENDPOINT.field()
    wait_ms: int = LOCK_WAIT_MS.field()
    lease_ms: int = LOCK_WAIT_MS.field()
    provisioned: tuple[int, int] | None = None
    """Read and write capacity. None means billing by request."""
    creation_ms: int = DYNAMODB_CREATION_MS.field()

    @staticmethod
    def of(options: Mapping[str, str], key: str) -> DynamodbConfig:
        """Reads the options. Raises ConfigError without a table or with an empty key."""
        if not key:
            message = f"the lock has no key: the table has no name and {DYNAMODB_PARTITION_KEY.name} is not set"
            raise ConfigError(message, remedy="set this option to a name that all writers of the table use")
        endpoint = DYNAMODB_ENDPOINT.read(options)
        if endpoint is not None and not endpoint.startswith(("https://", "http://")):
            endpoint = f"https://{endpoint}"  # as DynamoDBBasedLockProviderBase reads it
        provisioned = None
        if DYNAMODB_BILLING.read(options) == "PROVISIONED":
            provisioned = DYNAMODB_READ_CAPACITY.read(options), DYNAMODB_WRITE_CAPACITY.read(options)
        wait = LOCK_WAIT_MS.read(options)
        if wait < _MIN_LEASE_MS:
            message = f"{LOCK_WAIT_MS.name} is {wait}; in DynamoDB it is also the lock's lease"
            raise ConfigError(message, remedy=f"give it {_MIN_LEASE_MS} ms at least")
        table = required(DYNAMODB_TABLE, options)
        return read_fields(
            DynamodbConfig, options, table=table, key=key, endpoint_url=endpoint, provisioned=provisioned
        )


def required(key: ConfigKey[str | None], options: Mapping[str, str]) -> str:
    """Returns the value of an option that has no default. Raises ConfigError naming an option that is not set."""
    value = key.read(options)
    if value is None:
        raise ConfigError(f"{key.name} is not set", remedy=f"{key.name}: {key.doc}; the same on all writers")
    return value


def writers_base_path(options: Mapping[str, str], uri: str) -> str:
    """Returns the table's address in the names of locks: `hoodie.base.path`, else `uri`, with s3:// for s3a://."""
    return _S3A.sub("s3://", BASE_PATH.read(options) or uri)
