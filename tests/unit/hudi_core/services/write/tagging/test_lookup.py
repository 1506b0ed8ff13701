"""Which base files a write need not open for its keys, by the indexes of the metadata table. What the base files hold
says whether one was left out wrongly.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hudi_core.index import key_lookups
from hudi_core.model.names import RECORD_KEY
from hudi_core.services.write.tagging import lookup
from hudi_core.services.write.tagging.lookup import slices_of_keys
from hudi_core.view.file_group import FileSlice
from tests.support.changed_tables import open_context
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import put_source
from tests.support.table_invariants import assert_metadata_true, read_rows
from tests.support.tiers import tiered
from tests.support.writes import APART, Model, SeenEngine, changed, like, own_columns, write

Golden = Callable[[str, str], GoldenCase]
BY_RECORD = {"hoodie.index.type": "RECORD_INDEX"}
BY_BLOOM = {"hoodie.index.type": "GLOBAL_BLOOM"}
TABLES = [
    (version, name) for version in ("6", "8", "9") for name in ("mdt_all_cow", "mdt_all_mor", "mdt_record_index_lookup")
]


@pytest.fixture(autouse=True)
def however_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """The golden tables have few slices."""
    monkeypatch.setattr(lookup, "MANY_SLICES", 0)


def keys_of(table: Path) -> dict[int, tuple[FileSlice, set[str]]]:
    """The file slices of a table, numbered, and the keys of their base files."""
    context = open_context(table)
    view = context.view(context.active.load())
    slices = [item for name in view.partitions() for item in view.latest_merged_slices(name) if item.base_file]
    read = [set(pq.read_table(table / item.base_file.path).column(RECORD_KEY).to_pylist()) for item in slices]
    return dict(enumerate(zip(slices, read, strict=True)))


def chosen(table: Path, keys: set[str], options: dict[str, str]) -> tuple[set[int], set[int]]:
    """The slices that are left of all for some keys, and those that have one."""
    every, context = keys_of(table), open_context(table, options)
    slices = {number: item for number, (item, _) in every.items()}
    wanted = dict.fromkeys([item.file_group.partition for item in slices.values()], frozenset(keys))
    kept = slices_of_keys(context, context.active.load(), slices, wanted, frozenset())
    return set(kept), {number for number, (_, there) in every.items() if there & keys}


@pytest.mark.parametrize("options", [BY_RECORD, BY_BLOOM], ids=["record", "bloom"])
@pytest.mark.parametrize(
    ("version", "name"), tiered(TABLES, [("6", "mdt_record_index_lookup"), ("8", "mdt_all_cow"), ("9", "mdt_all_mor")])
)
def test_the_slices_of_each_key_are_among_them(
    golden: Golden, version: str, name: str, options: dict[str, str]
) -> None:
    table = golden(version, name).table
    every = keys_of(table)
    keys = sorted(set().union(*(there for _, there in every.values())))
    left = 0
    for key in keys[:: max(1, len(keys) // 8)]:
        kept, having = chosen(table, {key}, options)
        assert having <= kept
        left += len(every) - len(kept)
    kept, having = chosen(table, {*keys}, options)
    assert having <= kept
    has_one = options == BY_RECORD or (version, name) != ("6", "mdt_record_index_lookup")
    assert (left > 0) == has_one, "slices without the keys are left out"


@pytest.mark.parametrize("options", [BY_RECORD, BY_BLOOM], ids=["record", "bloom"])
def test_a_key_that_the_table_lacks_is_looked_for_nowhere(golden: Golden, options: dict[str, str]) -> None:
    assert chosen(golden("9", "mdt_all_cow").table, {"no such key"}, options) == (set(), set())


def test_slices_whose_log_files_may_have_the_key_stay(golden: Golden) -> None:
    table = golden("9", "mdt_all_mor").table
    every, context = keys_of(table), open_context(table, BY_BLOOM)
    slices = {number: item for number, (item, _) in every.items()}
    wanted = dict.fromkeys([item.file_group.partition for item in slices.values()], frozenset({"no such key"}))
    timeline = context.active.load()
    assert {*slices_of_keys(context, timeline, slices, wanted, frozenset({0}))} == {0}


def test_a_commit_beside_the_lookup_stops_belief_in_the_record_index(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit moves a key to another file group: its old slice must be looked at, which makes it a conflict."""
    table = golden("9", "mdt_all_cow").table
    rows = own_columns(read_rows(table))
    key = rows.column("id")[0].as_py()
    looked_up = key_lookups.groups_of_keys

    def then_committed(*given: Any) -> Any:
        groups = looked_up(*given)
        source = put_source(like(rows, {"id": "new", "dt": "2031-01-01"}), tmp_path)
        monkeypatch.setattr(lookup, "groups_of_keys", looked_up)
        write(table, "insert", source, APART)
        return groups

    monkeypatch.setattr(lookup, "groups_of_keys", then_committed)
    monkeypatch.setattr(lookup, "_in_ranges", lambda metadata, bases, wanted: np.ones(len(bases), np.bool_))
    monkeypatch.setattr(lookup, "_in_filters", lambda metadata, bases, wanted: np.ones(len(bases), np.bool_))
    every, context = keys_of(table), open_context(table, BY_RECORD)
    slices = {number: item for number, (item, _) in every.items()}
    wanted = dict.fromkeys([item.file_group.partition for item in slices.values()], frozenset({key}))
    assert slices_of_keys(context, context.active.load(), slices, wanted, frozenset()) == slices
    again = open_context(table, BY_RECORD)
    assert len(slices_of_keys(again, again.active.load(), slices, wanted, frozenset())) == 1


