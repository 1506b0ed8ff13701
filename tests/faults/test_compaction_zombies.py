"""A compaction that passed its last check and is stopped while it writes to the metadata table; its successor does all
of it; then it wakes up.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from hudi_core.errors import HudiError
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.services.rollback.verb import rollback
from hudi_core.timeline.instant import Action, State
from hudi_core.transaction.owner import Owner
from tests.support.changed_tables import data_files, listed
from tests.support.fault_storage import MUTATIONS, FaultPlan, FaultStorage, Operation
from tests.support.golden_data import GoldenCase
from tests.support.table_invariants import read_rows
from tests.support.tiers import tiered
from tests.unit.hudi_core.services.rewriting.test_other_writers_conflicts import Table, expire

Golden = Callable[[str, str], GoldenCase]
CASE = "mor_compaction_requested"
MOMENTS = {"6": 4, "8": 4, "9": 6}
"""In which it can be stopped: its deltacommit requested, inflight, a log file of each file group it writes to,
completed.
"""
STOPS = [(version, number) for version in ("6", "9") for number in range(MOMENTS[version])]
STOPS_OF_8 = [pytest.param("8", number, marks=pytest.mark.soak) for number in range(MOMENTS["8"])]


def stopped(table: Table, number: int, successor: Callable[[], object]) -> bool:
    """Runs the compaction; before its change number `number` of the metadata table `successor` does its part. False
    when there is no such one.
    """
    seen: list[str] = []
    fired: list[bool] = []

    def look(operation: Operation) -> bool:
        if operation.kind in MUTATIONS and operation.path.startswith(f"{ROOT}/") and not fired:
            seen.append(operation.path)
            if len(seen) == number + 1:
                fired.append(True)
                expire(table)
                successor()
        return False

    with suppress(HudiError):
        table.compact(storage=FaultStorage(table.storage, FaultPlan(when=look)))
    return bool(fired)


def files(table: Table) -> dict[str, int]:
    return {path: size for path, size in data_files(table.path).items() if not path.endswith("_partition_metadata")}


@pytest.mark.parametrize(
    ("version", "number"), [*tiered(STOPS, [("6", number) for number in range(MOMENTS["6"])]), *STOPS_OF_8]
)
def test_a_zombie_changes_nothing_of_what_its_successor_completed(golden: Golden, version: str, number: int) -> None:
    table = Table(golden(version, CASE))
    assert stopped(table, number, table.compact)
    assert table.state() is State.COMPLETED
    table.assert_compacted()
    assert listed(table.path) == files(table)


@pytest.mark.parametrize(("version", "number"), [*tiered(STOPS, [("9", 1), ("9", 3), ("9", 5)]), *STOPS_OF_8])
def test_a_zombie_changes_nothing_of_what_was_rolled_back(golden: Golden, version: str, number: int) -> None:
    table = Table(golden(version, CASE))
    before = read_rows(table.path, "off")
    assert stopped(table, number, lambda: rollback(table.context({}), table.instant, Owner.current("the second")))
    assert table.state() is State.REQUESTED
    assert read_rows(table.path, "on").equals(before)
    table.compact()
    table.assert_compacted()
    assert listed(table.path) == files(table)


@pytest.mark.parametrize("version", list(MOMENTS))
def test_there_are_no_other_moments_in_which_it_can_be_stopped(golden: Golden, version: str) -> None:
    table = Table(golden(version, CASE))
    assert not stopped(table, MOMENTS[version], lambda: None)
    assert table.active.load().get(table.instant, Action.COMPACTION).is_completed
