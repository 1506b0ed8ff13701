"""Which keys of base files a write reads, and to which shards they go."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.codec.hashing import group_indexes
from hudi_core.engine.protocol import TaskAttempt
from hudi_core.errors import CorruptFileError
from hudi_core.model.names import RECORD_KEY
from hudi_core.services.write.tagging import keys, tag
from hudi_core.services.write.tagging.keys import KeysUnit, produce_keys
from hudi_core.services.write.tagging.places import GROUP, TABLE_KEYS
from hudi_core.view.file_group import DataFile, slice_of_base
from tests.support.changed_tables import open_context
from tests.support.fault_storage import FaultPlan
from tests.support.golden_data import GoldenCase
from tests.support.kill_points import tasks_under
from tests.support.overwrites import put_source, within
from tests.support.table_invariants import read_rows
from tests.support.writes import (
    APART,
    SeenEngine,
    base_files,
    like,
    own_columns,
    write,
)

Golden = Callable[[str, str], GoldenCase]


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
    with tasks_under(plan, keys, tag):
        read = [key for key, _ in keys_with_shards(replace(unit, wanted=wanted))]
    return read, plan.counted


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
