"""A table that real Hudi 0.15 changed by schema-on-read, read by column ids.

Made by Spark SQL with `hoodie.schema.on.read.enable`: ten rows inserted, one updated (a log file), then `RENAME COLUMN
name TO title`, `DROP COLUMN qty`, `ADD COLUMNS (qty string)`, `ALTER COLUMN price TYPE double`, `RENAME COLUMN info.a
TO aa`. No file was written since, so every file has the first schema: name string, qty int, price float, info struct<a,
b>.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.table import HudiTable
from tests.support.golden_data import SCHEMA_ON_READ, unpack


def read(base: Path, **requested: Any) -> pa.Table:
    """A query's rows, sorted by id."""
    result = HudiTable.open(str(base)).read(**requested)
    return pa.Table.from_batches(result.batches, result.schema).sort_by("id")


@pytest.mark.parametrize("query", ["snapshot", "read_optimized"])
@pytest.mark.parametrize("metadata", ["auto", "off"])
def test_columns_are_those_of_the_ids(tmp_path: Path, query: str, metadata: str) -> None:
    rows = read(unpack(SCHEMA_ON_READ, tmp_path), query=query, metadata=metadata)
    # A read-optimized query of Hudi 0.15 puts partition columns last; both queries have the same columns.
    assert set(rows.column_names[5:]) == {"id", "title", "price", "info", "ts", "dt", "qty"}
    assert rows["id"].to_pylist() == [f"k{number}" for number in range(10)]
    assert rows["title"].to_pylist() == [f"n{number}" for number in range(10)]
    assert rows["qty"].to_pylist() == [None] * 10, "the new column has the old one's name, not its values"
    assert rows["qty"].type == pa.string()
    assert rows["price"].to_pylist() == [round(number * 1.1, 1) for number in range(10)], (
        "floats by their text, not 1.10000002384"
    )
    assert rows["info"].to_pylist() == [{"aa": number, "b": "x"} for number in range(10)]


def test_predicates_go_by_the_new_names_and_types(tmp_path: Path) -> None:
    base = unpack(SCHEMA_ON_READ, tmp_path)
    for where, ids in (
        ("title = 'n3'", ["k3"]),
        ("price = 2.2D", ["k2"]),
        ("qty IS NULL AND price > 8.7", ["k8", "k9"]),
        ("qty = '100'", []),
        ("info.aa IN (1, 5)", ["k1", "k5"]),
    ):
        assert read(base, where=where, columns=["id"])["id"].to_pylist() == ids, where


def test_before_the_change_the_old_columns(tmp_path: Path) -> None:
    rows = read(unpack(SCHEMA_ON_READ, tmp_path), as_of="20261120230909956")
    assert set(rows.column_names[5:]) == {"id", "name", "qty", "price", "info", "ts", "dt"}
    assert rows["qty"].to_pylist() == [0, 100, *range(2, 10)]
    assert rows["info"].type.field(0).name == "a"
