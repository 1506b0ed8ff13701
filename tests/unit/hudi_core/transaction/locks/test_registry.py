from __future__ import annotations

import logging
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from hudi_core.config.table_config import TableConfig
from hudi_core.errors import ConfigError, LockError, UnsupportedError
from hudi_core.storage.local import LocalStorage
from hudi_core.storage.registry import open_storage
from hudi_core.transaction.locks.dynamodb import DynamodbLock
from hudi_core.transaction.locks.filesystem import FileSystemLock
from hudi_core.transaction.locks.registry import implicit_key, table_lock
from hudi_core.transaction.locks.storage_lease import StorageLease
from hudi_core.transaction.locks.zookeeper import ZookeeperLock
from hudi_core.transaction.owner import Owner
from tests.support.memory_storage import MemoryStorage

HERE = Owner.current("dag here")
CLIENT = "org.apache.hudi.client.transaction.lock."
AWS = "org.apache.hudi.aws.transaction.lock."
CONFIG = TableConfig.of(
    {"hoodie.table.name": "trips", "hoodie.table.type": "MERGE_ON_READ", "hoodie.table.version": "6"}
)
ZOOKEEPER = {"hoodie.write.lock.zookeeper.url": "zk1:2181,zk2:2181/chroot"}


def lock_of(options: dict[str, str], storage: Any = None) -> Any:
    return table_lock(storage or MemoryStorage("s3a://bucket/trips"), CONFIG, options, HERE)


def named(provider: str, **options: str) -> dict[str, str]:
    return {
        "hoodie.write.lock.provider": provider,
        **{name.replace("__", "."): value for name, value in options.items()},
    }


def test_each_class_name_of_hudi_gives_our_lock_of_that_kind() -> None:
    assert isinstance(lock_of(named(f"{CLIENT}FileSystemBasedLockProvider")), FileSystemLock)
    assert isinstance(lock_of(named(f"{CLIENT}StorageBasedLockProvider")), StorageLease)
    zookeeper = lock_of(
        named(f"{CLIENT}ZookeeperBasedLockProvider")
        | ZOOKEEPER
        | {"hoodie.write.lock.zookeeper.base_path": "/hudi/locks"}
    )
    assert isinstance(zookeeper, ZookeeperLock)
    assert zookeeper.name == "zookeeper:/hudi/locks/trips", "the key is the table's name"
    implicit = lock_of(named(f"{CLIENT}ZookeeperBasedImplicitBasePathLockProvider") | ZOOKEEPER)
    assert implicit.name == f"zookeeper:/tmp/{implicit_key({}, 's3://bucket/trips')}/lock_key"
    options = {
        "hoodie.write.lock.dynamodb.table": "locks",
        "hoodie.write.lock.dynamodb.endpoint_url": "http://127.0.0.1:1",
    }
    dynamodb = lock_of(named(f"{AWS}DynamoDBBasedLockProvider") | options)
    assert isinstance(dynamodb, DynamodbLock)
    assert dynamodb.name == "dynamodb:locks/trips"
    implicit = lock_of(named(f"{AWS}DynamoDBBasedImplicitPartitionKeyLockProvider") | options)
    assert implicit.name == f"dynamodb:locks/{implicit_key({}, 's3://bucket/trips')}"


def test_the_implicit_name_is_the_hash_of_the_address_as_writers_spell_it() -> None:
    assert implicit_key({}, "s3a://bucket/t") == implicit_key({}, "S3A://bucket/t") == implicit_key({}, "s3://bucket/t")
    assert implicit_key({"hoodie.base.path": "s3a://bucket/t"}, "/mnt/t") == implicit_key({}, "s3://bucket/t")
    assert implicit_key({}, "s3://bucket/t/") != implicit_key({}, "s3://bucket/t")
    assert len(implicit_key({}, "x")) == 16
    assert implicit_key({}, "x") == implicit_key({}, "x").upper()


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        (named("com.example.MyLock"), UnsupportedError, "com.example.MyLock"),
        (named("builtins.eval"), UnsupportedError, "does not have"),
        (
            named("org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider"),
            UnsupportedError,
            "Hive metastore",
        ),
        (named(f"{CLIENT}NoopLockProvider"), ConfigError, "locks nothing"),
        (named(f"{CLIENT}ZookeeperBasedLockProvider"), ConfigError, "hoodie.write.lock.zookeeper.base_path"),
        (
            named(f"{CLIENT}ZookeeperBasedLockProvider", hoodie__write__lock__zookeeper__base_path="/x"),
            ConfigError,
            "hoodie.write.lock.zookeeper.url",
        ),
        (
            named(f"{CLIENT}ZookeeperBasedLockProvider", hoodie__write__lock__zookeeper__base_path="x") | ZOOKEEPER,
            ConfigError,
            "no path",
        ),
        (named(f"{AWS}DynamoDBBasedLockProvider"), ConfigError, "hoodie.write.lock.dynamodb.table"),
        (
            named(f"{CLIENT}StorageBasedLockProvider", hoodie__write__lock__storage__validity__timeout__secs="20"),
            ConfigError,
            "ten times",
        ),
        (
            named(f"{CLIENT}FileSystemBasedLockProvider", hoodie__write__lock__filesystem__expire="x"),
            ConfigError,
            "expire",
        ),
    ],
)
def test_what_cannot_be_locked_as_the_writers_do_is_refused_by_name(
    options: dict[str, str], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text) as caught:
        lock_of(options)
    assert caught.value.remedy  # type: ignore[attr-defined]


