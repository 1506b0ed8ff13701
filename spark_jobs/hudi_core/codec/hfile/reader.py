"""Reads HFiles of version 3 by ranges (HFileReaderImpl of Hudi and of HBase)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile

from hudi_core.codec.binary import Reader
from hudi_core.codec.hfile.block import (
    HEADER_SIZE,
    IndexEntry,
    Magic,
    decode_inner_index,
    decode_root_index,
    read_block,
    row_of_key,
)
from hudi_core.codec.hfile.cells import CellBlock, decode_cells
from hudi_core.codec.hfile.trailer import TRAILER_SIZE, Trailer, decode_file_info, decode_trailer
from hudi_core.errors import CorruptFileError, UnsupportedError
from hudi_core.model.size_limits import NO_OPTIONS, Limit, SizeLimits

ReadRange = Callable[[int, int], bytes]
"""A function from offset and length to the bytes there. It returns fewer bytes only at the end of the file."""

_MAX_LEVELS = 8
_SCHEMA = "schema"


class HFileReader:
    """One HFile. Nothing is read before it is needed. A lookup reads three ranges: trailer and load-on-open section,
    once, and a data block (and one block per index level; HBase writes several levels above 128 KiB of index). The last
    data block is kept. Methods raise CorruptFileError for a damaged file, UnsupportedError for features that Hudi never
    uses, SizeLimitError for a block that claims more bytes than allowed.
    """

    def __init__(self, read_range: ReadRange, size: int, path: str, limits: SizeLimits = NO_OPTIONS) -> None:
        self._read_range = read_range
        self._limits = limits
        self._size = size
        self._path = path
        self._trailer: Trailer | None = None
        self._data_index: list[IndexEntry] | None = None
        self._rows: list[bytes] = []
        self._file_info: dict[str, bytes] = {}
        self._last_block: tuple[IndexEntry, CellBlock] | None = None
        self._inner: dict[int, tuple[list[IndexEntry], list[bytes]]] = {}
        # Entries and bytes of the index that were read so far, of all levels.
        self._index_entries = self._index_bytes = 0

    @staticmethod
    def of_bytes(data: bytes | memoryview, path: str, limits: SizeLimits = NO_OPTIONS) -> HFileReader:
        view = memoryview(data)
        return HFileReader(lambda offset, length: bytes(view[offset : offset + length]), len(view), path, limits)

    @property
    def trailer(self) -> Trailer:
        if self._trailer is None:
            if self._size < TRAILER_SIZE:
                raise CorruptFileError(f"HFile of {self._size} bytes is smaller than its trailer", path=self._path)
            start = self._size - TRAILER_SIZE
            self._trailer = decode_trailer(self._range(start, TRAILER_SIZE), self._size, self._path)
        return self._trailer

    @property
    def file_info(self) -> dict[str, bytes]:
        self._open()
        return self._file_info

    def schema(self) -> str | None:
        text = self.file_info.get(_SCHEMA)
        return None if text is None else Reader(text, self._path).utf8(len(text))

    def lookup_many(self, keys: Sequence[bytes], *, unique: bool = True) -> Iterator[tuple[bytes, bytes]]:
        """Yields the (key, value) pairs of those of `keys` that exist, in order; `keys` must be sorted and distinct.
        Each data block is read once. `unique` says that no key of the file repeats, as in a base HFile. Without it, as
        in the HFile of a log block, every value of a repeated key is given, and a key that starts a block costs one
        more block.
        """
        position = 0
        while position < len(keys):
            key = keys[position]
            cells = None
            for entry in self._blocks_from(key, unique=unique):
                cells = self._cells(entry)
                if len(cells) and (unique or cells.row(len(cells) - 1) >= key):
                    break
            if cells is None or not len(cells):
                position += 1
                continue
            last = cells.row(len(cells) - 1)
            end = bisect_right(keys, last, lo=position)
            if not unique and end > position and keys[end - 1] == last:
                end -= 1  # the key may continue in the next block
            if end > position:
                yield from cells.select(keys[position:end])
            elif not unique and key == last:
                yield from takewhile(lambda cell, key=key: cell[0] == key, self._from(key))  # type: ignore[misc]
                end = position + 1
            position = max(end, position + 1)

    def prefix_items(self, prefixes: Sequence[bytes]) -> Iterator[tuple[bytes, bytes]]:
        """Yields the pairs (key, value) whose key has one of the sorted `prefixes`, in order. Keys may repeat."""
        covered: bytes | None = None
        for prefix in prefixes:
            if covered is not None and prefix.startswith(covered):
                continue
            covered = prefix
            yield from self._from(prefix)

    def _from(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        for entry in self._blocks_from(prefix, unique=False):
            cells = self._cells(entry)
            for row, value in cells.items(cells.first_at(prefix)):
                if not row.startswith(prefix):
                    return
                yield row, value

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Yields every (key, value) pair in the file's order; keys may repeat in the HFile of a log block."""
        for cells in self.blocks():
            yield from cells.items()

    def blocks(self) -> Iterator[CellBlock]:
        count = 0
        for entry in self._blocks_from(None, unique=False):
            cells = self._cells(entry)
            count += len(cells)
            yield cells
        if count != self.trailer.entry_count:
            message = f"HFile holds {count} entries, its trailer says {self.trailer.entry_count}"
            raise CorruptFileError(message, path=self._path)

    def _open(self) -> list[IndexEntry]:
        if self._data_index is not None:
            return self._data_index
        trailer = self.trailer
        if not 1 <= trailer.data_index_levels <= _MAX_LEVELS:
            raise CorruptFileError(f"HFile claims {trailer.data_index_levels} index levels", path=self._path)
        start = trailer.load_on_open_offset
        section = Reader(self._range(start, self._size - TRAILER_SIZE - start), self._path, base=start)
        root = read_block(section, trailer.codec, Magic.ROOT_INDEX, limits=self._limits)
        has_mid_key = trailer.data_index_levels > 1
        most = self._entries_left(root)
        index = decode_root_index(root, trailer.data_index_count, self._path, most=most, has_mid_key=has_mid_key)
        self._index_entries = len(index)
        # The index of meta blocks, such as a bloom filter, is between: no reader of a metadata table needs them.
        section.skip(trailer.file_info_offset - start - section.position)
        info = read_block(section, trailer.codec, Magic.FILE_INFO, limits=self._limits)
        self._file_info = decode_file_info(info, self._path)
        self._refuse_foreign_features()
        self._rows = [row_of_key(entry.key, section) for entry in index]
        self._data_index = index
        return index

    def _refuse_foreign_features(self) -> None:
        info = self._file_info
        if any(info.get("hfile.MAX_TAGS_LEN", b"")):
            remedy = "Hudi writes none; rebuild the metadata table"
            raise UnsupportedError("HFile with cell tags is not supported", path=self._path, remedy=remedy)
        encoding = info.get("DATA_BLOCK_ENCODING", b"NONE")
        if encoding != b"NONE":
            raise UnsupportedError(f"HFile data block encoding {encoding!r} is not supported", path=self._path)

    def _blocks_from(self, key: bytes | None, *, unique: bool) -> Iterator[IndexEntry]:
        """Yields the data blocks from the first one on that may hold `key` (None: all). With `unique`, a block that
        starts with `key` comes first, and none comes when `key` is less than every key. Without `unique`, the block
        before it comes first, since it may end with `key`.
        """
        self._open()
        last = -1
        for entry in self._walk(self._data_index or [], self._rows, self.trailer.data_index_levels - 1, key, unique):
            # Without this, a forged index could have one block read without end.
            if entry.offset <= last:
                message = f"HFile index goes back from byte {last} to byte {entry.offset}"
                raise CorruptFileError(message, path=self._path)
            last = entry.offset
            yield entry

    def _walk(
        self, entries: list[IndexEntry], rows: list[bytes], depth: int, key: bytes | None, unique: bool
    ) -> Iterator[IndexEntry]:
        start = 0
        if key is not None:
            start = (bisect_right(rows, key) if unique else max(bisect_left(rows, key), 1)) - 1
        if start < 0:
            return
        for position in range(start, len(entries)):
            entry = entries[position]
            if depth == 0:
                yield entry
            else:
                yield from self._walk(*self._children(entry), depth - 1, key if position == start else None, unique)

    def _children(self, entry: IndexEntry) -> tuple[list[IndexEntry], list[bytes]]:
        """Returns an inner index block's entries and their rows, cached: all are no larger than the index."""
        if entry.offset not in self._inner:
            block = self._block(entry, Magic.LEAF_INDEX, Magic.INTERMEDIATE_INDEX)
            children = decode_inner_index(block, self._path, most=self._entries_left(block))
            if not children:
                raise CorruptFileError(f"HFile index block at byte {entry.offset} is empty", path=self._path)
            self._index_entries += len(children)
            rows = [row_of_key(child.key, Reader(child.key, self._path)) for child in children]
            self._inner[entry.offset] = children, rows
        return self._inner[entry.offset]

    def _entries_left(self, block: bytes) -> int:
        """Returns how many entries an index block may have, since each is of a block. Raises SizeLimitError."""
        self._index_bytes += len(block)
        self._limits.check(Limit.HFILE_BLOCK, self._index_bytes, self._path, what="the index of the HFile")
        return self.trailer.load_on_open_offset // HEADER_SIZE - self._index_entries

    def _cells(self, entry: IndexEntry) -> CellBlock:
        if self._last_block is None or self._last_block[0] != entry:
            with_mvcc = int.from_bytes(self._file_info.get("KEY_VALUE_VERSION", b""), "big") == 1
            self._last_block = entry, decode_cells(self._block(entry, Magic.DATA), self._path, with_mvcc=with_mvcc)
        return self._last_block[1]

    def _block(self, entry: IndexEntry, *expected: Magic) -> bytes:
        if entry.offset + entry.disk_size > self.trailer.load_on_open_offset:
            message = f"HFile index points to {entry.disk_size} bytes at {entry.offset}, past the data blocks"
            raise CorruptFileError(message, path=self._path)
        source = Reader(self._range(entry.offset, entry.disk_size), self._path, base=entry.offset)
        return read_block(source, self.trailer.codec, *expected, limits=self._limits)

    def _range(self, offset: int, length: int) -> bytes:
        self._limits.check(Limit.HFILE_BLOCK, length, self._path, what="a part of the HFile")
        data = self._read_range(offset, length)
        if len(data) != length:
            message = f"file ends at byte {offset + len(data)}, {length} bytes were needed from byte {offset}"
            raise CorruptFileError(message, path=self._path)
        return data
