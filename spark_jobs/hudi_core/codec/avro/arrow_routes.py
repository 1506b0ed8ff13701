"""Decodes records of a log block to physical Arrow columns by one of two routes: polars, and fastavro for other
schemas.

Both routes read one rewritten schema: fields and types are named by position, logical types are dropped, an enum is an
int, text is bytes, a map is an array of entries. So both make the same arrays, and polars reads maps and enums. When
polars fails, by error or panic, the bytes are at fault: the reference route (fastavro) reads them again to name the
fault.
"""

from __future__ import annotations

import importlib.util
import io
import itertools
import sys
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from hudi_core.codec.avro.arrow_types import physical_type
from hudi_core.codec.avro.container import assemble, schema_bytes
from hudi_core.codec.avro.datum import DatumCodec
from hudi_core.codec.avro.resolve import AvroType
from hudi_core.codec.columns import octets
from hudi_core.errors import CorruptFileError

Route = Literal["auto", "polars", "fastavro"]
PREFIX = "length"
_FAST_KINDS = frozenset({"boolean", "int", "long", "float", "double", "bytes", "string", "enum", "fixed"})
_FAST_FIXED = 64
_CHUNK = 8192
_SYNC = b"hudi-log-block-\n"
_FREE_BYTES = 64 << 20
_BLOWUP = 64


def physical_schema(avro: AvroType, *, prefix: bool) -> dict[str, Any]:
    """Returns the rewritten JSON schema of a record. With `prefix`, its first field is the four bytes of the length."""
    # Each named type gets a name of its own: the same record may occur several times in the tree.
    names = map("t{}".format, itertools.count(1))
    record = _rewritten_record(avro, names)
    if prefix:
        record["fields"].insert(0, {"name": PREFIX, "type": {"type": "fixed", "name": next(names), "size": 4}})
    return record


def fast_route_allowed(avro: AvroType) -> bool:
    """Whether polars reads every type. polars 1.x and 2.x read no null type, and only unions of null and one type."""
    if avro.lone_union:
        return False
    if avro.kind == "record":
        return bool(avro.fields) and all(fast_route_allowed(child.type) for child in avro.fields)
    if avro.item is not None:
        return fast_route_allowed(avro.item)
    return avro.kind in _FAST_KINDS and avro.size <= _FAST_FIXED


def fast_route_available() -> bool:
    return importlib.util.find_spec("polars") is not None


class Deferral:
    """Postpones the first import of polars (0.2 to 0.6 CPU-s): fastavro decodes some 20,000 records before it."""

    def __init__(self, records: int = 20_000) -> None:
        self._left = records

    def pays(self, count: int) -> bool:
        """Whether to import now, with `count` records next. Concurrent threads may import one block too early."""
        self._left -= count
        return self._left < 0 or "polars" in sys.modules


_deferral = Deferral()


def read_columns(
    body: memoryview, count: int, record: AvroType, requested: list[int], *, path: str, route: Route
) -> list[pa.Array]:
    """Returns the columns of a record at the positions `requested`, by polars or fastavro. Raises as read_reference."""
    fast = fast_route_available() and _deferral.pays(count) if route == "auto" else route == "polars"
    if fast and count and fast_route_allowed(record) and fits_memory(record, count, len(body)):
        columns = read_fast(body, count, record, requested, prefix=True)
        if columns is not None:
            return columns
    return read_reference(body, count, record, requested, path=path)


def fits_memory(avro: AvroType, count: int, size: int) -> bool:
    """Whether polars' buffers for `count` records are in proportion to a block of `size` bytes."""
    return count * _row_bytes(avro) <= _FREE_BYTES + _BLOWUP * size


def read_fast(
    body: memoryview, count: int, avro: AvroType, requested: list[int], *, prefix: bool
) -> list[pa.Array] | None:
    """Reads the columns by polars; None when polars cannot read them. With `prefix`, a length precedes each record."""
    import polars
    from polars.exceptions import PanicException, PolarsError

    names = [PREFIX] * prefix + [f"f{index}" for index in requested]
    schema = schema_bytes(physical_schema(avro, prefix=prefix))
    source = io.BytesIO(assemble(schema, count, body, sync=_SYNC))
    try:
        table = polars.read_avro(source, columns=names).to_arrow()
    except (PolarsError, OSError, PanicException):
        # Not swallowed: the caller reads the same bytes by the reference route, which names the fault.
        return None
    if table.num_rows != count:
        return None
    if prefix and not _lengths_lead(_single(table.column(PREFIX)), body):
        return None
    return [_single(table.column(f"f{index}")) for index in requested]


