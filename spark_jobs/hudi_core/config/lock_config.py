"""Options of the table's lock, under Hudi's own names: the provider, what each needs, how long the lock is waited for,
and how long a lease is (HoodieLockConfig). How often a lock is tried: transaction/locks/base.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from hudi_core.config.keys import ConfigKey, keys_in, number, one_of, optional, read_fields, whole_number
from hudi_core.errors import ConfigError

_MAX = 2**53
_MAX_MS = 10**9
_MIN_LEASE_MS = 1000

PROVIDER = optional(
    "hoodie.write.lock.provider", "class name of Hudi's lock provider that all writers of the table use"
)
LOCK_WAIT_MS = number(
    "hoodie.write.lock.wait_time_ms",
    60_000,
    "milliseconds to wait for the table's lock; in DynamoDB also its lease",
    within=(0, _MAX_MS),
)
LOCK_PATH = optional(
    "hoodie.write.lock.filesystem.path", "folder of the lock file; the table's .hoodie folder when absent"
)
LOCK_EXPIRE_MINUTES = number(
    "hoodie.write.lock.filesystem.expire",
    0,
    "minutes after which a lock counts as abandoned; 0 is never",
    within=(0, 10**6),
)
UNCONFIGURED = ConfigKey(
    "airflow_hudi.lock.unconfigured",
    "warn",
    one_of("warn", "refuse"),
    "warn or refuse: what to do without a lock provider when another writer of the table may be alive",
)
FOREIGN_MINUTES = number(
    "airflow_hudi.lock.foreign_inflight_minutes",
    60,
    "minutes for which an inflight instant of another process is a sign that its writer is alive",
    within=(0, 10**6),
)
BASE_PATH = optional(
    "hoodie.base.path", "address of the table as its writers spell it, for lock providers that name the lock after it"
)

ZOOKEEPER_URL = optional(
    "hoodie.write.lock.zookeeper.url", "ZooKeeper servers: host:port,host:port, and a chroot after the last"
)
ZOOKEEPER_PORT = ConfigKey(
    "hoodie.write.lock.zookeeper.port",
    None,
    whole_number(1, 65_535),
    "Hudi does not read it: write the ports into the url",
)
ZOOKEEPER_BASE_PATH = optional("hoodie.write.lock.zookeeper.base_path", "path in ZooKeeper below which the locks are")
ZOOKEEPER_LOCK_KEY = optional(
    "hoodie.write.lock.zookeeper.lock_key", "name of the lock below that path; the table's name when absent"
)
ZOOKEEPER_SESSION_MS = number(
    "hoodie.write.lock.zookeeper.session_timeout_ms",
    60_000,
    "milliseconds after which a silent holder loses the lock",
    within=(100, _MAX_MS),
)
ZOOKEEPER_CONNECTION_MS = number(
    "hoodie.write.lock.zookeeper.connection_timeout_ms",
    15_000,
    "milliseconds to wait for a connection to ZooKeeper",
    within=(1, _MAX_MS),
)

LEASE_VALIDITY_SECONDS = number(
    "hoodie.write.lock.storage.validity.timeout.secs",
    300,
    "seconds for which a storage lease is valid unless it is renewed",
    within=(10, 10**6),
)
LEASE_RENEW_SECONDS = number(
    "hoodie.write.lock.storage.renew.interval.secs",
    30,
    "seconds between two renewals of a storage lease",
    within=(1, 10**6),
    aliases=("hoodie.write.lock.storage.heartbeat.poll.secs",),
)

DYNAMODB_TABLE = optional("hoodie.write.lock.dynamodb.table", "DynamoDB table that holds the locks")
DYNAMODB_PARTITION_KEY = optional(
    "hoodie.write.lock.dynamodb.partition_key", "key of this table's lock in it; the table's name when absent"
)
DYNAMODB_REGION = optional(
    "hoodie.write.lock.dynamodb.region", "AWS region of that table; AWS_REGION, else us-east-1, when absent"
)
DYNAMODB_ENDPOINT = optional("hoodie.write.lock.dynamodb.endpoint_url", "address of DynamoDB where it is not AWS's own")
DYNAMODB_BILLING = ConfigKey(
    "hoodie.write.lock.dynamodb.billing_mode",
    "PAY_PER_REQUEST",
    one_of("PAY_PER_REQUEST", "PROVISIONED"),
    "billing of the lock table, where it has to be created",
)
DYNAMODB_READ_CAPACITY = number(
    "hoodie.write.lock.dynamodb.read_capacity",
    20,
    "read capacity of a lock table that is created with PROVISIONED billing",
    within=(1, _MAX),
)
DYNAMODB_WRITE_CAPACITY = number(
    "hoodie.write.lock.dynamodb.write_capacity",
    10,
    "write capacity of a lock table that is created with PROVISIONED billing",
    within=(1, _MAX),
)
DYNAMODB_CREATION_MS = number(
    "hoodie.write.lock.dynamodb.table_creation_timeout",
    600_000,
    "milliseconds to wait until a lock table is created",
    within=(1, _MAX_MS),
)

LOCK_KEYS = keys_in(globals())

_S3A = re.compile(r"^s3a://", re.IGNORECASE)
_PORT = re.compile(r":\d+$")


@dataclass(frozen=True, slots=True)
class LockConfig:
    """The file-system lock; minutes (0: never) and milliseconds."""

    path: str
    """The lock file, relative to the table, or to `outside`."""
    expire_minutes: int
    wait_ms: int
    outside: str | None = None
    """The address of the folder that holds the lock file when that is not in the table."""

    @staticmethod
    def of(options: Mapping[str, str], uri: str = "") -> LockConfig:
        """Of the table at `uri`. A folder without a leading slash or a scheme is below it; for Hudi, below its working
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
        """The lock at `<base_path>/<lock_key>`; raises ConfigError for values that Curator or Hudi refuse or change."""
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
    """A storage lease; seconds, and milliseconds to wait."""

    validity_seconds: int = LEASE_VALIDITY_SECONDS.field()
    renew_seconds: int = LEASE_RENEW_SECONDS.field()
    wait_ms: int = LOCK_WAIT_MS.field()

    @staticmethod
    def of(options: Mapping[str, str]) -> LeaseConfig:
        """Raises ConfigError unless the lease outlives ten renewals, which is Hudi's rule (StorageBasedLockConfig)."""
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
    """A lock in DynamoDB: table, key, where it is, and how to create the table. Milliseconds."""

    table: str
    key: str
    region: str | None = DYNAMODB_REGION.field()
    endpoint_url: str | None = DYNAMODB_ENDPOINT.field()
    wait_ms: int = LOCK_WAIT_MS.field()
    lease_ms: int = LOCK_WAIT_MS.field()
    provisioned: tuple[int, int] | None = None
    """Read and write capacity; None is billing by request."""
    creation_ms: int = DYNAMODB_CREATION_MS.field()

    @staticmethod
    def of(options: Mapping[str, str], key: str) -> DynamodbConfig:
        """Reads the options; raises ConfigError without a table or with an empty key."""
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
    """The value of an option that has no default; raises ConfigError naming it."""
    value = key.read(options)
    if value is None:
        raise ConfigError(f"{key.name} is not set", remedy=f"{key.name}: {key.doc}; the same on all writers")
    return value


def writers_base_path(options: Mapping[str, str], uri: str) -> str:
    """The table's address in the names of locks: `hoodie.base.path`, else `uri`, with s3:// for s3a://
    (FSUtils.s3aToS3).
    """
    return _S3A.sub("s3://", BASE_PATH.read(options) or uri)
