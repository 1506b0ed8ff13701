"""New rows fill small file groups first, and then make files of their own."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_core.services.write.route import FRACTIONS, Routes
from hudi_core.timeline.actions.write_stats import NULL_COMMIT
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import put_source
from tests.support.table_invariants import assert_metadata_true, read_rows
from tests.support.tiers import tiered
from tests.support.writes import APART, Model, SeenEngine, base_files, changed, commit_of, like, own_columns, write

Golden = Callable[[str, str], GoldenCase]
DAY = "2024-01-01"


def new_rows(rows: pa.Table, count: int, day: str = DAY) -> pa.Table:
    """Rows of which each takes about the same space in a file."""
    draw = random.Random(count)
    notes = (draw.randbytes(100).hex() for _ in range(count))
    return like(rows, *({"id": f"new {number}", "dt": day, "note": note} for number, note in enumerate(notes)))


def filled(table: Path, instant: str | None) -> Counter[str]:
    """The rows that came to file groups of the table, and "" for those of new ones."""
    found: Counter[str] = Counter()
    for stat in commit_of(table, instant).write_stats():
        found["" if stat.prev_commit == NULL_COMMIT else stat.file_id] += stat.num_inserts
    return found


def routes_of(engine: SeenEngine) -> Routes:
    """The routes of a write."""
    routes: Routes = engine.units[-1][0].routes
    return routes


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
@pytest.mark.parametrize("operation", ["insert", "upsert"])
def test_a_small_file_group_is_filled(golden: Golden, tmp_path: Path, version: str, operation: str) -> None:
    table = golden(version, "cow_basic").table
    model, rows = Model.of(table, event_time=version != "6"), own_columns(read_rows(table))
    more = new_rows(rows, 7)
    (base,) = base_files(table, DAY)
    model.insert(more)
    result = write(table, operation, put_source(more, tmp_path))
    assert filled(table, result.instant) == {base.name.partition("_")[0]: 7}
    assert (result.inserted, result.files_written, len(base_files(table, DAY))) == (7, 1, 1)
    model.check(table)
    assert_metadata_true(table)


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
def test_hudi_8263_hudi_5822_rows_of_a_merge_on_read_table_fill_small_file_groups_without_logs(
    golden: Golden, tmp_path: Path, version: str
) -> None:
    """By a new base file, also of rows that change old ones there."""
    table = golden(version, "non_partitioned_mor" if version == "8" else "mor_basic").table
    model, rows = Model.of(table, event_time=version != "6"), own_columns(read_rows(table))
    write(table, "insert", put_source(new_rows(rows, 5, "2031-01-01"), tmp_path, name="small"), APART)
    model.insert(new_rows(rows, 5, "2031-01-01"))
    later = changed(new_rows(rows, 9, "2031-01-01").slice(3), ts=lambda ts: ts + 1, qty=3)
    model.upsert(later)
    result = write(table, "upsert", put_source(later, tmp_path))
    (stat,) = commit_of(table, result.instant).write_stats()
    assert (stat.log_version, stat.num_inserts, stat.num_update_writes) == (None, 4, 2)
    model.check(table)
    assert_metadata_true(table)


@pytest.mark.parametrize(
    ("case", "options"),
    [
        ("cow_basic", APART),
        ("cow_basic", {"hoodie.parquet.small.file.limit": "-1"}),
        ("clustering_requested_cow", {}),
        ("clustering_requested_mor", {}),
        ("mor_compaction_requested", {}),
        ("log_compaction_requested", {}),
    ],
)
def test_file_groups_that_are_not_filled(golden: Golden, tmp_path: Path, case: str, options: dict[str, str]) -> None:
    """Where the limit says so; with a pending plan, or log files."""
    table = golden("9", case).table
    model, rows = Model.of(table, event_time=True), own_columns(read_rows(table))
    more = new_rows(rows, 7)
    model.insert(more)
    result = write(table, "insert", put_source(more, tmp_path), options)
    assert filled(table, result.instant) == {"": 7}
    model.check(table)
    assert_metadata_true(table)


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
def test_a_file_group_with_log_files_is_not_filled(golden: Golden, tmp_path: Path, version: str) -> None:
    """A new base file would hide them in layout 1."""
    table = golden(version, "mor_basic").table
    model, rows = Model.of(table, event_time=version != "6"), own_columns(read_rows(table))
    first = new_rows(rows, 4, "2031-01-01")
    for number, source in enumerate((first, changed(first, ts=lambda ts: ts + 1, qty=1))):
        model.upsert(source)
        write(table, "upsert", put_source(source, tmp_path, name=str(number)))
    more = changed(first, id=lambda key: f"{key} more")
    model.insert(more)
    result = write(table, "insert", put_source(more, tmp_path, name="more"))
    assert filled(table, result.instant) == {"": 4}
    model.check(table)
    assert_metadata_true(table)


def test_a_bulk_insert_fills_none(golden: Golden, tmp_path: Path) -> None:
    table = golden("9", "cow_basic").table
    model, rows = Model.of(table, event_time=True), own_columns(read_rows(table))
    more = new_rows(rows, 7)
    model.insert(more)
    result = write(table, "bulk_insert", put_source(more, tmp_path))
    assert filled(table, result.instant) == {"": 7}
    model.check(table)


def groups_of_sizes(table: Path, tmp_path: Path, rows: pa.Table, counts: tuple[int, ...]) -> list[tuple[str, int]]:
    """Makes file groups of so many rows in a new partition; their ids and sizes in this order."""
    made: list[tuple[str, int]] = []
    for number, count in enumerate(counts):
        more = changed(new_rows(rows, count, "2031-01-01"), id=lambda key, number=number: f"{key} of {number}")
        write(table, "insert", put_source(more, tmp_path, name=f"group {number}"), APART)
        (base,) = (path for path in base_files(table, "2031-01-01") if path.name.partition("_")[0] not in dict(made))
        made.append((base.name.partition("_")[0], base.stat().st_size))
    return made


def test_the_smallest_is_filled_first_until_it_is_full(golden: Golden, tmp_path: Path) -> None:
    """As far as a file may grow; what is left over makes new files."""
    table = golden("9", "mdt_disabled").table
    rows = own_columns(read_rows(table))
    (middle, middle_size), (least, least_size), (largest, largest_size) = groups_of_sizes(
        table, tmp_path, rows, (40, 2, 120)
    )
    assert least_size < middle_size < largest_size
    model = Model.of(table, event_time=True)
    more = new_rows(rows, 400, "2031-01-01")
    given, engine = put_source(more, tmp_path, files=2), SeenEngine()
    model.insert(more)
    full = largest_size
    result = write(table, "insert", given, {"hoodie.parquet.max.file.size": str(full)}, engine=engine)
    came = filled(table, result.instant)
    assert came.total() == 400
    assert came[least] > came[middle] > 0
    assert came[largest] == 0
    assert came[""] > 0
    model.check(table)
    routes = routes_of(engine)
    assert set(routes.small) == {"2031-01-01"}
    (first, first_end), (second, second_end) = routes.small["2031-01-01"]
    assert routes.touched == tuple(sorted((first, second)))
    assert 0 < first_end < second_end < FRACTIONS
    assert first_end / (second_end - first_end) == pytest.approx((full - least_size) / (full - middle_size), rel=0.05)
    for group, share in ((least, first_end), (middle, second_end - first_end)):
        assert came[group] / 400 == pytest.approx(share / FRACTIONS, abs=0.03)


def test_file_groups_above_the_limit_are_not_filled(golden: Golden, tmp_path: Path) -> None:
    table = golden("9", "mdt_disabled").table
    rows = own_columns(read_rows(table))
    (_, large_size), (small, small_size) = groups_of_sizes(table, tmp_path, rows, (120, 2))
    assert small_size < large_size
    model = Model.of(table, event_time=True)
    more = new_rows(rows, 90, "2031-01-01")
    model.insert(more)
    result = write(table, "insert", put_source(more, tmp_path), {"hoodie.parquet.small.file.limit": str(large_size)})
    assert filled(table, result.instant) == {small: 90}
    model.check(table)


@pytest.mark.parametrize("room", [0, 3])
def test_a_file_group_without_room_for_a_row_is_left_alone(golden: Golden, tmp_path: Path, room: int) -> None:
    """It would be written again for nothing, and conflict with others."""
    table = golden("9", "mdt_disabled").table
    rows = own_columns(read_rows(table))
    ((_, size),) = groups_of_sizes(table, tmp_path, rows, (30,))
    model = Model.of(table, event_time=True)
    more = new_rows(rows, 3, "2031-01-01")
    model.insert(more)
    result = write(table, "insert", put_source(more, tmp_path), {"hoodie.parquet.max.file.size": str(size + room)})
    assert filled(table, result.instant) == {"": 3}
    assert all(stat.prev_commit == NULL_COMMIT for stat in commit_of(table, result.instant).write_stats())
    model.check(table)


@pytest.mark.parametrize("operation", tiered(["bulk_insert", "insert", "upsert"], ["insert"]))
def test_large_inserts_make_several_files(golden: Golden, tmp_path: Path, operation: str) -> None:
    """Of a new partition, and of one whose file groups have no room."""
    table = golden("9", "cow_basic").table
    model, rows = Model.of(table, event_time=True), own_columns(read_rows(table))
    more = pa.concat_tables([new_rows(rows, 300), new_rows(rows, 300, "2031-01-01"), new_rows(rows, 2, "2031-01-02")])
    given = put_source(more, tmp_path, files=3)
    size = sum(path.stat().st_size for path in given.iterdir())
    options = {"hoodie.parquet.max.file.size": str(size // 8), "airflow_hudi.parquet.row_group.rows": "20", **APART}
    model.insert(more)
    result = write(table, operation, given, options)
    days = Counter(stat.partition_path for stat in commit_of(table, result.instant).write_stats())
    assert days[DAY] >= 3
    assert days["2031-01-01"] >= 3
    assert days["2031-01-02"] == 1
    assert result.inserted == 602
    model.check(table)
    assert_metadata_true(table)


def test_a_source_of_updates_alone_makes_no_new_file(golden: Golden, tmp_path: Path) -> None:
    table = golden("9", "cow_basic").table
    model, rows = Model.of(table, event_time=True), own_columns(read_rows(table))
    newer = changed(rows, qty=1)
    model.upsert(newer)
    engine = SeenEngine()
    result = write(table, "upsert", put_source(newer, tmp_path), engine=engine)
    assert (result.updated, result.inserted) == (rows.num_rows, 0)
    assert routes_of(engine).spread.shards == 0
    assert routes_of(engine).shards == len(routes_of(engine).touched) == len(base_files(table))
    model.check(table)
