"""The item of a lock in DynamoDB (moto): every change names what it expects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from moto import mock_aws

from hudi_core.config.concurrency_config import DynamodbConfig
from hudi_core.errors import StorageError
from hudi_core.transaction.locks.dynamodb import LockTable, dynamodb_client

CONFIG = DynamodbConfig("locks", "trips", None, None, 0, 60_000, None, 1000)
CREDENTIALS = {"key": "testing", "secret": "testing"}


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    with mock_aws():
        yield dynamodb_client(CONFIG, CREDENTIALS)


@pytest.fixture
def table(client: Any) -> LockTable:
    table = LockTable(client, CONFIG, "dynamodb:locks/trips")
    assert table.read() is None  # creates the table
    return table


def test_an_item_is_put_once_where_it_is_absent(table: LockTable) -> None:
    assert table.put({"version": "1"}, None)
    assert not table.put({"version": "2"}, None)
    assert table.read() == {"key": "trips", "version": "1"}


def test_an_item_is_replaced_as_a_whole_where_it_is_the_expected_one(table: LockTable) -> None:
    table.put({"version": "1", "owner": "a"}, None)
    assert not table.put({"version": "3"}, {"version": "2"})
    assert table.put({"version": "2"}, {"version": "1"})
    assert table.read() == {"key": "trips", "version": "2"}


def test_an_update_keeps_other_attributes_and_needs_all_the_expected_ones(table: LockTable) -> None:
    table.put({"version": "1", "owner": "a", "data": "d"}, None)
    assert not table.update({"version": "2"}, {"version": "1", "owner": "b"})
    assert table.update({"version": "2", "lease": "9"}, {"version": "1", "owner": "a"})
    assert table.read() == {"key": "trips", "version": "2", "lease": "9", "owner": "a", "data": "d"}


def test_an_item_is_deleted_where_it_is_the_expected_one(table: LockTable) -> None:
    table.put({"version": "1"}, None)
    assert not table.delete({"version": "2"})
    assert table.delete({"version": "1"})
    assert not table.delete({"version": "1"})
    assert table.read() is None


def test_attributes_of_other_types_are_omitted(client: Any, table: LockTable) -> None:
    client.put_item(TableName="locks", Item={"key": {"S": "trips"}, "n": {"N": "1"}, "version": {"S": "1"}})
    assert table.read() == {"key": "trips", "version": "1"}


def test_errors_of_aws_name_the_lock(client: Any, table: LockTable) -> None:
    client.delete_table(TableName="locks")
    with pytest.raises(StorageError, match="DynamoDB failed") as caught:
        table.put({"version": "1"}, None)
    assert caught.value.path == "dynamodb:locks/trips"


@pytest.mark.parametrize(
    ("option", "variable", "region"),
    [(None, "", "us-east-1"), (None, "eu-west-1", "eu-west-1"), ("eu-north-1", "eu-west-1", "eu-north-1")],
)
def test_the_region_of_the_client(
    option: str | None, variable: str, region: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_REGION", variable)
    config = DynamodbConfig("locks", "trips", option, None, 0, 60_000, None, 1000)
    assert dynamodb_client(config, CREDENTIALS).meta.region_name == region
