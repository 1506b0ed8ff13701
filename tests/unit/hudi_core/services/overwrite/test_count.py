"""Rows of a source, checked against what the table's own rows show."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_core.errors import ConfigError, FormatError, UnsupportedError
from tests.support.changed_tables import open_context
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import delete, overwrite, own_rows, put_source
from tests.support.table_invariants import read_rows

Golden = Callable[[str, str], GoldenCase]


@pytest.mark.parametrize("version", ["6", "9"])
def test_rows_need_the_buckets_that_the_table_has(golden: Golden, tmp_path: Path, version: str) -> None:
    table = golden(version, "bucket_index_cow").table
    rows = read_rows(table)
    given = put_source(own_rows(table, rows), tmp_path)
    wrong: list[tuple[str, dict[str, str]]] = [
        ("the table has a bucket index", {}),
        ("the table has a bucket index", {**of_buckets(4), "hoodie.index.type": "BLOOM"}),
        ("BUCKET without hoodie.bucket.index.num.buckets", {"hoodie.index.type": "BUCKET"}),
        ("by 5 buckets of id the rows of the file are in another bucket", of_buckets(5)),
        ("by 2 buckets of id the rows", of_buckets(2)),
        ("by 8 buckets of id the rows of the file are in another bucket", of_buckets(8)),
        ("names 'ts', which is not of the record key id", {**of_buckets(4), "hoodie.bucket.index.hash.field": "ts"}),
    ]
    before = sorted(table.rglob("*"))
    for message, options in wrong:
        with pytest.raises(ConfigError, match=re.escape(message)):
            overwrite(table, given, options, whole_table=True)
    with pytest.raises(UnsupportedError, match="consistent hashing"):
        overwrite(table, given, {**of_buckets(4), "hoodie.index.bucket.engine": "CONSISTENT_HASHING"}, whole_table=True)
    assert sorted(table.rglob("*")) == before
    delete(table, min(rows.column("_hoodie_partition_path").to_pylist()))
    plain = golden(version, "cow_basic").table
    with pytest.raises(ConfigError, match="is no bucket"):
        overwrite(plain, given, of_buckets(4), whole_table=True)
    (table / ".hoodie" / ".bucket_index" / "consistent_hashing_metadata").mkdir(parents=True)
    with pytest.raises(UnsupportedError, match="consistent hashing"):
        overwrite(table, given, of_buckets(4), whole_table=True)


@pytest.mark.parametrize("deleted", ["one", "all"])
@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_buckets_are_known_where_nothing_is_replaced(
    golden: Golden, tmp_path: Path, version: str, deleted: str
) -> None:
    """In a new partition, behind a commit that wrote no file, also where no partition is left."""
    wrong: list[tuple[str, dict[str, str], str]] = [
        ("bucket_index_cow", {}, "the table has a bucket index"),
        ("bucket_index_cow", of_buckets(2), "is none of 2 buckets" if deleted == "all" else "are in another bucket"),
        ("cow_basic", of_buckets(4), "is no bucket"),
    ]
    for number, (case, options, message) in enumerate(wrong):
        table = golden(version, case).table
        rows = own_rows(table, read_rows(table))
        (field,) = open_context(table).config.partition_fields
        at, names = rows.schema.get_field_index(field), sorted(set(rows.column(field).to_pylist()))
        moved = rows.set_column(at, rows.schema.field(at), pa.array(["new"] * rows.num_rows, pa.string()))
        delete(table, *(names if deleted == "all" else names[:1]))
        given = put_source(moved, tmp_path, name=f"source{number}")
        before = sorted(table.rglob("*"))
        with pytest.raises(ConfigError, match=message):
            overwrite(table, given, options)
        assert sorted(table.rglob("*")) == before


def test_rows_without_a_bucket_are_found_before_anything_is_written(golden: Golden, tmp_path: Path) -> None:
    table = golden("9", "bucket_index_cow").table
    rows = own_rows(table, read_rows(table))
    at = rows.schema.get_field_index("id")
    keys = [*rows.column("id").to_pylist()[1:], "10:30"]
    given = put_source(rows.set_column(at, rows.schema.field(at), [keys]), tmp_path)
    before = sorted(table.rglob("*"))
    with pytest.raises(FormatError, match="the bucket of the key '10:30' depends on the release"):
        overwrite(table, given, of_buckets(4), whole_table=True)
    assert sorted(table.rglob("*")) == before


def of_buckets(count: int) -> dict[str, str]:
    return {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": str(count)}
