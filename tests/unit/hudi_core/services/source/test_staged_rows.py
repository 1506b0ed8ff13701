"""Which files of a folder of staged rows are read; what Spark puts there is in tests/contract/test_staged_rows.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.errors import ConflictError, StorageError, StorageNotFoundError
from hudi_core.services.overwrite.job import OverwriteJob
from hudi_core.services.overwrite.plan import Overwrite
from hudi_core.services.rollback.verb import rollback
from hudi_core.services.source.files import RowsFrom
from hudi_core.services.source.staged_rows import STAGED
from hudi_core.services.write.job import WriteJob
from hudi_core.services.write.plan import RowsWork
from hudi_core.services.write.verb import run_write
from hudi_core.storage.local import LocalStorage
from hudi_core.table import HudiTable
from hudi_core.timeline.actions.commit import Operation
from hudi_core.verbs.run import RunRequest
from tests.support.changed_tables import an_owner, open_context
from tests.support.fault_storage import FaultPlan, FaultStorage
from tests.support.fault_storage import Operation as Operation_
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import overwrite, own_rows, places, put_source
from tests.support.table_invariants import assert_metadata_true, read_rows
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]


class Staging(LocalEngine):
    """Puts rows as `files` into the folder, of which `names` are those of winning tasks."""

    def __init__(self, rows: pa.Table, files: tuple[str, ...], names: frozenset[str]) -> None:
        super().__init__(1)
        self._rows, self._files, self._names = rows.replace_schema_metadata(None), files, names

    def stage_query(self, query: str, folder: str, storage_options: Mapping[str, str]) -> frozenset[str]:
        Path(folder).mkdir(parents=True)
        for name in self._files:
            pq.write_table(self._rows, f"{folder}/{name}")
        return self._names

    def stage_dataframe(
        self, function: str, arguments: Mapping[str, str], folder: str, storage_options: Mapping[str, str]
    ) -> frozenset[str]:
        return self.stage_query(function, folder, storage_options)


class Slow(Staging):
    """Evaluates rows while `meanwhile` is done to the table."""

    def __init__(self, rows: pa.Table, meanwhile: Callable[[], object]) -> None:
        super().__init__(rows, ("a.parquet",), frozenset({"a.parquet"}))
        self._meanwhile = meanwhile

    def stage_query(self, query: str, folder: str, storage_options: Mapping[str, str]) -> frozenset[str]:
        self._meanwhile()
        return super().stage_query(query, folder, storage_options)


ANY = {"hoodie.compact.inline.max.delta.commits": "1"}
REQUESTS = {"query": RowsFrom(query="SELECT 1"), "dataframe": RowsFrom(dataframe="module:function")}


def put(table: Path, engine: LocalEngine, by: str) -> int:
    work = Overwrite(Operation.INSERT_OVERWRITE_TABLE, rows_from=REQUESTS[by])
    return run_write(open_context(table), work, OverwriteJob, engine, an_owner()).records


@pytest.mark.parametrize("by", REQUESTS)
def test_a_file_of_a_task_that_lost_does_not_count(golden: Golden, by: str) -> None:
    """It is closed when the query is over."""
    table = golden("9", "cow_basic").table
    rows = read_rows(table)
    files = ("part-00000-7.parquet", "part-00000-9.parquet")
    assert put(table, Staging(own_rows(table, rows), files, frozenset({files[0]})), by) == rows.num_rows
    assert places(read_rows(table)) == places(rows)
    assert not list((table / STAGED).rglob("*.parquet"))
    assert_metadata_true(table)


def test_a_file_that_is_gone_is_missed(golden: Golden) -> None:
    table = golden("9", "cow_basic").table
    rows = read_rows(table)
    with pytest.raises(StorageNotFoundError, match="lacks 1 of its files"):
        put(table, Staging(own_rows(table, rows), ("a.parquet",), frozenset({"a.parquet", "b.parquet"})), "query")
    assert places(read_rows(table)) == places(rows)


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
@pytest.mark.parametrize("by", REQUESTS)
def test_a_write_beside_the_query_is_not_lost(golden: Golden, tmp_path: Path, version: str, by: str) -> None:
    """The new rows may have been made of the old ones, as in a query of the table itself."""
    table = golden(version, "cow_basic").table
    rows = own_rows(table, read_rows(table))
    at = rows.schema.get_field_index("id")
    more = rows.slice(0, 1).set_column(at, rows.schema.field(at), pa.array(["new"]))
    given = put_source(pa.concat_tables([rows, more]), tmp_path)
    with pytest.raises(ConflictError, match="while the rows that are to replace it were evaluated"):
        put(table, Slow(rows, lambda: overwrite(table, given, whole_table=True)), by)
    assert read_rows(table).num_rows == rows.num_rows + 1
    assert open_context(table).active.load().pending().instants == ()
    assert put(table, Slow(rows, lambda: None), by) == rows.num_rows


@pytest.mark.parametrize("version", tiered(["6", "9"], ["9"]))
def test_a_service_beside_the_query_keeps_its_rows(golden: Golden, version: str) -> None:
    table = golden(version, "mor_basic").table
    rows = own_rows(table, read_rows(table))
    before = len(open_context(table).active.load().commits().instants)

    def compact() -> None:
        compaction = RunRequest(str(table), owner="the tests", service="compaction", schedule=True, options=ANY)
        assert HudiTable.open(str(table)).run(compaction, LocalEngine(1)).exit_code == 0

    assert put(table, Slow(rows, compact), "query") == rows.num_rows
    assert len(open_context(table).active.load().commits().instants) == before + 2
    assert places(read_rows(table)).total() == rows.num_rows


def test_a_commit_that_is_rolled_back_beside_the_query(golden: Golden) -> None:
    table = golden("9", "cow_basic").table
    rows = own_rows(table, read_rows(table))
    last = open_context(table).active.load().commits().instants[-1].requested_time

    def roll_back() -> None:
        rollback(open_context(table), last, an_owner())

    with pytest.raises(ConflictError, match=f"commit {last} was rolled back while the rows were evaluated"):
        put(table, Slow(rows, roll_back), "query")
    assert open_context(table).active.load().pending().instants == ()


@pytest.mark.parametrize("source_fails", [False, True])
def test_rows_that_cannot_be_deleted_change_no_result(
    golden: Golden, caplog: pytest.LogCaptureFixture, source_fails: bool
) -> None:
    """A committed write that seemed to have failed would be run again, and double its rows. The next run deletes what
    is left (test_rows_that_a_killed_run_left_are_deleted).
    """
    table = golden("9", "cow_basic").table
    rows = own_rows(table, read_rows(table))

    def fails(operation: Operation_) -> bool:
        return operation.kind == "delete" and operation.path.endswith("a.parquet")

    plan = FaultPlan(when=fails, error=lambda operation: StorageError("the storage is down", path=operation.path))
    context = open_context(table, storage=FaultStorage(LocalStorage(table), plan))
    work = RowsWork("BULK_INSERT", rows_from=REQUESTS["query"])
    names = frozenset({"a.parquet", "b.parquet"} if source_fails else {"a.parquet"})
    with pytest.raises(StorageNotFoundError, match="lacks 1") if source_fails else nullcontext():
        run_write(context, work, WriteJob, Staging(rows, ("a.parquet",), names), an_owner())
    assert plan.fired is not None
    assert read_rows(table).num_rows == (1 if source_fails else 2) * rows.num_rows
    assert "the storage is down" in caplog.text
