"""Avro records of log blocks as Arrow tables."""

from __future__ import annotations

import json
import struct
from collections.abc import Collection
from functools import lru_cache
from typing import Final

import pyarrow as pa

from hudi_core.codec.avro.arrow_conform import conform_batch
from hudi_core.codec.avro.arrow_routes import Route, read_columns
from hudi_core.codec.avro.arrow_types import as_meant, logical_field, logical_type, spark_field
from hudi_core.codec.avro.datum import DatumCodec
from hudi_core.codec.avro.logical_arrays import to_logical
from hudi_core.codec.avro.resolve import AvroType, resolve
from hudi_core.codec.avro.schema import AvroSchema
from hudi_core.errors import CorruptFileError, FormatError, UnsupportedError
from hudi_core.model.names import places

_MAX_BYTES = (1 << 31) - 1
_FIELD: Final = b"avro.field"
"""Metadata of an Arrow field whose Avro field has a default other than null: that field."""


def arrow_schema(schema: AvroSchema, *, path: str = "Avro schema") -> pa.Schema:
    """The Arrow schema that holds an Avro record without loss, as base files store it: timestamps in UTC, or without a
    zone where they are local; decimal128; fixed size binary; enum and uuid as string. A default other than null goes
    along for with_defaults. Raises UnsupportedError for unions of several types and for types that contain themselves.
    """
    record = _record(schema, path)
    fields = (logical_field(child.name, child.type, path=path) for child in record.fields)
    return pa.schema(
        field if entry.get("default") is None else field.with_metadata({_FIELD: json.dumps(entry)})
        for field, entry in zip(fields, schema["fields"], strict=True)
    )


def with_defaults(batch: pa.RecordBatch, names: Collection[str], schema: pa.Schema) -> pa.RecordBatch:
    """Decoded records with the defaults of the columns that their writer's schema, of fields `names`, did not have
    (Avro schema resolution); `schema` is of arrow_schema. Not within nested columns.
    """
    for number, field in enumerate(schema):
        if field.name not in names and _FIELD in (field.metadata or {}):
            value = _default(field.name, field.type, field.metadata[_FIELD])
            if value is not None:
                batch = batch.set_column(number, batch.schema.field(number), pa.repeat(value, batch.num_rows))
    return batch


@lru_cache(maxsize=256)
def _default(column: str, type_: pa.DataType, text: bytes) -> pa.Scalar | None:
    entry = json.loads(text)
    kind, value = entry["type"], entry["default"]
    first = kind[0] if isinstance(kind, list) else kind
    schema = {"type": "record", "name": "defaults", "fields": [{"name": column, "type": first}]}
    name = first.get("type") if isinstance(first, dict) else first
    try:
        datum = DatumCodec(schema).encode({column: value.encode("latin-1") if name in ("bytes", "fixed") else value})
        records = struct.pack(">i", len(datum)) + datum
        return decode_records(records, 1, schema, pa.schema([(column, type_)]), path=column).column(0)[0]
    except (FormatError, UnicodeEncodeError, AttributeError):
        return None


def spark_schema(schema: pa.Schema) -> pa.Schema:
    """The schema that Spark reports for a table stored by `schema`: microseconds, binary for fixed, nullable."""
    return pa.schema([spark_field(field).with_nullable(True) for field in schema])


def decode_records(
    block: bytes | memoryview,
    count: int,
    writer_schema: AvroSchema,
    reader_schema: pa.Schema,
    *,
    path: str,
    route: Route = "auto",
) -> pa.Table:
    """The records of an AVRO_DATA or CDC_DATA block (content.avro_block_records) with the columns and types of
    `reader_schema`, matched as by conform_batch. The route is polars when it is installed and reads every type, else
    fastavro; both give equal tables; `route` forces one, for tests and measurements. Raises CorruptFileError when the
    bytes are not `count` records, UnsupportedError for a writer's schema that Arrow cannot hold, FormatError when the
    schemas do not match; all name `path`.
    """
    record = _record(writer_schema, path)
    body = memoryview(block).cast("B")
    if count < 0 or count * (4 + _least_bytes(record)) > len(body):
        raise CorruptFileError(f"{len(body)} bytes cannot hold {count} records", path=path)
    if len(body) > _MAX_BYTES:
        raise UnsupportedError(f"log block of {len(body)} bytes; Hudi can write {_MAX_BYTES} at most", path=path)
    positions = places([child.name for child in record.fields], reader_schema.names, path=path)
    requested = sorted(index for index in positions if index >= 0)
    for index in requested:
        logical_type(record.fields[index].type, path=path)
    physical = read_columns(body, count, record, requested, path=path, route=route)
    decoded = [record.fields[index] for index in requested]
    columns = [to_logical(array, child.type, path=path) for array, child in zip(physical, decoded, strict=True)]
    fields = [logical_field(child.name, child.type, path=path) for child in decoded]
    # A batch without columns has no rows; one of the reader's own keeps the count.
    read = pa.RecordBatch.from_arrays(columns or [pa.nulls(count)], schema=pa.schema(fields or [("", pa.null())]))
    return pa.Table.from_batches([conform_batch(as_meant(read, reader_schema), reader_schema, path=path)])


def _record(schema: AvroSchema, path: str) -> AvroType:
    record = resolve(schema, path=path)
    if record.kind != "record" or record.nullable:
        raise CorruptFileError(f"the schema is {record.describe()}, not a record", path=path)
    return record


def _least_bytes(avro: AvroType) -> int:
    if avro.null_at >= 0 or avro.lone_union or avro.kind == "union":
        return 1
    if avro.kind == "record":
        return sum(_least_bytes(child.type) for child in avro.fields)
    return {"null": 0, "float": 4, "double": 8}.get(avro.kind, avro.size or 1)
