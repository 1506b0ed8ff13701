"""Columns by dotted name."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hudi_core.codec.columns import column_named, column_of, column_type, field_path, top_columns

NESTED = pa.schema(
    [
        ("id", pa.int64()),
        ("address", pa.struct([("city", pa.string()), ("geo", pa.struct([("lat", pa.float64())]))])),
        ("address.city", pa.int32()),
        ("tags", pa.list_(pa.string())),
    ]
)


@pytest.mark.parametrize(
    ("name", "path", "data_type"),
    [
        ("id", ["id"], pa.int64()),
        ("address.city", ["address.city"], pa.int32()),
        ("address.geo.lat", ["address", "geo", "lat"], pa.float64()),
        ("address.street", None, None),
        ("id.city", None, None),
        ("tags.element", None, None),
        ("nowhere", None, None),
    ],
)
def test_a_dotted_name_is_a_column_or_a_path_into_structs(
    name: str, path: list[str] | None, data_type: pa.DataType | None
) -> None:
    found = field_path(NESTED, name)
    assert (None if found is None else [item.name for item in found]) == path
    assert column_type(NESTED, name) == data_type


def test_a_column_by_its_dotted_name() -> None:
    struct = pa.array([{"b": 1}, None, {"b": 3}], pa.struct([("b", pa.int64())]))
    batch = pa.record_batch([struct, pa.array([7, 8, 9])], names=["a", "x.y"])
    inner, dotted = column_of(batch, "a.b"), column_of(batch, "x.y")
    assert inner is not None
    assert dotted is not None
    assert (inner.to_pylist(), dotted.to_pylist()) == ([1, None, 3], [7, 8, 9])
    assert column_of(batch, "a.c") is None
    assert column_of(batch, "z") is None


def test_the_columns_to_read() -> None:
    assert top_columns(("s.id", "s.x", "last")) == {"s", "last"}


def test_a_column_is_found_in_another_case_where_there_is_one() -> None:
    inner = pa.struct([("ID", pa.int32()), ("x", pa.int32()), ("X", pa.int32())])
    schema = pa.schema([("v", pa.int32()), ("m", inner), ("a", pa.int32()), ("A", pa.int32())])
    names = {"v": "v", "V": "v", "M.id": "m.ID", "m.X": "m.X", "a": "a", "A": "A"}
    assert {name: column_named(name, schema) for name in names} == names
    schema = pa.schema([("Ab", pa.int32()), ("aB", pa.int32()), ("v", pa.int32())])
    for name in ("ab", "w", "v.x", "V.x", ""):
        assert column_named(name, schema) == name, "which is no column"
