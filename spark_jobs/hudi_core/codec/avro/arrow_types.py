"""Converts Avro types to Arrow types, the logical ones of a table and the physical ones of decoders. Converts Arrow
types back to Avro types, for files that have only Parquet's own schema (AvroSchemaConverter of parquet-avro).

Also says what timestamps count in a file that labels them otherwise than its table's schema (HoodieSchemaRepair).
Releases before 1.1 labelled milliseconds `timestamp-micros` and local timestamps plain longs when they evolved schemas.
When the table's schema has the right label again, the numbers of such files count what the schema says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from hudi_core.codec.avro.resolve import AvroType
from hudi_core.codec.avro.schema import AvroSchema
from hudi_core.codec.columns import field_named, leaf_types
from hudi_core.errors import UnsupportedError

_MILLIS: Final = {b"avro.millis": b""}
"""Metadata of an Arrow field of microseconds whose Avro field counts milliseconds."""


def marked(field: pa.Field, stored: pa.DataType) -> pa.Field:
    """Returns the field, with a mark when its Avro type counts milliseconds. Arrow holds that type as `stored`."""
    if not (pa.types.is_timestamp(stored) and stored.unit == "ms"):
        return field
    return field.with_metadata({**(field.metadata or {}), **_MILLIS})


def only_mark(field: pa.Field) -> pa.Field:
    """Returns the field without any metadata except the mark of `marked`."""
    bare = field.remove_metadata()
    return bare.with_metadata(_MILLIS) if counts_millis(field) else bare


def counts_millis(field: pa.Field) -> bool:
    """Whether the numbers of the field's column are milliseconds, as the table's schema says."""
    if pa.types.is_timestamp(field.type) and field.type.unit == "ms":
        return True
    return _MILLIS.keys() <= (field.metadata or {}).keys()


def type_meant(have: pa.DataType, field: pa.Field | None) -> pa.DataType:
    """Returns the type that a file's values of the type `have` really are. `field` is the table's column, if any."""
    if field is None:
        return have
    want = field.type
    if pa.types.is_timestamp(want):
        if pa.types.is_timestamp(have):
            is_wrong = have.unit == "us" and have.tz is not None and want.tz is not None and counts_millis(field)
            return pa.timestamp("ms", tz=have.tz) if is_wrong else have
        if pa.types.is_int64(have) and want.tz is None:
            return pa.timestamp("ms" if counts_millis(field) else "us")
        return have
    if pa.types.is_struct(have) and pa.types.is_struct(want):
        return pa.struct(
            [_meant(have.field(at), field_named(want, have.field(at).name)) for at in range(have.num_fields)]
        )
    if pa.types.is_map(have) and pa.types.is_map(want):
        return pa.map_(have.key_field, _meant(have.item_field, want.item_field))
    if pa.types.is_list(have) and pa.types.is_list(want):
        return pa.list_(_meant(have.value_field, want.value_field))
    return have


def as_meant(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Returns the rows of a file with timestamps as the table's `schema` labels them. No value is copied."""
    fields = [_meant(field, field_named(schema, field.name)) for field in batch.schema]
    if all(new.type == old.type for new, old in zip(fields, batch.schema, strict=True)):
        return batch
    columns = [column.view(field.type) for column, field in zip(batch.columns, fields, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def mislabelled(file: pa.Schema, table: pa.Schema) -> list[str]:
    """Returns the columns of a file whose timestamps have another label than in the table's schema."""
    pairs = ((field, field_named(table, field.name)) for field in file)
    return [field.name for field, column in pairs if _meant(field, column).type != field.type]


def has_doubtful_times(schema: pa.Schema) -> bool:
    """Whether older files of a table may have other labels: it has milliseconds, or timestamps without a zone."""
    leaves = (leaf for field in schema for leaf in leaf_types(field.type))
    return any(pa.types.is_timestamp(leaf) and (leaf.unit == "ms" or leaf.tz is None) for leaf in leaves)


def field_at(schema: pa.Schema, path: Sequence[str]) -> pa.Field | None:
    column = field_named(schema, path[0])
    for name in path[1:]:
        column = None if column is None or not pa.types.is_struct(column.type) else field_named(column.type, name)
    return column


def _meant(have: pa.Field, want: pa.Field | None) -> pa.Field:
    return have.with_type(type_meant(have.type, want))


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
    """Returns an Arrow type for an Avro type, without loss. Raises UnsupportedError for a union of several types."""
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
    return pa.field(name, logical_type(avro, path=path), nullable=avro.nullable)


def physical_type(avro: AvroType) -> pa.DataType:
    """Returns the type of encoded values: bytes for text, fixed and decimal, int for an enum; positions name fields."""
    if avro.kind == "record":
        return pa.struct([(f"f{index}", physical_type(child.type)) for index, child in enumerate(avro.fields)])
    if avro.item is not None:
        item = physical_type(avro.item)
        return pa.list_(pa.struct([("f0", pa.binary()), ("f1", item)]) if avro.kind == "map" else item)
    if avro.kind == "enum":
        return pa.int32()
    return pa.binary() if avro.kind in ("fixed", "string") else _PLAIN[avro.kind]


def spark_type(kind: pa.DataType) -> pa.DataType:
    """Returns the type that Spark reports: timestamps in microseconds, fixed as binary, large lists as plain ones."""
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
    return marked(field.with_type(spark_type(field.type)), field.type)


_AVRO_OF: Final[dict[pa.DataType, Any]] = {
    **{kind: name for name, kind in _PLAIN.items() if name not in ("null", "enum")},
    pa.int8(): "int",
    pa.int16(): "int",
    pa.large_binary(): "bytes",
    pa.large_string(): "string",
    pa.binary_view(): "bytes",
    pa.string_view(): "string",
    pa.date32(): {"type": "int", "logicalType": "date"},
    pa.time32("ms"): {"type": "int", "logicalType": "time-millis"},
    pa.time64("us"): {"type": "long", "logicalType": "time-micros"},
}


def avro_schema(schema: pa.Schema, *, path: str) -> AvroSchema:
    """Returns the Avro schema of an Arrow schema, the inverse of arrow_schema except for names, enums, uuids and
    decimals stored as fixed. Raises UnsupportedError for types that Avro lacks.
    """
    return _avro_record(("record",), list(schema), path)


def _avro_record(where: tuple[str, ...], fields: list[pa.Field], path: str) -> AvroSchema:
    """Returns the Avro record of `fields`. `where` names the outermost record, then the columns that lead here."""
    entries = [
        {"name": field.name, "type": _avro_item(field, (*where, field.name), path)}
        | ({"default": None} if field.nullable else {})
        for field in fields
    ]
    return {"type": "record", "name": "_".join(where), "fields": entries}


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
