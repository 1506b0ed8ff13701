"""Compresses the pages of a Parquet file on their way into it.

Arrow writes an uncompressed file into a PageCompressor, one page at a time: the header, then the body. Each page is
compressed as it arrives and passed on. What follows the pages, the page index and the footer, is held and rewritten for
where the pages now lie. So any compressor serves that makes what one of Parquet's codecs is defined as.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable
from typing import Any, BinaryIO, Final, NamedTuple

from hudi_core.codec.parquet.footer import TAIL, footer_of
from hudi_core.codec.parquet.thrift import FALSE, I32, TRUE, Struct, encode_struct, read_struct

GZIP: Final = 2
"""Number of the codec in the format."""
_MAGIC: Final = b"PAR1"
_PAGE_STORED, _CHECKSUM, _V2 = 3, 4, 8
"""Fields of a PageHeader: compressed_page_size, crc, data_page_header_v2."""
_DEFINITION_SIZE, _REPETITION_SIZE, _IS_COMPRESSED = 5, 6, 7
"""Fields of a DataPageHeaderV2: definition_levels_byte_length, repetition_levels_byte_length, is_compressed."""
_METADATA: Final = 3
"""Field of a ColumnChunk: meta_data."""
_CODEC, _CHUNK_PLAIN, _CHUNK_STORED, _DATA_OFFSET, _DICTIONARY_OFFSET = 4, 6, 7, 9, 11
"""Fields of a ColumnMetaData: codec, total sizes, data_page_offset, dictionary_page_offset."""
_CHUNK_OFFSET, _OFFSET_INDEX, _COLUMN_INDEX = 2, (4, 5), (6, 7)
"""Fields of a ColumnChunk: file_offset; offset and length of the indexes."""
_GROUP_PLAIN, _GROUP_OFFSET, _GROUP_STORED = 2, 5, 6
"""Fields of a RowGroup: total_byte_size, file_offset, total_compressed_size."""
_MAX_HEADER: Final = 1 << 20
"""Bytes of a page's header, with the bounds of its values."""


class _Place(NamedTuple):
    """Where a page begins: in the file, and in one with the same headers whose pages are not compressed."""

    stored: int
    plain: int


