"""Which file groups the rows of a write go to, and which of the rows with one key stays."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.codec.hashing import group_indexes
from hudi_core.engine.exchange import SHARD_ROWS
from hudi_core.engine.protocol import TaskAttempt
from hudi_core.errors import CorruptFileError, ExecutionError
from hudi_core.model.names import RECORD_KEY
from hudi_core.services.source import files
from hudi_core.services.write import job, tag
from hudi_core.services.write.places import GROUP, TABLE_KEYS
from hudi_core.services.write.tag import KeysUnit, Tagged, produce_keys
from hudi_core.view.file_group import DataFile, slice_of_base
from tests.support.changed_tables import open_context
from tests.support.fault_storage import FaultPlan
from tests.support.golden_data import GoldenCase
from tests.support.kill_points import tasks_under
from tests.support.overwrites import BUCKETS, put_source, within
from tests.support.table_invariants import assert_metadata_true, read_rows
from tests.support.tiers import tiered
from tests.support.writes import (
    APART,
    Model,
    SeenEngine,
    base_files,
    changed,
    file_ids,
    like,
    own_columns,
    random_rows,
    write,
)

Golden = Callable[[str, str], GoldenCase]


@pytest.fixture(params=["few keys", "many keys", "many keys of files"])
def look(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Whether the keys of the source are so few that only these are looked for; also by all base files together."""
    if request.param == "many keys":
        monkeypatch.setattr(files, "FEW_KEYS", 0)
    elif request.param != "few keys":
        monkeypatch.setattr(job, "_MOST_WANTED", 3)
    return str(request.param)


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


