"""Physical Arrow arrays → the logical types of an Avro schema, for both decoding routes, column by column.

And the columns of Hudi 1.2's type VECTOR: numbers of one kind, so many in each value, stored as a fixed of their bytes,
the lowest first (HoodieSchema.VectorLogicalType, VectorConversionUtils). Data files and log blocks keep the bytes;
queries give a list, as Hudi's do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.codec.avro.arrow_types import logical_type
from hudi_core.codec.avro.resolve import AvroType
from hudi_core.codec.avro.schema import AvroSchema
from hudi_core.codec.columns import unsliced, with_children
from hudi_core.errors import CorruptFileError

_MAX_DECIMAL_BYTES = 64
"""Java writes the fewest bytes that hold a decimal, at most 16 for 38 digits; padding up to here is understood."""


def to_logical(array: pa.Array, avro: AvroType, *, path: str, alive: pa.Array | None = None) -> pa.Array:
    """What `physical_type` describes as `logical_type` of `avro`. `alive` says which rows count: below a null struct
    decoders leave values of their own making. Raises CorruptFileError naming `path` for an enum number without symbol
    and for a decimal that its precision cannot hold.
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
    """Bytes as text, unchanged where they are no UTF-8: a cast of binary to text in Spark checks nothing, and Hudi
    reads and compacts what it makes.
    """
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
    """Big-endian two's complement of any width up to _MAX_DECIMAL_BYTES → 128-bit little-endian."""
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
    """The type of a column: the numbers, and how many a value has."""

    number: pa.DataType
    dimension: int

    @property
    def size(self) -> int:
        return self.dimension * int(self.number.bit_width) // 8

    @property
    def type(self) -> pa.DataType:
        """The list that a query gives."""
        return pa.list_(pa.field("element", self.number, nullable=False))

    def lists(self, array: pa.Array, name: str, *, path: str) -> pa.Array:
        """Stored bytes as lists. Raises CorruptFileError naming `path` and the column for a value of another size."""
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
    """The top-level VECTOR columns of a record. A fixed that is not as Hudi writes vectors is left out."""
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