class PageCompressor(io.RawIOBase):
    """What a ParquetWriter writes an uncompressed file into. `inner` gets the compressed one; closing leaves it open.

    `compress` makes what the codec numbered `codec` holds of a page's body. Call `end_pages` before the writer is
    closed, and `finish` after it. Memory: a page, its compressed form, and footer and page index. Raises ValueError for
    what no ParquetWriter writes.
    """

    def __init__(self, inner: BinaryIO, codec: int, compress: Callable[[bytes], bytes]) -> None:
        super().__init__()
        self._inner = inner
        self._codec = codec
        self._compress = compress
        self._seen = 0
        self._held = b""
        self._header: Struct | None = None
        self._tail: list[bytes] | None = None
        self._last = _Place(len(_MAGIC), len(_MAGIC))
        self._places = {len(_MAGIC): self._last}

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        """The position in the uncompressed file."""
        return self._seen

    def write(self, data: Any, /) -> int:
        """Takes what Arrow writes, in whatever pieces."""
        if self._tail is not None:
            self._tail.append(data)
        elif self._seen == 0:
            self._inner.write(data)
        else:
            self._held = self._held + data if self._held else data
        self._seen += len(data)
        while (self._held or self._header) and self._take_header() and self._take_body():
            pass
        return len(data)

    def end_pages(self) -> None:
        """What follows is the page index and the footer."""
        if self._header is not None or self._held:
            raise ValueError("the last page is not whole")
        self._tail = []

    def finish(self) -> None:
        """Writes the page index and the footer."""
        tail = b"".join(self._tail or [])
        length, footer = footer_of(tail)
        if footer is None:
            raise ValueError("there is no footer")
        metadata, _ = read_struct(footer)
        index = self._move(metadata, tail[: -TAIL - length], self._seen - len(tail))
        moved = encode_struct(metadata)
        self._inner.write(index + moved + len(moved).to_bytes(4, "little") + _MAGIC)

    def _take_header(self) -> bool:
        """Whether the header of the page is there."""
        if self._header is not None:
            return True
        try:
            self._header, end = read_struct(self._held)
        except (IndexError, ValueError):
            if len(self._held) > _MAX_HEADER:
                raise
            return False
        self._held = self._held[end:]
        return True

    def _take_body(self) -> bool:
        """Passes the page on, if its body is there."""
        header = self._header or {}
        size = header[_PAGE_STORED][1]
        if len(self._held) < size:
            return False
        body, self._held = self._held[:size], self._held[size:]
        stored = self._stored(header, body)
        header[_PAGE_STORED] = I32, len(stored)
        if _CHECKSUM in header:
            _put(header, _CHECKSUM, struct.unpack("<i", struct.pack("<I", zlib.crc32(stored)))[0])
        head = encode_struct(header)
        self._inner.write(head)
        self._inner.write(stored)
        last = self._last
        self._last = _Place(last.stored + len(head) + len(stored), last.plain + len(head) + size)
        self._places[self._seen - len(self._held)] = self._last
        self._header = None
        return True

    def _stored(self, header: Struct, body: bytes) -> bytes:
        """The compressed body. That of a page of version 2 begins with its levels, which stay as they are."""
        if _V2 not in header:
            return self._compress(body)
        inner: Struct = header[_V2][1]
        levels = inner[_DEFINITION_SIZE][1] + inner[_REPETITION_SIZE][1]
        inner[_IS_COMPRESSED] = TRUE if levels < len(body) else FALSE, None
        return body if levels >= len(body) else body[:levels] + self._compress(body[levels:])

    def _move(self, metadata: Struct, index: bytes, start: int) -> bytes:
        """Changes the tree of the footer. Returns the page index, which lay at `start` in the uncompressed file."""
        chunks: list[Struct] = []
        for group in metadata[4][1].values:
            for chunk in group[1][1].values:
                self._move_chunk(chunk)
                chunks.append(chunk)
            inner = [chunk[_METADATA][1] for chunk in group[1][1].values]
            _put(group, _GROUP_PLAIN, sum(column[_CHUNK_PLAIN][1] for column in inner))
            _put(group, _GROUP_STORED, sum(column[_CHUNK_STORED][1] for column in inner))
            self._move_offset(group, _GROUP_OFFSET)
        moved = bytearray()
        for offset, size in _COLUMN_INDEX, _OFFSET_INDEX:
            for chunk in chunks:
                if offset in chunk:
                    old = chunk[offset][1] - start
                    part = index[old : old + chunk[size][1]]
                    if offset == _OFFSET_INDEX[0]:
                        part = self._move_pages(part)
                    _put(chunk, offset, self._last.stored + len(moved))
                    _put(chunk, size, len(part))
                    moved += part
        return bytes(moved)

    def _move_chunk(self, chunk: Struct) -> None:
        inner: Struct = chunk[_METADATA][1]
        begin = inner.get(_DICTIONARY_OFFSET, inner[_DATA_OFFSET])[1]
        first, end = self._places[begin], self._places[begin + inner[_CHUNK_STORED][1]]
        _put(inner, _CODEC, self._codec)
        _put(inner, _CHUNK_PLAIN, end.plain - first.plain)
        _put(inner, _CHUNK_STORED, end.stored - first.stored)
        self._move_offset(inner, _DATA_OFFSET)
        self._move_offset(inner, _DICTIONARY_OFFSET)
        self._move_offset(chunk, _CHUNK_OFFSET)

    def _move_offset(self, fields: Struct, number: int) -> None:
        """Moves an offset, if it is there; 0 says that there is none."""
        if number in fields and fields[number][1]:
            _put(fields, number, self._places[fields[number][1]].stored)

    def _move_pages(self, offset_index: bytes) -> bytes:
        index, _ = read_struct(offset_index)
        for page in index[1][1].values:
            begin = page[1][1]
            first, end = self._places[begin], self._places[begin + page[2][1]]
            _put(page, 1, first.stored)
            _put(page, 2, end.stored - first.stored)
        return encode_struct(index)


def _put(fields: Struct, number: int, value: int) -> None:
    """Replaces a number, which keeps its type."""
    fields[number] = fields[number][0], value
