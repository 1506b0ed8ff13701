"""Reads and writes Avro object container files with the null codec: plans and commit metadata on the timeline.

The module reads them itself, so that it compares every count and size with the bytes that are left before it uses them.
It writes them itself, so that the same records give the same bytes. A record with maps of very many entries, such as
the files of a clean, is read and written entry by entry: as Python values it would take five times the bytes of the
file.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from hudi_core.codec.avro.datum import DatumCodec, codec_of
from hudi_core.codec.avro.schema import VALUES_PER_BYTE_OF_A_CONTAINER, check_bounds, parse_schema
from hudi_core.codec.binary import Reader, encode_zigzag
from hudi_core.errors import CorruptFileError, HudiError, UnsupportedError

MAGIC = b"Obj\x01"
SYNC_BYTES = 16
_MAX_SCHEMA = 256 << 10
"""The most characters of a schema. The schemas of Hudi's classes have some 4,000, and many are kept in memory."""


def is_container(data: bytes) -> bool:
    return data[: len(MAGIC)] == MAGIC


def is_whole(data: bytes) -> bool:
    """Whether `data` is a container that ends at the end of a block. The content of blocks is not checked."""
    reader = Reader(data, "")
    try:
        _read_magic(reader)
        _read_metadata(reader)
        return len(list(_blocks(reader, reader.bytes(SYNC_BYTES)))) > 0
    except CorruptFileError:
        return False


def read_container(
    data: bytes, *, path: str, without: frozenset[str] = frozenset()
) -> tuple[dict[str, Any], list[Any]]:
    """Returns the writer's schema and all records, with the values of DatumCodec.decode. Passes over the fields
    `without`; no other field may use a type that they define. Raises CorruptFileError when the file is cut or does not
    decode, UnsupportedError for a compressed container, and the errors of check_bounds; all name `path`.
    """
    reader = Reader(data, path)
    schema, sync = read_header(reader)
    records: list[Any] = []
    for count, block in _blocks(reader, sync):
        records.extend(_read_block(schema, block, count, path, without))
    return schema, records


def read_header(reader: Reader) -> tuple[dict[str, Any], bytes]:
    """Returns the writer's schema and sync marker, and leaves `reader` at the first block. Raises as read_container."""
    path = reader.path
    _read_magic(reader)
    header = _read_metadata(reader)
    codec = header.get("avro.codec", b"null")
    if codec != b"null":
        raise UnsupportedError(
            f"Avro container is compressed with {codec.decode('utf-8', 'replace')!r}; Hudi writes these files "
            "uncompressed",
            path=path,
        )
    text = header.get("avro.schema")
    if text is None:
        raise CorruptFileError("Avro container has no schema in its header", path=path)
    try:
        return _schema(text.decode(), path), reader.bytes(SYNC_BYTES)
    except UnicodeDecodeError as error:
        raise CorruptFileError(f"Avro schema is not UTF-8: {error.reason}", path=path) from error


def _schema(text: str, path: str) -> dict[str, Any]:
    """Returns the schema of a text. Equal texts, of which a timeline has many, give one object, and so one codec."""
    if len(text) > _MAX_SCHEMA:
        what = f"Avro schema of a container has {len(text)} characters, more than the {_MAX_SCHEMA} allowed"
        raise CorruptFileError(what, path=path)
    try:
        return _cached_schema(text)
    except HudiError:
        return _parsed(text, path)  # for the path in the error


@lru_cache(maxsize=64)
def _cached_schema(text: str) -> dict[str, Any]:
    return _parsed(text, "")


def _parsed(text: str, path: str) -> dict[str, Any]:
    schema = parse_schema(text, path=path)
    check_bounds(schema, path=path, values_per_byte=VALUES_PER_BYTE_OF_A_CONTAINER)
    return schema


def container_metadata(data: bytes, *, path: str) -> dict[str, bytes]:
    """Returns the header's metadata without Avro's own keys. Raises CorruptFileError naming `path`."""
    reader = Reader(data, path)
    _read_magic(reader)
    return {key: value for key, value in _read_metadata(reader).items() if not key.startswith("avro.")}


