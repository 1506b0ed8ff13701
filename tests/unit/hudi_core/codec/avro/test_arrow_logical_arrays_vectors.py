"""Vectors as Hudi 1.2 stores them (VectorConversionUtils): so many numbers of one kind, the lowest byte first."""

from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.codec.avro.arrow import Vector, vectors_of
from hudi_core.codec.avro.schema import AvroSchema
from hudi_core.errors import CorruptFileError


def schema_of(kind: Any) -> AvroSchema:
    return {"type": "record", "name": "t", "fields": [{"name": "v", "type": kind}, {"name": "id", "type": "string"}]}


def fixed(size: int, **more: Any) -> dict[str, Any]:
    return {"type": "fixed", "name": "v", "size": size, "logicalType": "vector", **more}


@pytest.mark.parametrize(
    ("kind", "number", "form", "values"),
    [
        ("FLOAT", pa.float32(), "<3f", [1.5, -2.25, 1e30]),
        ("DOUBLE", pa.float64(), "<3d", [1.1, -2.25, 1e300]),
        ("INT8", pa.int8(), "<3b", [127, -128, 0]),
    ],
)
def test_numbers_of_every_kind(kind: str, number: pa.DataType, form: str, values: list[Any]) -> None:
    schema = schema_of(["null", fixed(struct.calcsize(form), dimension=3, elementType=kind)])
    vector = vectors_of(schema)["v"]
    assert vector == Vector(number, 3)
    stored = pa.array([None, struct.pack(form, *values), None, struct.pack(form, *values[::-1])], pa.binary())
    wanted = pa.array([None, values, None, values[::-1]], vector.type)
    for array, expected in ((stored, wanted), (stored.slice(1, 2), wanted.slice(1, 2)), (stored[:0], wanted[:0])):
        found = vector.lists(array, "v", path="p")
        found.validate(full=True)
        assert found.equals(expected)
        assert found.type == vector.type
    assert vector.lists(stored.slice(0, 1), "v", path="p").to_pylist() == [None]


def test_a_value_of_another_size_is_damage() -> None:
    with pytest.raises(CorruptFileError, match="column 'v' has a vector that is not of 4 bytes") as caught:
        Vector(pa.float32(), 1).lists(pa.array([b"abcd", b"abc"]), "v", path="p")
    assert caught.value.path == "p"


@pytest.mark.parametrize(
    "kind",
    [
        "string",
        {"type": "fixed", "name": "v", "size": 8},
        fixed(8, dimension=3),
        fixed(8, dimension=0),
        fixed(8, dimension="2"),
        fixed(8),
        fixed(8, dimension=2, elementType="HALF"),
        fixed(8, dimension=2, elementType=["FLOAT"]),
        {"type": "bytes", "logicalType": "vector", "dimension": 2},
    ],
)
def test_what_is_no_vector_of_hudi_stays_as_it_is(kind: Any) -> None:
    assert vectors_of(schema_of(kind)) == {}


def test_numbers_are_floats_where_nothing_else_is_said() -> None:
    assert vectors_of(schema_of(fixed(8, dimension=2))) == {"v": Vector(pa.float32(), 2)}
