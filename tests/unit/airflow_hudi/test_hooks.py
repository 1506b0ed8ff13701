from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from airflow.sdk.io import attach
from airflow.sdk.io.fs import _register_filesystems

from airflow_hudi.hooks import HudiHook
from hudi_core.errors import ConfigError, FormatError
from hudi_core.storage.local import LocalStorage


def connect(monkeypatch: pytest.MonkeyPatch, **fields: Any) -> HudiHook:
    monkeypatch.setenv("AIRFLOW_CONN_HUDI_TEST", json.dumps({"conn_type": "hudi", **fields}))
    return HudiHook("hudi_test")


@pytest.mark.parametrize(
    ("base", "table", "uri"),
    [
        ("/data", "trips", "/data/trips"),
        ("/data/", "eu/trips", "/data/eu/trips"),
        ("s3://bucket/wh", "trips", "s3://bucket/wh/trips"),
        ("s3://bucket/wh", "s3://other/trips/", "s3://other/trips"),
        ("s3://bucket/wh", "/local/trips", "/local/trips"),
        ("/data", "", "/data"),
        ("/data", "file:/local/trips", "file:/local/trips"),
        ("/data", "FILE:/local/trips", "FILE:/local/trips"),
    ],
)
def test_a_table_is_absolute_or_below_the_base_path(
    monkeypatch: pytest.MonkeyPatch, base: str, table: str, uri: str
) -> None:
    assert connect(monkeypatch, host=base).table_uri(table) == uri


def test_a_relative_table_needs_a_base_path(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="base path"):
        connect(monkeypatch).table_uri("trips")
    with pytest.raises(ConfigError, match="base path"):
        HudiHook(None).table_uri("trips")


def test_a_relative_table_stays_below_the_base_path(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FormatError):
        connect(monkeypatch, host="/data").table_uri("../other")


def test_only_known_fields_of_the_connection_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    extra = {
        "endpoint_url": "http://s3",
        "region": "",
        "secret": "x",
        "spark.jars": "/evil.jar",
        "storage_conn_id": "aws",
    }
    hook = connect(monkeypatch, extra=extra)
    assert hook.storage_options == {"endpoint_url": "http://s3"}
    assert hook.storage_conn_id == "aws"


def test_a_field_that_is_not_text_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="endpoint_url"):
        _ = connect(monkeypatch, extra={"endpoint_url": {"a": 1}}).storage_options


def test_local_tables_need_no_connection(table: Path) -> None:
    hook = HudiHook(None)
    assert isinstance(hook.storage(str(table)), LocalStorage)
    assert isinstance(hook.storage(table.as_uri()), LocalStorage)
    assert hook.timeline(str(table)).config.name == "trips"


def test_the_storage_connection_needs_a_file_system_of_airflow(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="nosuch"):
        connect(monkeypatch, host="nosuch://bucket", extra={"storage_conn_id": "x"}).storage("trips")


@pytest.mark.parametrize(
    ("scheme", "extra"),
    [
        ("s3", "amazon"),
        ("s3a", "amazon"),
        ("gs", "google"),
        ("gcs", "google"),
        ("abfs", "azure"),
        ("abfss", "azure"),
        ("wasb", "azure"),
        ("wasbs", "azure"),
    ],
)
def test_a_missing_provider_is_named_by_the_extra_of_its_scheme(
    monkeypatch: pytest.MonkeyPatch, scheme: str, extra: str
) -> None:
    """The project's own environment has none of these providers."""
    with pytest.raises(ConfigError) as raised:
        connect(monkeypatch, host=f"{scheme}://bucket", extra={"storage_conn_id": "x"}).storage("trips")
    assert f"pip install 'airflow-hudi[{extra}]'" in (raised.value.remedy or "")
    assert ("abfss://" in (raised.value.remedy or "")) == scheme.startswith("wasb")


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (ImportError("no module s3fs"), "airflow-hudi[amazon]"),
        (ValueError("the signer is unknown"), "check the fields of that connection"),
    ],
)
def test_a_provider_that_fails_is_not_called_missing(
    monkeypatch: pytest.MonkeyPatch, error: Exception, remedy: str
) -> None:
    def fail(conn_id: str | None) -> None:
        raise error

    monkeypatch.setitem(cast("dict[str, Any]", _register_filesystems()), "s3", fail)
    with pytest.raises(ConfigError, match=str(error)) as raised:
        connect(monkeypatch, host="s3://bucket", extra={"storage_conn_id": "broken"}).storage("trips")
    assert remedy in (raised.value.remedy or "")


