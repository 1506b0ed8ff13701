"""The files of a shard: one open at a time, partitions made known, rows that are marked as deleted not written."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_core.config.rows_config import WriteConfig
from hudi_core.filegroup.write.base_file_writer import BaseFileHandle
from hudi_core.model.names import IS_DELETED
from hudi_core.model.partition import PARTITION_METADATA
from hudi_core.services.write import row_shards
from hudi_core.services.write.shard_files import put_partition_metadata
from hudi_core.storage.local import LocalStorage
from tests.support.fault_storage import FaultPlan
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import BUCKETS, overwrite, own_rows, places, put_source
from tests.support.table_invariants import assert_metadata_true, read_rows
from tests.support.tiers import tiered
from tests.support.writes import like, write

Golden = Callable[[str, str], GoldenCase]


def test_many_partitions_open_a_file_at_a_time(golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = golden("9", "cow_basic").table
    rows = own_rows(table, read_rows(table))
    one = rows.slice(0, 1).to_pylist()[0]
    many = pa.Table.from_pylist(
        [{**one, "id": f"k{at}", "dt": f"p{at % 50:03}"} for at in range(150)], schema=rows.schema
    )
    begun, most = 0, 0
    entered, left = BaseFileHandle.__enter__, BaseFileHandle.__exit__

    def enter(self: BaseFileHandle) -> BaseFileHandle:
        nonlocal begun, most
        begun += 1
        most = max(most, begun)
        return entered(self)

    def leave(self: BaseFileHandle, *error: object) -> None:
        nonlocal begun
        begun -= 1
        left(self, *error)  # type: ignore[arg-type]

    monkeypatch.setattr(BaseFileHandle, "__enter__", enter)
    monkeypatch.setattr(BaseFileHandle, "__exit__", leave)
    monkeypatch.setattr(WriteConfig, "piece_bytes", 1 << 10)
    result = overwrite(table, put_source(many, tmp_path, files=3), whole_table=True)
    assert (result.files_written, result.records, most) == (50, 150, 1)
    after = read_rows(table)
    assert len(set(after.column("_hoodie_commit_seqno").to_pylist())) == 150
    assert_metadata_true(table)


def test_a_partition_that_is_known_keeps_its_file(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    for instant in ("1", "2"):
        put_partition_metadata(storage, "a/b", instant)
        put_partition_metadata(storage, "", instant)
    assert (tmp_path / "a" / "b" / ".hoodie_partition_metadata").read_text().splitlines()[1:] == [
        "commitTime=1",
        "partitionDepth=2",
    ]
    assert "partitionDepth=0" in (tmp_path / ".hoodie_partition_metadata").read_text()


def test_a_shard_looks_for_a_partition_once_whatever_its_buckets(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = golden("9", "bucket_index_cow").table
    days = ("2031-01-01", "2031-01-02")
    rows = like(
        own_rows(table, read_rows(table)), *({"id": f"new {at}", "dt": day} for at in range(20) for day in days)
    )
    monkeypatch.setattr(row_shards, "_SMALL_SHARDS", 1)
    plan = FaultPlan(counts=frozenset({"exists"}))
    result = write(table, "bulk_insert", put_source(rows, tmp_path), BUCKETS, plan)
    assert (result.files_written, result.records) == (8, 40)
    looked = [operation.path for operation in plan.operations if operation.kind == "exists"]
    assert [path for path in looked if path.startswith("2031")] == [f"{day}/{PARTITION_METADATA}" for day in days]


def marked(rows: pa.Table, chosen: pa.Array) -> pa.Table:
    """The rows with the column that deletes them, which some tables have."""
    if IS_DELETED in rows.schema.names:
        rows = rows.drop_columns([IS_DELETED])
    return rows.append_column(IS_DELETED, chosen)


@pytest.mark.parametrize(
    ("version", "combines"),
    tiered(
        [(version, combines) for version in ("6", "8", "9") for combines in ("false", "true")],
        [("6", "true"), ("9", "false")],
    ),
)
def test_rows_that_are_marked_as_deleted_are_not_written(
    golden: Golden, tmp_path: Path, caplog: pytest.LogCaptureFixture, version: str, combines: str
) -> None:
    """The column is new to the table, which takes it as any other; a partition of deleted rows alone is emptied."""
    table = golden(version, "cow_basic").table
    before = read_rows(table)
    rows = own_rows(table, before)
    partition = before.column("_hoodie_partition_path")
    first = partition[0].as_py()
    gone = pc.or_(pc.equal(partition, first), pc.equal(pc.bit_wise_and(pa.array(range(len(before))), 3), 1))
    given = put_source(marked(rows, gone), tmp_path, files=2)
    with caplog.at_level(logging.INFO):
        result = overwrite(table, given, {"hoodie.combine.before.insert": combines})
    kept = before.filter(pc.invert(gone))
    assert (result.records, result.partitions) == (kept.num_rows, len(set(partition.to_pylist())))
    after = read_rows(table)
    assert places(after) == places(kept)
    assert first not in after.column("_hoodie_partition_path").to_pylist()
    assert set(after.column(IS_DELETED).to_pylist()) == {False}
    assert f"{before.num_rows - kept.num_rows} rows of the source are marked as deleted" in caplog.text
    assert_metadata_true(table)


def test_a_source_of_deleted_rows_alone_empties_its_partitions(golden: Golden, tmp_path: Path) -> None:
    table = golden("9", "mor_basic").table
    rows = own_rows(table, read_rows(table))
    given = put_source(marked(rows, pa.array([True] * len(rows))), tmp_path)
    result = overwrite(table, given)
    assert (result.records, result.files_written) == (0, 0)
    assert result.replaced_file_groups > 0
    assert read_rows(table).num_rows == 0
    assert_metadata_true(table)
