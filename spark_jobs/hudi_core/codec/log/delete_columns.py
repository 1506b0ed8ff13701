"""Reads a delete block's entries as Arrow columns: 3 M entries/s per core, where decode_delete_block reads 0.09 M.

Polars has no type for the ordering value's union of records. But a block comes from one writer, and its values from one
field, so all entries use one branch. The branch number is read as a fixed of size 1, followed by the plain value, and
must equal the first entry's in every row: by induction, every row began where its entry begins. Blocks of mixed
branches are read entry by entry.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.codec.avro.arrow import to_logical
from hudi_core.codec.avro.arrow_routes import fast_route_available, read_fast
from hudi_core.codec.avro.arrow_types import physical_type
from hudi_core.codec.avro.encode import encode_rows
from hudi_core.codec.avro.resolve import AvroField, AvroType
from hudi_core.codec.binary import Reader, encode_zigzag
from hudi_core.codec.columns import octets
from hudi_core.codec.log.content import (
    DECIMAL_SCALE,
    ORDERING_KINDS,
    ORDERING_TYPES,
    decode_delete_block,
    delete_block,
    delete_block_data,
)
from hudi_core.errors import CorruptFileError

_TEXT = AvroType("string", null_at=0)
_VALUES = {kind: AvroType(plain) for kind, plain in ORDERING_TYPES.items()} | {
    "decimal": AvroType("bytes", logical="decimal", precision=30, scale=DECIMAL_SCALE)
}
_FLAG, _FALSE, _TRUE = AvroType("fixed", size=1), b"\x00", b"\x01"
"""A boolean's byte. Of a damaged one fastavro makes true, polars false: such a block is read entry by entry."""
_ZERO_BYTES = {"float": 4, "double": 8, "decimal": 2}
_LARGE_BYTES = 1 << 20
MAX_ORDERING_FIELDS = 64
_LAST = b"\x00end of the delete block"


def delete_columns(content: bytes | memoryview, *, path: str) -> pa.Table:
    """Returns the entries in order, with the columns `key`, `partition` (string), `branch` (int8, an index into
    ORDERING_KINDS, 0 = no value), and a nullable column per kind of ordering value. Values are raw (date: days; times:
    microseconds) except decimal128(30, 15). Values of several ordering fields are in columns `<position>.<kind>`.
    Raises the errors of decode_delete_block.
    """
    # The import of polars pays only for large blocks; for data blocks, codec.avro.arrow_routes.Deferral decides.
    large = len(content) >= _LARGE_BYTES or "polars" in sys.modules
    uniform = _uniform(delete_block_data(content, path=path), path) if large and fast_route_available() else None
    return _by_entry(content, path) if uniform is None else uniform


def _uniform(data: memoryview, path: str) -> pa.Table | None:
    """Returns the columns when every entry uses the first entry's branch, else None."""
    reader = Reader(data, path)
    count = reader.zigzag()
    items = data[reader.position :]
    if not 0 < count <= len(items):
        return None
    for _ in range(2):
        if reader.zigzag() == 1:
            reader.skip(reader.zigzag())
    branch = reader.zigzag()
    if not 0 <= branch < ORDERING_KINDS.index("array") or items[-1] != 0:
        return None
    kind = ORDERING_KINDS[branch]
    fields = [AvroField("key", _TEXT), AvroField("partition", _TEXT), AvroField("branch", _FLAG)]
    if branch:
        fields.append(AvroField(kind, _FLAG if kind == "boolean" else _VALUES[kind]))
    # An added entry takes the place of the array's end. When it is read whole, the entries before it used up the
    # bytes exactly.
    number = encode_zigzag(branch)
    last = encode_zigzag(1) + encode_zigzag(len(_LAST)) + _LAST + encode_zigzag(0) + number
    last += b"\x02\x00" if kind == "decimal" else bytes(_ZERO_BYTES.get(kind, 1 if branch else 0))
    body = memoryview(bytes(items[:-1]) + last)
    arrays = read_fast(
        body, count + 1, AvroType("record", fields=tuple(fields)), list(range(len(fields))), prefix=False
    )
    if arrays is None or arrays[0][count].as_py() != _LAST or arrays[2].unique().to_pylist() != [number]:
        return None
    texts = [to_logical(array, _TEXT, path=path)[:count] for array in arrays[:2]]
    try:
        for text in texts:
            text.validate(full=True)
    except pa.ArrowInvalid:  # a key is not UTF-8; reading by entry names it
        return None
    columns = {"key": texts[0], "partition": texts[1], "branch": pa.repeat(pa.scalar(branch, pa.int8()), count)}
    if branch:
        values = arrays[3]
        if kind == "boolean":
            if not {_FALSE, _TRUE}.issuperset(values.unique().to_pylist()):
                return None
            values = pc.equal(values, pa.scalar(_TRUE, values.type))
        columns[kind] = to_logical(values, _VALUES[kind], path=path)[:count]
    return pa.table(columns)


