from __future__ import annotations

import pyarrow as pa
import pytest

from hudi_core.codec.avro.arrow_types import logical_field, logical_type, physical_type, spark_type
from hudi_core.codec.avro.resolve import AvroType, resolve
from hudi_core.errors import UnsupportedError


def typed(field: object) -> AvroType:
    record = {"type": "record", "name": "row", "fields": [{"name": "value", "type": field}]}
    return resolve(record, path="x").fields[0].type


MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
COLOR = {"type": "enum", "name": "color", "symbols": ["red", "green"]}
MD5 = {"type": "fixed", "name": "md5", "size": 16}


@pytest.mark.parametrize(
    ("avro", "logical", "physical"),
    [
        ("int", pa.int32(), pa.int32()),
        (MILLIS, pa.timestamp("ms", tz="UTC"), pa.int64()),
        (DECIMAL, pa.decimal128(9, 2), pa.binary()),
        (COLOR, pa.string(), pa.int32()),
        (MD5, pa.binary(16), pa.binary()),
    ],
)
def test_leaves(avro: object, logical: pa.DataType, physical: pa.DataType) -> None:
    assert logical_type(typed(avro), path="x") == logical
    assert physical_type(typed(avro)) == physical


def test_nested_types_keep_whether_they_may_be_null() -> None:
    array = logical_type(typed({"type": "array", "items": ["null", "long"]}), path="x")
    assert array.value_field == pa.field("element", pa.int64())
    mapped = logical_type(typed({"type": "map", "values": "string"}), path="x")
    assert mapped.item_field == pa.field("value", pa.string(), nullable=False)
    assert physical_type(typed({"type": "map", "values": "string"})) == pa.list_(
        pa.struct([("f0", pa.string()), ("f1", pa.string())])
    )
    assert logical_field("x", typed(["null", "int"]), path="x").nullable


def test_a_union_of_two_types_has_no_arrow_type() -> None:
    with pytest.raises(UnsupportedError, match=r"Avro union \[.*int.*string"):
        logical_type(typed(["null", "int", "string"]), path="x")


def test_the_columns_that_spark_reports() -> None:
    inner = pa.struct([pa.field("at", pa.timestamp("ms", tz="UTC"), nullable=False), ("sum", pa.binary(16))])
    assert spark_type(pa.list_(inner)) == pa.list_(
        pa.struct([pa.field("at", pa.timestamp("us", tz="UTC"), nullable=False), ("sum", pa.binary())])
    )
    assert spark_type(pa.map_(pa.string(), pa.timestamp("ns"))) == pa.map_(pa.string(), pa.timestamp("us"))
