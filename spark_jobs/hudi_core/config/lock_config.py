"""Options of the table's lock, under Hudi's own names: the provider, and what each provider needs.

As HoodieLockConfig and the classes beside it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from hudi_core.config.keys import ConfigKey, one_of, optional_text, whole_number
from hudi_core.errors import ConfigError

_MAX = 2**53
_MAX_MS = 10**9
_MIN_LEASE_MS = 1000

PROVIDER: ConfigKey[str | None] = ConfigKey(
    "hoodie.write.lock.provider",
    None,
    optional_text,
    "class name of Hudi's lock provider that all writers of the table use",
)
LOCK_WAIT_MS: ConfigKey[int] = ConfigKey(
    "hoodie.write.lock.wait_time_ms",
    60_000,
    whole_number(0, _MAX_MS),
    "milliseconds to wait for the table's lock; in DynamoDB also its lease",
)
LOCK_PATH: ConfigKey[str | None] = ConfigKey(
    "hoodie.write.lock.filesystem.path",
    None,
    optional_text,
    "folder of the lock file; the table's .hoodie folder when absent",
)
LOCK_EXPIRE_MINUTES: ConfigKey[int] = ConfigKey(
    "hoodie.write.lock.filesystem.expire",
    0,
    whole_number(0, 10**6),
    "minutes after which a lock counts as abandoned; 0 is never",
)
UNCONFIGURED: ConfigKey[str] = ConfigKey(
    "airflow_hudi.lock.unconfigured",
    "warn",
    one_of("warn", "refuse"),
    "warn or refuse: what to do without a lock provider when another writer of the table may be alive",
)
FOREIGN_MINUTES: ConfigKey[int] = ConfigKey(
    "airflow_hudi.lock.foreign_inflight_minutes",
    60,
    whole_number(0, 10**6),
    "minutes for which an inflight instant of another process is a sign that its writer is alive",
)
BASE_PATH: ConfigKey[str | None] = ConfigKey(
    "hoodie.base.path",
    None,
    optional_text,
    "address of the table as its writers spell it, for lock providers that name the lock after it",
)

ZOOKEEPER_URL: ConfigKey[str | None] = ConfigKey(
    "hoodie.write.lock.zookeeper.url",
    None,
    optional_text,
    "ZooKeeper servers: host:port,host:port, and a chroot after the last",
)
ZOOKEEPER_PORT: ConfigKey[int | None] = ConfigKey(
    "hoodie.write.lock.zookeeper.port",
    None,
    whole_number(1, 65_535),
    "Hudi does not read it: write the ports into the url",
)
ZOOKEEPER_BASE_PATH: ConfigKey[str | None] = ConfigKey(
    "hoodie.write.lock.zookeeper.base_path", None, optional_text, "path in ZooKeeper below which the locks are"
)
ZOOKEEPER_LOCK_KEY: ConfigKey[str | None] = ConfigKey(
    "hoodie.write.lock.zookeeper.lock_key",
    None,
    optional_text,
    "name of the lock below that path; the table's name when absent",
)
ZOOKEEPER_SESSION_MS: ConfigKey[int] = ConfigKey(
    "hoodie.write.lock.zookeeper.session_timeout_ms",
    60_000,
    whole_number(100, _MAX_MS),
    "milliseconds after which a silent holder loses the lock",
)
ZOOKEEPER_CONNECTION_MS: ConfigKey[int] = ConfigKey(
    "hoodie.write.lock.zookeeper.connection_timeout_ms",
    15_000,
    whole_number(1, _MAX_MS),
    "milliseconds to wait for a connection to ZooKeeper",
)

LEASE_VALIDITY_SECONDS: ConfigKey[int] = ConfigKey(
    "hoodie.write.lock.storage.validity.timeout.secs",
    300,
    whole_number(10, 10**6),
    "seconds for which a storage lease is valid unless it is renewed",
)
LEASE_RENEW_SECONDS: ConfigKey[int] = ConfigKey(
    "hoodie.write.lock.storage.renew.interval.secs",
    30,
    whole_number(1, 10**6),
    "seconds between two renewals of a storage lease",
    aliases=("hoodie.write.lock.storage.heartbeat.poll.secs",),
)

DYNAMODB_TABLE: ConfigKey[str | None] = ConfigKey(
    "hoodie.write.lock.dynamodb.table", None, optional_text, "DynamoDB table that holds the locks"
)
DYNAMODB_PARTITION_KEY: ConfigKey[str | None] = ConfigKey(
    "hoodie.write.lock.dynamodb.partition_key",
    None,
    optional_text,
    "key of this table's lock in it; the table's name when absent",
)
DYNAMODB_REGION: ConfigKey[str | None] = ConfigKey(
    "hoodie.write.lock.dynamodb.region",
    None,
    optional_text,
    "AWS region of that table; AWS_REGION, else us-east-1, when absent",
)
DYNAMODB_ENDPOINT: ConfigKey[str | None] = ConfigKey(
    "hoodie.write.lock.dynamodb.endpoint_url", None, optional_text, "address of DynamoDB where it is not AWS's own"
)
DYNAMODB_BILLING: ConfigKey[str] = ConfigKey(
    "hoodie.write.lock.dynamodb.billing_mode",
    "PAY_PER_REQUEST",
    one_of("PAY_PER_REQUEST", "PROVISIONED"),
    "billing of the lock table, where it has to be created",
)
DYNAMODB_READ_CAPACITY: ConfigKey[int] = ConfigKey(
    "hoodie.write.lock.dynamodb.read_capacity",
    20,
    whole_number(1, _MAX),
    "read capacity of a lock table that is created with PROVISIONED billing",
)
DYNAMODB_WRITE_CAPACITY: ConfigKey[int] = ConfigKey(
    "hoodie.write.lock.dynamodb.write_capacity",
    10,
    whole_number(1, _MAX),
    "write capacity of a lock table that is created with PROVISIONED billing",
)
DYNAMODB_CREATION_MS: ConfigKey[int] = ConfigKey(
    "hoodie.write.lock.dynamodb.table_creation_timeout",
    600_000,
    whole_number(1, _MAX_MS),
    "milliseconds to wait until a lock table is created",
)

LOCK_KEYS: tuple[ConfigKey[object], ...] = (
    PROVIDER,
    LOCK_WAIT_MS,
    LOCK_PATH,
    LOCK_EXPIRE_MINUTES,
    UNCONFIGURED,
    FOREIGN_MINUTES,
    BASE_PATH,
    ZOOKEEPER_URL,
    ZOOKEEPER_PORT,
    ZOOKEEPER_BASE_PATH,
    ZOOKEEPER_LOCK_KEY,
    ZOOKEEPER_SESSION_MS,
    ZOOKEEPER_CONNECTION_MS,
    LEASE_VALIDITY_SECONDS,
    LEASE_RENEW_SECONDS,
    DYNAMODB_TABLE,
    DYNAMODB_PARTITION_KEY,
    DYNAMODB_REGION,
    DYNAMODB_ENDPOINT,
    DYNAMODB_BILLING,
    DYNAMODB_READ_CAPACITY,
    DYNAMODB_WRITE_CAPACITY,
    DYNAMODB_CREATION_MS,
)

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
        """Reads the lock options of the table at `uri`.

        A folder without a leading slash or a scheme is taken below the table; Hudi takes it below the directory that
        its process runs in.
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
    session_ms: int
    connection_ms: int
    wait_ms: int

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
            raise ConfigError(
                f"{path!r} is no path in ZooKeeper",
                remedy=f"{ZOOKEEPER_BASE_PATH.name} begins with / and ends without one; the key has no empty part",
            )
        return ZookeeperConfig(
            url,
            path,
            ZOOKEEPER_SESSION_MS.read(options),
            ZOOKEEPER_CONNECTION_MS.read(options),
            LOCK_WAIT_MS.read(options),
        )


