"""The table's lock as an item in DynamoDB, in the layout of AWS's lock client (AmazonDynamoDBLockClient).

    key  ownerName  leaseDuration (milliseconds, as text)  recordVersionNumber  [isReleased]  [data]

Every change makes a new record version number, on the condition that the old number is still there. Clocks are not
compared: a contender watches the number, and takes the lock over when the number did not change for the holder's whole
lease. config/concurrency_config.py says how long a lease is (`hoodie.write.lock.wait_time_ms`).
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from hudi_core.config.concurrency_config import DynamodbConfig
from hudi_core.errors import StorageError
from hudi_core.frozen import dataclass
from hudi_core.transaction.locks.base import LeasedLock, LockHolder
from hudi_core.transaction.owner import Owner, damaged

_DEFAULT_REGION = "us-east-1"
_NAMES = {"key": "aws_access_key_id", "secret": "aws_secret_access_key", "token": "aws_session_token"}
_KEY = "key"
"""The table's partition key (DynamoDBBasedLockProviderBase.DYNAMODB_ATTRIBUTE_NAME)."""
_ABSENT = {"ConditionExpression": "attribute_not_exists(#k)", "ExpressionAttributeNames": {"#k": _KEY}}
_POLL_SECONDS = 0.5
_OURS = "airflowHudi"
_MAX_LEASE_MS = 10**9
_MAX_NAME = 1024
_RENEWALS_PER_LEASE = 3


def dynamodb_client(config: DynamodbConfig, storage_options: Mapping[str, str]) -> Any:
    """Returns a boto3 client. Its region is the option's, AWS_REGION's, or Hudi's default (DYNAMODB_LOCK_REGION)."""
    region = config.region or os.environ.get("AWS_REGION") or _DEFAULT_REGION
    credentials = {_NAMES[name]: value for name, value in storage_options.items() if name in _NAMES}
    return boto3.client("dynamodb", region_name=region, endpoint_url=config.endpoint_url, **credentials)


class LockTable:
    """The item `config.key` of `config.table`. Attributes are texts; errors of AWS become StorageError."""

    def __init__(self, client: Any, config: DynamodbConfig, name: str) -> None:
        """Takes a boto3 client and the lock's name, for messages."""
        self._client = client
        self._config = config
        self._name = name
        self._item_key = {_KEY: {"S": config.key}}

    def read(self) -> dict[str, str] | None:
        """Returns the item by a consistent read; None when it is absent. Creates the table when the table is absent."""
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
        request = _expect(expected) if expected is not None else _ABSENT
        return self._conditional("put_item", Item=_texts(item) | self._item_key, **request)

    def update(self, changes: Mapping[str, str], expected: Mapping[str, str]) -> bool:
        request = _expect(expected)
        request["ExpressionAttributeNames"] |= {f"#n{number}": name for number, name in enumerate(changes)}
        values = {f":n{number}": value for number, value in enumerate(changes.values())}
        request["ExpressionAttributeValues"] |= _texts(values)
        assignments = ", ".join(f"#n{number} = :n{number}" for number in range(len(changes)))
        return self._conditional("update_item", Key=self._item_key, UpdateExpression=f"SET {assignments}", **request)

    def delete(self, expected: Mapping[str, str]) -> bool:
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
        """Creates the table, as DynamoDBBasedLockProviderBase does, and waits until it is active. Another process may
        create it at the same time. Raises StorageError when the table is not active in time.
        """
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
                message = f"the DynamoDB table {self._config.table} is still not active"
                raise StorageError(message, path=self._name, remedy="run again later")
            time.sleep(_POLL_SECONDS)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (ClientError, BotoCoreError) as error:
            message = f"DynamoDB failed: {error}"
            remedy = "check region, endpoint and the credentials of this process"
            raise StorageError(message, path=self._name, remedy=remedy) from error


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


@dataclass(frozen=True, slots=True)
class _Item:
    """The lock item. `version` is the record version number; `owner` is None unless one of our processes made it."""

    name: str
    lease_ms: int
    version: str
    released: bool
    owner: Owner | None
    token: str
    acquired: float | None


