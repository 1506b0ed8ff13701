from __future__ import annotations

import os
import time
from dataclasses import replace

import pytest

from hudi_core.transaction.owner import Owner
from hudi_health.doctor.writers import LockObservations, blocking_lock
from tests.support.golden_cleans import context_of
from tests.unit.hudi_health.doctor.test_examine import Golden, findings
from tests.unit.hudi_health.doctor.test_examine import rules as rules_of
from tests.unit.hudi_health.doctor.test_writers import ZOOKEEPER


def test_the_lock_of_a_dead_process(golden: Golden) -> None:
    table = golden("6", "mor_compacted").table
    dead = replace(Owner.current("nightly"), process_start="1")
    lock = context_of(table).lock(dead)
    lock.acquire()
    (finding,) = findings(table)
    assert (finding.rule, finding.owner, finding.path) == ("lock_left_behind", dead.describe(), ".hoodie/lock")
    assert "delete .hoodie/lock" in finding.fix


def test_a_lock_of_hudi_that_is_held_for_hours(golden: Golden) -> None:
    table = golden("6", "mor_compacted").table
    (table / ".hoodie" / "lock").write_bytes(b"")
    assert findings(table) == []
    long_ago = time.time() - 7200
    os.utime(table / ".hoodie" / "lock", (long_ago, long_ago))
    (finding,) = findings(table)
    assert (finding.rule, finding.owner) == ("lock_held", "a Hudi writer (its lock has no owner's name)")


def test_a_lock_of_a_provider_that_is_not_known(golden: Golden) -> None:
    provider = "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider"
    assert rules_of(golden("9", "mor_compacted").table, {"hoodie.write.lock.provider": provider}) == ["lock_unreadable"]


@pytest.mark.parametrize(
    ("lock", "expected"),
    [
        (
            LockObservations(None, "l", "process 7 on h", 5.0, left_behind=True, how_to_break="delete l"),
            "lock_left_behind",
        ),
        (LockObservations(None, "l", "a Hudi writer", 7200.0, how_to_break="delete l"), "lock_held"),
        (LockObservations(ZOOKEEPER, "zk", problem="no answer", how_to_break="check the url"), "lock_unreadable"),
    ],
)
def test_a_lock_that_blocks(lock: LockObservations, expected: str) -> None:
    (finding,) = blocking_lock(lock, 3600.0)
    assert (finding.rule, finding.path, finding.owner) == (expected, lock.name, lock.holder)
    assert str(lock.how_to_break) in finding.fix


def test_a_lock_in_use_is_no_finding() -> None:
    held = LockObservations(None, "l", "process 7 on h", 5.0, how_to_break="delete l")
    assert [*blocking_lock(held, 3600.0), *blocking_lock(LockObservations(None, ".hoodie/lock"), 3600.0)] == []