@pytest.mark.parametrize(("module", "extra"), [("kazoo", "zookeeper"), ("boto3", "dynamodb")])
def test_a_library_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch, module: str, extra: str) -> None:
    for name in [
        name
        for name in sys.modules
        if name.split(".")[0] == module or (name.startswith("hudi_core.transaction.locks.") and extra in name)
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    options = named(f"{CLIENT}ZookeeperBasedImplicitBasePathLockProvider") | ZOOKEEPER
    if extra == "dynamodb":
        options = named(f"{AWS}DynamoDBBasedLockProvider", hoodie__write__lock__dynamodb__table="locks")
    with pytest.raises(ConfigError, match=module) as caught:
        lock_of(options)
    assert f"airflow-hudi-engine[{extra}]" in (caught.value.remedy or "")


def test_a_lock_file_lies_where_the_writers_have_it(tmp_path: Path) -> None:
    provider = f"{CLIENT}FileSystemBasedLockProvider"
    storage = LocalStorage(tmp_path / "table")
    for folder, expected in (
        (None, "table/.hoodie/lock"),
        (f"{tmp_path}/table/.hoodie/.aux", "table/.hoodie/.aux/lock"),
        (f"{tmp_path}/table/", "table/lock"),
        (f"{tmp_path}/locks/of/table", "locks/of/table/lock"),
        (f"file://{tmp_path}/locks2", "locks2/lock"),
        ("locks", "table/locks/lock"),
    ):
        options = named(provider) if folder is None else named(provider, hoodie__write__lock__filesystem__path=folder)
        with lock_of(options, storage) as lock:
            assert (tmp_path / expected).is_file(), folder
            lock.check()
        assert not (tmp_path / expected).exists()


def test_a_storage_that_cannot_create_exclusively_carries_no_lock_file() -> None:
    with pytest.raises(ConfigError, match="exclusively"):
        lock_of(named(f"{CLIENT}FileSystemBasedLockProvider"), open_storage("memory://locks"))


def test_a_lock_shared_with_hudi_settles_before_it_counts() -> None:
    storage = MemoryStorage()
    lock = lock_of(named(f"{CLIENT}FileSystemBasedLockProvider"), storage)
    started = time.monotonic()
    with lock:
        assert time.monotonic() - started >= 0.1
    with lock_of({}, storage):
        assert storage.exists(".hoodie/lock")


def write_sign(storage: MemoryStorage) -> None:
    storage.write(".hoodie/.heartbeat/20260101000000000", b"")


def test_without_a_provider_the_lock_is_ours_and_a_live_writer_is_warned_of_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    storage = MemoryStorage("memory://warned")
    with caplog.at_level(logging.WARNING):
        with lock_of({}, storage) as lock:
            assert isinstance(lock, FileSystemLock)
        assert not caplog.records
        write_sign(storage)
        for _ in range(3):
            with lock_of({}, storage) as lock:
                assert isinstance(lock, FileSystemLock)
    (record,) = caplog.records
    assert "20260101000000000 has a heartbeat 0 s old" in record.message
    assert "hoodie.write.lock.provider" in record.message


def test_without_a_provider_a_live_writer_is_a_reason_to_refuse_by_option() -> None:
    storage = MemoryStorage()
    options = {"airflow_hudi.lock.unconfigured": "refuse"}
    assert isinstance(lock_of(options, storage), FileSystemLock)
    write_sign(storage)
    with pytest.raises(LockError, match="another writer may be alive") as caught, lock_of(options, storage):
        pass
    assert lock_of(options, storage).holder() is None
    assert "hoodie.write.lock.provider" in (caught.value.remedy or "")


def test_a_lock_inside_a_jvm_excludes_no_process_here_so_a_live_writer_is_refused() -> None:
    storage = MemoryStorage()
    options = named(f"{CLIENT}InProcessLockProvider")
    assert isinstance(lock_of(options, storage), FileSystemLock)
    write_sign(storage)
    with pytest.raises(LockError, match="another writer may be alive"), lock_of(options, storage):
        pass
