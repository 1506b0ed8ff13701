from __future__ import annotations

import decimal

import pyarrow as pa
import pytest

from hudi_core.codec.avro.arrow import to_logical
from hudi_core.codec.avro.resolve import AvroType, resolve
from hudi_core.errors import CorruptFileError


def typed(field: object) -> AvroType:
    record = {"type": "record", "name": "row", "fields": [{"name": "value", "type": field}]}
    return resolve(record, path="x").fields[0].type


DECIMAL = typed(["null", {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}])


@pytest.mark.parametrize("width", [1, 2, 16, 20])
@pytest.mark.parametrize("value", [0, 1, -1, 127, -128])
def test_decimals_of_any_width(width: int, value: int) -> None:
    array = pa.array([value.to_bytes(width, "big", signed=True), None], pa.binary())
    assert to_logical(array, DECIMAL, path="x").to_pylist() == [decimal.Decimal(value).scaleb(-2), None]


@pytest.mark.parametrize("data", [b"", b"\x00" * 65, b"\x7f\xff\xff"])
def test_decimals_that_do_not_fit(data: bytes) -> None:
    with pytest.raises(CorruptFileError) as caught:
        to_logical(pa.array([data], pa.binary()), DECIMAL, path="the log")
    assert caught.value.path == "the log"


def test_rows_below_a_null_struct_do_not_count() -> None:
    alive = pa.array([True, False])
    array = pa.array([b"\x01", b""], pa.binary())
    assert to_logical(array, DECIMAL, path="x", alive=alive)[0].as_py() == decimal.Decimal("0.01")


def test_symbols_of_an_enum() -> None:
    color = typed({"type": "enum", "name": "color", "symbols": ["red", "green"]})
    assert to_logical(pa.array([1, 0], pa.int32()), color, path="x").to_pylist() == ["green", "red"]
    with pytest.raises(CorruptFileError, match="enum number without symbol"):
        to_logical(pa.array([2], pa.int32()), color, path="x")


def test_a_map_is_made_of_its_entries() -> None:
    mapped = typed({"type": "map", "values": {"type": "int", "logicalType": "date"}})
    entries = pa.array([[{"f0": "a", "f1": 1}], []], pa.list_(pa.struct([("f0", pa.string()), ("f1", pa.int32())])))
    found = to_logical(entries, mapped, path="x")
    assert found.type.item_type == pa.date32()
    assert [len(row) for row in found.to_pylist()] == [1, 0]


def test_an_array_with_an_offset() -> None:
    times = pa.array([5, 6, 7], pa.int64())[1:]
    found = to_logical(times, typed({"type": "long", "logicalType": "timestamp-micros"}), path="x")
    assert found.cast(pa.int64()).to_pylist() == [6, 7]
