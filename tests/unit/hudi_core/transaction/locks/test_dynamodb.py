from __future__ import annotations

import dataclasses
import json
import logging
import time
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from moto import mock_aws

from hudi_core.config.concurrency_config import DynamodbConfig
from hudi_core.errors import CorruptFileError, LockError, StorageError
from hudi_core.transaction.locks.dynamodb import DynamodbLock, dynamodb_client
from hudi_core.transaction.owner import Owner

HERE = Owner.current("dag here")
ELSEWHERE = dataclasses.replace(HERE, text="dag elsewhere", boot_id="another")
DEAD = dataclasses.replace(HERE, text="dag dead", pid=2**22 + 7, process_start="1")
CONFIG = DynamodbConfig("locks", "trips", "eu-west-1", None, 0, 60_000, None, 1000)
KEY = {"key": {"S": "trips"}}


class Client:
    """A client whose calls fail by a script: `lost` took effect, `refused` did not."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.script: dict[str, list[str]] = {}
        self.calls: list[str] = []

    def __getattr__(self, verb: str) -> Any:
        def call(**request: Any) -> Any:
            self.calls.append(verb)
            planned = self.script.get(verb)
            kind = planned.pop(0) if planned else "fine"
            if kind == "refused":
                raise EndpointConnectionError(endpoint_url="http://db")
            answer = getattr(self.inner, verb)(**request)
            if kind == "lost":  # the client sends it again, and the answer is that the condition fails
                return getattr(self.inner, verb)(**request)
            return answer

        return call


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    with mock_aws():
        yield Client(dynamodb_client(CONFIG, {"key": "testing", "secret": "testing"}))


def lock_of(client: Client, owner: Owner = HERE, **changes: Any) -> DynamodbLock:
    return DynamodbLock(client, dataclasses.replace(CONFIG, **changes), owner)


def item(client: Client) -> dict[str, str] | None:
    found = client.inner.get_item(TableName="locks", Key=KEY).get("Item")
    return None if found is None else {name: value["S"] for name, value in found.items()}


def put(client: Client, **attributes: str) -> None:
    values = {"key": "trips", "ownerName": "hudi-1", "leaseDuration": "60000", "recordVersionNumber": "v1"} | attributes
    client.inner.put_item(TableName="locks", Item={name: {"S": value} for name, value in values.items()})


def test_the_item_is_that_of_awss_lock_client_and_is_deleted_at_the_end(client: Client) -> None:
    lock = lock_of(client)
    with lock:
        found = item(client)
        assert found is not None
        assert (found["key"], found["leaseDuration"]) == ("trips", "60000")
        assert found["ownerName"].startswith("dag here (process ")
        assert len(found["recordVersionNumber"]) == 36
        assert "isReleased" not in found
    assert item(client) is None


@pytest.mark.parametrize("provisioned", [None, (3, 4)])
def test_the_table_is_made_when_it_is_not_there(client: Client, provisioned: tuple[int, int] | None) -> None:
    with lock_of(client, provisioned=provisioned):
        pass
    table = client.inner.describe_table(TableName="locks")["Table"]
    assert table["KeySchema"] == [{"AttributeName": "key", "KeyType": "HASH"}]
    assert table["AttributeDefinitions"] == [{"AttributeName": "key", "AttributeType": "S"}]
    if provisioned is None:
        assert table["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    else:
        assert (
            table["ProvisionedThroughput"]["ReadCapacityUnits"],
            table["ProvisionedThroughput"]["WriteCapacityUnits"],
        ) == provisioned
    assert client.calls.count("create_table") == 1


def test_a_table_that_another_makes_at_the_same_time_is_used(client: Client) -> None:
    client.script["create_table"] = ["lost"]
    with lock_of(client) as lock:
        lock.check()


def test_a_table_that_does_not_become_active_is_an_error(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = client.inner
    monkeypatch.setattr("hudi_core.transaction.locks.dynamodb.time.sleep", lambda _: None)

    class Creating:
        def __getattr__(self, verb: str) -> Any:
            return getattr(inner, verb)

        def describe_table(self, **_: Any) -> Any:
            return {"Table": {"TableStatus": "CREATING"}}

    with pytest.raises(StorageError, match="not active"):
        lock_of(Client(Creating()), creation_ms=10).acquire()


def test_hudis_lock_is_respected_while_its_version_changes_and_taken_when_it_stops_changing(client: Client) -> None:
    lock_of(client).holder()
    put(client, leaseDuration="1500")
    lock = lock_of(client, wait_ms=60_000)
    with pytest.raises(LockError, match=r"a Hudi writer \(hudi-1\)") as caught:
        lock_of(client).acquire()
    assert "its lease" in (caught.value.remedy or "")
    started = time.monotonic()
    with lock:
        assert time.monotonic() - started > 1.4
        lock.check()


def test_a_released_item_is_taken_at_once(client: Client) -> None:
    lock_of(client).holder()
    put(client, isReleased="1")
    assert lock_of(client).holder() is None
    with lock_of(client) as lock:
        lock.check()
        assert "isReleased" not in (item(client) or {})


def test_the_lock_of_a_process_that_is_provably_dead_is_taken_at_once(client: Client) -> None:
    lock_of(client).holder()
    put(client, airflowHudi=json.dumps({"token": "t", "owner": DEAD.to_json(), "acquired": time.time()}))
    with lock_of(client) as lock:
        lock.check()
    put(client, airflowHudi=json.dumps({"token": "t", "owner": ELSEWHERE.to_json(), "acquired": time.time() - 10}))
    with pytest.raises(LockError, match=r"held by dag elsewhere \(process \d+ on \S+\) for 10 s"):
        lock_of(client).acquire()


def test_answers_that_were_lost_are_seen_through(client: Client) -> None:
    lock = lock_of(client, lease_ms=1800)
    client.script["put_item"] = ["lost"]
    client.script["update_item"] = ["lost", "refused", "lost"]
    lock.acquire()
    lock.check()
    deadline = time.monotonic() + 20
    while client.script["update_item"]:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    client.script["delete_item"] = ["lost"]
    assert lock.release() is True
    assert item(client) is None


def test_a_lease_that_was_not_renewed_is_lost_though_no_process_took_it(client: Client) -> None:
    lock = lock_of(client, lease_ms=300)
    lock.acquire()
    client.script["update_item"] = ["refused"] * 1000
    time.sleep(0.5)
    with pytest.raises(LockError, match="not renewed"):
        lock.check()
    assert lock.release() is True


def test_a_lock_that_another_took_is_left_to_it(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), lock_of(client, lease_ms=60) as lock:
        put(client, recordVersionNumber="v2")
        deadline = time.monotonic() + 20
        while not lock._taken_away:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        with pytest.raises(LockError, match=r"another took it.*hudi-1"):
            lock.check()
    assert "taken away" in caplog.text
    assert (item(client) or {})["ownerName"] == "hudi-1"
    assert lock.release() is False


def test_a_lock_whose_item_is_gone_is_lost(client: Client) -> None:
    lock = lock_of(client)
    lock.acquire()
    client.inner.delete_item(TableName="locks", Key=KEY)
    with pytest.raises(LockError, match="free now"):
        lock.check()
    lock.release()


def test_what_was_not_taken_cannot_be_checked(client: Client) -> None:
    with pytest.raises(LockError, match="free now"):
        lock_of(client).check()


def test_a_renewal_that_arrived_unseen_does_not_prevent_the_release_of_the_lock(client: Client) -> None:
    lock = lock_of(client)
    lock.acquire()
    put(client, **(item(client) or {}) | {"recordVersionNumber": "renewed"})
    lock.check()
    assert lock.release() is True
    assert item(client) is None


def test_failures_of_dynamodb_are_storage_errors(client: Client) -> None:
    client.script["get_item"] = ["refused"]
    with pytest.raises(StorageError, match="DynamoDB failed") as caught:
        lock_of(client).acquire()
    assert caught.value.path == "dynamodb:locks/trips"

    class Denied:
        def __getattr__(self, verb: str) -> Any:
            def call(**_: Any) -> Any:
                raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, verb)

            return call

    with pytest.raises(StorageError, match="AccessDenied"):
        DynamodbLock(Denied(), CONFIG, HERE).acquire()


@pytest.mark.parametrize(
    "attributes",
    [
        {"leaseDuration": "x"},
        {"leaseDuration": "-1"},
        {"leaseDuration": "0"},
        {"leaseDuration": "99999999999999999999"},
        {"airflowHudi": json.dumps({"token": "t", "owner": {}})},
    ],
)
def test_what_is_no_lock_is_refused_and_left_alone(client: Client, attributes: dict[str, str]) -> None:
    lock_of(client).holder()
    put(client, **attributes)
    before = item(client)
    with pytest.raises(CorruptFileError) as caught:
        lock_of(client).acquire()
    assert caught.value.path == "dynamodb:locks/trips"
    assert item(client) == before


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"token": 1, "owner": {}}'])
def test_whatever_another_put_beside_it_is_passed_over(client: Client, text: str) -> None:
    lock_of(client).holder()
    put(client, airflowHudi=text, ownerName="a\nb")
    holder = lock_of(client).holder()
    assert holder is not None
    assert (holder.owner, holder.describe()) == (None, "a Hudi writer (a?b)")


def test_the_region_is_the_options_else_the_environments_else_hudis_default(monkeypatch: pytest.MonkeyPatch) -> None:
    assert dynamodb_client(CONFIG, {}).meta.region_name == "eu-west-1"
    without = dataclasses.replace(CONFIG, region=None)
    monkeypatch.setenv("AWS_REGION", "ap-south-1")
    assert dynamodb_client(without, {}).meta.region_name == "ap-south-1"
    monkeypatch.delenv("AWS_REGION")
    assert dynamodb_client(without, {}).meta.region_name == "us-east-1"
    assert (
        dynamodb_client(dataclasses.replace(CONFIG, endpoint_url="http://db:8000"), {}).meta.endpoint_url
        == "http://db:8000"
    )