def test_an_index_that_may_lie_is_not_asked(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    table = golden("9", "mdt_all_cow").table
    key = next(iter(keys_of(table)[0][1]))
    monkeypatch.setattr("hudi_core.metadata_table.read.completeness.Completeness.has_true_locations", False)
    kept, having = chosen(table, {key}, BY_RECORD)
    assert having <= kept < {*keys_of(table)}, "ranges and filters of files still count"


def test_a_global_record_index_is_not_asked_for_the_place_of_a_key_in_its_partition(
    golden: Golden, tmp_path: Path
) -> None:
    """It names one place of a key that two partitions have. The row of the other would be written a second time."""
    table = golden("9", "mdt_record_index_lookup").table
    model, rows = Model.of(table, event_time=True), own_columns(read_rows(table))
    one, other, *_ = sorted(set(rows.column("dt").to_pylist()))
    row, beside = rows.filter(pc.equal(rows.column("dt"), one)).slice(0, 2).to_pylist()
    (there,) = rows.filter(pc.equal(rows.column("dt"), other)).slice(0, 1).to_pylist()
    both = like(rows, {**row, "dt": other}, {**beside, "ts": beside["ts"] + 1})
    again = like(rows, {**row, "name": "newer"}, {**row, "dt": other, "name": "newer"}, there)
    for step, few in enumerate((both, changed(again, ts=lambda ts: ts + 2))):
        index = "SIMPLE" if step == 0 else "RECORD_LEVEL_INDEX"
        model.upsert(few)
        write(table, "upsert", put_source(few, tmp_path, name=index), {"hoodie.index.type": index})
        model.check(table)


def test_a_table_without_a_record_index_is_written_by_it(golden: Golden, tmp_path: Path) -> None:
    table = golden("8", "cow_basic").table
    model, few = (
        Model.of(table, event_time=True),
        changed(own_columns(read_rows(table)).slice(0, 2), ts=lambda ts: ts + 1),
    )
    for index in ("RECORD_INDEX", "RECORD_LEVEL_INDEX"):
        model.upsert(few)
        write(table, "upsert", put_source(few, tmp_path, name=index), {"hoodie.index.type": index})
        model.check(table)


@pytest.mark.parametrize(
    ("version", "name", "index"),
    tiered(
        [(*table, index) for table in TABLES for index in ("RECORD_INDEX", "GLOBAL_BLOOM", "BLOOM")],
        [
            ("6", "mdt_all_cow", "BLOOM"),
            ("8", "mdt_record_index_lookup", "GLOBAL_BLOOM"),
            ("9", "mdt_all_mor", "RECORD_INDEX"),
        ],
    ),
)
def test_writes_leave_what_a_model_has(golden: Golden, tmp_path: Path, version: str, name: str, index: str) -> None:
    """And open no base file that has none of the keys."""
    table = golden(version, name).table
    model, rows = Model.of(table, event_time=version != "6"), own_columns(read_rows(table))
    for step in range(3):
        few = rows.take(random_places(rows.num_rows, step))
        few = changed(few, ts=lambda ts, step=step: ts + 1 + step)
        operation = "delete" if step == 1 else "upsert"
        getattr(model, operation)(few)
        engine, before = SeenEngine(), len(keys_of(table))
        write(table, operation, put_source(few, tmp_path, name=str(step)), {"hoodie.index.type": index}, engine=engine)
        opened = [unit for unit in engine.units[0] if unit.file_slice is not None]
        assert len(opened) <= min(before, 2 * few.num_rows)
        model.check(table)
    assert_metadata_true(table)


def random_places(count: int, step: int) -> list[int]:
    """Two rows of a table."""
    return [(17 * step + 3) % count, (31 * step + 11) % count]
