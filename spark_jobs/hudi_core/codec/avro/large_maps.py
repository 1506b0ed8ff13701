"""A container of one record with maps of very many entries, such as the files of a clean, entry by entry.

As Python values, records of a path each take five times the bytes of the file. Here one entry of a map is decoded at a
time and converted to what the caller keeps; the written bytes are those of container.write_container.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from hudi_core.codec.avro.container import SYNC_BYTES, assemble, read_header, schema_bytes
from hudi_core.codec.avro.datum import DatumCodec, codec_of
from hudi_core.codec.binary import Reader, encode_zigzag
from hudi_core.errors import CorruptFileError

_NAMED = frozenset({"record", "enum", "fixed"})

Keep = Callable[[str, Any], Any]
"""Makes of an entry's key and decoded value what is kept of it."""
Entries = tuple[int, Iterable[tuple[str, Any]]]
"""How many entries a map has, and the entries, in the order in which they are written."""


def write_large_record(schema: dict[str, Any], record: Mapping[str, Any], maps: Mapping[str, Entries]) -> bytes:
    """The container of a record: `maps` are fields that are maps, or null or a map; `record` holds the other fields.

    Raises FormatError when a value does not fit the schema. Memory: the container twice, and one entry.
    """
    body = bytearray()
    for field in schema["fields"]:
        entries = maps.get(field["name"])
        if entries is None:
            body += _codec(schema, field["type"]).encode(record[field["name"]])
        else:
            _write_map(body, schema, field["type"], *entries)
    return assemble(schema_bytes(schema), 1, body)


def read_large_record(data: bytes, *, path: str, maps: Mapping[str, Keep]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The writer's schema and the one record of a container.

    Of a field in `maps` that is a map, each value is what the function makes of its key and decoded value. Raises
    CorruptFileError naming `path` when there is not exactly one record, or when it does not decode; and whatever a
    function raises. Memory beside `data`: what the functions return, and one entry.
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
    for field in schema["fields"]:
        keep = maps.get(field["name"])
        values = None if keep is None else _map_values(field["type"])
        if keep is None or values is None:
            record[field["name"]] = _codec(schema, field["type"], path).read(stream, path=path)
        else:
            record[field["name"]] = _read_map(stream, schema, field["type"], values, keep, path)
    if stream.tell() != start + size:
        raise CorruptFileError(f"Avro block of {size} bytes ends after {stream.tell() - start}", path=path)
    return schema, record


def _write_map(
    body: bytearray, schema: dict[str, Any], kind: Any, count: int, entries: Iterable[tuple[str, Any]]
) -> None:
    if isinstance(kind, list):
        body += encode_zigzag(next(number for number, branch in enumerate(kind) if _is_map(branch)))
    codec = _codec(schema, _map_values(kind))
    if count:
        body += encode_zigzag(count)
    for key, value in entries:
        encoded = key.encode()
        body += encode_zigzag(len(encoded)) + encoded
        body += codec.encode(value)
    body += encode_zigzag(0)


def _read_map(
    stream: io.BytesIO, schema: dict[str, Any], kind: Any, values: Any, keep: Callable[[str, Any], Any], path: str
) -> dict[str, Any] | None:
    if isinstance(kind, list):
        branch = _zigzag(stream, path)
        if not 0 <= branch < len(kind) or not (_is_map(kind[branch]) or kind[branch] == "null"):
            raise CorruptFileError(f"Avro union has no branch {branch} that is a map or null", path=path)
        if kind[branch] == "null":
            return None
    codec = _codec(schema, values, path)
    found: dict[str, Any] = {}
    while count := _zigzag(stream, path):
        if count < 0:
            _zigzag(stream, path)  # the form with the byte size of the entries, for skipping
        for _ in range(abs(count)):
            key = _text(stream, path)
            found[key] = keep(key, codec.read(stream, path=path))
    return found


def _is_map(kind: Any) -> bool:
    return isinstance(kind, dict) and kind.get("type") == "map"


def _map_values(kind: Any) -> Any:
    """The type of a map's values, also where the map may be null; None when the type is no map."""
    branches = kind if isinstance(kind, list) else [kind]
    return next((branch["values"] for branch in branches if _is_map(branch)), None)


def _codec(schema: dict[str, Any], kind: Any, path: str | None = None) -> DatumCodec:
    """The codec of a part of the schema; a part that names a type which is defined elsewhere gets the definition."""
    closed = _closed(kind, _definitions(schema), set())
    return codec_of(kind, path=path) if closed == kind and not isinstance(kind, str) else DatumCodec(closed, path=path)


def _definitions(kind: Any) -> dict[str, Any]:
    """The named types of a schema, by short name: Hudi's are all in one namespace."""
    found: dict[str, Any] = {}
    if isinstance(kind, list):
        for branch in kind:
            found |= _definitions(branch)
    elif isinstance(kind, dict):
        if kind.get("type") in _NAMED and isinstance(kind.get("name"), str):
            found[kind["name"]] = kind
        for part in (
            *(field.get("type") for field in kind.get("fields") or ()),
            kind.get("items"),
            kind.get("values"),
            kind.get("type"),
        ):
            found |= _definitions(part) if isinstance(part, dict | list) else {}
    return found


def _closed(kind: Any, definitions: Mapping[str, Any], known: set[str]) -> Any:
    """The type with the first mention of each name replaced by what it is defined as."""
    if isinstance(kind, str):
        short = kind.rsplit(".", 1)[-1]
        return _closed(definitions[short], definitions, known) if short in definitions and short not in known else kind
    if isinstance(kind, list):
        return [_closed(branch, definitions, known) for branch in kind]
    if not isinstance(kind, dict):
        return kind
    if kind.get("type") in _NAMED:
        known.add(str(kind.get("name")))
    closed = {
        key: _closed(value, definitions, known) if key in ("items", "values") else value for key, value in kind.items()
    }
    if isinstance(kind.get("fields"), list):
        closed["fields"] = [{**field, "type": _closed(field["type"], definitions, known)} for field in kind["fields"]]
    return closed


def _zigzag(stream: io.BytesIO, path: str) -> int:
    value = shift = 0
    while shift < 70:
        byte = stream.read(1)
        if not byte:
            raise CorruptFileError("Avro record ends in the middle of a map", path=path)
        value |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return (value >> 1) ^ -(value & 1)
        shift += 7
    raise CorruptFileError("varint is longer than 64 bits", path=path)


def _text(stream: io.BytesIO, path: str) -> str:
    size = _zigzag(stream, path)
    if size < 0:
        raise CorruptFileError(f"negative length {size}", path=path)
    data = stream.read(size)
    if len(data) != size:
        raise CorruptFileError("Avro record ends in the middle of a map's key", path=path)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise CorruptFileError(f"a map's key is not UTF-8 ({error.reason})", path=path) from error
