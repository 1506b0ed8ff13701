from __future__ import annotations

import dataclasses
import json
import os
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from hudi_core.errors import ConfigError, ConflictError, CorruptFileError, StorageError
from hudi_core.model.names import CLAIMS
from hudi_core.storage.base import Storage
from hudi_core.storage.local import LocalStorage
from hudi_core.transaction.claim import Claim, claim
from hudi_core.transaction.claim_file import Decision, current_claim, forget_claims
from hudi_core.transaction.owner import Owner
from tests.support.fault_storage import MUTATIONS, FaultPlan, FaultStorage, InjectedCrash
from tests.support.memory_storage import MemoryStorage
from tests.support.racing_processes import Holder

T = "20261120221738843"
FOLDER = f"{CLAIMS}/{T}"
HEARTBEAT = f".hoodie/.heartbeat/{T}"
HERE = Owner.current("here")
DEAD = dataclasses.replace(HERE, text="dag dead", process_start="1")
REMOTE = dataclasses.replace(HERE, text="dag remote", host="elsewhere", boot_id="another")
ROUNDS = 60


def names(storage: Storage, folder: str = FOLDER) -> list[str]:
    return [info.name for info in storage.list_files(folder)]


def take(root: str) -> Claim:
    return claim(LocalStorage(root), T, Owner.current("child"))


def put_claim(storage: Storage, owner: Owner, *, epoch: int = 1, interval_ms: int = 60_000) -> None:
    body = {"version": 1, "token": "abc", "owner": owner.to_json(), "interval_ms": interval_ms, "tolerable_misses": 2}
    storage.create_exclusive(f"{FOLDER}/{epoch:06d}.json", json.dumps(body).encode())


def test_a_claim_has_a_heartbeat_and_leaves_its_release_behind() -> None:
    storage = MemoryStorage()
    with claim(storage, T, HERE) as held:
        assert (held.epoch, held.owner, held.instant) == (1, HERE, T)
        assert names(storage) == ["000001.json"]  # the claim itself is the first sign of life
        assert storage.exists(HEARTBEAT)
        held.check()
        found = current_claim(storage, T)
        assert found is not None
        assert (found.epoch, found.owner, found.tolerance_seconds) == (1, HERE, 120.0)
    held.release()
    assert names(storage) == ["000001.json", "000001.released"]
    assert not storage.exists(HEARTBEAT)
    assert current_claim(storage, "1") is None


def test_of_an_instant_that_is_over_no_claim_stays() -> None:
    storage = MemoryStorage()
    claim(storage, T, HERE).release()
    with claim(storage, T, HERE) as held:
        held.heartbeat._send()
        assert "000002.heartbeat" in names(storage)
        held.is_over = True
    assert names(storage) == []
    assert not storage.exists(HEARTBEAT)


def test_a_second_run_is_refused_with_the_owner_and_its_start() -> None:
    storage = MemoryStorage(clock=lambda: 0.0)
    with claim(storage, T, dataclasses.replace(HERE, text="dag first")), pytest.raises(ConflictError) as caught:
        claim(storage, T, HERE)
    assert "dag first" in str(caught.value)
    assert str(os.getpid()) in str(caught.value)
    assert "1970-01-01T00:00:00Z" in str(caught.value)
    assert caught.value.path == f"{FOLDER}/000001.json"
    assert caught.value.exit_code == 3
    assert caught.value.remedy


def test_a_released_instant_is_claimed_at_once_by_any_process() -> None:
    storage = MemoryStorage()
    claim(storage, T, REMOTE).release()
    with claim(storage, T, HERE) as held:
        assert held.epoch == 2


def test_instants_do_not_disturb_each_other() -> None:
    storage = MemoryStorage()
    with claim(storage, T, HERE), claim(storage, "1", HERE) as held:
        assert held.epoch == 1


