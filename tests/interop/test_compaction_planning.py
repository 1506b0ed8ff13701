"""Compactions that we plan: real Hudi plans the same on the same table and options, runs ours, and goes on; and real
Hudi goes on behind ours that we ran.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from random import randbytes
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.config.services.compaction_config import Strategy
from hudi_core.services.compaction.planner import CompactionService
from hudi_core.timeline.actions.compaction import LOG_BYTES, CompactionOperation
from hudi_core.timeline.instant import Action, State
from hudi_core.transaction.owner import Owner
from tests.interop.judged import JUDGES, MOR, QUICK, Judged
from tests.interop.real_hudi import RealHudi, RealHudiError
from tests.support.golden_compactions import context_of

pytestmark = [pytest.mark.hudi, pytest.mark.conformance]

DAYS_AGO = (0, 1, 2, 15, 40)
PACKAGE = "org.apache.hudi.table.action.compact.strategy"
STRATEGY = "hoodie.compaction.strategy"
COMMITS = "hoodie.compact.inline.max.delta.commits"
SECONDS = "hoodie.compact.inline.max.delta.seconds"
TRIGGER = "hoodie.compact.inline.trigger.strategy"
TARGET = "hoodie.compaction.target.io"
PARTITIONS = "hoodie.compaction.daybased.target.partitions"
SINCE_1_0 = (Strategy.PARTITION_REGEX,)
"""0.15 has no such class."""
NOT_IN_SPARK = (Strategy.BOUNDED_PARTITION_AWARE,)
"""Of 1.x on Spark: the class is not serializable, and the planner holds it."""


def strategy(*names: Strategy, **more: str) -> dict[str, str]:
    options = {
        "io": TARGET,
        "bytes": "hoodie.compaction.logfile.size.threshold",
        "number": "hoodie.compaction.logfile.num.threshold",
        "days": PARTITIONS,
        "regex": "hoodie.compaction.partition.path.regex",
    }
    return {
        STRATEGY: ",".join(f"{PACKAGE}.{name.value}" for name in names),
        **{options[name]: value for name, value in more.items()},
    }


def trigger(name: str, commits: int, seconds: int) -> dict[str, str]:
    return {TRIGGER: name, COMMITS: str(commits), SECONDS: str(seconds)}


LONG = 10**6
CASES: dict[str, dict[str, str]] = {
    "the default": {},
    "by log size": strategy(Strategy.LOG_FILE_SIZE, io="7"),
    "by log size from a threshold": strategy(Strategy.LOG_FILE_SIZE, bytes="3000"),
    "by number of logs": strategy(Strategy.LOG_FILE_NUM, number="2"),
    "by number of logs, none": strategy(Strategy.LOG_FILE_NUM, number="99"),
    "bounded": strategy(Strategy.BOUNDED_IO, io="7"),
    "unbounded": strategy(Strategy.UNBOUNDED, io="1"),
    "by day": strategy(Strategy.DAY_BASED, days="2"),
    "around today": strategy(Strategy.BOUNDED_PARTITION_AWARE, days="2"),
    "before that": strategy(Strategy.UNBOUNDED_PARTITION_AWARE, days="2"),
    "by expression": strategy(Strategy.PARTITION_REGEX, regex="/0[1-9]$|/[12]"),
    "one after the other": strategy(Strategy.DAY_BASED, Strategy.LOG_FILE_SIZE, days="4", io="7"),
    "commits, due": trigger("NUM_COMMITS", 4, LONG),
    "commits, not due": trigger("NUM_COMMITS", 5, 0),
    "commits since the plan, due": trigger("NUM_COMMITS_AFTER_LAST_REQUEST", 4, LONG),
    "commits since the plan, not due": trigger("NUM_COMMITS_AFTER_LAST_REQUEST", 5, 0),
    "time, due": trigger("TIME_ELAPSED", LONG, 1),
    "time, not due": trigger("TIME_ELAPSED", 1, LONG),
    "either, by commits": trigger("NUM_OR_TIME", 4, LONG),
    "either, by time": trigger("NUM_OR_TIME", 5, 1),
    "either, not due": trigger("NUM_OR_TIME", 5, LONG),
    "both, due": trigger("NUM_AND_TIME", 4, 1),
    "both, commits not due": trigger("NUM_AND_TIME", 5, 1),
    "both, time not due": trigger("NUM_AND_TIME", 4, LONG),
}
AFTER_OTHERS: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "commits": (trigger("NUM_COMMITS", 2, LONG), ("6", "8", "9")),
    "commits, with the pending one": (trigger("NUM_COMMITS", 3, LONG), ("6",)),
    "commits, more": (trigger("NUM_COMMITS", 4, 0), ()),
    "commits since the plan, with the pending one": (
        trigger("NUM_COMMITS_AFTER_LAST_REQUEST", 4, LONG),
        ("6", "8", "9"),
    ),
    "commits since the plan, more": (trigger("NUM_COMMITS_AFTER_LAST_REQUEST", 5, 0), ()),
    "time": (trigger("TIME_ELAPSED", LONG, 0), ("6", "8", "9")),
    "time, not due": (trigger("TIME_ELAPSED", 1, LONG), ()),
    "either, with the pending one": (trigger("NUM_OR_TIME", 3, LONG), ("6",)),
    "both, with the pending one": (trigger("NUM_AND_TIME", 3, 0), ("6",)),
}
"""Options, and the table versions of which a compaction is due by them: see `after_others`."""
PASSES_OVER_DEAD_WRITES = {"hoodie.cleaner.policy.failed.writes": "LAZY"}
"""Else Hudi plans no compaction of version 6 beside a pending write."""


def day(ago: int) -> str:
    return (datetime.now(timezone.utc) - timedelta(days=ago)).strftime("%Y/%m/%d")


def rows(ids: range, ago: int, salt: str) -> pa.Table:
    return pa.table(
        {
            "id": [f"key-{ago:02d}-{number:04d}" for number in ids],
            "dt": [day(ago) for _ in ids],
            "ts": pa.array([1_000 + len(salt) for _ in ids], pa.int64()),
            "name": [f"{salt} {number} {randbytes(40_000).hex()}" for number in ids],
            "amount": [number / 4 for number in ids],
        }
    )


@dataclass(frozen=True)
class Subject:
    """A table of five days with one to three log files each, all of other sizes, before a first compaction."""

    version: str
    table: Judged


@pytest.fixture(scope="module", params=JUDGES)
def subject(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Subject:
    hudi: RealHudi = request.getfixturevalue(JUDGES[request.param])
    base = tmp_path_factory.mktemp("planned") / "table"
    first = pa.concat_tables([rows(range(20), ago, "first") for ago in DAYS_AGO])
    table = Judged.create(hudi, base, MOR, request.param, rows=first)
    for turn in range(1, 4):
        changed = [
            rows(range(1, 1 + turn * (3 + place)), ago, "later" * turn)
            for place, ago in enumerate(DAYS_AGO[turn - 1 :])
        ]
        table.write(pa.concat_tables(changed), {"hoodie.parquet.small.file.limit": "0"})
    table.rows = table.hudi.snapshot(base, metadata=False).select(table.rows.column_names)
    time.sleep(1)
    return Subject(request.param, table)


def dies(table: Judged, instant: str) -> None:
    """A write that a writer without heartbeats began at `instant`, long ago, and left inflight."""
    active = context_of(table.base).active
    (*_, last) = table.times(Action.DELTA_COMMIT)
    content = (table.base / active.path(last, Action.DELTA_COMMIT, State.INFLIGHT)).read_bytes()
    active.create_requested(instant, Action.DELTA_COMMIT)
    active.to_inflight(instant, Action.DELTA_COMMIT, content)
    for state in (State.REQUESTED, State.INFLIGHT):
        os.utime(table.base / active.path(instant, Action.DELTA_COMMIT, state), (0, 0))


@pytest.fixture(scope="module")
def after_others(subject: Subject, tmp_path_factory: pytest.TempPathFactory) -> Subject:
    """The same table with a pending plan of one file group, a write, a completed compaction of the other file groups,
    two writes, and one that died inflight.
    """
    table = subject.table.copy(tmp_path_factory.mktemp("after_others") / "table")
    one = {COMMITS: "1", TARGET: "1", STRATEGY: f"{PACKAGE}.{Strategy.BOUNDED_IO.value}"}
    assert table.run("schedule", service="compaction", options=one).document is not None
    for turn in range(3):
        changed = [rows(range(1, 3 + place), ago, "much later" * (turn + 1)) for place, ago in enumerate(DAYS_AGO)]
        table.write(pa.concat_tables(changed))
        if turn == 0:
            table.compact()
    context = context_of(table.base)
    dies(table, context.new_instant(context.active.load()))
    return Subject(subject.version, table)


def sizes(operations: tuple[CompactionOperation, ...]) -> list[Any]:
    """What is compared: the slices with their files and metrics, in the plan's order."""
    return [(item.partition, item.file_id, item.base_file, item.log_files, item.metrics) for item in operations]


