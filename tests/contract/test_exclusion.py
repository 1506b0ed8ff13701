"""Races of real processes for locks and claims on a local table, with the mistake that the races must find."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Any

import pytest

from hudi_core.errors import LockError, StorageConflictError, StorageExistsError
from hudi_core.model.names import CLAIMS
from hudi_core.storage.local import LocalStorage
from tests.support.racing_processes import FORK, break_and_hold, count_under_lock, race_for_claims, run_all
from tests.support.tiers import tiered
from tests.unit.hudi_core.transaction.locks.test_filesystem import DEAD, left_over, put_lock

RACERS = pytest.mark.parametrize("racers", tiered([8, 16], [8]))
CLAIMS_RACES = pytest.mark.parametrize(("racers", "rounds"), tiered([(8, 20), (16, 60)], [(8, 20)]))


class CheckThenPut(LocalStorage):
    """The mistake that the race must find: look, then write."""

    def create_exclusive(self, path: str, data: bytes) -> None:
        if self.exists(path):
            raise StorageExistsError("there", path=path)
        time.sleep(0.002)
        self.write(path, data)


@RACERS
def test_processes_count_under_the_lock(tmp_path: Path, racers: int) -> None:
    (tmp_path / "counter").write_text("0")
    run_all(count_under_lock, racers, str(tmp_path), 5)
    assert (tmp_path / "counter").read_text() == str(5 * racers)
    assert not left_over(LocalStorage(tmp_path))


def count_by_replacing(number: int, barrier: Any, root: str, kind: type[LocalStorage]) -> None:
    """Adds one to a counter by conditional replaces, ten times."""
    storage = kind(root)
    barrier.wait(60)
    for _ in range(10):
        while True:
            data, version = storage.read_versioned("counter")
            try:
                storage.write_if("counter", json.dumps([json.loads(data)[0] + 1, number]).encode(), version=version)
                break
            except StorageConflictError:
                time.sleep(random.uniform(0, 0.005))


class CompareThenPut(LocalStorage):
    """The mistake that the race must find: compare, then write."""

    def write_if(self, path: str, data: bytes, *, version: str | None) -> str:
        if self.read_versioned(path)[1] != version:
            raise StorageConflictError("changed", path=path)
        time.sleep(0.002)
        self.write(path, data)
        return self.read_versioned(path)[1]


@RACERS
def test_processes_count_by_conditional_replaces(tmp_path: Path, racers: int) -> None:
    (tmp_path / "counter").write_text("[0, 0]")
    run_all(count_by_replacing, racers, str(tmp_path), LocalStorage)
    assert json.loads((tmp_path / "counter").read_text())[0] == 10 * racers


def test_the_count_goes_wrong_where_replaces_compare_and_then_put(tmp_path: Path) -> None:
    (tmp_path / "counter").write_text("[0, 0]")
    run_all(count_by_replacing, 8, str(tmp_path), CompareThenPut)
    assert json.loads((tmp_path / "counter").read_text())[0] < 80, "a race test that passes here is too weak"


def count_badly(number: int, barrier: object, root: str, rounds: int) -> None:
    try:
        count_under_lock(number, barrier, root, rounds, CheckThenPut)
    except (LockError, ValueError):
        return


@RACERS
def test_the_count_goes_wrong_on_a_storage_that_checks_then_puts(tmp_path: Path, racers: int) -> None:
    (tmp_path / "counter").write_text("0")
    run_all(count_badly, racers, str(tmp_path), 5)
    assert (tmp_path / "counter").read_text() != str(5 * racers), "a race test that passes here is too weak"


@RACERS
def test_processes_break_a_stale_lock_one_after_the_other(tmp_path: Path, racers: int) -> None:
    storage = LocalStorage(tmp_path)
    for number in range(3):
        put_lock(storage, DEAD, f"stale{number}")
        inside, most = FORK.Value("i", 0), FORK.Value("i", 0)
        run_all(break_and_hold, racers, str(tmp_path), inside, most)
        assert most.value == 1
        assert not left_over(storage)


def winners(kind: type[LocalStorage], root: Path, racers: int, rounds: int) -> dict[int, list[int]]:
    wins = FORK.Queue()
    run_all(race_for_claims, racers, str(root), rounds, wins, kind)
    found: dict[int, list[int]] = {number: [] for number in range(1, rounds + 1)}
    while not wins.empty():
        instant, number = wins.get(timeout=10)
        found[instant].append(number)
    return found


@CLAIMS_RACES
def test_of_racing_processes_one_claims_in_each_round(tmp_path: Path, racers: int, rounds: int) -> None:
    found = winners(LocalStorage, tmp_path, racers, rounds)
    assert all(len(numbers) == 1 for numbers in found.values()), found


@CLAIMS_RACES
def test_of_processes_that_succeed_a_dead_owner_one_does(tmp_path: Path, racers: int, rounds: int) -> None:
    storage = LocalStorage(tmp_path)
    for instant in range(1, rounds + 1):
        body = {"version": 1, "token": "abc", "owner": DEAD.to_json(), "interval_ms": 60_000, "tolerable_misses": 2}
        storage.create_exclusive(f"{CLAIMS}/{instant}/000001.json", json.dumps(body).encode())
    found = winners(LocalStorage, tmp_path, racers, rounds)
    assert all(len(numbers) == 1 for numbers in found.values()), found
    assert storage.exists(f"{CLAIMS}/1/000002.released")
    assert not storage.exists(f"{CLAIMS}/1/000003.json")


@CLAIMS_RACES
def test_the_race_for_claims_finds_a_check_then_put(tmp_path: Path, racers: int, rounds: int) -> None:
    found = winners(CheckThenPut, tmp_path, racers, rounds)
    assert max(len(numbers) for numbers in found.values()) > 1, "a race test that passes here is too weak"