def test_a_killed_process_is_succeeded_but_not_while_it_lives(tmp_path: Path) -> None:
    child = Holder(partial(take, str(tmp_path)))
    storage = LocalStorage(tmp_path)
    with pytest.raises(ConflictError, match="child"):
        claim(storage, T, HERE)
    child.kill(reap=False)
    with claim(storage, T, HERE) as held:
        assert held.epoch == 2
        held.check()
    assert names(storage) == ["000001.decision", "000001.json", "000002.json", "000002.released"]
    child.process.join(30)


def test_an_owner_elsewhere_is_succeeded_only_when_its_heartbeat_expired() -> None:
    clock = [1000.0]
    storage = MemoryStorage(clock=lambda: clock[0])
    put_claim(storage, REMOTE)
    clock[0] = 1100.0
    storage.write(f"{FOLDER}/000001.heartbeat", b"")
    for instant in (1100.0, 1150.0, 1220.0, 900.0):
        clock[0] = instant
        with pytest.raises(ConflictError, match="dag remote"):
            claim(storage, T, HERE)
    clock[0] = 1220.1
    with claim(storage, T, HERE) as held:
        assert held.epoch == 2
    assert not [name for name in names(storage) if name.startswith("clock")]


def test_an_owner_that_never_beat_has_the_same_time_from_its_claim() -> None:
    storage = MemoryStorage(clock=lambda: 1000.0)
    put_claim(storage, REMOTE, interval_ms=1000)
    with pytest.raises(ConflictError):
        claim(storage, T, HERE, now=lambda: 1002.0)
    with claim(storage, T, HERE, now=lambda: 1002.1) as held:
        assert held.epoch == 2


def test_an_owner_that_closed_earlier_claims_beats_at_once() -> None:
    """That may have taken longer than others wait for its first sign of life."""
    storage = MemoryStorage()
    put_claim(storage, DEAD)
    with claim(storage, T, HERE) as held:
        assert held.epoch == 2
        assert "000002.heartbeat" in names(storage)


def test_the_owners_interval_counts_and_not_the_followers() -> None:
    storage = MemoryStorage(clock=lambda: 1000.0)
    put_claim(storage, REMOTE, interval_ms=600_000)
    with pytest.raises(ConflictError):
        claim(storage, T, HERE, interval_ms=10, now=lambda: 1500.0)


def test_a_succeeded_owner_is_refused_and_leaves_the_new_heartbeat() -> None:
    storage = MemoryStorage()
    old = claim(storage, T, REMOTE)
    with claim(storage, T, HERE, now=lambda: time.time() + 1000) as new:
        with pytest.raises(ConflictError, match="taken over") as caught:
            old.check()
        assert caught.value.exit_code == 3
        old.release()
        assert storage.exists(HEARTBEAT)
        new.check()


def test_a_claim_that_was_removed_is_lost() -> None:
    storage = MemoryStorage()
    with claim(storage, T, HERE) as held:
        storage.delete(f"{FOLDER}/000001.json")
        with pytest.raises(ConflictError, match="removed"):
            held.check()


def test_a_run_of_this_process_that_could_not_release_is_succeeded_at_once() -> None:
    inner = MemoryStorage()
    plan = FaultPlan(when=lambda operation: operation.path.endswith(".released"), error=lambda _: StorageError("down"))
    held = claim(FaultStorage(inner, plan), T, HERE)
    with pytest.raises(StorageError, match="down"):
        held.release()
    with claim(inner, T, HERE) as again:
        assert again.epoch == 2


@pytest.mark.parametrize("timing", ["before", "after"])
@pytest.mark.parametrize(("is_over", "changes"), [(False, 4), (True, 5)])
def test_a_run_that_is_killed_at_any_write_of_its_claim_blocks_no_process_of_its_machine(
    timing: str, is_over: bool, changes: int
) -> None:
    number = 0
    while True:
        inner = MemoryStorage()
        plan = FaultPlan(kill_at=number, counts=MUTATIONS, timing="before" if timing == "before" else "after")
        try:
            own = claim(FaultStorage(inner, plan), T, HERE)
            own.is_over = is_over
            own.release()
        except InjectedCrash:
            number += 1
        with claim(inner, T, HERE) as held:
            held.check()
        if not plan.crashed:
            break
    assert number == changes


