"""Locks on file groups: one holder each, all or none, as alive as the claim behind them."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hudi_core.errors import CorruptFileError, LockError
from hudi_core.model.names import FileGroupId
from hudi_core.storage.base import Storage
from hudi_core.storage.local import LocalStorage
from hudi_core.transaction.claim import Claim, claim
from hudi_core.transaction.file_group_locks import FOLDER, FileGroupLocks, lock_path
from hudi_core.transaction.owner import Owner
from tests.support.fault_storage import MUTATIONS, FaultPlan, FaultStorage, InjectedCrash
from tests.support.interleaving import Interleaving
from tests.support.memory_storage import MemoryStorage
from tests.support.racing_processes import FORK, Holder, run_all

A, B = "20260104000000000", "20260105000000000"
HERE = Owner.current("here")
GROUPS = [FileGroupId("p", f"f-{number}") for number in range(4)]


def state(storage: Storage, group: FileGroupId) -> tuple[str, bool]:
    body = json.loads(storage.read(lock_path(group)))
    return body["instant"], body["free"]


def test_held_until_the_end_and_one_file_per_group_is_left() -> None:
    storage = MemoryStorage()
    with claim(storage, A, HERE) as held:
        with FileGroupLocks(storage, held, [*GROUPS, GROUPS[0]]):
            assert [state(storage, group) for group in GROUPS] == [(A, False)] * 4
        assert [state(storage, group) for group in GROUPS] == [(A, True)] * 4
    assert len(storage.list_files(FOLDER)) == 4


def test_another_run_is_refused_with_the_holder_and_takes_nothing() -> None:
    storage = MemoryStorage()
    with claim(storage, A, dataclasses.replace(HERE, text="dag first")) as first, claim(storage, B, HERE) as second:
        with FileGroupLocks(storage, first, [GROUPS[2]]):
            with pytest.raises(LockError, match="f-2 of partition 'p' is locked by dag first") as caught:
                FileGroupLocks(storage, second, GROUPS).acquire()
            assert caught.value.path == lock_path(GROUPS[2])
            assert caught.value.exit_code == 3
            assert A in str(caught.value.remedy)
            assert [state(storage, group)[1] for group in GROUPS[:3]] == [True, True, False]
            assert not storage.exists(lock_path(GROUPS[3]))
            with FileGroupLocks(storage, second, [GROUPS[0], GROUPS[3]]):
                pass
        with FileGroupLocks(storage, second, GROUPS):
            assert state(storage, GROUPS[2]) == (B, False)


def test_partitions_with_equal_file_ids_and_any_names_have_locks_of_their_own() -> None:
    storage = MemoryStorage()
    groups = [
        FileGroupId("p", "f"),
        FileGroupId("", "f"),
        FileGroupId("p/f", ""),
        FileGroupId("ü=%2F", "f"),
        FileGroupId("p", "f-0"),
    ]
    with claim(storage, A, HERE) as held, FileGroupLocks(storage, held, groups):
        assert len(storage.list_files(FOLDER)) == len(groups)


def test_acquired_in_sorted_order() -> None:
    plan = FaultPlan()
    storage = FaultStorage(MemoryStorage(), plan)
    with claim(storage, A, HERE) as held:
        FileGroupLocks(storage, held, reversed(GROUPS)).acquire()
    written = [operation.path for operation in plan.operations if operation.kind == "write_if"]
    assert written == [lock_path(group) for group in GROUPS]


def test_the_next_run_of_the_same_instant_takes_its_own_locks_over() -> None:
    storage = MemoryStorage()
    first = claim(storage, A, HERE)
    FileGroupLocks(storage, first, GROUPS).acquire()
    first.release()
    with claim(storage, A, HERE) as second, FileGroupLocks(storage, second, GROUPS):
        assert state(storage, GROUPS[0]) == (A, False)


def test_a_released_claim_holds_nothing_any_more() -> None:
    storage = MemoryStorage()
    first = claim(storage, A, HERE)
    FileGroupLocks(storage, first, GROUPS).acquire()
    with claim(storage, B, HERE) as second:
        with pytest.raises(LockError):
            FileGroupLocks(storage, second, GROUPS).acquire()
        first.release()
        with FileGroupLocks(storage, second, GROUPS):
            assert state(storage, GROUPS[0]) == (B, False)


def test_who_was_succeeded_does_not_free_the_new_holders_lock(caplog: pytest.LogCaptureFixture) -> None:
    storage = MemoryStorage()
    first = claim(storage, A, HERE)
    old = FileGroupLocks(storage, first, GROUPS)
    old.acquire()
    with claim(storage, A, HERE, now=lambda: time.time() + 1000) as second, FileGroupLocks(storage, second, GROUPS):
        old.release()
        assert "taken away" in caplog.text
        assert [state(storage, group)[1] for group in GROUPS] == [False] * 4
    first.release()


def _take(root: str) -> Any:
    storage = LocalStorage(root)
    held = claim(storage, A, Owner.current("child"))
    locks = FileGroupLocks(storage, held, GROUPS)
    locks.acquire()
    return held, locks


def test_the_locks_of_a_killed_process_are_taken_over_and_not_before(tmp_path: Path) -> None:
    child = Holder(partial(_take, str(tmp_path)))
    storage = LocalStorage(tmp_path)
    with claim(storage, B, HERE) as held:
        with pytest.raises(LockError, match="child"):
            FileGroupLocks(storage, held, GROUPS).acquire()
        child.kill()
        with FileGroupLocks(storage, held, GROUPS):
            assert state(storage, GROUPS[3]) == (B, False)


@pytest.mark.parametrize("timing", ["before", "after"])
def test_killed_at_any_write_it_blocks_no_process_once_its_claim_is_over(timing: Any) -> None:
    number = 0
    while True:
        inner = MemoryStorage()
        with claim(inner, A, HERE) as first:
            plan = FaultPlan(kill_at=number, counts=MUTATIONS, timing=timing)
            try:
                with FileGroupLocks(FaultStorage(inner, plan), first, GROUPS):
                    pass
            except InjectedCrash:
                number += 1
        with claim(inner, B, HERE) as second, FileGroupLocks(inner, second, GROUPS):
            assert [state(inner, group) for group in GROUPS] == [(B, False)] * 4
        if not plan.crashed:
            break
    assert number == 8


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'{"version": 1, "free": "yes"}',
        b'{"version": 1, "free": false, "instant": "../x", "epoch": 1, "owner": {}}',
    ],
)
def test_an_unreadable_lock_is_not_overruled(body: bytes) -> None:
    storage = MemoryStorage()
    storage.write(lock_path(GROUPS[0]), body)
    with claim(storage, A, HERE) as held, pytest.raises(CorruptFileError) as caught:
        FileGroupLocks(storage, held, GROUPS[:1]).acquire()
    assert caught.value.path == lock_path(GROUPS[0])


class Inside:
    """Who holds each group now: more than one is what locks are there to prevent."""

    def __init__(self) -> None:
        self.holders: dict[FileGroupId, set[str]] = {group: set() for group in GROUPS}
        self.shared: list[str] = []

    def enter(self, name: str, groups: Iterable[FileGroupId]) -> None:
        for group in groups:
            self.holders[group].add(name)
            if len(self.holders[group]) > 1:
                self.shared.append(f"{group.file_id}: {sorted(self.holders[group])}")

    def leave(self, name: str, groups: Iterable[FileGroupId]) -> None:
        for group in groups:
            self.holders[group].discard(name)


@pytest.mark.slow
def test_in_no_interleaving_two_hold_one_group_and_of_those_that_meet_one_gets_on() -> None:
    wins = 0
    for seed in range(200):
        inner, inside = MemoryStorage(), Inside()
        order = Interleaving(inner, seed)
        won: list[str] = []

        def work(storage: Storage, instant: str, held: Claim, inside: Inside = inside, won: list[str] = won) -> None:
            locks = FileGroupLocks(storage, held, GROUPS)
            try:
                locks.acquire()
            except LockError:
                return
            inside.enter(instant, GROUPS)
            storage.exists("work")
            inside.leave(instant, GROUPS)
            won.append(instant)
            locks._held.clear()

        claims = [claim(inner, instant, HERE) for instant in (A, B)]
        for instant, held in zip((A, B), claims, strict=True):
            order.add(lambda storage, instant=instant, held=held: work(storage, instant, held))  # type: ignore[misc]
        order.run()
        for held in claims:
            held.release()
        assert inside.shared == []
        assert len(won) == 1
        wins += 1
    assert wins == 200


def _race(number: int, barrier: Any, root: str, rounds: int, inside: Any, most: Any, won: Any) -> None:
    storage = LocalStorage(root)
    with claim(storage, f"2026010500000{number:04d}", Owner.current(f"racer {number}")) as held:
        for _ in range(rounds):
            barrier.wait(60)
            try:
                with FileGroupLocks(storage, held, GROUPS):
                    with inside.get_lock():
                        inside.value += 1
                        most.value = max(most.value, inside.value)
                    time.sleep(0.005)
                    with inside.get_lock():
                        inside.value -= 1
                    with won.get_lock():
                        won.value += 1
            except LockError:
                pass
            barrier.wait(60)


def test_processes_that_race_for_groups_hold_them_one_at_a_time(tmp_path: Path) -> None:
    inside, most, won = FORK.Value("i", 0), FORK.Value("i", 0), FORK.Value("i", 0)
    run_all(_race, 6, str(tmp_path), 10, inside, most, won)
    assert most.value == 1
    assert won.value >= 10
