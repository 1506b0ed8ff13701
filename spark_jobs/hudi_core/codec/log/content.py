"""The content of AVRO_DATA, CDC_DATA and DELETE blocks, without Arrow (HoodieAvroDataBlock, HoodieDeleteBlock)."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from hudi_core.codec.avro.datum import DatumCodec
from hudi_core.codec.binary import Reader, encode_zigzag
from hudi_core.errors import CorruptFileError, UnsupportedError

_AVRO_BLOCK_VERSION = 3
AVRO_BLOCK_VERSIONS = frozenset({1, 2, _AVRO_BLOCK_VERSION})
"""They share one layout: a count, then length and datum of each record."""
DELETE_BLOCK_VERSION = 3
_HEAD = struct.Struct(">ii")
_LENGTH = struct.Struct(">i")

ORDERING_TYPES = {
    **{kind: kind for kind in ("boolean", "int", "long", "float", "double", "bytes", "string")},
    "date": "int",
    "decimal": "bytes",
    "time_micros": "long",
    "timestamp_micros": "long",
}
"""Avro types of the values in the wrapper records of a delete record's ordering union, in the order of the branches."""
ORDERING_KINDS = ("null", *ORDERING_TYPES, "array")
"""Kinds by branch number. Hudi 1.1 added `array`, for several ordering fields, and in it "local_date" (days)."""
DECIMAL_SCALE = 15
"""Scale of `decimal` ordering values, which are unscaled big-endian bytes of a decimal(30, 15)."""


class OrderingValue(NamedTuple):
    """One ordering value. `kind` is one of ORDERING_KINDS except "null", or "local_date" within an array. `value` is
    the raw Avro value (date: days, time and timestamp: microseconds, decimal: unscaled bytes, array: a tuple of
    OrderingValue or None, or None for a null list).
    """

    kind: str
    value: Any


class DeleteRecord(NamedTuple):
    key: str | None
    partition: str | None
    ordering: OrderingValue | None


def avro_block_records(content: bytes | memoryview, *, path: str) -> tuple[int, memoryview]:
    """Returns the record count of an AVRO_DATA or CDC_DATA block, and its records. Each record is its length (i32,
    big-endian) and its datum. The lengths are not checked. Raises CorruptFileError or UnsupportedError naming `path`.
    """
    reader = Reader(content, path)
    version, count = reader.i32(), reader.i32()
    if version not in AVRO_BLOCK_VERSIONS:
        message = f"Avro data block of version {version}; {sorted(AVRO_BLOCK_VERSIONS)} are supported"
        raise UnsupportedError(message, path=path)
    if count < 0 or count * _LENGTH.size > reader.remaining:
        raise CorruptFileError(f"Avro data block claims {count} records in {reader.remaining} bytes", path=path)
    return count, reader.view(reader.remaining)


def encode_avro_records(data: Iterable[bytes]) -> bytes:
    """Returns records in the form of an AVRO_DATA block, without the block's head."""
    parts: list[bytes] = []
    for datum in data:
        parts += (_LENGTH.pack(len(datum)), datum)
    return b"".join(parts)


def encode_avro_block(data: Sequence[bytes]) -> bytes:
    return avro_block(len(data), (encode_avro_records(data),))


def avro_block(count: int, records: Iterable[bytes]) -> bytes:
    """Returns the content of an AVRO_DATA or CDC_DATA block with `count` records, which have the form of
    encode_avro_records.
    """
    return b"".join((_HEAD.pack(_AVRO_BLOCK_VERSION, count), *records))


def delete_block_data(content: bytes | memoryview, *, path: str) -> memoryview:
    """Returns the Avro datum of a delete block: a HoodieDeleteRecordList. Raises UnsupportedError for the
    Kryo-serialised versions 1 and 2 (Hudi before 0.14), CorruptFileError for anything else; both name `path`.
    """
    reader = Reader(content, path)
    version = reader.i32()
    if version in (1, 2):
        remedy = "compact the file group with the Hudi version that wrote it"
        message = f"delete block of version {version} holds Kryo-serialised Java objects (Hudi before 0.14)"
        raise UnsupportedError(message, path=path, remedy=remedy)
    if version != DELETE_BLOCK_VERSION:
        raise CorruptFileError(f"unknown delete block version {version}", path=path)
    length = reader.i32()
    if length != reader.remaining:
        raise CorruptFileError(f"delete block claims {length} bytes of records and has {reader.remaining}", path=path)
    return reader.view(length)


