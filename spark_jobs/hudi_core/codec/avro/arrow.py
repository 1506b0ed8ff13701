"""Converts Avro records of log blocks to Arrow tables. arrow_types.py has their types."""

from __future__ import annotations

import json
import struct
from collections.abc import Collection
from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.codec.avro.arrow_conform import conform_batch
from hudi_core.codec.avro.arrow_routes import Route, read_columns
from hudi_core.codec.avro.arrow_types import as_meant, logical_field, logical_type, spark_field
from hudi_core.codec.avro.datum import DatumCodec
from hudi_core.codec.avro.resolve import AvroType, resolve
from hudi_core.codec.avro.schema import AvroSchema, kept_by_schema
from hudi_core.codec.columns import unsliced, with_children
from hudi_core.errors import CorruptFileError, FormatError, UnsupportedError
from hudi_core.frozen import dataclass
from hudi_core.model.names import places

_MAX_BYTES = (1 << 31) - 1
_FIELD: Final = b"avro.field"
"""Key in the metadata of an Arrow field. Its value is the Avro field, when that has a default other than null."""


def arrow_schema(schema: AvroSchema, *, path: str = "Avro schema") -> pa.Schema:
    """Returns the Arrow schema that holds an Avro record without loss, in the types of base files: timestamps in UTC,
    or without a zone where they are local; decimal128; fixed size binary; enum and uuid as string. The schema keeps a
    default other than null for with_defaults. Raises UnsupportedError for unions of several types and for types that
    contain themselves.
    """
    return _arrow_schema(schema, path)


@kept_by_schema
def _arrow_schema(schema: AvroSchema, path: str) -> pa.Schema:
    record = _record(schema, path)
    fields = (logical_field(child.name, child.type, path=path) for child in record.fields)
    return pa.schema(
        field if entry.get("default") is None else field.with_metadata({_FIELD: json.dumps(entry)})
        for field, entry in zip(fields, schema["fields"], strict=True)
    )


def with_defaults(batch: pa.RecordBatch, names: Collection[str], schema: pa.Schema) -> pa.RecordBatch:
    """Returns decoded records with the defaults of columns that their writer's schema lacks. `names` are the fields of
    that schema. Nested fields get no defaults.
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
    """Returns the schema that Spark reports for a table of `schema`: microseconds, binary for fixed, nullable."""
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
    """Returns the records of an AVRO_DATA or CDC_DATA block (content.avro_block_records) with the columns and types of
    `reader_schema`, matched by conform_batch. read_columns chooses polars or fastavro; both give equal tables. `route`
    forces one of them, for tests and measurements. Raises CorruptFileError when the bytes are not `count` records,
    UnsupportedError for a writer's schema that Arrow cannot hold, FormatError when the schemas do not match; all name
    `path`.
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
    # A batch without columns has no rows; a column of nulls keeps the count.
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


_MAX_DECIMAL_BYTES = 64
"""The most bytes of a decimal. Java writes the fewest that hold it, at most 16 for 38 digits; more are padding."""


def to_logical(array: pa.Array, avro: AvroType, *, path: str, alive: pa.Array | None = None) -> pa.Array:
    """Returns an array of `physical_type` as an array of `logical_type`, both of `avro`. `alive` says which rows count:
    below a null struct, decoders leave values of their own. Raises CorruptFileError naming `path` for an enum number
    without a symbol and for a decimal that its precision cannot hold.
    """
    array = unsliced(array)
    if avro.kind == "record":
        below = alive
        if array.null_count:
            below = array.is_valid() if alive is None else pc.and_(alive, array.is_valid())
        children = [
            to_logical(array.field(index), child.type, path=path, alive=below)
            for index, child in enumerate(avro.fields)
        ]
        return with_children(array, logical_type(avro, path=path), children)
    if avro.item is not None:
        return _list(array, avro, avro.item, path)
    if avro.kind == "enum":
        return _symbols(array, avro, path)
    if alive is not None and (avro.kind == "fixed" or avro.logical == "decimal"):
        array = pc.if_else(alive, array, pa.scalar(bytes(avro.size or 1), array.type))
    if avro.logical == "decimal":
        return _decimal(array, avro, path)
    if avro.kind == "string":
        return _text(array)
    target = logical_type(avro, path=path)
    if array.type == target:
        return array
    return array.view(target) if avro.kind in ("int", "long") else pc.cast(array, target)


def _text(array: pa.Array) -> pa.Array:
    """Returns bytes as text, even if they are no UTF-8: Spark casts binary so, and Hudi reads and compacts it."""
    return pc.cast(array, pa.binary()).view(pa.string())


def _list(array: pa.Array, avro: AvroType, item: AvroType, path: str) -> pa.Array:
    kind = logical_type(avro, path=path)
    if avro.kind == "map":
        entries = unsliced(array.values)
        columns = [_text(entries.field(0)), to_logical(entries.field(1), item, path=path)]
        made = pa.StructArray.from_arrays(columns, fields=[kind.key_field, kind.item_field])
    else:
        made = to_logical(array.values, item, path=path)
    return with_children(array, kind, [made])


