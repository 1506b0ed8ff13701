"""A container of one record with maps of very many entries, such as the files of a clean, entry by entry.

As Python values, records of a path each take five times the bytes of the file. Here one entry of a map is decoded at a
time and converted to what the caller keeps; the written bytes are those of container.write_container.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from hudi_core.codec.avro.container import SYNC_BYTES, assemble, read_header, schema_bytes
from hudi_core.codec.avro.datum import DatumCodec, codec_of
from hudi_core.codec.binary import Reader, encode_zigzag
from hudi_core.errors import CorruptFileError

Keep = Callable[[str, Any], Any]
"""Makes of an entry's key and decoded value what is kept of it."""
Entries = tuple[int, Iterable[tuple[str, Any]]]
"""How many entries a map has, and the entries, in the order in which they are written."""


def write_large_record(schema: dict[str, Any], record: Mapping[str, Any], maps: Mapping[str, Entries]) -> bytes:
    """The container of a record: `maps` are fields that are maps, or null or a map; `record` holds the other fields.

    Raises FormatError when a value does not fit the schema. Memory: the container twice, and one entry.
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
    found: dict[str, Any] = {}
    while count := numbers.read(stream, path=path):
        if count < 0:
            numbers.read(stream, path=path)  # the form with the byte size of the entries, for skipping
        for _ in range(abs(count)):
            entry = codec.read(stream, path=path)
            found[entry["key"]] = keep(entry["key"], entry["value"])
    return found


def _parts(
    schema: dict[str, Any], maps: Mapping[str, Any], path: str | None = None
) -> Iterator[tuple[str, Any, bool, DatumCodec]]:
    """Of each field its name, its type, whether it is in `maps` and a map, and a codec.

    The codec is that of a record of the value, or of the key and value of a map's entry: such records add no bytes. A
    type that an earlier field defines is known by its name.
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
