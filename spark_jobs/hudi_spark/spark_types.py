"""Spark's types for the Arrow schema of a read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import types

from hudi_core.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable

_PLAIN: dict[pa.DataType, Callable[[], types.DataType]] = {
    pa.bool_(): types.BooleanType,
    pa.int8(): types.ByteType,
    pa.int16(): types.ShortType,
    pa.int32(): types.IntegerType,
    pa.int64(): types.LongType,
    pa.float32(): types.FloatType,
    pa.float64(): types.DoubleType,
    pa.string(): types.StringType,
    pa.binary(): types.BinaryType,
    pa.date32(): types.DateType,
    pa.timestamp("us"): types.TimestampNTZType,
}


def spark_type_of(schema: pa.Schema) -> types.StructType:
    """The StructType of a read's schema: all columns nullable, timestamps as TIMESTAMP or TIMESTAMP_NTZ.

    TIMESTAMP is for those with a zone. It is our own instead of pyspark's from_arrow_schema: that one makes TIMESTAMP
    of both, and fails untyped on types it does not know. Raises UnsupportedError for a type that Spark does not have.
    """
    return types.StructType([types.StructField(field.name, _type_of(field.type, field.name), True) for field in schema])


def _type_of(kind: pa.DataType, name: str) -> types.DataType:
    plain = _PLAIN.get(kind)
    if plain is not None:
        return plain()
    if pa.types.is_timestamp(kind) and kind.unit == "us":
        return types.TimestampType()
    if pa.types.is_decimal128(kind):
        return types.DecimalType(kind.precision, kind.scale)
    if pa.types.is_list(kind):
        return types.ArrayType(_type_of(kind.value_type, f"{name}.element"), True)
    if pa.types.is_map(kind):
        return types.MapType(_type_of(kind.key_type, f"{name}.key"), _type_of(kind.item_type, f"{name}.value"), True)
    if pa.types.is_struct(kind):
        return types.StructType(
            [types.StructField(field.name, _type_of(field.type, f"{name}.{field.name}"), True) for field in kind]
        )
    raise UnsupportedError(f"Spark has no type for the column {name!r} of type {kind}")