def write_container(schema: dict[str, Any], records: list[Any], metadata: Mapping[str, bytes] | None = None) -> bytes:
    """Returns a container of one block. Raises FormatError when a record does not fit the schema."""
    text, codec = schema_bytes(schema), codec_of(schema)
    body = b"".join(codec.encode(record) for record in records)
    return assemble(text, len(records), body, metadata)


def schema_bytes(schema: dict[str, Any]) -> bytes:
    return json.dumps(schema, separators=(",", ":"), ensure_ascii=False).encode()


def assemble(
    schema_text: bytes,
    count: int,
    body: bytes | memoryview,
    metadata: Mapping[str, bytes] | None = None,
    *,
    sync: bytes = b"",
) -> bytes:
    """Returns a container of one block (none without records). The sync marker is by default a hash of the content."""
    if not sync:
        digest = hashlib.sha256(schema_text)
        digest.update(body)
        sync = digest.digest()[:SYNC_BYTES]
    header = {"avro.schema": schema_text, **(metadata or {})}
    pieces: list[bytes | memoryview] = [MAGIC, encode_zigzag(len(header))]
    for key, value in header.items():
        pieces += [encode_zigzag(len(key.encode())), key.encode(), encode_zigzag(len(value)), value]
    pieces += [encode_zigzag(0), sync]
    if count:
        pieces += [encode_zigzag(count), encode_zigzag(len(body)), body, sync]
    return b"".join(pieces)


def _read_magic(reader: Reader) -> None:
    if reader.remaining < len(MAGIC) or reader.bytes(len(MAGIC)) != MAGIC:
        remedy = "the file may be a write that was cut short"
        raise CorruptFileError("not an Avro container: it does not start with 'Obj'", path=reader.path, remedy=remedy)


def _read_metadata(reader: Reader) -> dict[str, bytes]:
    metadata: dict[str, bytes] = {}
    while count := reader.zigzag():
        if count < 0:
            # The specification's form with the byte size of the entries, for skipping.
            reader.zigzag()
        for _ in range(abs(count)):
            key = reader.utf8(reader.zigzag())
            metadata[key] = reader.bytes(reader.zigzag())
    return metadata


def _blocks(reader: Reader, sync: bytes) -> Iterator[tuple[int, bytes]]:
    """Yields the record count and the bytes of each block. Checks the sync marker after the caller took the block."""
    while not reader.at_end():
        count, size = reader.zigzag(), reader.zigzag()
        if count < 0:
            raise reader.fail(f"block of {count} records")
        yield count, reader.bytes(size)
        if reader.bytes(SYNC_BYTES) != sync:
            raise reader.fail("sync marker differs from the header's")


def _read_block(schema: dict[str, Any], block: bytes, count: int, path: str, without: frozenset[str]) -> list[Any]:
    if count > max(len(block), 1):
        raise CorruptFileError(f"Avro block of {len(block)} bytes claims {count} records", path=path)
    if count > 1:
        # Records are like the items of an array: each must have a byte for its values.
        items = {"type": "array", "items": schema}
        check_bounds(items, path=path, values_per_byte=VALUES_PER_BYTE_OF_A_CONTAINER)
    codec, stream = codec_of(schema, path=path, without=without), io.BytesIO(block)
    records = [codec.read(stream, path=path) for _ in range(count)]
    if stream.tell() != len(block):
        raise CorruptFileError(f"Avro block of {len(block)} bytes ends after {stream.tell()}", path=path)
    return records


Keep = Callable[[str, Any], Any]
"""A function that returns what is kept of an entry, from its key and decoded value."""
Entries = tuple[int, Iterable[tuple[str, Any]]]
"""The number of a map's entries, and the entries in the order in which they are written."""


