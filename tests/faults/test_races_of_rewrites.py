"""Rewrites beside others: a second runner, a rollback that knows no claims, an index that comes or goes. The one that
loses publishes nothing and leaves no file; run again, the work is done once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.errors import ConflictError
from hudi_core.services.rewriting.job import Attempt
from hudi_core.services.rewriting.proof import Rewritten
from hudi_core.timeline.actions.rollback import RollbackMetadata, encode_rollback_metadata, encode_rollback_plan
from hudi_core.timeline.instant import Action
from hudi_core.transaction.commit import Completer
from hudi_core.transaction.owner import Owner
from hudi_core.verbs.instants import RollbackRequest
from hudi_core.verbs.metadata import MetadataCreateRequest, MetadataDropRequest
from hudi_core.verbs.request import Request
from hudi_core.verbs.run import RunRequest, ScheduleRequest
from hudi_core.verbs.write import DeletePartitionRequest, InsertOverwriteRequest
from tests.support.changed_tables import open_context
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import own_rows, places, put_source, within
from tests.support.table_invariants import assert_metadata_true, read_rows
from tests.support.table_requests import perform
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ["6", "8", "9"]
OPTIONS = {
    "hoodie.time.generator.max_expected_clock_skew_ms": "0",
    "hoodie.log.compaction.enable": "true",
    "spark.sql.session.timeZone": "UTC",
}
FROM_ONE = {"hoodie.log.compaction.blocks.threshold": "1"}
SORTED = {"hoodie.clustering.plan.strategy.sort.columns": "name"}


def do(table: Path, request: Request, engine: LocalEngine | None = None) -> Any:
    context = open_context(table, {**OPTIONS, **request.options})
    return perform(context, request, engine or LocalEngine(1), Owner.current(request.owner))


class Work(Protocol):
    """Something that is done to a table, once it was begun."""

    def begin(self, table: Path) -> Callable[[LocalEngine | None, str], Any]:
        """What an engine and an owner do."""
        ...


@dataclass(frozen=True)
class Planned:
    service: str
    options: dict[str, str]

    def begin(self, table: Path) -> Callable[[LocalEngine | None, str], Any]:
        planned = do(table, ScheduleRequest(str(table), self.service, options=self.options, owner="planner"))
        instant = planned.document["instant"]
        assert instant is not None, planned.document

        def run(engine: LocalEngine | None, owner: str) -> Any:
            return do(table, RunRequest(str(table), self.service, instant=instant, owner=owner), engine)

        return run


class Overwriting:
    def begin(self, table: Path) -> Callable[[LocalEngine | None, str], Any]:
        source = put_source(own_rows(table, read_rows(table)), table.parent, name="source")

        def run(engine: LocalEngine | None, owner: str) -> Any:
            request = InsertOverwriteRequest(str(table), source=str(source), whole_table=True, token="t", owner=owner)
            return do(table, request, engine)

        return run


class Deleting:
    def begin(self, table: Path) -> Callable[[LocalEngine | None, str], Any]:
        name = deleted(read_rows(table))

        def run(engine: LocalEngine | None, owner: str) -> Any:
            return do(table, DeletePartitionRequest(str(table), partitions=(name,), token="t", owner=owner), engine)

        return run


WORKS: dict[str, Work] = {
    "compaction": Planned("compaction", {"hoodie.compact.inline.max.delta.commits": "1"}),
    "clustering": Planned("clustering", {}),
    "sorted clustering": Planned("clustering", SORTED),
    "log compaction": Planned("log_compaction", FROM_ONE),
    "overwrite": Overwriting(),
    "delete": Deleting(),
}
UNPLANNED = ("overwrite", "delete")
"""They have no plan that outlives a run."""
PLANNED = [name for name in WORKS if name not in UNPLANNED]
CASES = [(version, work) for version in VERSIONS for work in WORKS]
OF_PLANNED = [(version, work) for version, work in CASES if work in PLANNED]
OF_UNPLANNED = [(version, work) for version, work in CASES if work in UNPLANNED]


def deleted(rows: pa.Table) -> str:
    """The partition that is deleted."""
    return str(min(rows.column("_hoodie_partition_path").to_pylist()))


def due(work: str, rows: pa.Table) -> pa.Table:
    """Those of `rows` that are there once the work is done."""
    return within(rows, deleted(rows), outside=True) if work == "delete" else rows


def run_beside(run: Callable[[LocalEngine | None, str], Any], meanwhile: Callable[[], object]) -> Any:
    """What the first owner's run returns, if `meanwhile` is called once its new files are written."""
    called: list[bool] = []

    keep = Attempt.keep

    def behind(attempt: Attempt, rewritten: Rewritten) -> None:
        if not called:
            called.append(True)
            meanwhile()
        keep(attempt, rewritten)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Attempt, "keep", behind)
        try:
            return run(None, "the first")
        finally:
            assert called