def order(operations: list[Any] | None) -> list[tuple[str, float]] | None:
    """Short, for a message that shows all."""
    return operations and [(partition, metrics[LOG_BYTES]) for partition, *_, metrics in operations]


def taken_away(table: Judged, instant: str) -> list[Any]:
    """The operations of the plan at `instant`, which is there no more."""
    context = context_of(table.base)
    plan = context.active.read_plan(instant)
    for path in (table.base / context.active.folder).glob(f"{instant}.compaction.*"):
        path.unlink()
    return sizes(plan.operations)


def planned_by_hudi(table: Judged, options: dict[str, str]) -> list[Any] | None:
    """The operations of real Hudi's plan, None where it makes none."""
    chosen = {**table.options, COMMITS: "1", **options}
    instant = table.hudi.ask("service", base=str(table.base), name="schedule_compaction", options=chosen)
    return None if instant is None else taken_away(table, instant)


def planned_by_us(table: Judged, options: dict[str, str]) -> list[Any] | None:
    """The operations of ours, likewise."""
    context = context_of(table.base, {COMMITS: "1", **options})
    done = CompactionService().schedule(context, Owner.current("test"), dry_run=False)
    if done.instant is None:
        assert done.reason
        return None
    return taken_away(table, done.instant)


def _failure(version: str, names: str) -> str:
    """What real Hudi of a table version says of strategies that it does not run; empty where it runs them."""
    if version == "6":
        is_later = "," in names or any(name.value in names for name in SINCE_1_0)
        return "Unable to load class" if is_later else ""
    return "Task not serializable" if any(f".{name.value}" in names for name in NOT_IN_SPARK) else ""


