from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from hudi_core.codec.avro.arrow import arrow_schema, spark_schema
from hudi_core.codec.avro.arrow_conform import conform_batch
from hudi_core.codec.avro.arrow_types import as_meant, field_at, has_doubtful_times, mislabelled, type_meant

MILLIS, MICROS = pa.timestamp("ms", tz="UTC"), pa.timestamp("us", tz="UTC")
LOCAL_MILLIS, LOCAL = pa.timestamp("ms"), pa.timestamp("us")


def avro(kind: object) -> pa.Schema:
    return arrow_schema({"type": "record", "name": "row", "fields": [{"name": "e", "type": ["null", kind]}]})


def long(logical: str) -> dict[str, str]:
    return {"type": "long", "logicalType": logical}


@pytest.mark.parametrize(
    ("logical", "have", "meant"),
    [
        ("timestamp-millis", MICROS, MILLIS),
        ("timestamp-millis", MILLIS, MILLIS),
        ("timestamp-millis", pa.int64(), pa.int64()),
        ("timestamp-millis", LOCAL, LOCAL),  # INT96 of old writers
        ("timestamp-micros", MICROS, MICROS),
        ("timestamp-micros", MILLIS, MILLIS),
        ("timestamp-micros", pa.int64(), pa.int64()),
        ("local-timestamp-millis", pa.int64(), LOCAL_MILLIS),
        ("local-timestamp-micros", pa.int64(), LOCAL),
        ("local-timestamp-millis", LOCAL, LOCAL),
        ("local-timestamp-millis", pa.int32(), pa.int32()),
    ],
)
def test_what_a_label_means(logical: str, have: pa.DataType, meant: pa.DataType) -> None:
    """HoodieSchemaRepair of 1.2, by the stored schema and by that of queries."""
    stored = avro(long(logical))
    for schema in (stored, spark_schema(stored)):
        assert type_meant(have, schema.field("e")) == meant
    file = pa.schema([("e", have), ("other", have)])
    assert mislabelled(file, stored) == ([] if have == meant else ["e"])


def test_nested_columns() -> None:
    inner = {"type": "record", "name": "inner", "fields": [{"name": "t", "type": long("timestamp-millis")}]}
    kind = {"type": "array", "items": ["null", {"type": "map", "values": inner}]}
    have = pa.list_(pa.map_(pa.string(), pa.struct([("more", pa.string()), ("t", MICROS)])))
    batch = pa.record_batch([pa.array([None, [[("k", {"more": "x", "t": 1718000000123})], None]], have)], names=["e"])
    for schema in (avro(kind), spark_schema(avro(kind))):
        rows = conform_batch(as_meant(batch.slice(1), schema), schema, path="x")
        at = dt.datetime(2024, 6, 10, 6, 13, 20, 123000, tzinfo=dt.timezone.utc)
        assert rows.column(0).to_pylist() == [[[("k", {"t": at})], None]]
    assert mislabelled(batch.schema, avro(kind)) == ["e"]
    assert has_doubtful_times(avro(kind))


def test_rows_with_the_right_label_are_the_same_object() -> None:
    schema = avro(long("timestamp-millis"))
    batch = pa.record_batch([pa.array([1], MILLIS)], names=["e"])
    assert as_meant(batch, schema) is batch
    assert not has_doubtful_times(avro(long("timestamp-micros")))
    assert has_doubtful_times(avro(long("local-timestamp-micros")))


def test_fields_by_path() -> None:
    schema = pa.schema([("s", pa.struct([("t", MICROS)]))])
    assert field_at(schema, ("s", "t")) == pa.field("t", MICROS)
    assert field_at(schema, ("s", "none")) is field_at(schema, ("none",)) is field_at(schema, ("s", "t", "x")) is None