@dataclass(frozen=True, slots=True)
class LeaseConfig:
    """A storage lease; seconds, and milliseconds to wait."""

    validity_seconds: int
    renew_seconds: int
    wait_ms: int

    @staticmethod
    def of(options: Mapping[str, str]) -> LeaseConfig:
        """Reads the options.

        Raises ConfigError unless the lease outlives ten renewals, which is Hudi's rule (StorageBasedLockConfig).
        """
        validity, renew = LEASE_VALIDITY_SECONDS.read(options), LEASE_RENEW_SECONDS.read(options)
        if validity < 10 * renew:
            raise ConfigError(
                f"{LEASE_VALIDITY_SECONDS.name} is {validity}, less than ten times {LEASE_RENEW_SECONDS.name} "
                f"({renew})",
                remedy=f"renew at least every {validity // 10} s, or let the lease be valid for longer",
            )
        return LeaseConfig(validity, renew, LOCK_WAIT_MS.read(options))


@dataclass(frozen=True, slots=True)
class DynamodbConfig:
    """A lock in DynamoDB: table, key, where it is, and how to create the table. Milliseconds."""

    table: str
    key: str
    region: str | None
    endpoint_url: str | None
    wait_ms: int
    lease_ms: int
    provisioned: tuple[int, int] | None
    """Read and write capacity; None is billing by request."""
    creation_ms: int

    @staticmethod
    def of(options: Mapping[str, str], key: str) -> DynamodbConfig:
        """Reads the options; raises ConfigError without a table or with an empty key."""
        if not key:
            raise ConfigError(
                f"the lock has no key: the table has no name and {DYNAMODB_PARTITION_KEY.name} is not set"
            )
        endpoint = DYNAMODB_ENDPOINT.read(options)
        if endpoint is not None and not endpoint.startswith(("https://", "http://")):
            endpoint = f"https://{endpoint}"  # as DynamoDBBasedLockProviderBase reads it
        provisioned = DYNAMODB_BILLING.read(options) == "PROVISIONED"
        capacity = (
            (DYNAMODB_READ_CAPACITY.read(options), DYNAMODB_WRITE_CAPACITY.read(options)) if provisioned else None
        )
        wait = LOCK_WAIT_MS.read(options)
        if wait < _MIN_LEASE_MS:
            raise ConfigError(
                f"{LOCK_WAIT_MS.name} is {wait}; in DynamoDB it is also the lock's lease",
                remedy=f"give it {_MIN_LEASE_MS} ms at least",
            )
        return DynamodbConfig(
            required(DYNAMODB_TABLE, options),
            key,
            DYNAMODB_REGION.read(options),
            endpoint,
            wait,
            wait,
            capacity,
            DYNAMODB_CREATION_MS.read(options),
        )


def required(key: ConfigKey[str | None], options: Mapping[str, str]) -> str:
    """The value of an option that has no default; raises ConfigError naming it."""
    value = key.read(options)
    if value is None:
        raise ConfigError(f"{key.name} is not set", remedy=f"{key.name}: {key.doc}; the same on all writers")
    return value


def writers_base_path(options: Mapping[str, str], uri: str) -> str:
    """The table's address in the names of locks: `hoodie.base.path`, else `uri`, with s3:// for s3a://.

    As FSUtils.s3aToS3.
    """
    return _S3A.sub("s3://", BASE_PATH.read(options) or uri)