def read_reference(body: memoryview, count: int, avro: AvroType, requested: list[int], *, path: str) -> list[pa.Array]:
    """Reads as read_fast with `prefix`, by fastavro. Raises CorruptFileError with `path`, the record and its offset."""
    codec = DatumCodec(physical_schema(avro, prefix=False))
    stream = io.BytesIO(body)
    kind = pa.struct([(f"f{index}", physical_type(avro.fields[index].type)) for index in requested])
    chunks = []
    for start in range(0, count, _CHUNK):
        rows = [
            _next_record(codec, stream, len(body), index, path) for index in range(start, min(count, start + _CHUNK))
        ]
        try:
            chunks.append(pa.array(rows, kind))
        except (pa.ArrowException, OverflowError, TypeError, UnicodeError) as error:
            message = f"records {start} to {start + len(rows) - 1} hold a value that its type cannot: {error}"
            raise CorruptFileError(message, path=path) from error
    if stream.tell() != len(body):
        raise CorruptFileError(f"{count} records end after {stream.tell()} of {len(body)} bytes", path=path)
    whole = pa.concat_arrays(chunks) if chunks else pa.array([], kind)
    return [whole.field(index) for index in range(len(requested))]


def _next_record(codec: DatumCodec, stream: io.BytesIO, size: int, index: int, path: str) -> Any:
    at = stream.tell()
    head = stream.read(4)
    length = int.from_bytes(head, "big", signed=True)
    if len(head) < 4 or not 0 <= length <= size - at - 4:
        raise CorruptFileError(
            f"record {index} at byte {at} of the block's records claims {length} bytes, {size - at - len(head)} are "
            "left",
            path=path,
        )
    record = codec.read(stream, path=path)
    if stream.tell() != at + 4 + length:
        raise CorruptFileError(
            f"record {index} at byte {at} has {stream.tell() - at - 4} bytes by its schema and {length} by its length",
            path=path,
        )
    return record


def _lengths_lead(column: pa.Array, body: memoryview) -> bool:
    """Whether each length leads to the next one, and the last length to the end. Then polars found the records."""
    heads = octets(column)[1]
    if heads.size != 4 * len(column):
        return False
    lengths = heads.view(">i4").astype(np.int64)
    ends = np.cumsum(lengths + 4)
    if (lengths < 0).any() or (int(ends[-1]) if len(ends) else 0) != len(body):
        return False
    starts = ends - lengths - 4
    data = np.frombuffer(body, np.uint8)
    return bool((data[starts[:, None] + np.arange(4)] == heads.reshape(-1, 4)).all())


def _single(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays([pa.array([], column.type), *column.chunks])


def _row_bytes(avro: AvroType) -> int:
    if avro.kind == "record":
        return sum(_row_bytes(child.type) for child in avro.fields)
    return 8 + avro.size


def _rewritten_record(avro: AvroType, names: Iterator[str]) -> dict[str, Any]:
    fields = [{"name": f"f{index}", "type": _rewritten(child.type, names)} for index, child in enumerate(avro.fields)]
    return {"type": "record", "name": next(names), "fields": fields}


def _rewritten(avro: AvroType, names: Iterator[str]) -> Any:
    if avro.kind == "union":
        # A union has no Arrow type, so its column is not read; its bytes must still be stepped over.
        return [_rewritten(branch, names) for branch in avro.branches]
    plain = _rewritten_plain(avro, names)
    if avro.null_at >= 0:
        return ["null", plain] if avro.null_at == 0 else [plain, "null"]
    return [plain] if avro.lone_union else plain


def _rewritten_plain(avro: AvroType, names: Iterator[str]) -> Any:
    if avro.kind == "record":
        return _rewritten_record(avro, names)
    if avro.kind == "fixed":
        return {"type": "fixed", "name": next(names), "size": avro.size}
    if avro.item is None:
        return {"enum": "int", "string": "bytes"}.get(avro.kind, avro.kind)
    item = _rewritten(avro.item, names)
    if avro.kind == "map":
        fields = [{"name": "f0", "type": "bytes"}, {"name": "f1", "type": item}]
        item = {"type": "record", "name": next(names), "fields": fields}
    return {"type": "array", "items": item}
