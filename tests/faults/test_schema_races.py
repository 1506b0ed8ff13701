"""Overwrites and clusterings beside a commit that changes the table's schema in another partition: its columns and
types stay, and no row is read by another schema than it was sent with. An overwrite that loses publishes nothing and is
done when it is run again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.errors import ConflictError
from hudi_core.services.overwrite.job import OverwriteJob
from hudi_core.services.rewriting.job import Attempt
from hudi_core.verbs.run import RunRequest, ScheduleRequest
from hudi_core.verbs.write import DeletePartitionRequest, InsertOverwriteRequest
from tests.faults.test_races_of_rewrites import VERSIONS, do
from tests.support.changed_tables import open_context
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import own_rows, put_source, within
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import read_rows
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
OCC = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}
COMBINED = {**OCC, "hoodie.combine.before.insert": "true"}
WAIT_SECONDS = 120


def widened(rows: pa.Table) -> pa.Table:
    at = rows.schema.get_field_index("c_int")
    return rows.set_column(at, "c_int", pa.array([2**40 + number for number in range(rows.num_rows)], pa.int64()))


def with_column(rows: pa.Table) -> pa.Table:
    return rows.append_column("added", pa.array([f"new {number}" for number in range(rows.num_rows)]))


CHANGES: dict[str, Callable[[pa.Table], pa.Table]] = {"widened": widened, "added": with_column}


class Races:
    """A table of several partitions. Our work is on the first one; the other's rows for the second one change the
    table's schema.
    """

    def __init__(self, table: Path, change: str) -> None:
        self.table, rows = table, read_rows(table)
        self.first, second = sorted(set(rows.column("_hoodie_partition_path").to_pylist()))[:2]
        self._mine = own_rows(table, within(rows, self.first))
        new = CHANGES[change](own_rows(table, within(rows, second)))
        self._others = pa.concat_tables(
            [new, own_rows(table, within(rows, self.first, second, outside=True))], promote_options="permissive"
        )
        self._sources = [put_source(mine, table.parent, name=name) for name, mine in (("a", self._mine), ("b", new))]

    def overwrite(self, engine: LocalEngine | None = None, options: dict[str, str] = OCC) -> None:
        source = str(self._sources[0])
        do(self.table, InsertOverwriteRequest(str(self.table), source=source, options=options, owner="we"), engine)

    def delete(self) -> None:
        do(self.table, DeletePartitionRequest(str(self.table), partitions=(self.first,), options=OCC, owner="we"))

    def cluster(self) -> None:
        options = {**OCC, "hoodie.clustering.plan.strategy.partition.selected": self.first}
        options["hoodie.clustering.plan.strategy.sort.columns"] = "c_int"
        planned = do(self.table, ScheduleRequest(str(self.table), "clustering", options=options, owner="we"))
        instant = planned.document["instant"]
        assert instant is not None
        do(self.table, RunRequest(str(self.table), "clustering", instant=instant, options=OCC, owner="we"))

    def other(self) -> None:
        source = str(self._sources[1])
        do(self.table, InsertOverwriteRequest(str(self.table), source=source, options=OCC, owner="the other"))

    def assert_done(self, *, deleted: bool = False) -> None:
        """The schema is the other commit's, and every row has its values."""
        after = read_rows(self.table)
        expected = (
            self._others if deleted else pa.concat_tables([self._others, self._mine], promote_options="permissive")
        )
        assert after.schema.field("c_int").type == expected.schema.field("c_int").type
        assert_same_rows(own_rows(self.table, after), expected, ignore=())
        assert list(open_context(self.table).active.load().pending()) == []


class Counting(LocalEngine):
    """Lets the other commit once it has counted the rows of a source."""

    def __init__(self, other: Callable[[], None]) -> None:
        super().__init__(1)
        self._other: Callable[[], None] | None = other

    def run(self, *given: Any, **named: Any) -> list[Any]:
        found = super().run(*given, **named)
        other, self._other = self._other, None
        if other is not None:
            other()
        return found


@pytest.mark.parametrize("options", [OCC, COMBINED], ids=["plain", "combined"])
@pytest.mark.parametrize("change", tiered(CHANGES, ["widened"]))
@pytest.mark.parametrize("version", tiered(VERSIONS, ["8"]))
def test_the_schema_changes_while_rows_are_counted(
    golden: Golden, version: str, change: str, options: dict[str, str]
) -> None:
    """Its pieces have the schema of the count: by another one they would be other values, without an error."""
    table = golden(version, "types_cow").table
    races = Races(table, change)
    with pytest.raises(ConflictError, match="schema was changed"):
        races.overwrite(Counting(races.other), options)
    races.assert_done()
    races.overwrite(options=options)
    races.assert_done()


def ends_within(work: Callable[[], None], other: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs `work` after the other has requested its instant, which completes once the files of `work` are written."""
    requested, may_end = threading.Event(), threading.Event()
    begin = OverwriteJob.begin

    def begin_late(job: OverwriteJob, *given: Any) -> None:
        if not requested.is_set():
            requested.set()
            assert may_end.wait(WAIT_SECONDS)
        begin(job, *given)

    with ThreadPoolExecutor(1) as threads, monkeypatch.context() as patch:
        patch.setattr(OverwriteJob, "begin", begin_late)
        running = threads.submit(other)
        assert requested.wait(WAIT_SECONDS)

        def let_end() -> None:
            if not may_end.is_set():
                may_end.set()
                running.result(WAIT_SECONDS)

        patch.setattr(Attempt, "keep", _after(let_end, Attempt.keep))
        try:
            work()
        finally:
            may_end.set()


def _after(first: Callable[[], None], then: Callable[..., Any]) -> Callable[..., Any]:
    def both(*given: Any, **named: Any) -> Any:
        first()
        return then(*given, **named)

    return both


@pytest.mark.parametrize("deletes", [False, True], ids=["overwrite", "delete"])
@pytest.mark.parametrize("change", tiered(CHANGES, ["added"]))
@pytest.mark.parametrize("version", tiered(VERSIONS, ["6"]))
def test_the_schema_changes_while_rows_are_written(
    golden: Golden, monkeypatch: pytest.MonkeyPatch, version: str, change: str, deletes: bool
) -> None:
    """The commit with the later instant, and completion, is the one whose schema counts."""
    races = Races(golden(version, "types_cow").table, change)
    work = races.delete if deletes else races.overwrite
    with pytest.raises(ConflictError, match="schema was changed"):
        ends_within(work, races.other, monkeypatch)
    races.assert_done()
    work()
    races.assert_done(deleted=deletes)


@pytest.mark.parametrize("change", tiered(CHANGES, ["widened"]))
@pytest.mark.parametrize("version", tiered(VERSIONS, ["9"]))
def test_the_schema_changes_while_rows_are_clustered(
    golden: Golden, monkeypatch: pytest.MonkeyPatch, version: str, change: str
) -> None:
    """It carries the schema of its start, which no reader takes for the table's (WriteOperationType.canUpdateSchema):
    it need not be run again.
    """
    races = Races(golden(version, "types_cow").table, change)
    ends_within(races.cluster, races.other, monkeypatch)
    races.assert_done()
