"""Checks the sizes of a Parquet file's footer and column chunks before they are read, and the sizes that its pages
declare before they are decompressed. footer.py says which footers are read.

Arrow takes as much memory for a page of each column as its header says; the footer does not bound it. Arrow reads a
column chunk as one range. Its page headers are checked on the way, so that no byte is read twice.
"""

from __future__ import annotations

import io
import re
from typing import BinaryIO

import pyarrow.parquet as pq

from hudi_core.codec.parquet.footer import footer_of
from hudi_core.codec.parquet.thrift import STRUCT, CompactReader
from hudi_core.model.size_limits import Limit, SizeLimits

_VARINT = rb"[\x80-\xff]{0,9}[\x00-\x7f]"
_START = re.compile(rb"\x15(" + _VARINT + rb")\x15(" + _VARINT + rb")\x15(" + _VARINT + rb")(?:\x15" + _VARINT + rb")?")
"""A PageHeader in Thrift's compact protocol: type, size uncompressed, size on disk, and checksum."""
_REST = re.compile(rb"[\x1c\x2c\x3c\x4c\x5c](?:\x15" + _VARINT + rb"){2,6}[\x11\x12]?\x00\x00")
"""The header of the page's type without statistics, and the end of both structs."""
_DICTIONARY_PAGE = 4
"""PageType.DICTIONARY_PAGE, as its zigzag number."""


class PageCheckedInput(io.RawIOBase):
    """The file that Arrow reads a Parquet file through. Closing it leaves `inner` open. Raises SizeLimitError naming
    `path` for a footer that is larger than `limits` allow, and, once `metadata` is set, for such columns and pages.
    """

    def __init__(self, inner: BinaryIO, path: str, limits: SizeLimits) -> None:
        super().__init__()
        self._inner = inner
        self._path = path
        self._limits = limits
        self._position = 0
        self._columns: dict[tuple[int, int], int] = {}
        self._groups = 0
        self._open: dict[int, int] = {}
        self._ends: list[tuple[int, bytes]] = []
        self.metadata: pq.FileMetaData | None = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        self._position = self._inner.seek(offset, whence)
        return self._position

    def tell(self) -> int:
        return self._inner.tell()

    def read(self, size: int | None = -1, /) -> bytes:
        length = -1 if size is None else size
        if self.metadata is None:
            self._limits.check(Limit.PARQUET_FOOTER, length, self._path, what="the footer of the Parquet file")
        else:
            self._limits.check(Limit.PARQUET_CHUNK, length, self._path, what="a column of a Parquet row group")
        start = self._position
        data = self._inner.read(length)
        self._position += len(data)
        if self.metadata is None:
            self._ends.append((start, data))
        else:
            self._check(start, data)
        return data

    def take_footer(self) -> bytes | None:
        """Returns the bytes of the footer that Arrow has read, and drops them; None when it read several pieces."""
        ends, self._ends = self._ends, []
        if not ends:
            return None
        start, tail = max(ends, key=lambda read: read[0] + len(read[1]))
        length, footer = footer_of(tail)
        before = start + len(tail) - 8 - length
        return footer or next((data[:length] for at, data in ends if at == before and len(data) >= length), None)

    def _check(self, start: int, data: bytes) -> None:
        column = self._column(start, len(data))
        if column is None:
            return
        self._open[column] = largest_pages(data)
        size = sum(self._open.values()) if len(self._open) > 1 else self._open[column]
        what = "a row group of the Parquet file, the largest pages of its columns decompressed,"
        self._limits.check(Limit.PARQUET_PAGES, size, self._path, what=what)

    def _column(self, start: int, length: int) -> int | None:
        """Returns the number of the column whose chunk was read, found as in Arrow (ComputeColumnChunkRange)."""
        metadata = self.metadata
        while metadata is not None and (start, length) not in self._columns and self._groups < metadata.num_row_groups:
            group = metadata.row_group(self._groups)
            for number in range(group.num_columns):
                chunk = group.column(number)
                begin, dictionary = chunk.data_page_offset, chunk.dictionary_page_offset
                if dictionary is not None and 0 < dictionary < begin:
                    begin = dictionary
                self._columns[begin, chunk.total_compressed_size] = number
            self._groups += 1
        return self._columns.get((start, length))


def largest_pages(chunk: bytes) -> int:
    """Returns the bytes that the dictionary and the largest other page decompress to, as their headers say. Stops at
    the first bytes that are no header.
    """
    dictionary = largest = position = 0
    while head := _START.match(chunk, position):
        size, stored = (CompactReader(number).integer() for number in (head[2], head[3]))
        if head[1] == bytes((_DICTIONARY_PAGE,)):
            dictionary = max(dictionary, size)
        elif size > largest:
            largest = size
        rest = _REST.match(chunk, head.end())
        end = rest.end() if rest is not None else _end_of_struct(chunk, head.end())
        if end is None or not 0 <= stored <= len(chunk) - end:
            break
        position = end + stored
    return dictionary + largest


def _end_of_struct(data: bytes, position: int) -> int | None:
    """Returns where a struct ends, reading from one of its fields on; None for bytes that are no struct."""
    reader = CompactReader(data, position)
    try:
        reader.skip(STRUCT)
    except (ValueError, IndexError):
        return None
    return reader.position
