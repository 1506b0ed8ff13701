"""Avro object container files with the null codec: plans and commit metadata on the timeline.

Read by hand rather than by fastavro's reader, so that every count and size is compared with what is left before it is
used, and written by hand so that the same records always give the same bytes.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from hudi_core.codec.avro.bounds import VALUES_PER_BYTE_OF_A_CONTAINER, check_bounds
from hudi_core.codec.avro.datum import codec_of
from hudi_core.codec.avro.schema import parse_schema
from hudi_core.codec.binary import Reader, encode_zigzag
from hudi_core.errors import CorruptFileError, HudiError, UnsupportedError

MAGIC = b"Obj\x01"
SYNC_BYTES = 16
_MAX_SCHEMA = 256 << 10
"""Characters: the schemas of Hudi's classes have some 4,000, and many are kept in memory."""


def is_container(data: bytes) -> bool:
    """Whether `data` starts as an Avro container does."""
    return data[: len(MAGIC)] == MAGIC


def is_whole(data: bytes) -> bool:
    """Whether `data` is a container that ends at the end of a block, and has one.

    The content of the blocks is not checked.
    """
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
    """The writer's schema and all records. Values are as `DatumCodec.decode` gives them. The fields `without`, of which
    no other uses a type that they define, are passed over: records do not have them.

    Raises CorruptFileError when the file is cut or does not decode, UnsupportedError for a compressed container, and as
    bounds.check_bounds; all name `path`.
    """
    reader = Reader(data, path)
    schema, sync = read_header(reader)
    records: list[Any] = []
    for count, block in _blocks(reader, sync):
        records.extend(_read_block(schema, block, count, path, without))
    return schema, records


def read_header(reader: Reader) -> tuple[dict[str, Any], bytes]:
    """The writer's schema and the sync marker, with `reader` left at the first block. Raises as read_container."""
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
    """The commits of a timeline repeat a few schemas; equal texts give one object, and so one codec."""
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
    """The header's metadata without Avro's own keys. Raises CorruptFileError naming `path`."""
    reader = Reader(data, path)
    _read_magic(reader)
    return {key: value for key, value in _read_metadata(reader).items() if not key.startswith("avro.")}


def write_container(schema: dict[str, Any], records: list[Any], metadata: Mapping[str, bytes] | None = None) -> bytes:
    """A container of one block, header metadata `avro.schema` and `metadata`, sync marker derived from the content.

    Raises FormatError when a record does not fit the schema.
    """
    text, codec = schema_bytes(schema), codec_of(schema)
    body = b"".join(codec.encode(record) for record in records)
    return assemble(text, len(records), body, metadata)


def schema_bytes(schema: dict[str, Any]) -> bytes:
    """The schema as the header holds it."""
    return json.dumps(schema, separators=(",", ":"), ensure_ascii=False).encode()


def assemble(
    schema_text: bytes,
    count: int,
    body: bytes | memoryview,
    metadata: Mapping[str, bytes] | None = None,
    *,
    sync: bytes = b"",
) -> bytes:
    """The container of one block that holds `count` records, encoded in `body`; the header alone when there are none.

    The sync marker is derived from the content unless it is given.
    """
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
    found: dict[str, bytes] = {}
    while count := reader.zigzag():
        if count < 0:
            # The specification's form with the byte size of the entries, for skipping.
            reader.zigzag()
        for _ in range(abs(count)):
            key = reader.utf8(reader.zigzag())
            found[key] = reader.bytes(reader.zigzag())
    return found


def _blocks(reader: Reader, sync: bytes) -> Iterator[tuple[int, bytes]]:
    """How many records each block claims, and its bytes; what follows a block is checked after it was taken."""
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
        # They are as the items of an array: each has to have a byte for its values.
        items = {"type": "array", "items": schema}
        check_bounds(items, path=path, values_per_byte=VALUES_PER_BYTE_OF_A_CONTAINER)
    codec, stream = codec_of(schema, path=path, without=without), io.BytesIO(block)
    records = [codec.read(stream, path=path) for _ in range(count)]
    if stream.tell() != len(block):
        raise CorruptFileError(f"Avro block of {len(block)} bytes ends after {stream.tell()}", path=path)
    return records
