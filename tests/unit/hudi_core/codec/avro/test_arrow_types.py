from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.codec.avro.arrow import arrow_schema
from hudi_core.codec.avro.arrow_types import avro_schema, logical_field, logical_type, physical_type, spark_type
from hudi_core.codec.avro.datum import DatumCodec
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
        pa.struct([("f0", pa.binary()), ("f1", pa.binary())])
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
    assert spark_type(pa.large_list(pa.binary(3))) == pa.list_(pa.binary())


_LEAVES = st.sampled_from(
    [
        pa.bool_(),
        pa.int32(),
        pa.int64(),
        pa.float32(),
        pa.float64(),
        pa.binary(),
        pa.string(),
        pa.date32(),
        pa.time32("ms"),
        pa.time64("us"),
        pa.timestamp("us", tz="UTC"),
        pa.timestamp("ms", tz="UTC"),
        pa.timestamp("us"),
        pa.timestamp("ms"),
        pa.decimal128(10, 2),
    ]
)


def _fields(kinds: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[list[pa.Field]]:
    pairs = st.lists(st.tuples(kinds, st.booleans()), min_size=1, max_size=4)
    return pairs.map(
        lambda found: [pa.field(f"c{index}", kind, nullable) for index, (kind, nullable) in enumerate(found)]
    )


def _nested(kinds: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    return st.one_of(
        _fields(kinds).map(pa.struct),
        st.tuples(kinds, st.booleans()).map(lambda item: pa.list_(pa.field("element", *item))),
        st.tuples(kinds, st.booleans()).map(lambda item: pa.map_(pa.string(), pa.field("value", *item))),
    )


@given(_fields(st.recursive(_LEAVES, _nested, max_leaves=8)).map(pa.schema))
def test_schemas_come_back(schema: pa.Schema) -> None:
    avro = avro_schema(schema, path="x")
    DatumCodec(avro)
    assert arrow_schema(avro) == schema


def test_wide_and_narrow_forms_are_the_plain_ones() -> None:
    wide = [pa.large_string(), pa.large_binary(), pa.int8(), pa.large_list(pa.int16()), pa.binary(4)]
    plain = [pa.string(), pa.binary(), pa.int32(), pa.list_(pa.field("element", pa.int32())), pa.binary(4)]
    assert arrow_schema(avro_schema(pa.schema(list(zip("abcde", wide, strict=True))), path="x")).types == plain
    coded = pa.schema([("a", pa.dictionary(pa.int8(), pa.large_string()))])
    assert arrow_schema(avro_schema(coded, path="x")).types == [pa.string()]


@pytest.mark.parametrize(
    "kind",
    [
        pa.uint64(),
        pa.timestamp("ns"),
        pa.map_(pa.int32(), pa.string()),
        pa.null(),
        pa.decimal256(50, 2),
        pa.duration("s"),
    ],
)
def test_what_avro_has_no_form_of(kind: pa.DataType) -> None:
    with pytest.raises(UnsupportedError, match=r"^f\.parquet: the column 's\.x' is of the type"):
        avro_schema(pa.schema([("s", pa.struct([("x", kind)]))]), path="f.parquet")
    with pytest.raises(UnsupportedError, match=r"the column 'u' is"):
        avro_schema(pa.schema([("u", kind)]), path="f.parquet")
    with pytest.raises(UnsupportedError, match=r"the column 'u\.element\.value' is"):
        avro_schema(pa.schema([("u", pa.list_(pa.map_(pa.string(), kind)))]), path="f.parquet")
