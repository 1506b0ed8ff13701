"""Writes into tables with a record index: a global one, which holds one place for a key, or one of each partition."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_core.config.metadata_config import PARTITIONED_RECORD_INDEX_ENABLE
from hudi_core.engine.local import LocalEngine
from hudi_core.errors import StorageNotFoundError, UnsupportedError
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.services.metadata.maintain import create_metadata
from hudi_core.table import HudiTable
from tests.support.changed_tables import an_owner, open_context
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import put_source
from tests.support.table_invariants import assert_metadata_true, read_rows
from tests.support.writes import APART, changed, like, own_columns, write
from tests.unit.hudi_core.services.create.test_verb import made, some_rows

Golden = Callable[[str, str], GoldenCase]
TABLES = [("6", "mdt_all_cow"), ("6", "mdt_all_mor"), ("9", "mdt_record_index_lookup")]


def in_two_partitions(table: Path) -> tuple[pa.Table, str, str]:
    """The rows of a table, and two of its partitions."""
    rows = own_columns(read_rows(table))
    one, other, *_ = sorted(set(rows.column("dt").to_pylist()))
    return rows, one, other


def of_key(table: Path, key: str, metadata: str) -> int:
    read = HudiTable.open(str(table)).read(where=f"id = '{key}'", metadata=metadata)  # type: ignore[arg-type]
    return sum(batch.num_rows for batch in read.batches)


@pytest.mark.parametrize(("version", "case"), TABLES)
@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert"])
def test_a_key_of_another_partition_is_refused(
    golden: Golden, tmp_path: Path, version: str, case: str, operation: str
) -> None:
    table = golden(version, case).table
    rows, one, other = in_two_partitions(table)
    (row,) = rows.filter(pc.equal(rows.column("dt"), one)).slice(0, 1).to_pylist()
    moved = put_source(like(rows, {**row, "dt": other}), tmp_path)
    with pytest.raises(UnsupportedError, match=rf"the record key '{row['id']}' .* the row of this key is in partition"):
        write(table, operation, moved, APART)
    assert read_rows(table).num_rows == rows.num_rows
    assert not list(open_context(table).active.load().pending())
    assert_metadata_true(table)


@pytest.mark.parametrize(("version", "case"), TABLES)
def test_a_row_whose_key_goes_in_another_partition_keeps_its_place(
    golden: Golden, tmp_path: Path, version: str, case: str
) -> None:
    table = golden(version, case).table
    rows, one, other = in_two_partitions(table)
    (row, beside) = rows.filter(pc.equal(rows.column("dt"), one)).slice(0, 2).to_pylist()
    # The write changes both partitions, so that it may move rows between them.
    both = like(rows, {**row, "dt": other}, {**beside, "ts": beside["ts"] + 1_000_000})
    write(table, "upsert", put_source(both, tmp_path, name="both"), APART)
    assert of_key(table, row["id"], "off") == 2
    write(table, "delete", put_source(like(rows, row), tmp_path, name="old"), APART)
    assert [of_key(table, row["id"], metadata) for metadata in ("off", "on")] == [1, 1]
    assert_metadata_true(table)
    write(table, "delete", put_source(like(rows, {**row, "dt": other}), tmp_path, name="last"), APART)
    assert [of_key(table, row["id"], metadata) for metadata in ("off", "on")] == [0, 0]
    assert_metadata_true(table)


@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM", "RECORD_LEVEL_INDEX", "GLOBAL_RECORD_LEVEL_INDEX"])
def test_a_key_that_came_back_in_another_file_group_has_one_place(golden: Golden, tmp_path: Path, index: str) -> None:
    """The base file of the first still has the key; a log file deleted its row, and the record index forgot it."""
    table = golden("9", "mdt_all_mor").table
    options = {**APART, "hoodie.index.type": index}
    rows = own_columns(read_rows(table))
    row = like(rows, {"id": "comes back"})
    for number, operation in enumerate(("insert", "delete", "insert", "upsert")):
        later = changed(row, ts=lambda ts, number=number: ts + number)
        write(table, operation, put_source(later, tmp_path, name=str(number)), options)
    returned = read_rows(table).filter(pc.field("id") == "comes back")
    assert returned.column("ts").to_pylist() == [row.column("ts")[0].as_py() + 3]


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert"])
def test_the_first_write_of_a_table_begins_the_file_groups_of_a_partitioned_record_index(
    tmp_path: Path, kind: str, operation: str
) -> None:
    """As with real Hudi 1.2.0 (tests/golden/make_metadata_tables.py): no data partition is there before it."""
    table, options = tmp_path / "trips", {PARTITIONED_RECORD_INDEX_ENABLE.name: "true"}
    made(table, table_type=kind)
    names = ["column_stats", "partition_stats", "record_index"]
    created = create_metadata(open_context(table, options), names, LocalEngine(1), an_owner())
    assert created.metadata_partitions == {"files", *names}
    for count, day in enumerate(("2026-01-01", "2026-01-02"), start=1):
        write(table, operation, put_source(some_rows(0, 3, day), tmp_path, name=day), options)
        context = open_context(table)
        index = MetadataTable(context.storage, context.config, context.active.load()).record_index
        assert {len(places) for places in index.locations(["trip-0", "trip-1", "trip-2"]).values()} == {count}
        assert_metadata_true(table)
    for path in (table / ROOT / "record_index").glob("*record-index-*"):
        path.unlink()
    with pytest.raises(StorageNotFoundError, match="`record_index`, but it holds no file group"):
        write(table, operation, put_source(some_rows(0, 3, "2026-01-03"), tmp_path), options)