def files(table: Path) -> frozenset[Path]:
    """Base and log files."""
    return frozenset(path for path in table.glob("20*/*") if ".parquet" in path.name or ".log." in path.name)


def written(table: Path) -> frozenset[Path]:
    """The files that the commits on the timeline name."""
    active = open_context(table).active
    commits = [active.read_commit(item) for item in active.load().commits()]
    return frozenset(table / stat.path for commit in commits for stat in commit.write_stats())


def lost(
    table: Path, work: str, meanwhile: Callable[[], object], match: str, *, keeps: bool = False
) -> Callable[[], Any]:
    """Runs the work with something that makes it lose; what runs it again. With `keeps` the instant is still its own,
    and its next run removes its files.
    """
    rows, run, known = read_rows(table), WORKS[work].begin(table), files(table)
    with pytest.raises(ConflictError, match=match):
        run_beside(run, meanwhile)
    assert places(read_rows(table)) == places(rows)
    assert keeps or files(table) == known, "files of the run that lost"
    return lambda: run(None, "the second")


def finished(table: Path, again: Callable[[], Any], rows: Any, known: frozenset[Path]) -> None:
    again()
    assert places(read_rows(table)) == places(rows)
    assert list(open_context(table).active.load().pending()) == []
    assert not files(table) - known - written(table)
    assert_metadata_true(table)


def loses_and_is_done_again(table: Path, work: str, meanwhile: Callable[[], object], match: str) -> None:
    """The instant of what was planned is still its own."""
    rows, known = read_rows(table), files(table)
    finished(table, lost(table, work, meanwhile, match, keeps=work in PLANNED), due(work, rows), known)


def pending_files(table: Path, state: str) -> Sequence[Path]:
    kinds = ("compaction", "clustering", "logcompaction", "replacecommit")
    return [
        path for kind in kinds for path in table.glob(f".hoodie/**/*.{kind}.{state}") if "metadata" not in path.parts
    ]


@pytest.mark.parametrize(
    ("version", "work"), tiered(CASES, [("6", "compaction"), ("9", "log compaction"), ("8", "overwrite")])
)
def test_a_rollback_that_knows_no_claims(golden: Golden, version: str, work: str) -> None:
    """As real Hudi rolls an attempt back: its inflight file is gone, a plan stays."""
    table = golden(version, "mor_basic").table

    def roll_back() -> None:
        for path in pending_files(table, "inflight"):
            path.unlink()
        if work in UNPLANNED:
            for path in pending_files(table, "requested"):
                path.unlink()

    loses_and_is_done_again(table, work, roll_back, "rolled it back while it ran|is gone")


