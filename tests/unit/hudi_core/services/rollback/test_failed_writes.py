"""Cleaning behind failed writes leaves the rollbacks alone that a writer of Hudi may be at."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_core.errors import ConflictError
from hudi_core.services.rollback.verb import RollbackService, clean_failed_writes, request_rollback, rollback
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.actions.content import decode_datum, encode_datum
from hudi_core.timeline.actions.rollback import is_engine_plan
from hudi_core.timeline.instant import Action, State
from tests.support.changed_tables import an_owner, leftovers, open_context
from tests.support.fault_storage import FaultPlan, FaultStorage, Operation
from tests.support.golden_data import GoldenCase
from tests.support.service_calls import eager
from tests.support.table_invariants import read_rows

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ["6", "8", "9"]
POLICY = "hoodie.cleaner.policy.failed.writes"
HOUR = 3600.0


class Others:
    """A table with a rollback of a failed write that a writer of Hudi began, `age` seconds ago."""

    def __init__(self, case: GoldenCase, *, age: float = 0.0, state: State = State.INFLIGHT) -> None:
        self.table, self.after = case.table, case.after
        context = open_context(self.table)
        (failed,) = context.active.load().pending()
        self.failed = failed.requested_time
        self.rollback = request_rollback(context, failed, an_owner())
        self.path = context.active.path(self.rollback, Action.ROLLBACK, State.REQUESTED)
        plan = decode_datum(context.storage.read(self.path), path=self.path)
        context.storage.write(self.path, encode_datum("HoodieRollbackPlan", plan))
        if state is State.INFLIGHT:
            context.active.to_inflight(self.rollback, Action.ROLLBACK)
        for file in (self.table / context.active.folder).glob(f"{self.rollback}.*"):
            self.aged(file, age)

    @staticmethod
    def aged(file: Path, age: float) -> None:
        moment = time.time() - age
        os.utime(file, (moment, moment))

    def beats(self, age: float = 0.0) -> None:
        file = self.table / ".hoodie" / ".heartbeat" / self.rollback
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b"")
        self.aged(file, age)

    def cleaned(self, options: dict[str, str] | None = None) -> list[str | None]:
        return [result.instant for result in clean_failed_writes(open_context(self.table, options), an_owner())]

    def assert_left_alone(self, options: dict[str, str] | None = None) -> None:
        context, service = open_context(self.table, options), RollbackService()
        before = context.active.names()
        assert self.cleaned(options) == []
        for dry_run in (True, False):
            result = rollback(context, None, an_owner(), dry_run=dry_run)
            assert result.target is None
            assert f"rollback {self.rollback} is pending" in (result.reason or "")
            assert f"rollback {self.rollback} is pending" in (
                service.schedule(context, an_owner(), dry_run=dry_run).reason or ""
            )
        assert service.pending(context, context.active.load()) == []
        assert context.active.names() == before


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("state", [State.REQUESTED, State.INFLIGHT])
def test_a_young_one_is_left_alone_and_an_old_one_is_finished(golden: Golden, version: str, state: State) -> None:
    others = Others(golden(version, "failed_inflight_mor"), age=HOUR - 60, state=state)
    others.assert_left_alone()
    for file in (others.table / ".hoodie").glob(f"**/{others.rollback}.*"):
        others.aged(file, HOUR + 60)
    context = open_context(others.table)
    assert RollbackService().pending(context, context.active.load()) == [others.rollback]
    assert others.cleaned() == [others.rollback]
    assert leftovers(others.table, others.failed, others.rollback) == []


def test_that_lazy_is_set_by_name_says_nothing_of_rollbacks(golden: Golden) -> None:
    """Then every write beats, but no rollback of Hudi 0.15 or 1.0 does."""
    others = Others(golden("6", "failed_inflight_mor"), age=300)
    others.assert_left_alone({POLICY: "LAZY"})
    assert others.cleaned({POLICY: "LAZY", "airflow_hudi.failed_writes.silent_minutes": "4"}) == [others.rollback]


@pytest.mark.parametrize("version", ["6", "8"])
def test_without_other_writers_it_is_finished_at_once(golden: Golden, version: str) -> None:
    others = Others(golden(version, "failed_inflight_mor"))
    assert others.cleaned({POLICY: "EAGER"}) == [others.rollback]


@pytest.mark.parametrize("by", ["rollback", "failed"])
def test_named_it_is_finished_at_once(golden: Golden, by: str) -> None:
    others = Others(golden("8", "failed_inflight_mor"))
    result = rollback(open_context(others.table), getattr(others, by), an_owner())
    assert (result.instant, result.target) == (others.rollback, others.failed)


def test_a_heartbeat_says_more_than_an_age(golden: Golden) -> None:
    """Hudi 1.2 makes one for a rollback where the table has several writers."""
    others = Others(golden("9", "failed_inflight_mor"), age=10 * HOUR)
    others.beats()
    others.assert_left_alone()
    for name in (others.rollback, others.failed):
        with pytest.raises(ConflictError, match="a writer is at work"):
            rollback(open_context(others.table), name, an_owner())
    others.beats(age=121)
    assert others.cleaned() == [others.rollback]


@pytest.mark.parametrize("version", VERSIONS)
def test_one_that_we_planned_is_finished_at_once(golden: Golden, version: str) -> None:
    context = open_context(golden(version, "failed_inflight_mor").table)
    (failed,) = context.active.load().pending()
    metadata_timeline = request_rollback(context, failed, an_owner())
    path = context.active.path(metadata_timeline, Action.ROLLBACK, State.REQUESTED)
    assert is_engine_plan(context.storage.read(path), path=path)
    assert [result.instant for result in clean_failed_writes(context, an_owner())] == [metadata_timeline]


@pytest.mark.parametrize("version", ["6", "8"])
def test_a_failed_write_that_completes_before_its_turn_is_kept(golden: Golden, version: str) -> None:
    table = golden(version, "cow_basic").table
    active = open_context(table).active
    rows, last = read_rows(table), active.load().commits().last()
    assert last is not None
    completed = table / active.path_of(last)
    content, looks = completed.read_bytes(), 0
    completed.unlink()

    def completes(operation: Operation) -> bool:
        nonlocal looks
        if operation.kind == "list_names" and operation.path == active.folder:
            looks += 1
            if looks == 3:
                completed.write_bytes(content)
        return False

    storage = FaultStorage(LocalStorage(table), FaultPlan(when=completes))
    (result,) = clean_failed_writes(eager(open_context(table, storage=storage)), an_owner())
    assert result.target is None
    assert "has completed" in (result.reason or "")
    assert read_rows(table).equals(rows)