def _symbols(array: pa.Array, avro: AvroType, path: str) -> pa.Array:
    try:
        return pa.array(avro.symbols, pa.string()).take(array)
    except pa.ArrowIndexError as error:
        raise CorruptFileError(f"enum number without symbol: {error}", path=path) from error


def _decimal(array: pa.Array, avro: AvroType, path: str) -> pa.Array:
    """Converts big-endian two's complement of any width up to _MAX_DECIMAL_BYTES to 128-bit little-endian."""
    validity, offsets_buffer, data_buffer = array.buffers()
    width = np.int64 if pa.types.is_large_binary(array.type) else np.int32
    count = len(array)
    offsets, data = np.zeros(1, np.int64), np.zeros(1, np.uint8)
    if count:
        offsets = np.frombuffer(offsets_buffer, width, count + 1).astype(np.int64)
    if data_buffer is not None and data_buffer.size:
        data = np.frombuffer(data_buffer, np.uint8)
    valid = array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else np.ones(count, np.bool_)
    lengths = np.where(valid, np.diff(offsets), 1)
    longest = int(lengths.max(initial=0))
    if longest > _MAX_DECIMAL_BYTES or int(lengths.min(initial=1)) < 1:
        raise CorruptFileError(f"decimal of {longest if longest > _MAX_DECIMAL_BYTES else 0} bytes", path=path)
    # A null row may point anywhere, also one past the end; its bytes are masked by the validity bitmap.
    starts = np.where(valid, offsets[:-1], 0)
    sign = np.where(data[starts] >= 128, 255, 0).astype(np.uint8) if count else np.zeros(0, np.uint8)
    out = np.repeat(sign[:, None], max(16, longest), axis=1)
    for index in range(longest):
        rows = np.flatnonzero(lengths > index)
        out[rows, index] = data[starts[rows] + lengths[rows] - 1 - index]
    excess = out[:, 16:] != sign[:, None]
    if excess.any() or ((out[:, 15] >= 128) != (sign == 255)).any():
        raise CorruptFileError(f"a value does not fit {avro.describe()}", path=path)
    kind = logical_type(avro, path=path)
    made = pa.Array.from_buffers(kind, count, [validity, pa.py_buffer(np.ascontiguousarray(out[:, :16]))])
    try:
        made.validate(full=True)
    except pa.ArrowInvalid as error:
        raise CorruptFileError(f"a value does not fit {avro.describe()}: {error}", path=path) from error
    return made


_NUMBERS: Final = {"FLOAT": pa.float32(), "DOUBLE": pa.float64(), "INT8": pa.int8()}


@dataclass(frozen=True, slots=True)
class Vector:
    """A column of Hudi 1.2's type VECTOR. A value has `dimension` numbers of one type, and is stored as a fixed of
    their bytes, lowest byte first (HoodieSchema.VectorLogicalType, VectorConversionUtils). Data files and log blocks
    keep the bytes; queries give a list, as Hudi's queries do.
    """

    number: pa.DataType
    dimension: int

    @property
    def size(self) -> int:
        return self.dimension * int(self.number.bit_width) // 8

    @property
    def type(self) -> pa.DataType:
        """The type of the list that a query gives."""
        return pa.list_(pa.field("element", self.number, nullable=False))

    def lists(self, array: pa.Array, name: str, *, path: str) -> pa.Array:
        """Returns stored bytes as lists. Raises CorruptFileError with `path` and column for a value of another size."""
        values = array.drop_null()
        if not pc.all(pc.equal(pc.binary_length(values), self.size), min_count=0).as_py():
            raise CorruptFileError(f"column {name!r} has a vector that is not of {self.size} bytes", path=path)
        data = b"".join(values.to_pylist())
        numbers = pa.Array.from_buffers(self.number, len(values) * self.dimension, [None, pa.py_buffer(data)])
        ends = np.cumsum(np.asarray(array.is_valid()), dtype=np.int32) * self.dimension
        offsets = pa.array(np.concatenate([[0], ends]).astype(np.int32))
        mask = array.is_null() if array.null_count else None
        return pa.ListArray.from_arrays(offsets, numbers, type=self.type, mask=mask)


def vectors_of(schema: AvroSchema) -> dict[str, Vector]:
    """Returns the top-level VECTOR columns of a record. Leaves out a fixed that is not in Hudi's form of vectors."""
    vectors = {}
    for entry in schema["fields"]:
        kind = entry["type"]
        for branch in kind if isinstance(kind, list) else [kind]:
            if isinstance(branch, dict) and branch.get("type") == "fixed" and branch.get("logicalType") == "vector":
                number, dimension = _NUMBERS.get(str(branch.get("elementType", "FLOAT"))), branch.get("dimension")
                if number is None or not isinstance(dimension, int):
                    continue
                vector = Vector(number, dimension)
                if dimension > 0 and vector.size == branch.get("size"):
                    vectors[entry["name"]] = vector
    return vectors
