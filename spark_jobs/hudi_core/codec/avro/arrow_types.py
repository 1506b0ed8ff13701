"""Avro types ↔ Arrow types: the logical ones that a table has, the physical ones that decoders produce, and back.

`avro_schema` is for files that have only Parquet's own schema (AvroSchemaConverter of parquet-avro).
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from hudi_core.codec.avro.resolve import AvroType
from hudi_core.codec.avro.schema import AvroSchema
from hudi_core.codec.avro.time_labels import marked
from hudi_core.errors import UnsupportedError

_PLAIN = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
}
_LOGICAL = {
    "date": pa.date32(),
    "time-millis": pa.time32("ms"),
    "time-micros": pa.time64("us"),
    "timestamp-millis": pa.timestamp("ms", tz="UTC"),
    "timestamp-micros": pa.timestamp("us", tz="UTC"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "local-timestamp-micros": pa.timestamp("us"),
    "uuid": pa.string(),
}


def logical_type(avro: AvroType, *, path: str) -> pa.DataType:
    """The Arrow type that holds the values of an Avro type without loss.

    Raises UnsupportedError for a union of several types.
    """
    if avro.kind == "record":
        return pa.struct([logical_field(child.name, child.type, path=path) for child in avro.fields])
    if avro.item is not None:
        if avro.kind == "map":
            return pa.map_(pa.string(), logical_field("value", avro.item, path=path))
        return pa.list_(logical_field("element", avro.item, path=path))
    if avro.logical == "decimal":
        return pa.decimal128(avro.precision, avro.scale)
    if avro.logical:
        return _LOGICAL[avro.logical]
    if avro.kind == "fixed":
        return pa.binary(avro.size)
    if avro.kind == "union":
        kinds = ", ".join(branch.describe() for branch in avro.branches)
        raise UnsupportedError(
            f"a column of the Avro union [{kinds}] has no Arrow type; only unions of null and one type are supported",
            path=path,
        )
    return _PLAIN[avro.kind]


def logical_field(name: str, avro: AvroType, *, path: str) -> pa.Field:
    """A field of `logical_type`, nullable as the Avro type is."""
    return pa.field(name, logical_type(avro, path=path), nullable=avro.nullable)


def physical_type(avro: AvroType) -> pa.DataType:
    """The Arrow type of the values as they are encoded.

    Text, fixed and decimal are bytes, enum is its number, map is a list of entries. Fields are named by position (`f0`,
    `f1`, …), as in `arrow_routes.physical_schema`.
    """
    if avro.kind == "record":
        return pa.struct([(f"f{index}", physical_type(child.type)) for index, child in enumerate(avro.fields)])
    if avro.item is not None:
        item = physical_type(avro.item)
        return pa.list_(pa.struct([("f0", pa.binary()), ("f1", item)]) if avro.kind == "map" else item)
    if avro.kind == "enum":
        return pa.int32()
    return pa.binary() if avro.kind in ("fixed", "string") else _PLAIN[avro.kind]


def spark_type(kind: pa.DataType) -> pa.DataType:
    """The Arrow type of the column that Spark reports.

    Timestamps are in microseconds, fixed is binary, large lists are plain ones; nested types alike.
    """
    if pa.types.is_struct(kind):
        return pa.struct([spark_field(kind.field(index)) for index in range(kind.num_fields)])
    if pa.types.is_map(kind):
        return pa.map_(spark_type(kind.key_type), spark_field(kind.item_field))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(spark_field(kind.value_field))
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", tz=kind.tz)
    return pa.binary() if pa.types.is_fixed_size_binary(kind) else kind


def spark_field(field: pa.Field) -> pa.Field:
    """The field with its `spark_type`, marked where it counts milliseconds (time_labels)."""
    return marked(field.with_type(spark_type(field.type)), field.type)


_AVRO_OF: Final[dict[pa.DataType, Any]] = {
    **{kind: name for name, kind in _PLAIN.items() if name not in ("null", "enum")},
    pa.int8(): "int",
    pa.int16(): "int",
    pa.large_binary(): "bytes",
    pa.large_string(): "string",
    pa.date32(): {"type": "int", "logicalType": "date"},
    pa.time32("ms"): {"type": "int", "logicalType": "time-millis"},
    pa.time64("us"): {"type": "long", "logicalType": "time-micros"},
}


def avro_schema(schema: pa.Schema, *, path: str) -> AvroSchema:
    """An Avro record schema of the same columns.

    The inverse of codec.avro.arrow.arrow_schema except for names, enums and fixed sizes. Raises UnsupportedError naming
    `path` and the column for a type that Avro has not.
    """
    return _avro_record(("record",), list(schema), path)


def _avro_record(where: tuple[str, ...], fields: list[pa.Field], path: str) -> AvroSchema:
    """`where` are the names of the columns and fields that hold the record, below that of the outermost one."""
    found = [_avro_field(field, (*where, field.name), path) for field in fields]
    return {"type": "record", "name": "_".join(where), "fields": found}


def _avro_field(field: pa.Field, where: tuple[str, ...], path: str) -> dict[str, Any]:
    default = {"default": None} if field.nullable else {}
    return {"name": field.name, "type": _avro_item(field, where, path), **default}


def _avro_item(field: pa.Field, where: tuple[str, ...], path: str) -> Any:
    kind = _avro_type(field.type, where, path)
    return ["null", kind] if field.nullable else kind


def _avro_type(kind: pa.DataType, where: tuple[str, ...], path: str) -> Any:
    plain = _AVRO_OF.get(kind)
    if plain is not None:
        return plain
    if pa.types.is_dictionary(kind):
        return _avro_type(kind.value_type, where, path)
    if pa.types.is_struct(kind):
        return _avro_record(where, [kind.field(index) for index in range(kind.num_fields)], path)
    if pa.types.is_map(kind) and (pa.types.is_string(kind.key_type) or pa.types.is_large_string(kind.key_type)):
        return {"type": "map", "values": _avro_item(kind.item_field, (*where, "value"), path)}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return {"type": "array", "items": _avro_item(kind.value_field, (*where, "element"), path)}
    if pa.types.is_timestamp(kind) and kind.unit in ("ms", "us"):
        unit = "millis" if kind.unit == "ms" else "micros"
        return {"type": "long", "logicalType": f"timestamp-{unit}" if kind.tz else f"local-timestamp-{unit}"}
    if pa.types.is_decimal128(kind):
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    if pa.types.is_fixed_size_binary(kind):
        return {"type": "fixed", "name": "_".join(where), "size": kind.byte_width}
    column = ".".join(where[1:])
    raise UnsupportedError(f"the column {column!r} is of the type {kind}, which has no form in Avro", path=path)