def test_a_failed_first_heartbeat_releases_the_instant() -> None:
    inner = MemoryStorage()
    plan = FaultPlan(when=lambda operation: operation.path == HEARTBEAT, error=lambda _: StorageError("down"))
    with pytest.raises(StorageError, match="down"):
        claim(FaultStorage(inner, plan), T, HERE)
    with claim(inner, T, HERE):
        pass


def test_the_heartbeat_is_renewed(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    with claim(storage, T, HERE, interval_ms=20, tolerable_misses=1000):
        os.utime(tmp_path / HEARTBEAT, (1, 1))
        deadline = time.monotonic() + 20
        while storage.stat(HEARTBEAT).modified < 2 or not storage.exists(f"{FOLDER}/000001.heartbeat"):
            assert time.monotonic() < deadline
            time.sleep(0.005)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b'{"version": 1}',
        b'{"version": 2, "owner": {}}',
        b'{"version": 1, "token": "a", "interval_ms": 1, "tolerable_misses": 1, "owner": {}}',
        json.dumps(
            {"version": 1, "token": "a", "interval_ms": 0, "tolerable_misses": 1, "owner": HERE.to_json()}
        ).encode(),
        json.dumps(
            {"version": 1, "token": "a", "interval_ms": "1", "tolerable_misses": 1, "owner": HERE.to_json()}
        ).encode(),
    ],
)
def test_an_unreadable_claim_is_not_overruled(content: bytes) -> None:
    storage = MemoryStorage()
    storage.write(f"{FOLDER}/000001.json", content)
    with pytest.raises(CorruptFileError) as caught:
        claim(storage, T, HERE)
    assert caught.value.path == f"{FOLDER}/000001.json"
    assert names(storage) == ["000001.json"]


def test_what_is_no_instant_or_no_rhythm_is_refused() -> None:
    for instant in ("", "../x", "2026-11-20", "1" * 40):
        with pytest.raises(ConfigError):
            claim(MemoryStorage(), instant, HERE)
    for interval, misses in ((0, 1), (1, 0), (10**9, 1), (86_400_000, 2)):
        with pytest.raises(ConfigError):
            claim(MemoryStorage(), T, HERE, interval_ms=interval, tolerable_misses=misses)


def test_of_racing_threads_one_claims(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    for instant in range(10):
        barrier = threading.Barrier(16)
        won: list[Claim] = []

        def race(instant: int = instant, barrier: threading.Barrier = barrier, won: list[Claim] = won) -> None:
            barrier.wait()
            try:
                won.append(claim(storage, str(instant), HERE))
            except ConflictError:
                return

        threads = [threading.Thread(target=race) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1
        won[0].release()


DECISION = Decision("compaction", None, b"content")


def test_a_successor_closes_every_earlier_epoch() -> None:
    storage = MemoryStorage()
    claims = [claim(storage, T, REMOTE, now=lambda: 2.0**40) for _ in range(3)]
    for older in claims[:2]:
        with pytest.raises(ConflictError, match="closed this run"):
            older.decide(DECISION)
        assert not older.may_have_decided
    claims[2].decide(DECISION)
    claims[2].decide(DECISION)
    assert claims[2].may_have_decided
    with pytest.raises(ConflictError, match="closed this run"):
        claims[2].decide(Decision("compaction", None, b"something else"))


def test_the_latest_decision_of_earlier_owners_is_the_successors_to_carry_out() -> None:
    storage = MemoryStorage()
    first = claim(storage, T, REMOTE)
    first.decide(DECISION)
    second = claim(storage, T, REMOTE, now=lambda: 2.0**40)
    assert second.decided == DECISION
    with pytest.raises(ConflictError, match="decided to complete") as caught:
        second.check()
    assert caught.value.path == f"{FOLDER}/000001.decision"
    second.check_owner()
    third = claim(storage, T, REMOTE, now=lambda: 2.0**40)
    assert third.decided == DECISION
    third.settle(abandoned=True)
    third.check()
    assert claim(storage, T, REMOTE, now=lambda: 2.0**40).decided is None


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b'{"version": 2}', b'{"version": 1, "action": "clean"}', b'{"version": 1, "action": 5}\nx', b"\xff\n"],
)
def test_an_unreadable_decision_is_neither_carried_out_nor_passed_over(content: bytes) -> None:
    storage = MemoryStorage()
    claim(storage, T, REMOTE).release()
    storage.write(f"{FOLDER}/000001.decision", content)
    with pytest.raises(CorruptFileError) as caught:
        claim(storage, T, HERE)
    assert caught.value.path == f"{FOLDER}/000001.decision"
    storage.delete(f"{FOLDER}/000001.decision")
    with claim(storage, T, HERE) as held:
        held.check()


