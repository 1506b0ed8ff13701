from __future__ import annotations

import pytest

from hudi_core.config.concurrency_config import (
    LOCK_KEYS,
    DynamodbConfig,
    LeaseConfig,
    LockConfig,
    ZookeeperConfig,
    writers_base_path,
)
from hudi_core.config.options import KEYS
from hudi_core.errors import ConfigError

URL = {"hoodie.write.lock.zookeeper.url": "zk1:2181,zk2:2182/chroot"}
TABLE = {"hoodie.write.lock.dynamodb.table": "locks"}


def test_defaults_are_those_of_hudi() -> None:
    assert LockConfig.of({}) == LockConfig(".hoodie/lock", 0, 60_000)
    assert LeaseConfig.of({}) == LeaseConfig(300, 30, 60_000)
    assert ZookeeperConfig.of(URL, "/base", "key") == ZookeeperConfig(
        "zk1:2181,zk2:2182/chroot", "/base/key", 60_000, 15_000, 60_000
    )
    assert DynamodbConfig.of(TABLE, "key") == DynamodbConfig("locks", "key", None, None, 60_000, 60_000, None, 600_000)
    assert set(LOCK_KEYS) <= set(KEYS)


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        ("locks/", ("locks/lock", None)),
        ("s3://bucket/table/.hoodie/.aux", (".hoodie/.aux/lock", None)),
        ("s3://bucket/table/", ("lock", None)),
        ("s3://bucket/tables", ("lock", "s3://bucket/tables")),
        ("/locks", ("lock", "/locks")),
        ("file:/locks", ("lock", "file:/locks")),
    ],
)
def test_the_folder_of_a_lock_file_is_in_the_table_or_outside(folder: str, expected: tuple[str, str | None]) -> None:
    found = LockConfig.of(
        {
            "hoodie.write.lock.filesystem.path": folder,
            "hoodie.write.lock.filesystem.expire": "5",
            "hoodie.write.lock.wait_time_ms": "7",
        },
        "s3://bucket/table",
    )
    assert found == LockConfig(expected[0], 5, 7, expected[1])


def test_the_names_of_both_hudi_versions_are_read() -> None:
    for name in ("hoodie.write.lock.storage.renew.interval.secs", "hoodie.write.lock.storage.heartbeat.poll.secs"):
        assert LeaseConfig.of({name: "5"}).renew_seconds == 5
    assert LeaseConfig.of(
        {"hoodie.write.lock.storage.validity.timeout.secs": "10", "hoodie.write.lock.storage.renew.interval.secs": "1"}
    )
    with pytest.raises(ConfigError, match="ten times"):
        LeaseConfig.of({"hoodie.write.lock.storage.validity.timeout.secs": "299"})


@pytest.mark.parametrize(
    ("base", "key"),
    [("base", "key"), ("/base/", "key"), ("/base", ""), ("/base", "a//b"), ("/base/..", "key"), ("/b\n", "k")],
)
def test_what_is_no_path_in_zookeeper_is_refused(base: str, key: str) -> None:
    with pytest.raises(ConfigError, match="no path"):
        ZookeeperConfig.of(URL, base, key)


def test_a_port_that_hudi_would_not_use_is_refused() -> None:
    port = {"hoodie.write.lock.zookeeper.port": "2199"}
    with pytest.raises(ConfigError, match="2199"):
        ZookeeperConfig.of({"hoodie.write.lock.zookeeper.url": "zk1:2199,zk2"} | port, "/b", "k")
    assert ZookeeperConfig.of({"hoodie.write.lock.zookeeper.url": "zk1:2199"} | port, "/b", "k").url == "zk1:2199"
    assert (
        ZookeeperConfig.of(
            {"hoodie.write.lock.zookeeper.url": "zk1", "hoodie.write.lock.zookeeper.port": "2181"}, "/b", "k"
        ).url
        == "zk1"
    )


def test_dynamodb_options_are_read_and_checked() -> None:
    prefix = "hoodie.write.lock.dynamodb."
    options = TABLE | {
        f"{prefix}billing_mode": "provisioned",
        f"{prefix}read_capacity": "1",
        f"{prefix}endpoint_url": "db:8000",
        f"{prefix}region": "x",
    }
    found = DynamodbConfig.of(options | {"hoodie.write.lock.wait_time_ms": "5000"}, "key")
    assert (found.provisioned, found.endpoint_url, found.region, found.lease_ms) == (
        (1, 10),
        "https://db:8000",
        "x",
        5000,
    )
    assert (
        DynamodbConfig.of(TABLE | {f"{prefix}endpoint_url": "http://db:8000"}, "key").endpoint_url == "http://db:8000"
    )
    with pytest.raises(ConfigError, match="no key"):
        DynamodbConfig.of(TABLE, "")
    with pytest.raises(ConfigError, match="lease"):
        DynamodbConfig.of(TABLE | {"hoodie.write.lock.wait_time_ms": "999"}, "key")
    with pytest.raises(ConfigError, match="not set"):
        DynamodbConfig.of({}, "key")


def test_a_table_is_named_as_its_writers_spell_it() -> None:
    assert writers_base_path({}, "s3a://bucket/T") == writers_base_path({}, "S3A://bucket/T") == "s3://bucket/T"
    assert writers_base_path({"hoodie.base.path": "s3a://other"}, "/mnt/t") == "s3://other"
    assert writers_base_path({}, "/data/s3a://x") == "/data/s3a://x"