@pytest.mark.usefixtures("look")
@pytest.mark.parametrize("case", ["cow_basic", "bucket_index_mor"])
def test_many_shards_write_what_one_would(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    """Its keys may be many pieces, and so may its rows."""
    table = golden("9", case).table
    model, rows = Model.of(table, event_time=True), own_columns(read_rows(table))
    given = random_rows(rows, 5, 60, partitions=["2024-01-01", "2031-01-01"])
    model.upsert(given)
    monkeypatch.setattr(job, "KEYS_PER_SHARD", 8)
    monkeypatch.setattr(tag, "_KEYS_AT_ONCE", 1)
    engine = SeenEngine()
    options = {"airflow_hudi.batch.rows": "3", **(BUCKETS if case.startswith("bucket") else {})}
    write(table, "upsert", put_source(given, tmp_path, files=3), options, engine=engine)
    model.check(table)
    tagged: list[Tagged] = engine.results[0]
    assert len(tagged) > 5
    assert_metadata_true(table)


@pytest.mark.usefixtures("look")
def test_keys_of_one_shard_come_in_many_batches(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of the table before the rows."""
    table = golden("9", "mdt_disabled").table
    model, rows = Model.of(table, event_time=True), own_columns(read_rows(table))
    given = changed(rows.slice(20, 60), qty=3)
    model.upsert(given)
    monkeypatch.setattr(tag, "_KEYS_AT_ONCE", 1)
    monkeypatch.setattr(job, "KEYS_PER_SHARD", 1 << 30)
    engine = SeenEngine()
    write(table, "upsert", put_source(given, tmp_path), engine=engine)
    model.check(table)
    (tagged,) = engine.results[0]
    assert (sum(tagged.in_groups.values()), dict(tagged.new)) == (60, {})


def test_a_shard_with_keys_of_the_table_alone_stages_no_rows(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = golden("9", "mdt_disabled").table
    model, rows = Model.of(table, event_time=True), own_columns(read_rows(table))
    given = changed(rows.slice(3, 1), qty=3)
    model.upsert(given)
    monkeypatch.setattr(files, "FEW_KEYS", 0)
    monkeypatch.setattr(job, "KEYS_PER_SHARD", 4)
    engine = SeenEngine()
    write(table, "upsert", put_source(given, tmp_path), engine=engine)
    model.check(table)
    tagged: list[Tagged] = engine.results[0]
    assert len(tagged) > 2
    assert [item for item in tagged if not item.name] == [Tagged("")] * (len(tagged) - 1)


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


@pytest.mark.usefixtures("look")
def test_a_base_file_without_a_key_is_refused(golden: Golden, tmp_path: Path) -> None:
    """Its row would be lost among new ones."""
    table = golden("6", "mdt_disabled").table
    rows = read_rows(table)
    (base,) = base_files(table, "2024-01-01")
    there = pq.ParquetFile(base).read()
    keys = [None, *there.column(RECORD_KEY).to_pylist()[1:]]
    at = there.schema.get_field_index(RECORD_KEY)
    pq.write_table(there.set_column(at, RECORD_KEY, pa.array(keys, pa.string())), base)
    before = sorted(path.name for path in table.rglob("*.parquet"))
    with pytest.raises(CorruptFileError, match=base.name):
        write(table, "upsert", put_source(own_columns(within(rows, "2024-01-01")), tmp_path))
    assert sorted(path.name for path in table.rglob("*.parquet")) == before
    assert list(open_context(table).active.load().pending()) == []


def key_units(table: Path, tmp_path: Path) -> list[KeysUnit]:
    """The units of the base files of an upsert of all rows, which it does, by row groups of 4 rows."""
    engine, options = SeenEngine(), {"airflow_hudi.parquet.row_group.rows": "4"}
    write(table, "upsert", put_source(own_columns(read_rows(table)), tmp_path, name="all"), options, engine=engine)
    return [unit for unit in engine.units[0] if unit.file_slice is not None]


def keys_with_shards(unit: KeysUnit) -> list[tuple[str, int]]:
    """The keys of the table that a unit yields."""
    yielded = []
    for batch in produce_keys(unit, TaskAttempt(0, 1, 0)):
        for shard, first, piece in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            assert first == b"\0", "before all rows"
            rows = pa.ipc.read_record_batch(pa.py_buffer(piece), TABLE_KEYS)
            assert set(rows.column(GROUP).to_pylist()) == {unit.number}
            yielded += [(key, shard) for key in rows.column(RECORD_KEY).to_pylist()]
    return yielded


def test_a_key_has_one_shard_wherever_it_is(golden: Golden, tmp_path: Path) -> None:
    """Else a row would be new that is there."""
    table = golden("9", "mdt_disabled").table
    rows = read_rows(table)
    shards: dict[str, set[int]] = {}
    for unit in key_units(table, tmp_path):
        for key, shard in keys_with_shards(replace(unit, shards=5, wanted=None)):
            shards.setdefault(key, set()).add(shard)
    assert sorted(shards) == sorted(rows.column(RECORD_KEY).to_pylist())
    hashed = group_indexes(pa.array(shards), 5).tolist()
    assert list(shards.values()) == [{shard} for shard in hashed]
    assert set(hashed) == set(range(5))


@pytest.mark.parametrize("case", ["mdt_disabled", "no_meta_fields_cow"])
def test_few_keys_are_found_without_the_others(golden: Golden, tmp_path: Path, case: str) -> None:
    """By the filters and ranges of base files; a table without meta columns has neither."""
    table = golden("9", case).table
    rows = own_columns(read_rows(table))
    options = {"airflow_hudi.parquet.row_group.rows": "4", **APART}
    more = like(rows, *({"id": f"x{number:03}", "dt": "2031-01-01"} for number in range(40)))
    write(table, "insert", put_source(more, tmp_path, name="more"), options)
    draw = random.Random(3)
    for unit in key_units(table, tmp_path):
        every = [key for key, _ in keys_with_shards(replace(unit, shards=1, wanted=None))]
        for count in (0, 1, 2, 9, len(every)):
            wanted = draw.sample(every, count)
            given = replace(unit, shards=1, wanted=(*wanted, "absent", "x", "x0055", "zz"))
            assert sorted(key for key, _ in keys_with_shards(given)) == sorted(wanted)


def counted(unit: KeysUnit, *wanted: str) -> tuple[list[str], int]:
    """The keys of a unit that are found, and how many reads of the file that takes."""
    plan = FaultPlan(counts=frozenset({"input.read"}))
    with tasks_under(plan, tag):
        keys = [key for key, _ in keys_with_shards(replace(unit, wanted=wanted))]
    return keys, plan.counted


@pytest.mark.parametrize("kept", ["filter and ranges", "ranges", "nothing"])
def test_row_groups_without_the_keys_are_not_read(golden: Golden, tmp_path: Path, kept: str) -> None:
    """Nor a file whose filter has none of them. Without filter and ranges all are read."""
    table = golden("9", "mdt_disabled").table
    rows = own_columns(read_rows(table))
    more = like(rows, *({"id": f"x{number:03}", "dt": "2031-01-01"} for number in range(40)))
    write(table, "insert", put_source(more, tmp_path, name="more"), {"airflow_hudi.parquet.row_group.rows": "4"})
    units = key_units(table, tmp_path)
    (base,) = base_files(table, "2031-01-01")
    (unit,) = (
        unit for unit in units if unit.file_slice is not None and unit.file_slice.file_group.partition == "2031-01-01"
    )
    unit = replace(unit, file_slice=slice_of_base(DataFile("2031-01-01", base.name, base.stat().st_size)))
    if kept != "filter and ranges":
        bare = pq.ParquetFile(base).read().replace_schema_metadata(None)
        pq.write_table(bare, base, row_group_size=4, write_statistics=kept == "ranges")
    (none, footer), (one, few), (three, most) = (
        counted(unit, *wanted) for wanted in (("y001", "a"), ("x003", "a"), ("x003", "x009", "x031"))
    )
    assert (none, one, three) == ([], ["x003"], ["x003", "x009", "x031"])
    if kept == "nothing":
        assert footer == few == most
    else:
        assert footer < few < most
    if kept == "filter and ranges":
        assert counted(unit, "x002a") == ([], footer), "between the ends of a row group"


def test_a_unit_without_a_file_has_no_keys(golden: Golden, tmp_path: Path) -> None:
    (unit, *_) = key_units(golden("9", "mdt_disabled").table, tmp_path)
    assert list(produce_keys(replace(unit, file_slice=None), TaskAttempt(0, 1, 0))) == []
