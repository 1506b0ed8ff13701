"""8 or 16 writers, 60 rounds: on the timeline's exclusive create and on every lock provider, and the same on a storage
that must fail.

S3 is moto behind one lock, where the rounds are few, or the server that AIRFLOW_HUDI_S3_SERVER names (`make soak`:
versitygw).
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from hudi_core.storage.base import Storage
from hudi_core.storage.local import LocalStorage
from hudi_core.storage.registry import open_storage
from hudi_core.transaction.locks.dynamodb import DynamodbLock
from hudi_core.transaction.owner import Owner
from hudi_health.probe import FOLDER, probe
from tests.contract.lock_providers import TABLE, LockSpec
from tests.contract.racing import CheckThenPut, Round, fair, race_for_creates, race_for_lock, several
from tests.contract.racing_servers import CHOICE
from tests.support.memory_storage import MemoryStorage
from tests.support.tiers import tiered

pytestmark = pytest.mark.slow
ROUNDS = 60
MOTO_ROUNDS = 6
CONTROL_ROUNDS = 12
"""In which the mistake is found."""
MOTO_CONTROL_ROUNDS = 3
"""moto shows it in every round: all writers have looked before one has written."""
_tables = itertools.count()


@pytest.fixture
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], LockSpec]:
    def make(provider: str, where: str = "local") -> LockSpec:
        if where == "local":
            return LockSpec(provider, str(tmp_path))
        server = request.getfixturevalue("s3")
        return LockSpec(provider, f"s3://bucket/races/t{next(_tables)}", server.options)

    return make


def rounds_of(where: str, *, control: bool = False) -> int:
    """moto answers one request after the other."""
    if where == "s3" and os.environ.get(CHOICE, "moto") == "moto":
        return MOTO_CONTROL_ROUNDS if control else MOTO_ROUNDS
    return CONTROL_ROUNDS if control else ROUNDS


RACES = pytest.mark.parametrize(
    ("where", "writers"),
    [
        ("local", 16),
        ("s3", 8),
        pytest.param("local", 8, marks=pytest.mark.conformance),
        pytest.param("s3", 16, marks=pytest.mark.conformance),
    ],
)


def locks_of(spec: LockSpec, writers: int, storage: Storage | None = None) -> list[Any]:
    return [spec.lock(f"writer {number}", wait_ms=0, storage=storage) for number in range(writers)]


@RACES
def test_one_writer_creates_each_file_of_the_timeline(table: Callable[..., LockSpec], where: str, writers: int) -> None:
    storage = table("filesystem", where).storage
    rounds = rounds_of(where)
    found = race_for_creates(storage, writers, rounds)
    assert fair(found), found
    names = storage.list_names(".hoodie")
    assert len(names) == rounds
    for number, (winner,) in enumerate(found):
        assert storage.read(f".hoodie/{20260101000000000 + number}.commit") == str(winner).encode()


@RACES
@pytest.mark.parametrize("provider", ["filesystem", "lease"])
def test_one_writer_takes_the_lock_in_the_tables_storage(
    table: Callable[..., LockSpec], provider: str, where: str, writers: int
) -> None:
    found = race_for_lock(locks_of(table(provider, where), writers), rounds_of(where))
    assert fair(found), found


@pytest.mark.parametrize(("writers", "rounds"), tiered([(8, 8), (8, ROUNDS), (16, ROUNDS)], [(8, 8)]))
def test_one_writer_takes_the_lock_in_zookeeper(zookeeper: str, writers: int, rounds: int) -> None:
    found = race_for_lock(locks_of(LockSpec("zookeeper", zookeeper), writers), rounds)
    assert fair(found), found


@pytest.mark.parametrize(
    ("writers", "rounds"), tiered([(8, MOTO_ROUNDS), (8, ROUNDS), (16, ROUNDS)], [(8, MOTO_ROUNDS)])
)
def test_one_writer_takes_the_lock_in_dynamodb(dynamodb: str, writers: int, rounds: int) -> None:
    found = race_for_lock(locks_of(LockSpec("dynamodb", dynamodb), writers), rounds)
    assert fair(found), found


def too_weak(found: list[Round]) -> str:
    return f"a race test that passes here is too weak: {found}"


@pytest.mark.parametrize("where", ["local", pytest.param("s3", marks=pytest.mark.conformance)])
def test_the_race_for_creates_finds_a_check_then_put(table: Callable[..., LockSpec], where: str) -> None:
    storage = cast(Storage, CheckThenPut(table("filesystem", where).storage))
    found = race_for_creates(storage, 8, rounds_of(where, control=True))
    assert several(found), too_weak(found)


@pytest.mark.parametrize(
    ("provider", "where"),
    [
        ("filesystem", "local"),
        ("lease", "local"),
        ("filesystem", "s3"),
        pytest.param("lease", "s3", marks=pytest.mark.conformance),
    ],
)
def test_the_race_for_locks_finds_a_check_then_put(table: Callable[..., LockSpec], provider: str, where: str) -> None:
    spec = table(provider, where)
    locks = locks_of(spec, 8, cast(Storage, CheckThenPut(spec.storage)))
    found = race_for_lock(locks, rounds_of(where, control=True), strict=False)
    assert several(found), too_weak(found)


class CheckThenPutItem:
    """A client of DynamoDB whose conditional puts look first and write then."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def put_item(self, *, ConditionExpression: str, **request: Any) -> Any:
        key = {"key": request["Item"]["key"]}
        there = "Item" in self._inner.get_item(TableName=TABLE, Key=key, ConsistentRead=True)
        time.sleep(0.002)
        request.pop("ExpressionAttributeValues", None)
        if there:
            return self._inner.put_item(
                ConditionExpression="attribute_not_exists(#k)", **request | {"ExpressionAttributeNames": {"#k": "key"}}
            )
        request.pop("ExpressionAttributeNames")
        return self._inner.put_item(**request)


