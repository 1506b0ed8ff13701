"""Deletes by predicate: which rows go, and when a row that the predicate selects is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow.compute as pc
import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.errors import ConfigError, ConflictError, UnsupportedError
from hudi_core.services.source import predicate
from hudi_core.services.source.files import RowsFrom
from hudi_core.services.source.staged_rows import STAGED
from hudi_core.services.write.job import WriteJob
from hudi_core.services.write.plan import RowsWork
from hudi_core.services.write.verb import run_write
from hudi_core.services.write.work import WriteResult
from hudi_core.timeline.actions.commit import Operation
from tests.support.changed_tables import an_owner, open_context
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import put_source
from tests.support.table_invariants import assert_metadata_true, read_rows
from tests.support.writes import Model, own_columns, write

Golden = Callable[[str, str], GoldenCase]


def delete(table: Path, where: str, engine: LocalEngine | None = None) -> WriteResult:
    work = RowsWork(Operation.DELETE, rows_from=RowsFrom(where=where))
    return run_write(open_context(table), work, WriteJob, engine or LocalEngine(1), an_owner())


@pytest.mark.parametrize(
    ("version", "case"),
    [
        ("6", "mor_basic"),
        ("8", "mor_basic"),
        ("9", "cow_basic"),
        ("6", "complex_keygen"),
        ("9", "non_partitioned_cow"),
        ("9", "drop_partition_columns"),
        ("8", "no_meta_fields_cow"),
    ],
)
def test_the_rows_that_a_predicate_selects_are_deleted(golden: Golden, version: str, case: str) -> None:
    table = golden(version, case).table
    before = read_rows(table)
    mask = pc.greater(before.column("qty"), 50)
    result = delete(table, "qty > 50")
    names = own_columns(before).schema.names
    kept = before.filter(pc.invert(mask)).select(names).to_pylist()
    assert sorted(map(repr, read_rows(table).select(names).to_pylist())) == sorted(map(repr, kept))
    assert (result.operation, result.deleted, result.inserted) == ("DELETE", pc.sum(mask).as_py(), 0)
    assert not list((table / STAGED).glob("*"))
    if (table / ".hoodie/metadata").is_dir():
        assert_metadata_true(table)


def test_a_predicate_without_rows_leaves_the_table_as_it_is(golden: Golden) -> None:
    table = golden("9", "cow_basic").table
    before = open_context(table).active.names()
    result = delete(table, "qty > 100000")
    assert (result.instant, result.reason) == (None, "the predicate selects no rows")
    assert open_context(table).active.names() == before
    assert not list((table / STAGED).glob("*"))


def test_a_predicate_that_is_no_sql_is_refused_before_anything_is_written(golden: Golden) -> None:
    table = golden("9", "cow_basic").table
    with pytest.raises(ConfigError):
        delete(table, "qty >")
    with pytest.raises(ConfigError, match="absent"):
        delete(table, "absent = 1")
    assert not list((table / STAGED).glob("*"))


def test_a_row_in_another_partition_than_its_columns_say_is_refused(
    golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = golden("9", "cow_basic").table
    moved = {"2024-01-01": "2024-01-02"}
    stage = predicate.stage_selected

    def staged(context: object, where: str, columns: tuple[str, ...], engine: object, folder: str) -> frozenset[str]:
        """As where a global index has left the rows of one partition in another."""
        names = stage(context, where, columns, engine, folder)  # type: ignore[arg-type]
        rows = own_columns(read_rows(table)).select(["id", "dt"])
        other = rows.set_column(
            1,
            "dt",
            pc.replace_with_mask(
                rows["dt"].combine_chunks(), pc.equal(rows["dt"].combine_chunks(), "2024-01-01"), moved["2024-01-01"]
            ),
        )
        put_source(other, table / folder, name="moved")
        (table / folder / "moved/part-0.parquet").rename(table / folder / next(iter(names)))
        (table / folder / "moved").rmdir()
        return frozenset({next(iter(names))})

    monkeypatch.setattr(predicate, "stage_selected", staged)
    before = read_rows(table).num_rows
    with pytest.raises(UnsupportedError, match="in another partition"):
        delete(table, "dt = '2024-01-01'")
    assert read_rows(table).num_rows == before
    assert not list(open_context(table).active.load().pending())


def test_a_commit_after_the_look_at_the_rows_stops_the_delete(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = golden("9", "cow_basic").table
    model = Model.of(table, event_time=True)
    stage = predicate.stage_selected
    rows = own_columns(read_rows(table)).slice(0, 20)

    def staged(*given: object) -> frozenset[str]:
        names = stage(*given)  # type: ignore[arg-type]
        write(table, "upsert", put_source(rows, tmp_path))
        return names

    monkeypatch.setattr(predicate, "stage_selected", staged)
    with pytest.raises(ConflictError, match="has changed file group"):
        delete(table, "qty > 50")
    model.check(table)
    monkeypatch.undo()
    assert delete(table, "qty > 50").deleted
