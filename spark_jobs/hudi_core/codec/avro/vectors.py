"""The columns of Hudi 1.2's type VECTOR: numbers of one kind, so many in each value, stored as a fixed of their bytes,
the lowest first (HoodieSchema.VectorLogicalType, VectorConversionUtils).

Data files and log blocks keep the bytes; queries give a list, as Hudi's do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.codec.avro.schema import AvroSchema
from hudi_core.errors import CorruptFileError

_NUMBERS: Final = {"FLOAT": pa.float32(), "DOUBLE": pa.float64(), "INT8": pa.int8()}


@dataclass(frozen=True, slots=True)
class Vector:
    """The type of a column: the numbers, and how many a value has."""

    number: pa.DataType
    dimension: int

    @property
    def size(self) -> int:
        """Of a value, in bytes."""
        return self.dimension * int(self.number.bit_width) // 8

    @property
    def type(self) -> pa.DataType:
        """The list that a query gives."""
        return pa.list_(pa.field("element", self.number, nullable=False))

    def lists(self, array: pa.Array, name: str, *, path: str) -> pa.Array:
        """Stored bytes (binary) as lists. Raises CorruptFileError naming `path` and the column for a value of another
        size.
        """
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
    found = {}
    for entry in schema["fields"]:
        kind = entry["type"]
        for branch in kind if isinstance(kind, list) else [kind]:
            if isinstance(branch, dict) and branch.get("type") == "fixed" and branch.get("logicalType") == "vector":
                number, dimension = _NUMBERS.get(str(branch.get("elementType", "FLOAT"))), branch.get("dimension")
                if number is None or not isinstance(dimension, int):
                    continue
                vector = Vector(number, dimension)
                if dimension > 0 and vector.size == branch.get("size"):
                    found[entry["name"]] = vector
    return found
