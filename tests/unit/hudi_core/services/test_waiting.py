"""Waiting for the writes that were pending at some moment."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_core.errors import ConflictError
from hudi_core.services.context import TableContext
from hudi_core.services.waiting import deadline_of, may_be_at_work, pending_writers, wait_for_writers, writers_at_work
from hudi_core.timeline.instant import Action
from hudi_core.transaction.owner import Owner
from tests.support.changed_tables import an_owner, open_context, pending_write
from tests.support.golden_data import GoldenCase

Golden = Callable[[str, str], GoldenCase]
HOUR = 3600.0


def age(table: Path, seconds: float) -> None:
    moment = time.time() - seconds
    for file in table.rglob("*"):
        if file.is_file():
            os.utime(file, (moment, moment))


def nothing() -> None:
    """The run still has its claim."""


@pytest.fixture(params=["6", "8", "9"])
def context(request: pytest.FixtureRequest, golden: Golden) -> TableContext:
    """A table with a pending write that changed just now and has no heartbeat."""
    table = golden(request.param, "failed_inflight_cow").table
    context = open_context(table)
    for file in (table / context.active.folder).glob(f"{pending_write(table)}*"):
        file.touch()
    (table / ".hoodie" / ".heartbeat" / pending_write(table)).unlink(missing_ok=True)
    return context


def test_indexing_and_savepoints_are_not_awaited(context: TableContext) -> None:
    write = pending_write(Path(context.uri))
    context.active.create_requested("20300101000000000", Action.INDEXING)
    (saved, *_) = context.active.load().commits()
    context.active.to_inflight(saved.requested_time, Action.SAVEPOINT)
    assert pending_writers(context.active.load()) == {write}


def test_a_writer_that_completes_is_waited_for(context: TableContext, caplog: pytest.LogCaptureFixture) -> None:
    awaited = pending_writers(context.active.load())
    (write,) = context.active.load().pending()
    assert writers_at_work(context, awaited) == [write]
    slept: list[float] = []

    def completes(seconds: float) -> None:
        slept.append(seconds)
        for state in ("inflight", "requested"):
            for file in (Path(context.uri) / context.active.folder).glob(f"{write.requested_time}*{state}"):
                file.unlink()
        (Path(context.uri) / context.active.folder / f"{write.requested_time}.inflight").unlink(missing_ok=True)

    assert wait_for_writers(context, awaited, nothing, completes) == frozenset()
    assert len(slept) == 1
    assert f"waiting for {write.pending_action} {write.requested_time}, whose writer makes no heartbeat" in caplog.text
    assert "for up to 900 s more" in caplog.text


def test_the_dead_are_returned(context: TableContext) -> None:
    table, awaited = Path(context.uri), pending_writers(context.active.load())
    age(table, 50 * HOUR)
    assert writers_at_work(context, awaited) == []
    assert wait_for_writers(context, awaited, nothing, lambda seconds: pytest.fail("no wait")) == awaited


def test_an_expired_heartbeat_is_of_a_dead_writer(context: TableContext) -> None:
    table, write = Path(context.uri), pending_write(Path(context.uri))
    age(table, 50 * HOUR)
    beat = table / ".hoodie" / ".heartbeat" / write
    beat.parent.mkdir(exist_ok=True)
    beat.touch()
    assert [item.requested_time for item in writers_at_work(context, {write})] == [write]
    os.utime(beat, (time.time() - HOUR, time.time() - HOUR))
    assert writers_at_work(context, {write}) == []


def test_after_the_deadline_the_writer_is_named(context: TableContext) -> None:
    write = pending_write(Path(context.uri))
    with pytest.raises(ConflictError, match=write) as caught:
        wait_for_writers(context, {write}, nothing, deadline=time.monotonic() - 1)
    assert "catchup_minutes" in str(caught.value.remedy)


def test_a_lost_claim_ends_the_wait(context: TableContext) -> None:
    def lost() -> None:
        raise ConflictError("the claim is lost")

    with pytest.raises(ConflictError, match="the claim is lost"):
        wait_for_writers(context, pending_writers(context.active.load()), lost)


def test_other_instants_are_not_waited_for(context: TableContext) -> None:
    assert wait_for_writers(context, {"20200101000000000"}, nothing) == frozenset()
    assert writers_at_work(context, ()) == []


def test_a_claim_says_that_an_instant_is_run(golden: Golden) -> None:
    table = golden("9", "mor_compaction_requested_only").table
    context = open_context(table)
    (plan,) = context.active.load().pending_compactions()
    assert writers_at_work(context, {plan.requested_time}) == [], "a plan alone has no writer"
    with context.claim(plan.requested_time, an_owner()):
        assert writers_at_work(context, {plan.requested_time}) == [plan]


def test_what_a_run_of_ours_left_inflight_has_no_writer(golden: Golden) -> None:
    """Though it changed just now and has no heartbeat; one that changes behind the release has another writer."""
    table = golden("9", "mor_compaction_requested_only").table
    age(table, 50 * HOUR)
    context = open_context(table)
    (plan,) = context.active.load().pending_compactions()
    instant = "20300101000000000"
    context.active.create_requested(instant, Action.COMPACTION, context.storage.read(context.active.path_of(plan)))
    with context.claim(instant, an_owner()):
        context.active.to_inflight(instant, Action.COMPACTION)
    assert writers_at_work(context, {instant}, may_be_at_work) == []
    for file in (table / context.active.folder).glob(f"{instant}*.inflight"):
        os.utime(file, (time.time() + 1, time.time() + 1))
    assert [item.requested_time for item in writers_at_work(context, {instant}, may_be_at_work)] == [instant]


def test_the_deadline_is_an_option(golden: Golden) -> None:
    table = golden("9", "cow_basic").table
    context = open_context(table, {"airflow_hudi.indexing.catchup_minutes": "2"})
    assert deadline_of(context) - time.monotonic() == pytest.approx(120, abs=5)


def test_the_owner_of_a_claim_is_named_while_it_is_waited_for(
    context: TableContext, caplog: pytest.LogCaptureFixture
) -> None:
    write = pending_write(Path(context.uri))
    held = context.claim(write, Owner.current("nightly job"))

    def wait_no_longer(_: float) -> None:
        raise ConflictError("enough")

    with pytest.raises(ConflictError, match="enough"):
        wait_for_writers(context, {write}, nothing, wait_no_longer)
    assert re.search(rf"waiting for \w+ {write}, run by nightly job \(process \d+ on \S+\) for 0 s; ", caplog.text)
    held.release()


class Clock:
    """Time passes only in `sleep`."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.mark.parametrize("claimed", [True, False])
def test_it_is_said_at_once_and_each_half_minute(
    golden: Golden, caplog: pytest.LogCaptureFixture, claimed: bool
) -> None:
    table = golden("9", "failed_inflight_cow").table
    write = pending_write(table)
    context = open_context(table, {"airflow_hudi.indexing.catchup_minutes": "2"})
    if claimed:
        made = context.claim(write, Owner.current("nightly job"))
        whose = r"run by nightly job \(process \d+ on \S+\) for \d+ s"
    else:
        heartbeat = table / ".hoodie" / ".heartbeat" / write
        heartbeat.parent.mkdir(exist_ok=True)
        heartbeat.touch()
        whose = r"whose writer's last heartbeat is \d+ s old"
    clock = Clock()
    with pytest.raises(ConflictError, match="still at work after 2 minutes"):
        wait_for_writers(context, {write}, nothing, clock.sleep, clock=clock)
    assert clock.now == 1120
    said = [
        re.fullmatch(rf"waiting for commit {write}, {whose}; for up to (\d+) s more", text) for text in caplog.messages
    ]
    assert [found and found[1] for found in said] == ["120", "90", "60", "30"]
    if claimed:
        made.release()
