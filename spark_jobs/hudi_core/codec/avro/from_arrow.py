"""Arrow schema → Avro schema, for files that have only Parquet's own schema (parquet-avro's AvroSchemaConverter)."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from hudi_core.codec.avro.schema import AvroSchema
from hudi_core.errors import UnsupportedError

_PLAIN: Final[dict[pa.DataType, Any]] = {
    pa.bool_(): "boolean",
    pa.int8(): "int",
    pa.int16(): "int",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.binary(): "bytes",
    pa.large_binary(): "bytes",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.date32(): {"type": "int", "logicalType": "date"},
    pa.time32("ms"): {"type": "int", "logicalType": "time-millis"},
    pa.time64("us"): {"type": "long", "logicalType": "time-micros"},
}


def avro_schema(schema: pa.Schema, *, name: str = "record", path: str) -> AvroSchema:
    """An Avro record schema of the same columns.

    The inverse of codec.avro.arrow.arrow_schema except for names, enums and fixed sizes.
    """
    return _record(name, list(schema), path)


def _record(name: str, fields: list[pa.Field], path: str) -> AvroSchema:
    return {"type": "record", "name": name, "fields": [_field(field, name, path) for field in fields]}


def _field(field: pa.Field, parent: str, path: str) -> dict[str, Any]:
    kind = _type(field.type, f"{parent}_{field.name}", path)
    return (
        {"name": field.name, "type": ["null", kind], "default": None}
        if field.nullable
        else {"name": field.name, "type": kind}
    )


def _item(field: pa.Field, where: str, path: str) -> Any:
    kind = _type(field.type, where, path)
    return ["null", kind] if field.nullable else kind


def _type(kind: pa.DataType, where: str, path: str) -> Any:
    plain = _PLAIN.get(kind)
    if plain is not None:
        return plain
    if pa.types.is_struct(kind):
        return _record(where, [kind.field(index) for index in range(kind.num_fields)], path)
    if pa.types.is_map(kind) and (pa.types.is_string(kind.key_type) or pa.types.is_large_string(kind.key_type)):
        return {"type": "map", "values": _item(kind.item_field, f"{where}_value", path)}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return {"type": "array", "items": _item(kind.value_field, f"{where}_element", path)}
    if pa.types.is_timestamp(kind) and kind.unit in ("ms", "us"):
        unit = "millis" if kind.unit == "ms" else "micros"
        return {"type": "long", "logicalType": f"timestamp-{unit}" if kind.tz else f"local-timestamp-{unit}"}
    if pa.types.is_decimal128(kind):
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    if pa.types.is_fixed_size_binary(kind):
        return {"type": "fixed", "name": where, "size": kind.byte_width}
    raise UnsupportedError(f"column {where!r} is of the type {kind}, which has no form in Avro", path=path)
