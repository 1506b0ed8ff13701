"""Every method of the publisher, killed before each change of the storage in turn and run again: nothing is lost,
nothing is left.

The three versions take turns, and each is killed before every third change, a clean and a rollback on one version in
`make test` and on the others in `make conformance`; in `make soak` before all.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import pytest

from hudi_core.metadata_table.write.lifetime import drop_metadata_table, remove_dropped
from hudi_core.metadata_table.write.publish import MetadataPublisher
from hudi_core.timeline.instant import Action, State
from tests.support.fault_storage import MUTATIONS, FaultPlan, FaultStorage, InjectedCrash
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import (
    Records,
    Table,
    comparable,
    complete_clean,
    complete_rollback,
    crash_before_completion,
)
from tests.support.tiers import tiered
from tests.unit.hudi_core.metadata_table.write.test_publish_partition_types import remove_data, some_files, stored

Golden = Callable[[str, str], GoldenCase]
LISTED = {"hoodie.table.metadata.partitions": "", "hoodie.table.metadata.partitions.inflight": ""}


@dataclass
class Step:
    """`call` is what is killed, `before` what the table holds while the action is pending, `finish` completes it on the
    data timeline.
    """

    table: Table
    call: Callable[[MetadataPublisher], object]
    before: Records | None
    finish: Callable[[], object]


def clean(table: Table) -> Step:
    before, changes, instant = table.live(), some_files(table), table.new_instant()
    table.data.create_requested(instant, Action.CLEAN, b"plan")
    return Step(
        table,
        lambda publisher: publisher.publish_deletes(instant, changes),
        before,
        lambda: complete_clean(table, instant),
    )


def roll_back(table: Table) -> Step:
    failed = table.data.load().commits().instants[-1].requested_time
    crash_before_completion(table, failed)
    before, rollback = table.live(), table.new_instant()
    return Step(
        table,
        lambda publisher: publisher.roll_back(failed, rollback),
        before,
        lambda: complete_rollback(table, failed, rollback),
    )


def restore(table: Table) -> Step:
    *_, target, _ = table.data.load().commits().instants
    instant = table.new_instant()
    remove_data(table, target.completed_at, instant)
    return Step(table, lambda publisher: publisher.restore(target.requested_time, instant), None, lambda: None)


def killed_everywhere(make: Callable[[], Step], turn: Turn) -> tuple[int, Records]:
    """How many changes the step makes or a few more, and what the table holds in the end, however often it was
    killed.
    """
    whole = make()
    whole.call(whole.table.publisher())
    whole.finish()
    expected = comparable(whole.table.live())
    number, versions = turn
    while True:
        step = make()
        plan = FaultPlan(kill_at=number, counts=MUTATIONS)
        with contextlib.suppress(InjectedCrash):
            step.call(step.table.publisher(FaultStorage(step.table.storage, plan)))
        if step.before is not None:
            assert comparable(step.table.live()) == comparable(step.before), "nothing shows before the action completes"
        step.call(step.table.publisher())
        step.finish()
        assert comparable(step.table.live()) == expected, number
        assert not list(step.table.metadata_timeline.load().pending()), number
        if not plan.crashed:
            return number, expected
        number += versions


KILLED = [
    (clean, "6", "mdt_all_mor"),
    (clean, "8", "mor_basic"),
    (clean, "9", "mdt_all_cow"),
    (roll_back, "6", "mdt_all_mor"),
    (roll_back, "8", "mor_basic"),
    (roll_back, "9", "cow_basic"),
]
RESTORED = ["6-by-1.2.0", "8", "9"]
Turn = tuple[int, int]
"""The first change to die before, and how many versions share the changes."""


def in_turns(*cases: Any, core: Collection[str]) -> list[Any]:
    """Each third of the changes on another case, the `core` of them in `make test`, and all changes on each."""
    quick = [pytest.param(*case, (number % 3, 3), id="-".join(map(text, case))) for number, case in enumerate(cases)]
    return [
        *tiered(quick, core),
        *(pytest.param(*case, (0, 1), id=f"{'-'.join(map(text, case))}-all", marks=pytest.mark.soak) for case in cases),
    ]


def text(value: Any) -> str:
    return value if isinstance(value, str) else str(value.__name__)


@pytest.mark.parametrize(
    ("step", "version", "case", "turn"), in_turns(*KILLED, core=["clean-9-mdt_all_cow", "roll_back-6-mdt_all_mor"])
)
def test_killed_anywhere_and_run_again(
    golden: Golden, step: Callable[[Table], Step], version: str, case: str, turn: Turn
) -> None:
    changes, _ = killed_everywhere(lambda: step(Table(golden(version, case).table)), turn)
    assert changes > 5


@pytest.mark.parametrize(("version", "turn"), in_turns(*((version,) for version in RESTORED), core=RESTORED))
def test_a_restore_killed_anywhere_and_run_again(golden: Golden, version: str, turn: Turn) -> None:
    tables: list[Table] = []

    def make() -> Step:
        tables.append(Table(golden(version, "cow_basic").table))
        return restore(tables[-1])

    changes, records = killed_everywhere(make, turn)
    assert changes > 10
    assert set(records["files"]) >= set(stored(tables[-1]))


@pytest.mark.parametrize(
    ("version", "case"), tiered([("6", "mdt_all_cow_compacted"), ("9", "cow_basic")], [("9", "cow_basic")])
)
def test_a_drop_killed_anywhere_leaves_a_table_that_can_be_read(golden: Golden, version: str, case: str) -> None:
    number = 0
    while True:
        table = Table(golden(version, case).table)
        before = table.config
        plan = FaultPlan(kill_at=number, counts=MUTATIONS)
        with contextlib.suppress(InjectedCrash):
            drop_metadata_table(FaultStorage(table.storage, plan))
        after = table.config
        assert {**after.raw, **LISTED} == {**before.raw, **LISTED}
        if after.metadata_partitions:
            assert after.metadata_partitions == before.metadata_partitions
            assert table.live(), "still whole"
            assert not remove_dropped(table.storage, after), "it is in use"
            drop_metadata_table(table.storage)
        left = table.path.joinpath(".hoodie/metadata").exists()
        if left and not table.storage.exists(".hoodie/metadata/.hoodie/hoodie.properties"):
            assert remove_dropped(table.storage, table.config)
        drop_metadata_table(table.storage)
        assert not remove_dropped(table.storage, table.config)
        assert not table.path.joinpath(".hoodie/metadata").exists()
        assert table.config.metadata_partitions == frozenset()
        assert not table.path.joinpath(".hoodie/hoodie.properties.backup").exists()
        if not plan.crashed:
            break
        number += 1
    assert number > 5


def test_a_clean_that_real_hudi_began_is_finished(golden: Golden) -> None:
    """Its log files are there, its deltacommit is not completed: nothing is written twice."""
    for version in ("6", "8", "9"):
        table = Table(golden(version, "mdt_all_cow").table)
        first = clean(table)
        first.call(table.publisher())
        files = sorted(path.name for path in table.path.glob(".hoodie/metadata/*/.*.log.*"))
        done = table.metadata_timeline.load().instants[-1]
        table.metadata_timeline.remove(done.requested_time, Action.DELTA_COMMIT, State.COMPLETED)
        first.call(table.publisher())
        assert sorted(path.name for path in table.path.glob(".hoodie/metadata/*/.*.log.*")) == files
        assert table.metadata_timeline.load().get(done.requested_time, Action.DELTA_COMMIT).is_completed