class TestTestConnection:
    def test_a_table(self, monkeypatch: pytest.MonkeyPatch, table: Path) -> None:
        assert connect(monkeypatch, host=str(table)).test_connection() == (True, "Found the table trips, version 6")

    def test_a_warehouse(self, monkeypatch: pytest.MonkeyPatch, table: Path) -> None:
        assert connect(monkeypatch, host=str(table.parent)).test_connection() == (
            True,
            f"Listed {table.parent}: 1 folders",
        )

    @pytest.mark.parametrize(
        ("base", "message"),
        [
            ("{folder}/nowhere", "There is no folder {folder}/nowhere on the machine"),
            ("file://{folder}/nowhere", "There is no folder file://{folder}/nowhere on the machine"),
            ("File:{folder}/nowhere", "There is no folder File:{folder}/nowhere on the machine"),
            ("{folder}/a-file", "{folder}/a-file is a file, not a folder"),
            ("{folder}/empty", "Nothing is at {folder}/empty"),
            ("lake/orders", "The base path lake/orders is relative"),
        ],
    )
    def test_no_folder(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, base: str, message: str) -> None:
        (tmp_path / "a-file").write_text("x")
        (tmp_path / "empty").mkdir()
        works, said = connect(monkeypatch, host=base.format(folder=tmp_path)).test_connection()
        assert not works
        assert said.startswith(message.format(folder=tmp_path))

    def test_no_base_path(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert connect(monkeypatch).test_connection()[0]

    def test_a_broken_table(self, monkeypatch: pytest.MonkeyPatch, table: Path) -> None:
        (table / ".hoodie" / "hoodie.properties").write_text("hoodie.table.name=trips\n")
        works, message = connect(monkeypatch, host=str(table)).test_connection()
        assert not works
        assert "hoodie.properties" in message

    def test_an_unknown_scheme(self, monkeypatch: pytest.MonkeyPatch) -> None:
        works, message = connect(monkeypatch, host="nosuch://bucket").test_connection()
        assert not works
        assert "nosuch" in message


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, str]]:
    """An S3 endpoint (moto's server) and a fresh bucket on it."""
    import boto3
    from moto.server import ThreadedMotoServer

    for name, value in {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    server = ThreadedMotoServer("127.0.0.1", 0)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    name = f"warehouse-{uuid.uuid4().hex[:8]}"
    boto3.client("s3", endpoint_url=endpoint).create_bucket(Bucket=name)
    yield endpoint, name
    server.stop()


def upload(endpoint: str, bucket: str, table: Path) -> None:
    import boto3

    client = boto3.client("s3", endpoint_url=endpoint)
    for file in table.rglob("*"):
        if file.is_file():
            client.upload_file(str(file), bucket, file.relative_to(table.parent).as_posix())


def test_instants_of_others_are_seen_past_the_file_systems_cache(
    monkeypatch: pytest.MonkeyPatch, table: Path, bucket: tuple[str, str]
) -> None:
    import boto3
    import s3fs

    endpoint, name = bucket
    upload(endpoint, name, table)
    # What an Airflow connection of another provider gives: one file system for the whole process, with a listing cache.
    shared = s3fs.S3FileSystem(endpoint_url=endpoint, use_listings_cache=True, skip_instance_cache=True)
    attach("s3", conn_id="store", fs=shared)
    reader = connect(monkeypatch, host=f"s3://{name}", extra={"storage_conn_id": "store"}).timeline("trips")
    assert len(reader.load()) == 1
    shared.ls(f"{name}/trips/.hoodie")
    key = "trips/.hoodie/20260102000000000.compaction.requested"
    boto3.client("s3", endpoint_url=endpoint).put_object(Bucket=name, Key=key, Body=b"x")
    assert len(shared.ls(f"{name}/trips/.hoodie")) < 5, "the cache is not in the way, so this test proves nothing"
    assert [instant.requested_time for instant in reader.load()] == ["20260101000000000", "20260102000000000"]


def test_credentials_of_the_environment_open_a_table_without_a_storage_connection(
    monkeypatch: pytest.MonkeyPatch, table: Path, bucket: tuple[str, str]
) -> None:
    endpoint, name = bucket
    upload(endpoint, name, table)
    hook = connect(monkeypatch, host=f"s3://{name}", extra={"endpoint_url": endpoint, "region": "us-east-1"})
    assert hook.timeline("trips").config.name == "trips"
    assert hook.test_connection() == (True, f"Listed s3://{name}: 1 folders")


def test_credentials_are_those_of_an_s3_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the provider: benchmarks/first_hour_extras.py."""
    assert connect(monkeypatch, host="/data", extra={"storage_conn_id": "aws"}).credentials("trips") == {}
    assert connect(monkeypatch, host="s3://bucket").credentials("trips") == {}
    with pytest.raises(ConfigError, match=r"airflow-hudi\[amazon\]"):
        connect(monkeypatch, host="s3://bucket", extra={"storage_conn_id": "aws"}).credentials("trips")


def test_the_engine_is_a_field_of_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    assert connect(monkeypatch, host="/data").engine is None
    assert connect(monkeypatch, host="/data", extra={"engine": "auto"}).engine == "auto"
