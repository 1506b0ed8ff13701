"""Writes into tables with a bucket index: each bucket of a partition keeps one file group."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_core.errors import ConfigError, FormatError, UnsupportedError
from hudi_core.filegroup.write.buckets import Buckets
from hudi_core.view.file_group import FileSlice
from tests.support.changed_tables import data_files, open_context
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import BUCKETS, in_buckets, put_source
from tests.support.table_invariants import assert_metadata_true, leftovers, pending_instants, read_rows
from tests.support.tiers import tiered
from tests.support.writes import (
    Model,
    base_files,
    changed,
    inserted_twice,
    like,
    marked,
    own_columns,
    staged,
    write,
)
from tests.unit.hudi_core.services.write.test_plan import OPERATIONS, TWO_BUCKETS, planned, refused

Golden = Callable[[str, str], GoldenCase]
FOUR = Buckets(4, ("id",), ("id",))
CASES = [(version, case) for version in ("6", "8", "9") for case in ("bucket_index_cow", "bucket_index_mor")]


def slices(table: Path) -> list[FileSlice]:
    context = open_context(table)
    view = context.view(context.active.load())
    return [item for name in view.partitions() for item in view.latest_merged_slices(name)]


def assert_one_group_a_bucket(table: Path) -> None:
    found = [FOUR.place_of_group(item.file_group) for item in slices(table)]
    assert len(set(found)) == len(found)


def new_rows(rows: pa.Table, day: str, count: int = 9) -> pa.Table:
    return like(rows, *({"id": f"new {day} {number}", "dt": day} for number in range(count)))


@pytest.mark.parametrize(
    ("version", "case", "operation"),
    tiered(
        [(*case, operation) for case in CASES for operation in ("bulk_insert", "insert", "upsert")],
        [
            ("9", "bucket_index_cow", "bulk_insert"),
            ("6", "bucket_index_cow", "insert"),
            ("6", "bucket_index_mor", "upsert"),
        ],
    ),
)
def test_hudi_10894_hudi_9742_hudi_12245_new_rows_go_to_the_file_groups_of_their_buckets(
    golden: Golden, tmp_path: Path, version: str, case: str, operation: str
) -> None:
    """The second time, too, and to no log file of a copy-on-write table."""
    table = golden(version, case).table
    model, rows = Model.of(table, event_time=version != "6"), own_columns(read_rows(table))
    old, groups = in_buckets(read_rows(table)), {item.file_group for item in slices(table)}
    source = pa.concat_tables([new_rows(rows, "2024-01-01"), new_rows(rows, "2031-01-01")])
    for _ in inserted_twice(table, model, source, operation, BUCKETS, tmp_path):
        assert_one_group_a_bucket(table)
        assert case.endswith("mor") or not any(item.log_files for item in slices(table))
        assert_metadata_true(table)
    there = in_buckets(read_rows(table))
    assert {place: there[place] for place in old} == old
    kept = {item.file_group for item in slices(table)}
    assert groups < kept
    assert {group.partition for group in kept - groups} == {"2031-01-01"}


@pytest.mark.parametrize(("version", "case"), tiered(CASES, [("6", "bucket_index_cow"), ("8", "bucket_index_mor")]))
def test_changes_go_to_the_file_groups_of_their_buckets(
    golden: Golden, tmp_path: Path, version: str, case: str
) -> None:
    """Keys that no bucket holds are not deleted, and make no bucket."""
    table = golden(version, case).table
    model, rows = Model.of(table, event_time=version != "6"), own_columns(read_rows(table))
    groups = {item.file_group for item in slices(table)}
    newer = changed(rows.slice(0, 40), ts=lambda ts: ts + 9, qty=1)
    source = pa.concat_tables([newer, new_rows(rows, "2024-01-01")])
    model.upsert(source)
    write(table, "upsert", put_source(source, tmp_path, files=2), BUCKETS)
    model.check(table)
    gone = pa.concat_tables([source.slice(30), new_rows(rows, "2031-01-01"), like(rows, {"id": "nobody"})])
    model.delete(gone)
    write(table, "delete", put_source(gone, tmp_path, name="gone"), BUCKETS)
    model.check(table)
    assert {item.file_group for item in slices(table)} == groups
    assert_one_group_a_bucket(table)
    assert_metadata_true(table)


def test_a_bucket_is_one_file_whatever_its_size(golden: Golden, tmp_path: Path) -> None:
    table = golden("9", "bucket_index_cow").table
    model, rows = Model.of(table, event_time=True), own_columns(read_rows(table))
    more = new_rows(rows, "2031-01-01", 60)
    model.upsert(more)
    options = {**BUCKETS, "hoodie.parquet.max.file.size": "1000", "airflow_hudi.parquet.row_group.rows": "2"}
    assert write(table, "upsert", put_source(more, tmp_path), options).files_written == 4
    model.check(table)
    assert_one_group_a_bucket(table)


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
def test_a_bucket_of_log_files_alone_gets_more_of_them(golden: Golden, tmp_path: Path, version: str) -> None:
    table = golden(version, "mor_log_only").table
    for base in base_files(table):
        base.unlink()
    model, rows = Model.of(table, event_time=True), own_columns(read_rows(table))
    later = changed(rows, ts=lambda ts: ts + 9999, qty=5)
    source = pa.concat_tables([later.slice(0, 5), new_rows(later, "2024-01-01")])
    model.upsert(source)
    write(table, "upsert", put_source(source, tmp_path), TWO_BUCKETS)
    model.check(table)
    assert base_files(table) == []
    model.delete(later.slice(3, 9))
    write(table, "delete", put_source(later.slice(3, 9), tmp_path, name="gone"), TWO_BUCKETS)
    model.check(table)
    assert_one_group_a_bucket(table)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_hudi_9303_hudi_10899_a_bucket_with_two_file_groups_is_refused(
    golden: Golden, tmp_path: Path, operation: str
) -> None:
    """A key may be in either."""
    table = golden("9", "bucket_index_cow").table
    given = put_source(own_columns(read_rows(table)), tmp_path)
    (base, *_) = base_files(table, "2024-01-01")
    file_id = base.name.partition("_")[0]
    other = f"{file_id[:8]}-64c6-4d82-bc70-3d88ba276ea1-0"
    base.with_name(base.name.replace(file_id, other)).write_bytes(base.read_bytes())
    refused(table, operation, given, BUCKETS, FormatError, "are of one bucket")


@pytest.mark.parametrize("operation", ["bulk_insert", "upsert"])
@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({}, "the table has a bucket index"),
        (TWO_BUCKETS, "in another bucket"),
        ({**BUCKETS, "hoodie.bucket.index.num.buckets": "8"}, "in another bucket"),
        ({"hoodie.index.type": "BUCKET"}, "BUCKET without hoodie.bucket.index.num.buckets"),
    ],
)
def test_options_of_other_buckets_are_refused(
    golden: Golden, tmp_path: Path, operation: str, options: dict[str, str], match: str
) -> None:
    table = golden("9", "bucket_index_cow").table
    given = put_source(own_columns(read_rows(table)), tmp_path)
    refused(table, operation, given, options, ConfigError, match)


def test_buckets_are_not_asked_for_in_a_table_without_them(golden: Golden, tmp_path: Path) -> None:
    table = golden("9", "cow_basic").table
    given = put_source(own_columns(read_rows(table)).slice(0, 2), tmp_path)
    refused(table, "upsert", given, BUCKETS, ConfigError, "is no bucket")


def test_the_plan_has_the_number_of_each_bucket(golden: Golden, tmp_path: Path) -> None:
    table = golden("9", "bucket_index_cow").table
    plan = planned(table, "bulk_insert", put_source(own_columns(read_rows(table)), tmp_path), BUCKETS)
    assert plan.buckets == {FOUR.place_of_group(item.file_group): number for number, item in enumerate(plan.slices)}
    assert len(plan.buckets) == 12


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["9"]))
def test_rows_of_one_key_become_one_where_log_files_would_merge_them(
    golden: Golden, tmp_path: Path, version: str
) -> None:
    """An insert combines none. In a bucket that exists the rows go to its log files; in a new one they must not stay
    two, and a row that a later one of the source deletes must not come.
    """
    table = golden(version, "bucket_index_mor").table
    rows = own_columns(read_rows(table))
    ts = rows.column("ts")[0].as_py()
    for day in ("2024-01-01", "2031-01-01"):
        twice = like(rows, *({"id": "twice", "dt": day, "ts": ts + later} for later in (0, 1)))
        write(table, "insert", put_source(twice, tmp_path, name=f"twice-{day}"), BUCKETS)
    combined = read_rows(table).filter(pc.field("id") == "twice")
    assert sorted(combined.column("dt").to_pylist()) == ["2024-01-01", "2031-01-01"]
    assert set(combined.column("ts").to_pylist()) == {ts + 1}
    gone = like(rows, *({"id": "gone", "dt": "2032-01-01", "ts": ts + later} for later in (0, 1)))
    write(table, "insert", put_source(marked(gone, [False, True]), tmp_path, name="gone"), BUCKETS)
    assert "gone" not in read_rows(table).column("id").to_pylist()


@pytest.mark.parametrize(
    ("version", "operation"),
    tiered(
        [(version, operation) for version in ("6", "8", "9") for operation in ("bulk_insert", "insert", "upsert")],
        [("6", "upsert"), ("8", "insert"), ("9", "bulk_insert"), ("9", "upsert")],
    ),
)
def test_beside_writers_without_blocking_no_bucket_is_made(
    golden: Golden, tmp_path: Path, version: str, operation: str
) -> None:
    """Hudi's make the same one under an id that they all know. The buckets that are there get rows, and lose some."""
    table = golden(version, "bucket_index_mor").table
    model, rows = Model.of(table, event_time=version != "6"), own_columns(read_rows(table))
    options = {**BUCKETS, "hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL"}
    first = new_rows(rows, "2031-01-01")
    before = pending_instants(table), data_files(table)
    needs_buckets = put_source(pa.concat_tables([rows.slice(0, 3), first]), tmp_path, name="first")
    with pytest.raises(UnsupportedError, match=r"9 rows of partition '2031-01-01' need a new bucket"):
        write(table, operation, needs_buckets, options)
    assert (pending_instants(table), data_files(table)) == before
    assert (leftovers(table, ""), staged(table)) == ([], [])
    there = changed(pa.concat_tables([new_rows(rows, "2024-01-01"), rows.slice(0, 4)]), ts=lambda ts: ts + 999_999)
    model.upsert(there)
    write(table, "upsert", put_source(there, tmp_path), options)
    gone = pa.concat_tables([there.slice(5, 3), first])
    model.delete(gone)
    write(table, "delete", put_source(gone, tmp_path, name="gone"), options)
    model.check(table)
    assert_one_group_a_bucket(table)
