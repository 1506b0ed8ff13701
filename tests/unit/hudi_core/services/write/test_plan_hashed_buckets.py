"""Writes into tables with buckets by consistent hashing: a key is in the file group that its partition's ring names."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_core.errors import ConfigError, FormatError, UnsupportedError
from hudi_core.filegroup.write.buckets import BUCKETS_FOLDER, Buckets
from hudi_core.filegroup.write.hashing_metadata import first_content, folder_of, ids_of, ring_of
from hudi_core.model.names import FileGroupId
from tests.support.changed_tables import open_context
from tests.support.fault_storage import FaultPlan, InjectedCrash
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import BUCKETS, BY_HASH, delete, put_source
from tests.support.service_calls import dead_process
from tests.support.table_invariants import assert_metadata_true, pending_instants, read_rows
from tests.support.tiers import tiered
from tests.support.writes import Model, base_files, changed, inserted_twice, own_columns, write
from tests.unit.hudi_core.services.write.test_plan import OPERATIONS, refused
from tests.unit.hudi_core.services.write.test_plan_buckets import new_rows, slices

Golden = Callable[[str, str], GoldenCase]
CASE = "bucket_index_consistent_mor"
NEW = "2031-01-01"
FIRST = "00000000000000.hashing_meta"


def assert_in_buckets(table: Path) -> None:
    """Each row is in the bucket of its key: by that alone real Hudi finds it. A bucket has one file group."""
    context = open_context(table)
    view, rows = context.view(context.active.load()), read_rows(table)
    keys, partitions = (rows.column(name).combine_chunks() for name in ("_hoodie_record_key", "_hoodie_partition_path"))
    rings = {name: ring_of(context.storage, view, name) for name in set(partitions.to_pylist())}
    buckets = replace(Buckets(4, ("id",), ("id",)), by_hash=True, rings=rings)
    groups = [
        FileGroupId(partition, name.lstrip(".").partition("_")[0])
        for partition, name in zip(partitions.to_pylist(), rows.column("_hoodie_file_name").to_pylist(), strict=True)
    ]
    assert buckets.places(partitions, keys, path="t").to_pylist() == list(map(buckets.place_of_group, groups))
    for partition, ring in rings.items():
        assert {group.file_id for group in groups if group.partition == partition} <= {*ids_of(ring)}


@pytest.mark.parametrize(
    ("version", "operation"),
    tiered(
        [(version, operation) for version in ("6", "8", "9") for operation in ("bulk_insert", "insert", "upsert")],
        [("6", "upsert"), ("8", "insert"), ("9", "bulk_insert")],
    ),
)
def test_new_rows_go_to_the_file_groups_of_their_buckets(
    golden: Golden, tmp_path: Path, version: str, operation: str
) -> None:
    """Those of a new partition to base files, and the second time, as those of others, to log files."""
    table = golden(version, CASE).table
    model, rows = Model.of(table, event_time=True), own_columns(read_rows(table))
    groups = {item.file_group for item in slices(table)}
    source = pa.concat_tables([new_rows(rows, "2024-01-01"), new_rows(rows, NEW, 40)])
    for _ in inserted_twice(table, model, source, operation, BY_HASH, tmp_path):
        assert_in_buckets(table)
        assert_metadata_true(table)
    assert (table / folder_of(NEW) / FIRST).read_bytes() == first_content(NEW, 4)
    kept = {item.file_group for item in slices(table)}
    assert groups < kept
    assert {group.partition for group in kept - groups} == {NEW}
    assert {path.parent.name for path in base_files(table)} == {NEW}
    assert len(base_files(table)) == 4


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
def test_changes_go_to_the_file_groups_of_their_buckets(golden: Golden, tmp_path: Path, version: str) -> None:
    """Keys that no bucket holds are not deleted, and make no bucket."""
    table = golden(version, CASE).table
    model, rows = Model.of(table, event_time=True), own_columns(read_rows(table))
    groups = {item.file_group for item in slices(table)}
    newer = changed(rows.slice(0, 40), ts=lambda ts: ts + 10**6, qty=1)
    source = pa.concat_tables([newer, new_rows(newer, "2024-01-01")])
    model.upsert(source)
    write(table, "upsert", put_source(source, tmp_path, files=2), BY_HASH)
    model.check(table)
    gone = pa.concat_tables([source.slice(30), new_rows(rows, NEW)])
    model.delete(gone)
    write(table, "delete", put_source(gone, tmp_path, name="gone"), BY_HASH)
    model.check(table)
    assert {item.file_group for item in slices(table)} == groups
    assert_in_buckets(table)
    assert_metadata_true(table)


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["9"]))
def test_a_killed_write_leaves_the_buckets_to_the_next(golden: Golden, tmp_path: Path, version: str) -> None:
    """With another number in its options, too. A dry run makes none."""
    table = golden(version, CASE).table
    model, rows = Model.of(table, event_time=True), own_columns(read_rows(table))
    more = new_rows(rows, NEW, 20)
    given, pending = put_source(more, tmp_path), pending_instants(table)
    write(table, "upsert", given, BY_HASH, dry_run=True)
    assert not (table / folder_of(NEW)).exists()
    plan = FaultPlan(when=lambda item: item.path == f"{folder_of(NEW)}/{FIRST}", timing="after")
    with pytest.raises(InjectedCrash):
        write(table, "upsert", given, BY_HASH, plan, dead_process(), token="a")
    assert (table / folder_of(NEW) / FIRST).read_bytes() == first_content(NEW, 4)
    model.check(table)
    eight = {**BY_HASH, "hoodie.bucket.index.num.buckets": "8"}
    assert write(table, "upsert", given, eight, token="a").files_written == 4
    model.upsert(more)
    model.check(table)
    assert_in_buckets(table)
    assert pending_instants(table) == pending


@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_options_name_the_kind_of_buckets(golden: Golden, tmp_path: Path, operation: str) -> None:
    table, other = golden("9", CASE).table, golden("9", "bucket_index_mor").table
    given = put_source(own_columns(read_rows(table)).slice(0, 3), tmp_path)
    refused(table, operation, given, BUCKETS, UnsupportedError, "give hoodie.index.type=BUCKET, .*bucket.engine as its")
    refused(other, operation, given, BY_HASH, ConfigError, "has no buckets by consistent hashing")
    wrong = golden("9", "bucket_index_cow").table
    refused(wrong, operation, given, BY_HASH, UnsupportedError, "in a copy-on-write table")


def test_rows_in_other_buckets_are_found(golden: Golden, tmp_path: Path) -> None:
    """As by other hash fields."""
    table = golden("9", CASE).table
    given = put_source(own_columns(read_rows(table)).slice(0, 3), tmp_path)
    path = next((table / folder_of("2024-01-01")).iterdir())
    content = json.loads(path.read_bytes())
    first, second = content["nodes"][:2]
    first["fileIdPrefix"], second["fileIdPrefix"] = second["fileIdPrefix"], first["fileIdPrefix"]
    path.write_text(json.dumps(content))
    refused(table, "upsert", given, BY_HASH, ConfigError, "by consistent hashing of id the rows of the file are in")


def test_a_file_group_that_is_no_bucket_is_named(golden: Golden, tmp_path: Path) -> None:
    """As one whose clustering was rolled back behind its metadata: Hudi would look elsewhere for its keys."""
    table = golden("9", CASE).table
    rows = own_columns(read_rows(table))
    write(table, "upsert", put_source(new_rows(rows, NEW), tmp_path, name="first"), BY_HASH)
    (base, *_) = base_files(table, NEW)
    file_id = base.name.partition("_")[0]
    other = f"{file_id[:8]}-64c6-4d82-bc70-3d88ba276ea1-0"
    base.with_name(base.name.replace(file_id, other)).write_bytes(base.read_bytes())
    given = put_source(new_rows(rows, NEW), tmp_path)
    base.unlink()
    refused(table, "insert", given, BY_HASH, (ConfigError, FormatError), other)


def test_hudi_7634_a_bucket_that_was_replaced_is_refused(golden: Golden, tmp_path: Path) -> None:
    """Readers would not see its new rows. Real Hudi loses them."""
    table = golden("9", CASE).table
    given = put_source(new_rows(own_columns(read_rows(table)), NEW), tmp_path)
    write(table, "insert", given, BY_HASH)
    folder = table / BUCKETS_FOLDER
    hidden = folder.rename(table / ".hidden")
    delete(table, NEW)
    hidden.rename(folder)
    refused(table, "upsert", given, BY_HASH, UnsupportedError, f"of partition '{NEW}' was replaced at")
