"""A writer of Hudi that takes no lock, beside a compaction that one command plans and runs. It loses no rows: the plan
has them, or the compaction does not complete.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from hudi_core.config.engine_config import Mode
from hudi_core.driver import drive
from hudi_core.errors import ConflictError, FormatError
from hudi_core.model.names import ClaimFolder
from hudi_core.services.rewriting.job import Attempt
from hudi_core.services.rewriting.proof import Rewritten
from hudi_core.storage.base import Storage
from hudi_core.table import HudiTable
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.transaction import instant_generator
from hudi_core.transaction.instant_generator import InstantClock
from hudi_core.verbs.run import RunRequest
from tests.support.golden_compactions import context_of
from tests.support.golden_data import GoldenCase
from tests.support.table_invariants import assert_readable, read_rows

Golden = Callable[[str, str], GoldenCase]
OPTIONS = {"hoodie.compact.inline.max.delta.commits": "1"}


class Writer:
    """Does once more what the last deltacommit of a table did, which the table is without until then."""

    def __init__(self, table: Path, *, has_begun: bool) -> None:
        context = context_of(table)
        self.storage: Storage = context.storage
        self.active = context.active
        last = self.active.load().of_actions(Action.DELTA_COMMIT).last()
        assert last is not None
        self.instant: Instant = last
        states = (State.REQUESTED, State.INFLIGHT)
        pending = [self.active.path(last.requested_time, last.action, state) for state in states]
        paths = [stat.path for stat in self.active.read_commit(last).write_stats()]
        completed = self.active.path_of(last)
        self.begun = {path: self.storage.read(path) for path in pending}
        self.files = {path: self.storage.read(path) for path in paths}
        self.content = self.storage.read(completed)
        for path in (completed, *(() if has_begun else (*pending, *paths))):
            self.storage.delete(path)

    def begin(self) -> None:
        self.storage.write(ClaimFolder(self.instant.requested_time).hudi_heartbeat, b"")
        for path, content in self.begun.items():
            self.storage.write(path, content)

    def complete(self, completion_time: str | None = None) -> None:
        for path, content in self.files.items():
            self.storage.write(path, content)
        time, action = self.instant.requested_time, self.instant.action
        path = self.active.path(time, action, State.COMPLETED, completion_time)
        self.storage.write(path, self.content)


def compact(table: Path) -> None:
    """Plans and runs a compaction, as hudictl and the operator do."""
    opened = HudiTable.open(str(table), None, OPTIONS)
    drive(opened, RunRequest(str(table), "compaction", schedule=True), Mode.LOCAL)


def in_the_work(monkeypatch: pytest.MonkeyPatch, step: Callable[[], None]) -> None:
    keep = Attempt.keep

    def behind(attempt: Attempt, rewritten: Rewritten) -> None:
        step()
        keep(attempt, rewritten)

    monkeypatch.setattr(Attempt, "keep", behind)


def test_a_write_that_begins_right_before_the_plan_is_there(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    """It adds log files to the slices that it has seen: in layout 1 they would be behind the new base files."""
    table = golden("6", "mor_basic").table
    rows = read_rows(table)
    writer = Writer(table, has_begun=False)
    create = ActiveTimeline.create_requested

    def begin_before(active: ActiveTimeline, time: str, action: str, data: bytes = b"") -> Instant:
        writer.begin()
        return create(active, time, action, data)

    monkeypatch.setattr(ActiveTimeline, "create_requested", begin_before)
    in_the_work(monkeypatch, writer.complete)
    with pytest.raises(ConflictError, match=f"deltacommit {writer.instant.requested_time} began before compaction"):
        compact(table)
    writer.complete()
    assert_readable(table, rows)


def draw_before_the_plan(monkeypatch: pytest.MonkeyPatch, writer: Writer, zone: str) -> list[str]:
    """What the writer draws right before the planner does."""
    drawn: list[str] = []
    read = instant_generator._read_once

    def draw_before(now: Callable[[], datetime]) -> datetime:
        if not drawn:
            drawn.append("")
            drawn[0] = InstantClock(zone, 0).next(writer.active.load())
        return read(now)

    monkeypatch.setattr(instant_generator, "_read_once", draw_before)
    return drawn


@pytest.mark.parametrize("version", ["8", "9"])
def test_a_write_whose_completion_time_is_drawn_before_the_plans_instant(
    golden: Golden, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    """Hudi's writer draws the time, waits for the clock skew, and then creates the completed file."""
    table = golden(version, "mor_basic").table
    rows = read_rows(table)
    writer = Writer(table, has_begun=True)
    drawn = draw_before_the_plan(monkeypatch, writer, context_of(table).zone)
    passed: list[float] = []

    def pass_by(seconds: float) -> None:
        if seconds and not passed:
            passed.append(seconds)
            writer.complete(drawn[0])

    monkeypatch.setitem(InstantClock.__init__.__kwdefaults__, "sleep", pass_by)
    compact(table)
    compaction = writer.active.load().last_completed()
    assert compaction is not None
    assert compaction.action == Action.COMMIT
    assert drawn[0] < compaction.requested_time
    assert_readable(table, rows)


@pytest.mark.parametrize("version", ["8", "9"])
def test_a_write_whose_completed_file_comes_late(golden: Golden, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    """The storage takes longer for the file than the writer has waited. The plan is without its rows."""
    table = golden(version, "mor_basic").table
    rows = read_rows(table)
    writer = Writer(table, has_begun=True)
    drawn = draw_before_the_plan(monkeypatch, writer, context_of(table).zone)
    in_the_work(monkeypatch, lambda: writer.complete(drawn[0]))
    with pytest.raises(ConflictError, match=f"deltacommit {writer.instant.requested_time} appeared after the plan"):
        compact(table)
    assert_readable(table, rows)
    with pytest.raises(FormatError, match="it lacks"):
        compact(table)
    assert_readable(table, rows)
