"""One item of a DynamoDB table, changed under conditions; a missing table is created as Hudi creates it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from hudi_core.config.lock_config import DynamodbConfig
from hudi_core.errors import StorageError

_DEFAULT_REGION = "us-east-1"
_NAMES = {"key": "aws_access_key_id", "secret": "aws_secret_access_key", "token": "aws_session_token"}


def dynamodb_client(config: DynamodbConfig, storage_options: Mapping[str, str]) -> Any:
    """A boto3 client; the region is the option's, AWS_REGION's, or Hudi's default (DYNAMODB_LOCK_REGION)."""
    region = config.region or os.environ.get("AWS_REGION") or _DEFAULT_REGION
    credentials = {_NAMES[name]: value for name, value in storage_options.items() if name in _NAMES}
    return boto3.client("dynamodb", region_name=region, endpoint_url=config.endpoint_url, **credentials)


_KEY = "key"
"""The table's partition key (DynamoDBBasedLockProviderBase.DYNAMODB_ATTRIBUTE_NAME)."""
_ABSENT = {"ConditionExpression": "attribute_not_exists(#k)", "ExpressionAttributeNames": {"#k": _KEY}}
_POLL_SECONDS = 0.5


class LockTable:
    """The item `config.key` of `config.table`. Attributes are texts; errors of AWS become StorageError."""

    def __init__(self, client: Any, config: DynamodbConfig, name: str) -> None:
        """`client` is a boto3 client; `name` is the lock's, for messages."""
        self._client = client
        self._config = config
        self._name = name
        self._item_key = {_KEY: {"S": config.key}}

    def read(self) -> dict[str, str] | None:
        """The item by a consistent read; None when it is absent. Creates the table when that is absent."""
        with self._translated():
            try:
                found = self._client.get_item(
                    TableName=self._config.table, Key=self._item_key, ConsistentRead=True
                ).get("Item")
            except ClientError as error:
                if _code(error) != "ResourceNotFoundException":
                    raise
                self._create_table()
                return None
        if found is None:
            return None
        return {name: str(value["S"]) for name, value in found.items() if "S" in value}

    def put(self, item: Mapping[str, str], expected: Mapping[str, str] | None) -> bool:
        """Writes the whole item if it is absent (None), or if it has the expected attributes; False when it has not."""
        request = _expect(expected) if expected is not None else _ABSENT
        return self._conditional("put_item", Item=_texts(item) | self._item_key, **request)

    def update(self, changes: Mapping[str, str], expected: Mapping[str, str]) -> bool:
        """Changes attributes of the item if it has the expected ones; False when it does not."""
        request = _expect(expected)
        request["ExpressionAttributeNames"] |= {f"#n{number}": name for number, name in enumerate(changes)}
        values = {f":n{number}": value for number, value in enumerate(changes.values())}
        request["ExpressionAttributeValues"] |= _texts(values)
        assignments = ", ".join(f"#n{number} = :n{number}" for number in range(len(changes)))
        return self._conditional("update_item", Key=self._item_key, UpdateExpression=f"SET {assignments}", **request)

    def delete(self, expected: Mapping[str, str]) -> bool:
        """Removes the item if it has the expected attributes; False when it does not."""
        return self._conditional("delete_item", Key=self._item_key, **_expect(expected))

    def _conditional(self, verb: str, **request: Any) -> bool:
        with self._translated():
            try:
                getattr(self._client, verb)(TableName=self._config.table, **request)
            except ClientError as error:
                if _code(error) != "ConditionalCheckFailedException":
                    raise
                return False
        return True

    def _create_table(self) -> None:
        """Creates the table as DynamoDBBasedLockProviderBase does, as another process may do, and waits for it."""
        request: dict[str, Any] = {
            "TableName": self._config.table,
            "KeySchema": [{"AttributeName": _KEY, "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": _KEY, "AttributeType": "S"}],
            "BillingMode": "PAY_PER_REQUEST",
        }
        if self._config.provisioned is not None:
            read, write = self._config.provisioned
            request["BillingMode"] = "PROVISIONED"
            request["ProvisionedThroughput"] = {"ReadCapacityUnits": read, "WriteCapacityUnits": write}
        try:
            self._client.create_table(**request)
        except ClientError as error:
            if _code(error) != "ResourceInUseException":
                raise
        deadline = time.monotonic() + self._config.creation_ms / 1000
        while self._client.describe_table(TableName=self._config.table)["Table"]["TableStatus"] not in (
            "ACTIVE",
            "UPDATING",
        ):
            if time.monotonic() >= deadline:
                raise StorageError(
                    f"the DynamoDB table {self._config.table} is still not active",
                    path=self._name,
                    remedy="run again later",
                )
            time.sleep(_POLL_SECONDS)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (ClientError, BotoCoreError) as error:
            raise StorageError(
                f"DynamoDB failed: {error}",
                path=self._name,
                remedy="check region, endpoint and the credentials of this process",
            ) from error


def _expect(expected: Mapping[str, str]) -> dict[str, Any]:
    return {
        "ConditionExpression": " AND ".join(f"#c{number} = :c{number}" for number in range(len(expected))),
        "ExpressionAttributeNames": {f"#c{number}": name for number, name in enumerate(expected)},
        "ExpressionAttributeValues": _texts({f":c{number}": value for number, value in enumerate(expected.values())}),
    }


def _texts(values: Mapping[str, str]) -> dict[str, Any]:
    return {name: {"S": value} for name, value in values.items()}


def _code(error: ClientError) -> str | None:
    code = error.response.get("Error", {}).get("Code")
    return code if isinstance(code, str) else None