def test_the_race_for_locks_finds_a_check_then_put_in_dynamodb(dynamodb: str) -> None:
    spec = LockSpec("dynamodb", dynamodb)
    spec.lock().holder()  # makes the table
    client, config = CheckThenPutItem(spec.dynamodb), spec.dynamodb_config(wait_ms=0)
    locks = [DynamodbLock(client, config, Owner.current(f"writer {number}")) for number in range(8)]
    found = race_for_lock(locks, MOTO_CONTROL_ROUNDS, strict=False)
    assert several(found), too_weak(found)


@pytest.mark.parametrize("where", ["local", pytest.param("s3", marks=pytest.mark.conformance), "memory"])
def test_the_probe_trusts_an_atomic_store_and_leaves_nothing_behind(table: Callable[..., LockSpec], where: str) -> None:
    storage = MemoryStorage() if where == "memory" else table("filesystem", where).storage
    report = probe(storage, writers=16, rounds=20)
    assert (report.can_carry_timeline, report.can_carry_lease, report.problems) == (True, True, ()), report
    assert report.creates is not None
    assert report.creates.rounds == 20
    assert 0 < report.creates.slowest_seconds <= report.creates.seconds
    assert storage.list_folders(FOLDER) == []


@pytest.mark.parametrize("where", ["local", pytest.param("s3", marks=pytest.mark.conformance)])
def test_the_probe_finds_a_check_then_put(table: Callable[..., LockSpec], where: str) -> None:
    storage = cast(Storage, CheckThenPut(table("filesystem", where).storage))
    report = probe(storage, writers=8, rounds=rounds_of(where, control=True))
    assert (report.can_carry_timeline, report.can_carry_lease) == (False, False)
    assert report.creates is not None
    assert report.replaces is not None
    assert report.creates.several_winners > 0
    assert report.replaces.several_winners > 0
    assert any("of 8 writers won" in problem for problem in report.problems)


def test_the_probe_says_what_a_storage_does_not_offer(tmp_path: Path) -> None:
    class OnlyCreates(LocalStorage):
        supports_conditional_write = False

    report = probe(OnlyCreates(tmp_path), writers=4, rounds=3)
    assert (report.can_carry_timeline, report.can_carry_lease, report.replaces) == (True, False, None)
    assert report.problems == ("the storage offers no conditional write",)
    report = probe(open_storage("memory://probe"), writers=4, rounds=3)
    assert (report.can_carry_timeline, report.can_carry_lease, report.creates) == (False, False, None)