def _by_entry(content: bytes | memoryview, path: str) -> pa.Table:
    entries = decode_delete_block(content, path=path)
    orderings = [entry.ordering for entry in entries]
    columns = {
        "key": pa.array([entry.key for entry in entries], pa.string()),
        "partition": pa.array([entry.partition for entry in entries], pa.string()),
        "branch": pa.array(
            [0 if ordering is None else ORDERING_KINDS.index(ordering.kind) for ordering in orderings], pa.int8()
        ),
    }
    lists = [
        ordering.value or () if ordering is not None and ordering.kind == "array" else () for ordering in orderings
    ]
    longest = max(map(len, lists), default=0)
    if longest > MAX_ORDERING_FIELDS:
        message = f"a delete has {longest} ordering values; more than {MAX_ORDERING_FIELDS} ordering fields are refused"
        raise CorruptFileError(message, path=path)
    parts = [("", [None if ordering is None or ordering.kind == "array" else ordering for ordering in orderings])]
    parts += [
        (f"{position}.", [values[position] if position < len(values) else None for values in lists])
        for position in range(longest)
    ]
    for prefix, values in parts:
        for kind in sorted(
            {value.kind for value in values if value is not None and value.kind in _VALUES}, key=ORDERING_KINDS.index
        ):
            avro = _VALUES[kind]
            raw = [value.value if value is not None and value.kind == kind else None for value in values]
            columns[prefix + kind] = to_logical(pa.array(raw, physical_type(avro)), avro, path=path)
    return pa.table(columns)


_PRESENT = encode_zigzag(1)
_ZERO = encode_zigzag(ORDERING_KINDS.index("int")) + encode_zigzag(0)
"""The ordering value 0, an int. Such a delete overrides every older record (HoodieRecord.DEFAULT_ORDERING_VALUE)."""


def encode_natural_deletes(keys: pa.Array, partition: str) -> bytes:
    """Returns a delete block of version 3 with ordering value 0. `keys` is a binary array of UTF-8 without nulls."""
    if not len(keys):
        return delete_block(0, b"")
    lengths, which = np.unique(pc.binary_length(keys).to_numpy(), return_inverse=True)
    starts = pa.array([_PRESENT + encode_zigzag(int(length)) for length in lengths], pa.binary()).take(pa.array(which))
    name = partition.encode("utf-8")
    tail = pa.scalar(_PRESENT + encode_zigzag(len(name)) + name + _ZERO, pa.binary())
    joined = pc.binary_join_element_wise(starts, keys, tail, pa.scalar(b"", pa.binary()))
    return delete_block(len(keys), octets(joined)[1].tobytes())


_AVRO_VALUES: dict[str, Any] = {
    **{kind: plain for kind, plain in ORDERING_TYPES.items() if kind not in ("time_micros", "timestamp_micros")},
    "date": {"type": "int", "logicalType": "date"},
    "decimal": {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": DECIMAL_SCALE},
}
_LOCAL_DATE = len(ORDERING_KINDS) - 1
"""The branch of dates among several values."""


def encode_deletes(keys: pa.Array, partition: str, values: Sequence[tuple[str, pa.Array]], *, path: str) -> bytes:
    """Returns the entries of content.delete_block. `keys` are texts. `values` are the ordering values of one field with
    their kind, in the types of Avro's columns, or those of several fields.
    """
    columns: list[tuple[Any, pa.Array | int]] = [(["null", "string"], keys)]
    columns.append((["null", "string"], pa.repeat(pa.scalar(partition, pa.string()), len(keys))))
    if len(values) > 1:
        columns += [("long", ORDERING_KINDS.index("array")), ("long", 1), ("long", len(values))]
    for kind, array in values:
        branch = _LOCAL_DATE if kind == "date" and len(values) > 1 else ORDERING_KINDS.index(kind)
        columns += [("long", branch), (_AVRO_VALUES[kind], array)]
    if len(values) > 1:
        columns.append(("long", 0))
    fields = [{"name": f"f{number}", "type": avro} for number, (avro, _) in enumerate(columns)]
    arrays = [
        pa.repeat(pa.scalar(array, pa.int64()), len(keys)) if isinstance(array, int) else array for _, array in columns
    ]
    rows = pa.RecordBatch.from_arrays(arrays, names=[field["name"] for field in fields])
    data, _ = encode_rows(rows, {"type": "record", "name": "entry", "fields": fields}, path=path)
    return data.tobytes()