@pytest.mark.parametrize("case", CASES)
def test_the_plan_is_the_one_that_real_hudi_makes(subject: Subject, case: str, tmp_path: Path) -> None:
    options = CASES[case]
    table = subject.table.copy(tmp_path / "table")
    ours = planned_by_us(table, options)
    names = options.get(STRATEGY, "")
    fails = _failure(subject.version, names)
    if fails:
        with pytest.raises(RealHudiError, match=fails):
            planned_by_hudi(table, options)
        assert ours
        return
    theirs = planned_by_hudi(table, options)
    assert order(ours) == order(theirs)
    assert ours == theirs
    assert (ours is None) == any(word in case for word in ("not due", "none"))


@pytest.mark.parametrize("case", AFTER_OTHERS)
def test_the_plan_is_real_hudis_after_others_and_beside_a_pending_write(
    after_others: Subject, case: str, tmp_path: Path
) -> None:
    chosen, versions = AFTER_OTHERS[case]
    options = {**chosen, **PASSES_OVER_DEAD_WRITES}
    table = after_others.table.copy(tmp_path / "table")
    ours, theirs = planned_by_us(table, options), planned_by_hudi(table, options)
    assert order(ours) == order(theirs)
    assert ours == theirs
    assert (ours is not None) == (after_others.version in versions)


def test_time_counts_from_the_first_write_also_a_pending_one(subject: Subject, tmp_path: Path) -> None:
    table = subject.table.copy(tmp_path / "table")
    options = {**trigger("TIME_ELAPSED", LONG, LONG), **PASSES_OVER_DEAD_WRITES}
    assert (planned_by_us(table, options), planned_by_hudi(table, options)) == (None, None)
    dies(table, "20200101000000000")
    ours, theirs = planned_by_us(table, options), planned_by_hudi(table, options)
    assert ours
    assert ours == theirs


def test_real_hudi_runs_what_we_planned_and_goes_on(subject: Subject, tmp_path: Path) -> None:
    table = subject.table.copy(tmp_path / "table")
    planned = table.run("schedule", service="compaction", options={COMMITS: "1"}).document
    assert planned is not None
    instant = planned["instant"]
    table.hudi.ask("compact", base=str(table.base), instant=instant, options=table.options)
    assert table.times(Action.COMMIT) == [instant]
    table.check()
    table.goes_on()


def test_real_hudi_goes_on_behind_what_we_planned_and_ran(subject: Subject, tmp_path: Path) -> None:
    table = subject.table.copy(tmp_path / "table")
    for turn in range(2):
        (done,) = table.run("run", service="compaction", schedule=True, options={COMMITS: "1"}).instants
        assert (done.state, done.files_written > 0) == ("completed", True)
        table.check()
        if turn == 0:
            table.upsert(fresh=False)
    table.goes_on()


def test_a_write_behind_our_plan_is_in_the_next_one(subject: Subject, tmp_path: Path) -> None:
    table = subject.table.copy(tmp_path / "table")
    table.run("schedule", service="compaction", options={COMMITS: "1"})
    table.upsert(fresh=False)
    table.check()
    table.run("run", service="compaction", options=QUICK)
    table.check()
    (done,) = table.run("run", service="compaction", schedule=True, options={COMMITS: "1"}).instants
    assert done.files_written > 0
    table.check()
    table.goes_on()


def test_partitions_that_our_plan_left_out_are_in_real_hudis_next(subject: Subject, tmp_path: Path) -> None:
    table = subject.table.copy(tmp_path / "table")
    options = {COMMITS: "1", TARGET: "1", STRATEGY: f"{PACKAGE}.{Strategy.BOUNDED_IO.value}"}
    (done,) = table.run("run", service="compaction", schedule=True, options=options).instants
    assert done.files_written == 1
    theirs = planned_by_hudi(table, {COMMITS: "0", STRATEGY: f"{PACKAGE}.{Strategy.UNBOUNDED.value}"})
    assert theirs is not None
    assert len({item[0] for item in theirs}) == len(DAYS_AGO) - 1
