"""The fixed 4096-byte trailer of an HFile and its file info (FixedFileTrailer and HFileInfo of HBase)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple

from hudi_core.codec.binary import Field, Reader, encode_delimited, encode_fields, read_delimited, read_fields
from hudi_core.codec.hfile.block import Codec
from hudi_core.errors import CorruptFileError, UnsupportedError
from hudi_core.frozen import dataclass

TRAILER_SIZE = 4096
MAGIC = b'TRABLK"$'
COMPARATOR = "org.apache.hudi.io.storage.HoodieHBaseKVComparator"
"""The comparator class that every Hudi writer names; 0.15's HBase reader loads it by this name."""

_MAJOR_VERSION = 3
_VERSION_WORD = bytes.fromhex("03000003")
_COMPARATOR_FIELD, _CODEC_FIELD, _ENCRYPTION_KEY_FIELD = 11, 12, 13
_FILE_INFO_MAGIC = b"PBUF"
_MAX_FILE_INFO = 16 << 20
"""The most bytes of the file info. The largest entry is the schema: 2 MB for 10,000 columns."""
_MAX_FIELDS = 1000
"""The most entries of the file info, and the most fields of each. Hudi writes some ten entries of two fields."""


@dataclass(frozen=True, slots=True)
class Trailer:
    """Offsets and sizes in bytes, in the order of FileTrailerProto's fields 1 to 10. `codec` is that of every block."""

    codec: Codec
    file_info_offset: int
    load_on_open_offset: int
    data_index_size: int
    uncompressed_bytes: int
    data_index_count: int
    meta_index_count: int
    entry_count: int
    data_index_levels: int
    first_data_block_offset: int
    last_data_block_offset: int


def decode_trailer(data: bytes, size: int, path: str) -> Trailer:
    """Parses the last 4096 bytes of a file of `size`. Raises CorruptFileError, UnsupportedError."""
    if len(data) != TRAILER_SIZE:
        raise CorruptFileError(f"HFile of {size} bytes has no whole trailer", path=path)
    if data[: len(MAGIC)] != MAGIC:
        raise CorruptFileError(f"HFile of {size} bytes does not end with a trailer: it is cut, or no HFile", path=path)
    major = int.from_bytes(data[-3:], "big")
    if major != _MAJOR_VERSION:
        remedy = "only version 3, which Hudi writes, can be read"
        raise UnsupportedError(f"HFile version {major} is not supported", path=path, remedy=remedy)
    source = Reader(data[len(MAGIC) : -4], path, base=size - TRAILER_SIZE + len(MAGIC))
    numbers: dict[int, int] = {}
    for number, value in read_fields(read_delimited(source)):
        if isinstance(value, int):
            numbers[number] = value
        elif number == _ENCRYPTION_KEY_FIELD and value:
            remedy = "Hudi does not write encrypted HFiles; rebuild the metadata table"
            raise UnsupportedError("HFile is encrypted", path=path, remedy=remedy)
    codec = Codec.of(numbers.get(_CODEC_FIELD, Codec.NONE.value), path)
    trailer = Trailer(codec, *(numbers.get(field, 0) for field in range(1, _COMPARATOR_FIELD)))
    end = size - TRAILER_SIZE
    if not trailer.load_on_open_offset <= trailer.file_info_offset <= end:
        raise CorruptFileError(
            f"HFile trailer points outside the file (load-on-open {trailer.load_on_open_offset}, file info "
            f"{trailer.file_info_offset}, end {end})",
            path=path,
        )
    return trailer


def encode_trailer(trailer: Trailer) -> bytes:
    codec, *numbers = astuple(trailer)
    texts = (_COMPARATOR_FIELD, COMPARATOR.encode("ascii")), (_CODEC_FIELD, codec.value)
    message = encode_fields((*enumerate(numbers, 1), *texts))
    body = MAGIC + encode_delimited(message)
    return body.ljust(TRAILER_SIZE - len(_VERSION_WORD), b"\0") + _VERSION_WORD


def decode_file_info(data: bytes, path: str) -> dict[str, bytes]:
    source = Reader(data, path)
    if len(data) > _MAX_FILE_INFO:
        raise source.fail(f"HFile file info has {len(data)} bytes, more than {_MAX_FILE_INFO},")
    if source.bytes(len(_FILE_INFO_MAGIC)) != _FILE_INFO_MAGIC:
        raise source.fail("HFile file info does not start with PBUF")
    entries: dict[str, bytes] = {}
    for number, value in _few_fields(read_delimited(source)):
        if number != 1 or isinstance(value, int):
            continue
        name, content = b"", b""
        for part, part_value in _few_fields(Reader(value, path)):
            if isinstance(part_value, bytes):
                name, content = (part_value, content) if part == 1 else (name, part_value)
        entries[Reader(name, path).utf8(len(name))] = content
    return entries


def _few_fields(source: Reader) -> Iterator[Field]:
    for at, pair in enumerate(read_fields(source)):
        if at == _MAX_FIELDS:
            raise source.fail(f"HFile file info has more than {_MAX_FIELDS} fields")
        yield pair


def encode_file_info(entries: dict[str, bytes]) -> bytes:
    """Returns the content of a file info block, with entries in the order of their names as HBase writes them."""
    pairs = sorted((name.encode("utf-8"), value) for name, value in entries.items())
    message = encode_fields((1, encode_fields(((1, name), (2, value)))) for name, value in pairs)
    return _FILE_INFO_MAGIC + encode_delimited(message)
