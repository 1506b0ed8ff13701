"""Services on tables of all partition types are killed at every operation that changes the storage; the process that
runs them again gets to one end.

That is the end of an undisturbed run: the same files, rows, and records of every partition type; `validate` finds
nothing. At every moment in between the rows are the same by both listings. `make test` kills a clean and a restore
at a few operations, `make conformance` two services on each version; all others run in `make soak`.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hudi_core.transaction.owner import Owner
from tests.support.fault_storage import MUTATIONS, FaultPlan, InjectedCrash, Operation
from tests.support.fully_indexed_tables import SUBJECTS, VERSIONS, Subject, assert_true, end_of
from tests.support.golden_data import PARTITIONED, open_table
from tests.support.rows import assert_same_rows
from tests.support.service_calls import Timing, class_of, dead_process, killed, one_of_each_class, perform
from tests.support.table_invariants import has_metadata_table, read_rows
from tests.support.tiers import tiered

KILLED = {
    "6": ("clean by versions", "restore behind a clean"),
    "8": ("rollback of a failed write", "unschedule"),
    "9": ("rollback of a compaction", "restore"),
}
"""What is not left to `make soak`, on each version."""
SOME = 2
"""Kills of one of these, spread over the classes of operations."""
OTHER_TABLES = 4
"""Of the changes on further tables of a service, one of so many is killed; each table has others."""
NOTHING_TO_CLEAN = ("clean by versions", "clean by commits", "restore behind a clean", "archive")
"""Not on a table of three commits without a compaction."""
EVERYTHING = [
    *((name, version, case) for name, subject in SUBJECTS.items() for version in VERSIONS for case in subject.cases),
    *((name, "9", PARTITIONED) for name in SUBJECTS if name not in NOTHING_TO_CLEAN),
]


@dataclass(frozen=True)
class Killed:
    """A table to which a service is done, and what it is like without a kill."""

    subject: Subject
    source: Path
    instant: str
    end: dict[str, Any]
    operations: list[Operation]

    def copy(self, target: Path) -> Path:
        return Path(shutil.copytree(self.source, target, symlinks=True))

    def run(self, table: Path, owner: Owner, plan: FaultPlan | None = None) -> None:
        perform(table, self.subject.act(self.instant), owner, plan, self.subject.options)


def undisturbed(name: str, version: str, case: str, scratch: Path) -> Killed:
    subject = SUBJECTS[name]
    source = open_table(version, case, scratch)
    instant = subject.begins(source)
    end = Path(shutil.copytree(source, scratch / "undisturbed", symlinks=True))
    plan = FaultPlan(counts=MUTATIONS)
    perform(end, subject.act(instant), Owner.current("the tests"), plan, subject.options)
    assert_true(end)
    return Killed(subject, source, instant, end_of(end), plan.mutations())


def assert_survives(table: Killed, number: int, timing: Timing, scratch: Path, *, validated: bool = True) -> None:
    """With `validated`, the metadata table is validated, besides having the records that it has without a kill,
    which are valid.
    """
    path = table.copy(scratch / f"killed-{number}")
    killed(
        path,
        table.subject.act(table.instant),
        FaultPlan(kill_at=number, timing=timing, counts=MUTATIONS),
        table.subject.options,
    )
    where = f"killed {timing} {number}, {class_of(table.operations[number])}"
    if has_metadata_table(path):
        assert_same_rows(read_rows(path, "on"), read_rows(path, "off"))
    table.run(path, Owner.current("another process"))
    if validated:
        assert_true(path)
    found = end_of(path)
    for name, value in table.end.items():
        assert found[name] == value, f"{name}, {where}"
    shutil.rmtree(path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "name"),
    tiered(
        [(version, name) for version, names in KILLED.items() for name in names],
        [("6", "clean by versions"), ("9", "restore")],
    ),
)
def test_killed_at_some_operations(version: str, name: str, tmp_path: Path) -> None:
    """Those that concern the metadata table, and the last: elsewhere the services' own sweeps kill."""
    table = undisturbed(name, version, SUBJECTS[name].one, tmp_path)
    first = {
        class_of(item): number
        for number, item in reversed(list(enumerate(table.operations)))
        if ".hoodie/metadata/" in item.path
    }
    points = sorted({*first.values(), len(table.operations) - 1})
    assert len(points) > 1
    for number in points[:: -max(1, len(points) // SOME)]:
        assert_survives(table, number, "after", tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize(("name", "version", "case"), EVERYTHING)
def test_killed_at_every_change(name: str, version: str, case: str, tmp_path: Path) -> None:
    """Before each, which is what a kill after the one before it leaves, and after the last; on further tables of a
    service before every fourth.
    """
    table = undisturbed(name, version, case, tmp_path)
    last = len(table.operations) - 1
    assert last > 2
    telling = {*one_of_each_class(table.operations).values()}
    if case in (SUBJECTS[name].one, PARTITIONED):
        points = range(last + 1)
    else:
        points = range(SUBJECTS[name].cases.index(case) % OTHER_TABLES, last + 1, OTHER_TABLES)
    for number in points:
        assert_survives(table, number, "before", tmp_path, validated=number in telling)
    assert_survives(table, last, "after", tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", list(SUBJECTS))
def test_killed_three_times(name: str, version: str, tmp_path: Path) -> None:
    """The process that takes over dies as well, each a little further on."""
    table = undisturbed(name, version, SUBJECTS[name].one, tmp_path)
    for number in range(0, len(table.operations), 7):
        path = table.copy(tmp_path / f"killed-{number}")
        for step in range(3):
            try:
                table.run(path, dead_process(), FaultPlan(kill_at=number + 2 * step, timing="after", counts=MUTATIONS))
            except InjectedCrash:
                continue
        table.run(path, Owner.current("another process"))
        assert_true(path)
        assert end_of(path) == table.end
        shutil.rmtree(path)