class DynamodbLock(LeasedLock[_Item]):
    """The lock named `config.key`. A thread renews it three times per lease, like DynamoDBBasedLockProviderBase."""

    def __init__(self, client: Any, config: DynamodbConfig, owner: Owner) -> None:
        seconds = config.lease_ms / 1000
        name, renew = f"dynamodb:{config.table}/{config.key}", seconds / _RENEWALS_PER_LEASE
        super().__init__(name, owner, config.wait_ms, lease_seconds=seconds, renew_seconds=renew)
        self._table = LockTable(client, config, self.name)
        self._lease_text = str(config.lease_ms)
        self._owner_name = ""
        self._version = ""
        self._watched: tuple[str, float] | None = None  # a holder's version, and when it was seen first
        self._extra_seconds = 0.0

    def acquire(self) -> None:
        """TableLock.acquire, which waits for a holder's lease in addition: the holder must be watched for so long."""
        self._watched, self._extra_seconds = None, 0.0
        super().acquire()

    def _write_first(self, token: str, current: _Item | None) -> bool:
        started, version = time.monotonic(), str(uuid.uuid4())
        name = f"{self._owner.describe()} {token}"[:_MAX_NAME]
        ours = json.dumps({"token": token, "owner": self._owner.to_json(), "acquired": time.time()})
        item = {"ownerName": name, "leaseDuration": self._lease_text, "recordVersionNumber": version, _OURS: ours}
        if not self._table.put(item, None if current is None else {"recordVersionNumber": current.version}):
            stored = self._read()
            if stored is None or stored.name != name:
                return False
            version = stored.version  # our own request arrived, and only its answer was lost
        self._owner_name, self._version = name, version
        self._alive_until = started + self._lease_seconds
        return True

    def _is_held(self, current: _Item) -> bool:
        """Returns False when the holder is provably dead, or did not change the version during its whole lease."""
        if not super()._is_held(current):
            return False
        now, lease = time.monotonic(), current.lease_ms / 1000
        if self._watched is None or self._watched[0] != current.version:
            self._watched = (current.version, now)
            if self._wait_seconds > 0:  # else acquire() tries only once
                self._extra_seconds = max(self._extra_seconds, lease)
        return now - self._watched[1] <= lease

    def _patience(self) -> float:
        return self._extra_seconds

    def _extend(self) -> bool:
        started, version = time.monotonic(), str(uuid.uuid4())
        if not self._table.update(
            {"leaseDuration": self._lease_text, "recordVersionNumber": version}, self._expected()
        ):
            current = self._read()
            if current is None or not self._is_ours(current):
                self._taken_away = True
                return False
            version = current.version  # an earlier renewal arrived, and only its answer was lost
        self._version, self._alive_until = version, started + self._lease_seconds
        return True

    def _expected(self) -> dict[str, str]:
        return {"recordVersionNumber": self._version, "ownerName": self._owner_name}

    def _is_ours(self, current: _Item) -> bool:
        return current.name == self._owner_name and not current.released

    def _give_back(self) -> bool:
        if self._table.delete(self._expected()):
            return True
        current = self._read()
        if current is None or current.name != self._owner_name:
            return current is None  # deleted: our own request arrived, and only its answer was lost
        self._version = current.version  # an earlier renewal arrived, and only its answer was lost
        return self._table.delete(self._expected())

    def _holder_of(self, current: _Item) -> LockHolder:
        since = time.time() if current.acquired is None else current.acquired
        return LockHolder(current.token, current.owner, since, f"a Hudi writer ({current.name})")

    def _read(self) -> _Item | None:
        item = self._table.read()
        return None if item is None else _decode(item, self.name)

    def how_to_break(self, holder: LockHolder) -> str:
        return (
            "a dead holder is succeeded automatically after its lease; if it is proven dead before that, "
            f"delete the item {self.name}"
        )


def _decode(found: Mapping[str, str], path: str) -> _Item:
    """Reads an item of ours or of AWS's lock client. Raises CorruptFileError for any other item."""
    name, lease, version = (found.get(key, "") for key in ("ownerName", "leaseDuration", "recordVersionNumber"))
    if not lease.isdigit() or not 0 < int(lease[:11]) <= _MAX_LEASE_MS or not version:
        raise damaged("the item is no lock", path)
    shown = "".join(char if char.isprintable() else "?" for char in name[:_MAX_NAME])
    owner, token, acquired = _ours(found.get(_OURS), path)
    return _Item(shown, int(lease), version, found.get("isReleased") is not None, owner, token or version, acquired)


def _ours(text: str | None, path: str) -> tuple[Owner | None, str, float | None]:
    value: Any = None
    with suppress(ValueError, RecursionError):
        value = json.loads(text or "null")
    fields = value if isinstance(value, dict) else {}
    owner, token, acquired = fields.get("owner"), fields.get("token"), fields.get("acquired")
    if not isinstance(owner, dict) or not isinstance(token, str):
        return None, "", None
    return Owner.from_json(owner, path=path), token, float(acquired) if isinstance(acquired, (int, float)) else None