def test_a_decision_after_the_claims_were_removed_leaves_nothing() -> None:
    storage = MemoryStorage()
    held = claim(storage, T, HERE)
    forget_claims(storage, T)
    with pytest.raises(ConflictError, match="removed"):
        held.decide(DECISION)
    assert not held.may_have_decided
    held.release()
    assert names(storage) == []


def test_a_kill_while_claims_are_removed_never_makes_an_old_owner_the_highest() -> None:
    number = 0
    while True:
        inner = MemoryStorage()
        zombies = [claim(inner, T, REMOTE, now=lambda: 2.0**40) for _ in range(3)]
        claim(inner, T, HERE, now=lambda: 2.0**40).release()
        plan = FaultPlan(kill_at=number, counts=MUTATIONS)
        try:
            forget_claims(FaultStorage(inner, plan), T)
        except InjectedCrash:
            number += 1
        for zombie in zombies:
            with pytest.raises(ConflictError):
                zombie.check()
        forget_claims(inner, T)
        assert names(inner) == []
        if not plan.crashed:
            break
    assert number > 8


def test_a_decision_that_a_cut_off_removal_left_is_of_no_later_owner() -> None:
    """A commit and its savepoint have one instant, and so one folder."""
    storage = MemoryStorage()
    with claim(storage, T, HERE) as held:
        held.decide(DECISION)
    storage.delete(f"{FOLDER}/000001.json")
    with claim(storage, T, HERE) as held:
        assert (held.epoch, held.decided) == (2, None)
        held.check()
        held.decide(DECISION)


def test_a_sign_of_life_from_the_future_is_none() -> None:
    """It would hold the instant until then; a clock that went back leaves the heartbeat, which is current."""
    storage = MemoryStorage(clock=lambda: 10_000.0)
    put_claim(storage, REMOTE)
    live = MemoryStorage(clock=lambda: 10_000.0)
    put_claim(live, REMOTE)
    live._clock = lambda: 1000.0
    live.write(f"{FOLDER}/000001.heartbeat", b"")
    with pytest.raises(ConflictError, match="dag remote"):
        claim(live, T, HERE, now=lambda: 1010.0)
    with claim(storage, T, HERE, now=lambda: 1010.0) as held:
        assert held.epoch == 2


def test_an_epoch_of_seven_digits_is_seen() -> None:
    storage = MemoryStorage(clock=lambda: 1000.0)
    put_claim(storage, REMOTE, epoch=999_999)
    with claim(storage, T, HERE, now=lambda: 5000.0) as held:
        assert held.epoch == 1_000_000
        held.check()
    with claim(storage, T, HERE) as held:
        assert held.epoch == 1_000_001


def test_what_refuses_is_asked_before_anything_is_written() -> None:
    storage = MemoryStorage("s3://bucket/table")

    def refuse() -> None:
        raise ConflictError("a writer is at work", path=HEARTBEAT)

    with pytest.raises(ConflictError, match="a writer is at work"):
        claim(storage, T, HERE, refuse=refuse)
    assert storage.list_tree("") == []
    claim(storage, T, HERE).release()
