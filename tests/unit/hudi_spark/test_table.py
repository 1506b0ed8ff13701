"""Arrow types as Spark's."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import types

from hudi_core.errors import UnsupportedError
from hudi_spark.table import spark_type_of


@pytest.mark.parametrize(
    ("arrow", "spark"),
    [
        (pa.bool_(), "boolean"),
        (pa.int32(), "int"),
        (pa.int64(), "bigint"),
        (pa.float32(), "float"),
        (pa.float64(), "double"),
        (pa.string(), "string"),
        (pa.binary(), "binary"),
        (pa.date32(), "date"),
        (pa.timestamp("us", "UTC"), "timestamp"),
        (pa.timestamp("us", "Europe/Berlin"), "timestamp"),
        (pa.timestamp("us"), "timestamp_ntz"),
        (pa.decimal128(30, 15), "decimal(30,15)"),
        (pa.list_(pa.struct([("a", pa.int32())])), "array<struct<a:int>>"),
        (pa.map_(pa.string(), pa.list_(pa.timestamp("us"))), "map<string,array<timestamp_ntz>>"),
    ],
)
def test_every_type(arrow: pa.DataType, spark: str) -> None:
    (field,) = spark_type_of(pa.schema([pa.field("c", arrow, nullable=False)])).fields
    assert (field.name, field.dataType.simpleString(), field.nullable) == ("c", spark, True)


def test_columns_keep_their_order() -> None:
    found = spark_type_of(pa.schema([("b", pa.int32()), ("a", pa.string())]))
    assert found == types.StructType(
        [types.StructField("b", types.IntegerType()), types.StructField("a", types.StringType())]
    )


@pytest.mark.parametrize("arrow_type", [pa.time64("us"), pa.timestamp("ns"), pa.list_(pa.duration("s"))])
def test_a_type_that_spark_has_not_is_named(arrow_type: pa.DataType) -> None:
    with pytest.raises(UnsupportedError, match="'when"):
        spark_type_of(pa.schema([("when", arrow_type)]))
