"""Our services are killed on tables of real Hudi, after one storage operation of each class, and real Hudi judges what
they left.

It reads what the dead process left, after each class; where the kill was in the middle, it reads what another process
made of it, and upserts, compacts and cleans on top. Versions 6, 8 and 9, each by the Hudi that it is native to, in one
session.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hudi_core.timeline.instant import Action, State
from hudi_core.transaction.owner import Owner
from tests.faults.test_known_bugs import half_written
from tests.interop.judged import JUDGES, KEEP_ONE, MOR, QUICK, Judged
from tests.interop.real_hudi import RealHudi
from tests.support.changed_tables import leftovers, open_context
from tests.support.fault_storage import MUTATIONS, FaultPlan
from tests.support.rows import assert_same_rows
from tests.support.service_calls import (
    Act,
    archive_act,
    clean_act,
    delete_savepoint_act,
    failed_writes_act,
    killed,
    one_of_each_class,
    perform,
    restore_act,
    rollback_act,
    savepoint_act,
    takeover_act,
    unschedule_act,
)

pytestmark = [pytest.mark.hudi, pytest.mark.slow, pytest.mark.conformance]

SOON_COMPACTED = {"hoodie.metadata.compact.max.delta.commits": "2"}
"""Instants are archived only up to the metadata table's last compaction."""
TIGHT = {
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.clean.commits.retained": "1",
    "hoodie.compact.inline.max.delta.commits": "1",
    "airflow_hudi.timeline.zone": "UTC",
}


@dataclass
class Subject:
    """A table before a service, what that does, and what has to follow before real Hudi can go on."""

    table: Judged
    act: Act
    options: Mapping[str, str] = field(default_factory=dict)
    then: Callable[[Judged], None] = lambda table: None
    rows_change: bool = False


def _planned_clean(table: Judged) -> Subject:
    planned = table.run("schedule", service="clean", options=KEEP_ONE).document
    assert planned is not None
    assert planned["instant"] is not None, planned
    return Subject(table, clean_act(planned["instant"]), KEEP_ONE)


def _dead_write(table: Judged) -> str:
    """A write that died right before its completion: the metadata table has it already."""
    table.write(table.next_rows())
    failed = table.instants()[-1]
    active = open_context(table.base).active
    (table.base / active.path_of(failed)).unlink()
    (table.base / active.folder / f".{Path(active.path_of(failed)).name}.crc").unlink(missing_ok=True)
    assert [item.requested_time for item in table.instants(completed=False) if not item.is_completed] == [
        failed.requested_time
    ]
    return failed.requested_time


def _rollback(table: Judged) -> Subject:
    return Subject(table, rollback_act(_dead_write(table)))


def _failed_writes(table: Judged) -> Subject:
    _dead_write(table)
    return Subject(table, failed_writes_act())


def _restore(table: Judged) -> Subject:
    saved = table.run("savepoint_create").document
    assert saved is not None
    rows = table.rows
    table.upsert()
    table.upsert(fresh=False)
    table.rows = rows
    return Subject(table, restore_act(saved["instant"]), rows_change=True)


def _savepoint(table: Judged) -> Subject:
    return Subject(table, savepoint_act(table.times()[-1]))


def _delete_savepoint(table: Judged) -> Subject:
    saved = table.run("savepoint_create").document
    assert saved is not None
    table.upsert(fresh=False)
    return Subject(table, delete_savepoint_act(saved["instant"]))


def _archive(table: Judged) -> Subject:
    for number in range(3):
        table.upsert(fresh=number == 0)
    return Subject(table, archive_act(), TIGHT)


def _unschedule(table: Judged) -> Subject:
    return Subject(table, unschedule_act(table.schedule_compaction()))


def _takeover(table: Judged) -> Subject:
    instant = table.schedule_compaction()
    open_context(table.base).active.to_inflight(instant, Action.COMPACTION)
    half_written(table.base, instant)

    def compact(freed: Judged) -> None:
        assert open_context(freed.base).active.load().get(instant, Action.COMPACTION).state is State.REQUESTED
        freed.hudi.ask("compact", base=str(freed.base), instant=instant, options=freed.options)

    return Subject(table, takeover_act(instant), then=compact)


SERVICES: dict[str, Callable[[Judged], Subject]] = {
    "clean": _planned_clean,
    "rollback": _rollback,
    "failed writes": _failed_writes,
    "restore": _restore,
    "savepoint": _savepoint,
    "savepoint deleted": _delete_savepoint,
    "archive": _archive,
    "unschedule": _unschedule,
    "takeover": _takeover,
}


@pytest.fixture(scope="module", params=list(JUDGES))
def source(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Judged:
    """A merge-on-read table of real Hudi, compacted, with logs on top."""
    version = str(request.param)
    hudi: RealHudi = request.getfixturevalue(JUDGES[version])
    table = Judged.create(hudi, tmp_path_factory.mktemp("source") / "table", MOR, version, SOON_COMPACTED)
    table.upsert()
    table.upsert(fresh=False)
    table.compact()
    table.upsert(fresh=False)
    return table


def assert_hudi_reads(subject: Subject, table: Judged) -> None:
    """What the dead process left: the rows are due at every moment, and where they change, both listings say the
    same.
    """
    by_metadata, by_listing = (table.hudi.snapshot(table.base, metadata=metadata) for metadata in (True, False))
    assert_same_rows(by_metadata, by_listing)
    if not subject.rows_change:
        assert_same_rows(by_listing.select(table.rows.column_names), table.rows)


@pytest.mark.parametrize("service", list(SERVICES))
def test_real_hudi_judges_what_a_killed_service_left(service: str, source: Judged, tmp_path: Path) -> None:
    subject = SERVICES[service](source.copy(tmp_path / "before"))
    options = {**QUICK, **subject.options}
    undisturbed = subject.table.copy(tmp_path / "undisturbed")
    counted = FaultPlan(counts=MUTATIONS)
    perform(undisturbed.base, subject.act, Owner.current("the tests"), counted, options)
    points = one_of_each_class(counted.mutations())
    assert len(points) > 3, points
    for name, number in points.items():
        table = subject.table.copy(tmp_path / f"killed-{number}")
        killed(table.base, subject.act, FaultPlan(kill_at=number, timing="after", counts=MUTATIONS), options)
        try:
            assert_hudi_reads(subject, table)
        except Exception as error:
            raise AssertionError(f"{service}, killed after {name}") from error
        shutil.rmtree(table.base)
    middle = list(points.values())[len(points) // 2]
    table = subject.table.copy(tmp_path / "goes-on")
    killed(table.base, subject.act, FaultPlan(kill_at=middle, timing="after", counts=MUTATIONS), options)
    perform(table.base, subject.act, Owner.current("another process"), None, options)
    with open_context(table.base).lock(Owner.current("the next process")):
        pass  # a dead process may have left the lock, and an act that finds nothing left to do takes none
    if service == "archive":
        assert open_context(table.base).history().instants(), "nothing was archived"
    table.check()
    subject.then(table)
    table.goes_on()
    # A heartbeat may stay that a dead run began on an instant which needs no run any more: it expires.
    assert [name for name in leftovers(table.base) if "/claims/" not in name and "/.heartbeat/" not in name] == []