@pytest.mark.parametrize(("version", "work"), tiered(OF_PLANNED, [("6", "log compaction"), ("9", "clustering")]))
def test_a_rollback_after_which_the_plan_is_run_by_another(
    golden: Golden, version: str, work: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Hudi's writers with services inline take a run for dead, while it waits for the lock: the attempt's files are
    deleted, its rollback is completed, the instant is inflight again, and there are files of the other engine.
    """
    table = golden(version, "mor_basic").table
    rows, run, known = read_rows(table), WORKS[work].begin(table), files(table)
    theirs: list[Path] = []
    complete = Completer.complete

    def another(self: Completer, instant: str, action: str, content: bytes, **given: Any) -> Any:
        if not theirs:
            theirs.extend(rolled_back_and_run(table, instant, action, known))
        return complete(self, instant, action, content, **given)

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(Completer, "complete", another)
        with pytest.raises(ConflictError, match="back meanwhile"):
            run(None, "the first")
    assert theirs
    assert files(table) == known.union(theirs), "files of the engine that runs the instant now"
    assert places(read_rows(table)) == places(rows)
    finished(table, lambda: run(None, "the second"), rows, known)


def rolled_back_and_run(table: Path, instant: str, action: str, known: frozenset[Path]) -> list[Path]:
    """What another engine does with an inflight instant; the files of its own attempt."""
    # In version 6 a log file of Hudi's stays, as it may hold blocks of other writers: this one has a name as ours.
    token = "_0-901-1500000001"
    theirs = [
        path.rename(path.with_name(re.sub(r"_\d+-\d+-\d+", token, path.name, count=1))) for path in files(table) - known
    ]
    context = open_context(table, OPTIONS)
    active = context.active
    rollback = context.new_instant(active.load())
    active.create_requested(rollback, Action.ROLLBACK, encode_rollback_plan(instant, action, []))
    active.to_inflight(rollback, Action.ROLLBACK)
    active.roll_back_to_requested(instant, action)
    metadata = encode_rollback_metadata(RollbackMetadata(rollback, 1, instant, action))
    active.complete(
        rollback, Action.ROLLBACK, metadata, None if active.layout == 1 else context.new_instant(active.load())
    )
    active.to_inflight(instant, action)
    return theirs


@pytest.mark.parametrize(
    ("version", "work"),
    tiered([(version, work) for version, work in CASES if version != "6"], [("8", "compaction"), ("9", "delete")]),
)
def test_an_index_that_comes(golden: Golden, version: str, work: str) -> None:
    """Not of version 6, where an index begins when nothing is pending."""
    table = golden(version, "mor_basic").table
    request = MetadataCreateRequest(str(table), partitions=("bloom_filters",), owner="the other")
    loses_and_is_done_again(table, work, lambda: do(table, request), "got or lost an index")


@pytest.mark.parametrize(("version", "work"), tiered(CASES, [("6", "sorted clustering"), ("9", "overwrite")]))
def test_an_index_that_goes(golden: Golden, version: str, work: str) -> None:
    table = golden(version, "mdt_all_mor").table
    request = MetadataDropRequest(str(table), partitions=("column_stats",), owner="the other")
    loses_and_is_done_again(table, work, lambda: do(table, request), "got or lost an index")


@pytest.mark.parametrize(("version", "work"), tiered(CASES, [("6", "compaction"), ("9", "overwrite")]))
def test_a_second_runner(golden: Golden, version: str, work: str) -> None:
    table = golden(version, "mor_basic").table
    rows, known, run = read_rows(table), files(table), WORKS[work].begin(table)

    def refused() -> None:
        with pytest.raises(ConflictError, match=r"is run by|is being done|at work|alive"):
            run(None, "the second")

    run_beside(run, refused)
    finished(table, lambda: run(None, "the second"), due(work, rows), known)


@pytest.mark.parametrize(("version", "work"), tiered(OF_UNPLANNED, [("8", "overwrite")]))
def test_our_rollback_by_name_leaves_a_live_overwrite_alone(golden: Golden, version: str, work: str) -> None:
    """It is refused before it is requested: one that is on the timeline keeps the overwrite from completing."""
    table = golden(version, "mor_basic").table
    rows, run = read_rows(table), WORKS[work].begin(table)

    def roll_back() -> None:
        (instant,) = (item.requested_time for item in open_context(table).active.load().pending())
        with pytest.raises(ConflictError):
            do(table, RollbackRequest(str(table), instant=instant, owner="another"))

    assert run_beside(run, roll_back).document["records"] == (rows.num_rows if work == "overwrite" else 0)
    assert places(read_rows(table)) == places(due(work, rows))
    assert list(open_context(table).active.load().pending()) == []
    assert_metadata_true(table)
