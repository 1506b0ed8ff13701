"""Leaf columns are numbered as Parquet numbers them, and NaN is found wherever it is a value."""

from __future__ import annotations

import io
import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.codec.columns import leaf_types, leaves_with_nan

DOUBLES = pa.list_(pa.float64())
NESTED = pa.struct([("name", pa.string()), ("prices", DOUBLES), ("at", pa.struct([("x", pa.float32())]))])
SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("d", pa.float64()),
        ("f", pa.float32()),
        ("nested", NESTED),
        ("by_name", pa.map_(pa.string(), pa.float64())),
        ("structs", pa.list_(NESTED)),
        ("pair", pa.list_(pa.float64(), 2)),
        ("n", pa.int64()),
    ]
)
NAN = math.nan


def numbers_of(rows: list[dict[str, object]]) -> frozenset[int]:
    return leaves_with_nan(pa.Table.from_pylist(rows, schema=SCHEMA))


def test_leaves_have_the_order_and_types_of_the_file() -> None:
    file = io.BytesIO()
    pq.write_table(SCHEMA.empty_table(), file, store_schema=False)
    schema = pq.ParquetFile(file).schema
    physical = {"string": "BYTE_ARRAY", "double": "DOUBLE", "float": "FLOAT", "int64": "INT64"}
    found = [physical[str(leaf)] for field in SCHEMA for leaf in leaf_types(field.type)]
    assert found == [schema.column(number).physical_type for number in range(len(schema))]
    assert len(found) == 13


@pytest.mark.parametrize(
    ("row", "numbers"),
    [
        ({"d": 1.0, "f": math.inf, "pair": [0.0, -0.0]}, set()),
        ({"d": NAN}, {1}),
        ({"f": NAN, "n": 1}, {2}),
        ({"nested": {"prices": [1.0, None, NAN]}}, {4}),
        ({"nested": {"at": {"x": NAN}}}, {5}),
        ({"by_name": [("a", 1.0), ("b", NAN)]}, {7}),
        ({"structs": [None, {"prices": [NAN]}, {"at": {"x": NAN}}]}, {9, 10}),
        ({"pair": [1.0, NAN], "d": NAN}, {1, 11}),
    ],
)
def test_nan_is_found(row: dict[str, object], numbers: set[int]) -> None:
    assert numbers_of([{}, row, {"d": 0.5}]) == numbers
    assert numbers_of([]) == set()


def test_what_is_no_value_of_the_column_does_not_count() -> None:
    """Behind a null, and before and after a slice."""
    null = pa.array([True])
    hidden = pa.StructArray.from_arrays([pa.array([NAN])], names=["x"], mask=null)
    lists = pa.ListArray.from_arrays(pa.array([0, 1]), pa.array([NAN]), mask=null)
    assert leaves_with_nan(pa.table({"hidden": hidden, "lists": lists})) == set()
    rows = [{"by_name": [("a", value)], "d": value, "nested": {"prices": [value]}} for value in (NAN, 1.0, NAN)]
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    assert leaves_with_nan(table.slice(1, 1)) == set()
    assert leaves_with_nan(table.slice(2)) == {1, 4, 7}