def decode_delete_block(content: bytes | memoryview, *, path: str) -> list[DeleteRecord]:
    """Returns the entries of a delete block of any Hudi version, in order. Raises the errors of `delete_block_data`."""
    entries = _codecs()[0].decode(delete_block_data(content, path=path), path=path)
    return [
        DeleteRecord(entry["recordKey"], entry["partitionPath"], _ordering(entry["orderingVal"], path))
        for entry in entries
    ]


def delete_record_spans(content: bytes | memoryview, *, path: str) -> tuple[memoryview, list[tuple[int, int]]]:
    """Returns the datum of a delete block, and where its entries begin and end. Raises as `delete_block_data`."""
    data, spans = delete_block_data(content, path=path), []
    stream, entry, number = io.BytesIO(data), _codecs()[1], DatumCodec("long")
    while (count := number.read(stream, path=path)) != 0:
        if count < 0:
            number.read(stream, path=path)
        for _ in range(abs(count)):
            start = stream.tell()
            entry.read(stream, path=path)
            spans.append((start, stream.tell()))
    if stream.tell() != len(data):
        raise CorruptFileError("the entries of a delete block end before it does", path=path)
    return data, spans


def encode_delete_block(entries: Sequence[bytes | memoryview]) -> bytes:
    """Returns the content of a DELETE block from its entries' data, as `delete_record_spans` finds them."""
    return delete_block(len(entries), b"".join(entries))


def delete_block(count: int, entries: bytes) -> bytes:
    """Returns the content of a DELETE block with `count` entries."""
    data = b"".join((encode_zigzag(count), entries, b"\0")) if count else b"\0"
    return _HEAD.pack(DELETE_BLOCK_VERSION, len(data)) + data


_NAMESPACE = "org.apache.hudi.avro.model"
_ARRAY = f"{_NAMESPACE}.ArrayWrapper"
_LOCAL_DATE = "local_date"


def _name(kind: str) -> str:
    return "".join(word.capitalize() for word in kind.split("_")) + "Wrapper"


_KIND_OF = {f"{_NAMESPACE}.{_name(kind)}": kind for kind in (*ORDERING_TYPES, _LOCAL_DATE)}


@lru_cache(maxsize=1)
def _codecs() -> tuple[DatumCodec, DatumCodec]:
    """Returns the codecs of HoodieDeleteRecordList, a record of one array, and of its items; branches of Hudi 1.1."""
    wrappers = [_wrapper(kind, value) for kind, value in ORDERING_TYPES.items()]
    elements: list[Any] = ["null", *map(_name, ORDERING_TYPES), _wrapper(_LOCAL_DATE, "int")]
    values = {"name": "wrappedValues", "type": ["null", {"type": "array", "items": elements}]}
    array = {"type": "record", "name": "ArrayWrapper", "fields": [values]}
    fields = [
        {"name": "recordKey", "type": ["null", "string"]},
        {"name": "partitionPath", "type": ["null", "string"]},
        {"name": "orderingVal", "type": ["null", *wrappers, array]},
    ]
    record = {"type": "record", "name": "HoodieDeleteRecord", "namespace": _NAMESPACE, "fields": fields}
    return DatumCodec({"type": "array", "items": record}), DatumCodec(record)


def _wrapper(kind: str, value: str) -> dict[str, Any]:
    return {"type": "record", "name": _name(kind), "fields": [{"name": "value", "type": value}]}


def _ordering(value: Any, path: str) -> OrderingValue | None:
    if value is None:
        return None
    name, body = value
    if name == _ARRAY:
        values = body["wrappedValues"]
        return OrderingValue("array", None if values is None else tuple(_ordering(element, path) for element in values))
    kind = _KIND_OF[name]
    raw = body["value"]
    if kind in ("int", "date", "local_date") and not -(1 << 31) <= raw < 1 << 31:
        raise CorruptFileError(f"ordering value {raw} of a delete is not a 32-bit integer", path=path)
    return OrderingValue(kind, raw)