def write_large_record(schema: dict[str, Any], record: Mapping[str, Any], maps: Mapping[str, Entries]) -> bytes:
    """Returns a container of one record. `maps` has the fields that are maps, or null or a map; `record` has the
    others. Raises FormatError. Memory: twice the container.
    """
    body = io.BytesIO()
    for name, kind, is_map, codec in _parts(schema, maps):
        if not is_map:
            codec.write(body, {"value": record[name]})
            continue
        count, entries = maps[name]
        if isinstance(kind, list):
            body.write(encode_zigzag(next(number for number, branch in enumerate(kind) if _is_map(branch))))
        if count:
            body.write(encode_zigzag(count))
        for key, value in entries:
            codec.write(body, {"key": key, "value": value})
        body.write(encode_zigzag(0))
    return assemble(schema_bytes(schema), 1, body.getvalue())


def read_large_record(data: bytes, *, path: str, maps: Mapping[str, Keep]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the writer's schema and the one record of a container. `maps` says what is kept of the values of a map.
    Raises CorruptFileError naming `path` when the container has not exactly one record, or does not decode. Memory
    beside `data`: what is kept, and one entry.
    """
    reader = Reader(data, path)
    schema, sync = read_header(reader)
    count, size = (reader.zigzag(), reader.zigzag()) if not reader.at_end() else (0, 0)
    if count != 1 or schema.get("type") != "record" or not isinstance(schema.get("fields"), list):
        raise CorruptFileError(f"holds {count} Avro records where one is due", path=path)
    codec_of(schema, path=path)  # refuses what is no schema: from here on it can be walked
    start = reader.position
    reader.skip(size)
    if reader.bytes(SYNC_BYTES) != sync or not reader.at_end():
        raise reader.fail("the one block does not end with the sync marker")
    stream = io.BytesIO(data)
    stream.seek(start)
    record: dict[str, Any] = {}
    for name, kind, is_map, codec in _parts(schema, maps, path):
        if is_map:
            record[name] = _read_map(stream, kind, codec, maps[name], path)
        else:
            record[name] = codec.read(stream, path=path)["value"]
    if stream.tell() != start + size:
        raise CorruptFileError(f"Avro block of {size} bytes ends after {stream.tell() - start}", path=path)
    return schema, record


def _read_map(stream: io.BytesIO, kind: Any, codec: DatumCodec, keep: Keep, path: str) -> Any:
    numbers = codec_of("long")
    if isinstance(kind, list):
        branch = numbers.read(stream, path=path)
        if not 0 <= branch < len(kind) or not (_is_map(kind[branch]) or kind[branch] == "null"):
            raise CorruptFileError(f"Avro union has no branch {branch} that is a map or null", path=path)
        if kind[branch] == "null":
            return None
    kept: dict[str, Any] = {}
    while count := numbers.read(stream, path=path):
        if count < 0:
            numbers.read(stream, path=path)  # the form with the byte size of the entries, for skipping
        for _ in range(abs(count)):
            entry = codec.read(stream, path=path)
            kept[entry["key"]] = keep(entry["key"], entry["value"])
    return kept


def _parts(
    schema: dict[str, Any], maps: Mapping[str, Any], path: str | None = None
) -> Iterator[tuple[str, Any, bool, DatumCodec]]:
    """Yields of each field its name, its type, whether it is a map in `maps`, and a codec. The codec is of a record
    around the value, or around the key and value of an entry; that record adds no bytes. Types that an earlier field
    defines are known by name.
    """
    space = schema["name"].rpartition(".")[0] or schema.get("namespace", "")
    names: dict[str, Any] = {}
    for number, field in enumerate(schema["fields"]):
        kind = field["type"]
        branches = kind if isinstance(kind, list) else [kind]
        values = next((branch["values"] for branch in branches if _is_map(branch)), None)
        is_map = field["name"] in maps and values is not None
        parts = [{"name": "value", "type": values if is_map else kind}]
        if is_map:
            parts.insert(0, {"name": "key", "type": "string"})
        record = {"type": "record", "name": f"Part{number}", "namespace": space, "fields": parts}
        yield field["name"], kind, is_map, DatumCodec(record, path=path, names=names)


def _is_map(kind: Any) -> bool:
    return isinstance(kind, dict) and kind.get("type") == "map"
