"""Which file groups the rows of a write go to, and which of the rows with one key stays."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_core.engine.exchange import SHARD_ROWS
from hudi_core.engine.protocol import TaskAttempt
from hudi_core.errors import ExecutionError
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import BUCKETS, put_source
from tests.support.table_invariants import assert_metadata_true, read_rows
from tests.support.tiers import tiered
from tests.support.writes import (
    APART,
    Model,
    SeenEngine,
    changed,
    file_ids,
    like,
    own_columns,
    write,
)

Golden = Callable[[str, str], GoldenCase]


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
def test_the_row_with_the_greatest_ordering_value_is_written(golden: Golden, tmp_path: Path, version: str) -> None:
    """Wherever it is in the source; of equal ones the last."""
    table = golden(version, "cow_basic").table
    model, rows = Model.of(table, event_time=version != "6"), own_columns(read_rows(table))
    old, new = rows.slice(0, 30), like(rows, *({"id": f"new {number}"} for number in range(10)))
    later = [changed(pa.concat_tables([old, new]), ts=lambda ts, by=by: ts + by, qty=by) for by in (9, 3, 1, 9)]
    later[3] = changed(later[3], name="the last")
    source = pa.concat_tables([later[0].slice(0, 20), later[1], later[3], later[2], later[0].slice(20)])
    model.upsert(source)
    result = write(table, "upsert", put_source(source, tmp_path, files=4))
    assert (result.updated, result.inserted) == (30, 10)
    model.check(table)
    names = read_rows(table).column("name").to_pylist()
    assert names.count("the last") == 20
    assert_metadata_true(table)


def test_of_a_table_without_an_order_the_last_row_of_the_source_is_written(golden: Golden, tmp_path: Path) -> None:
    table = golden("9", "merge_mode_commit_time_cow").table
    model, rows = Model.of(table, event_time=False, order=None), own_columns(read_rows(table)).slice(0, 8)
    source = pa.concat_tables([changed(rows, ts=9999999, qty=1), changed(rows, ts=1, qty=2), changed(rows, ts=2)])
    assert model.upsert(source)["updated"] == 8
    assert write(table, "upsert", put_source(source, tmp_path, files=3)).updated == 8
    model.check(table)


def test_older_rows_of_a_key_are_counted(golden: Golden, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table = golden("9", "cow_basic").table
    rows = own_columns(read_rows(table)).slice(0, 7)
    with caplog.at_level(logging.INFO):
        write(table, "upsert", put_source(pa.concat_tables([rows, rows, rows.slice(0, 2)]), tmp_path, files=2))
    assert "9 rows of the source have a newer row of their key" in caplog.text


@pytest.mark.parametrize("case", ["cow_basic", "bucket_index_cow"])
def test_an_insert_may_combine_its_rows(golden: Golden, tmp_path: Path, case: str) -> None:
    """Of the source alone: rows of the table stay beside them."""
    table = golden("9", case).table
    model, rows = Model.of(table, event_time=True), own_columns(read_rows(table)).slice(0, 5)
    newer = changed(rows, ts=lambda ts: ts + 1, name="newer")
    model.insert(newer)
    options = {"hoodie.combine.before.insert": "true", **(BUCKETS if case.startswith("bucket") else {})}
    result = write(table, "insert", put_source(pa.concat_tables([newer, rows]), tmp_path, files=2), options)
    assert result.inserted == 5
    model.check(table)


def test_rows_of_one_key_in_two_file_groups_become_the_newest_in_both(golden: Golden, tmp_path: Path) -> None:
    """Inserts have doubled the key. The upsert neither adds a third row nor leaves an old one."""
    table = golden("9", "cow_basic").table
    rows = own_columns(read_rows(table)).slice(0, 3)
    write(table, "insert", put_source(rows, tmp_path, name="again"), APART)
    model = Model.of(table, event_time=True)
    (place, *_) = model.twice
    assert len(file_ids(table)[place]) == 2
    newer = changed(rows, qty=lambda qty: qty + 1)
    assert model.upsert(newer)["updated"] == 3
    result = write(table, "upsert", put_source(newer, tmp_path, name="newer"))
    assert (result.updated, result.inserted) == (6, 0)
    model.check(table)
    assert model.delete(rows) == 3
    assert write(table, "delete", put_source(rows, tmp_path, name="gone")).deleted == 6
    model.check(table)
    assert_metadata_true(table)


def test_rows_of_one_key_in_one_file_group_become_the_newest(golden: Golden, tmp_path: Path) -> None:
    table = golden("9", "cow_basic").table
    rows = own_columns(read_rows(table)).slice(0, 2)
    write(table, "insert", put_source(rows, tmp_path, name="again"))
    model = Model.of(table, event_time=True)
    assert {len(file_ids(table)[place]) for place in model.twice} == {1}
    newer = changed(rows, qty=lambda qty: qty + 1)
    model.upsert(newer)
    assert write(table, "upsert", put_source(newer, tmp_path, name="newer")).updated == 4
    model.check(table)


@pytest.mark.parametrize("operation", ["upsert", "delete"])
def test_a_key_of_another_partition_is_another_key(golden: Golden, tmp_path: Path, operation: str) -> None:
    table = golden("9", "cow_basic").table
    model, rows = Model.of(table, event_time=True), own_columns(read_rows(table))
    days = sorted({day for day, _ in model.rows})
    moved = changed(rows.slice(0, 4), dt=lambda day: next(other for other in days if other != day))
    getattr(model, operation)(moved)
    result = write(table, operation, put_source(moved, tmp_path))
    assert (result.inserted, result.updated, result.deleted) == (4 if operation == "upsert" else 0, 0, 0)
    model.check(table)


def test_deletes_of_absent_keys_are_not_staged(golden: Golden, tmp_path: Path) -> None:
    table = golden("9", "cow_basic").table
    model, rows = Model.of(table, event_time=True), own_columns(read_rows(table))
    source = pa.concat_tables([rows.slice(0, 3), like(rows, {"id": "nobody"}, {"id": "no one", "dt": "2031-01-01"})])
    engine = SeenEngine()
    assert (model.delete(source), write(table, "delete", put_source(source, tmp_path), engine=engine).deleted) == (3, 3)
    model.check(table)
    (tagged,) = engine.results[0]
    assert (sum(tagged.in_groups.values()), dict(tagged.new), sum(tagged.rows.values())) == (3, {}, 5)


@pytest.mark.parametrize("damaged", ["a row", "a key of the table"])
def test_what_cannot_be_tagged_is_an_error_that_names_the_table(golden: Golden, tmp_path: Path, damaged: str) -> None:
    table = golden("9", "mdt_disabled").table
    engine = SeenEngine()
    write(table, "upsert", put_source(own_columns(read_rows(table)).slice(0, 3), tmp_path), engine=engine)
    key = b"\1key" if damaged == "a row" else b"\0"
    piece = pa.RecordBatch.from_arrays([pa.array([key]), pa.array([b"no rows"])], schema=SHARD_ROWS)
    with pytest.raises(ExecutionError, match="tagging the rows of a write failed") as caught:
        engine.consumers[0](0, iter([piece]), TaskAttempt(0, 1, 0))
    assert caught.value.path == str(table)
