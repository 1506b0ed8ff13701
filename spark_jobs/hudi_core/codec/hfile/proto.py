"""The part of protobuf that HFile v3 needs, for the trailer and the file info (HFile.proto).

Varint and length-delimited fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hudi_core.codec.binary import Reader, encode_varint

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FILE_INFO_MAGIC = b"PBUF"

Field = tuple[int, int | bytes]
"""A field's number, and its value: an integer of a varint field, the bytes of a length-delimited one."""


def read_fields(source: Reader) -> Iterator[Field]:
    """Every varint and length-delimited field up to the end; fixed-width fields are skipped, groups are refused."""
    while not source.at_end():
        tag = source.varint()
        number, kind = tag >> 3, tag & 7
        if number == 0:
            raise source.fail("protobuf field number 0")
        if kind == _VARINT:
            yield number, source.varint()
        elif kind == _BYTES:
            yield number, source.bytes(source.varint())
        elif kind in (_FIXED64, _FIXED32):
            source.skip(8 if kind == _FIXED64 else 4)
        else:
            raise source.fail(f"protobuf wire type {kind} does not occur in an HFile")


def read_delimited(source: Reader) -> Reader:
    """A reader over the message whose length is the varint at the cursor."""
    return Reader(source.view(source.varint()), source.path)


def encode_fields(fields: Iterable[Field]) -> bytes:
    """A message of these fields in this order."""
    out = bytearray()
    for number, value in fields:
        if isinstance(value, int):
            out += encode_varint(number << 3 | _VARINT) + encode_varint(value)
        else:
            out += encode_varint(number << 3 | _BYTES) + encode_varint(len(value)) + value
    return bytes(out)


def encode_delimited(message: bytes) -> bytes:
    """The message behind its length."""
    return encode_varint(len(message)) + message


def decode_file_info(data: bytes, path: str) -> dict[str, bytes]:
    """The file info block's entries by name. Raises CorruptFileError."""
    source = Reader(data, path)
    if source.bytes(len(_FILE_INFO_MAGIC)) != _FILE_INFO_MAGIC:
        raise source.fail("HFile file info does not start with PBUF")
    entries: dict[str, bytes] = {}
    for number, value in read_fields(read_delimited(source)):
        if number != 1 or isinstance(value, int):
            continue
        name, content = b"", b""
        for part, part_value in read_fields(Reader(value, path)):
            if isinstance(part_value, bytes):
                name, content = (part_value, content) if part == 1 else (name, part_value)
        entries[Reader(name, path).utf8(len(name))] = content
    return entries


def encode_file_info(entries: dict[str, bytes]) -> bytes:
    """The content of a file info block, entries in the order of their names as HBase writes them."""
    pairs = sorted((name.encode("utf-8"), value) for name, value in entries.items())
    message = encode_fields((1, encode_fields(((1, name), (2, value)))) for name, value in pairs)
    return _FILE_INFO_MAGIC + encode_delimited(message)
