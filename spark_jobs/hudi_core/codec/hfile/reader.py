"""Reading HFiles of version 3 by ranges (org.apache.hudi.io.hfile.HFileReaderImpl; org.apache.hadoop.hbase.io.hfile.HFileReaderImpl)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator

from hudi_core.codec.binary import Reader
from hudi_core.codec.hfile.block import Block, Magic, read_block
from hudi_core.codec.hfile.index import IndexEntry, decode_inner_index, decode_root_index
from hudi_core.codec.hfile.keyvalue import read_cells, row_of_key
from hudi_core.codec.hfile.proto import decode_file_info
from hudi_core.codec.hfile.trailer import TRAILER_SIZE, Trailer, decode_trailer
from hudi_core.errors import CorruptFileError, UnsupportedError

ReadRange = Callable[[int, int], bytes]
"""Offset and length to the bytes there; fewer bytes only where the file ends."""

_DATA = frozenset({Magic.DATA})
_INDEX = frozenset({Magic.ROOT_INDEX})
_INNER = frozenset({Magic.LEAF_INDEX, Magic.INTERMEDIATE_INDEX})
_META = frozenset({Magic.META})
_FILE_INFO = frozenset({Magic.FILE_INFO})
_MAX_LEVELS = 8
_SCHEMA = "schema"


class HFileReader:
    """One HFile. Nothing is read before it is needed.

    A lookup costs three ranges: the trailer and the load-on-open section, once, and one data block (one more per index level where HBase
    wrote several levels, which it does above 128 KiB of index). The last data block is kept, so lookups in key order read each block once.
    Every method raises CorruptFileError for a damaged file and UnsupportedError for features Hudi never uses.
    """

    def __init__(self, read_range: ReadRange, size: int, path: str) -> None:
        self._read_range = read_range
        self._size = size
        self._path = path
        self._trailer: Trailer | None = None
        self._data_index: list[IndexEntry] | None = None
        self._rows: list[bytes] = []
        self._meta_index: dict[str, IndexEntry] = {}
        self._file_info: dict[str, bytes] = {}
        self._last_block: tuple[IndexEntry, dict[bytes, bytes]] | None = None

    @staticmethod
    def of_bytes(data: bytes | memoryview, path: str) -> HFileReader:
        """A reader over an HFile in memory, as in the content of a log block."""
        view = memoryview(data)
        return HFileReader(lambda offset, length: bytes(view[offset : offset + length]), len(view), path)

    @property
    def trailer(self) -> Trailer:
        """The trailer."""
        if self._trailer is None:
            if self._size < TRAILER_SIZE:
                raise CorruptFileError(f"HFile of {self._size} bytes is smaller than its trailer", path=self._path)
            start = self._size - TRAILER_SIZE
            self._trailer = decode_trailer(self._range(start, TRAILER_SIZE), self._size, self._path)
        return self._trailer

    @property
    def entry_count(self) -> int:
        """How many cells the file holds."""
        return self.trailer.entry_count

    @property
    def file_info(self) -> dict[str, bytes]:
        """The file info entries by name."""
        self._open()
        return self._file_info

    def schema(self) -> str | None:
        """The Avro schema JSON of the values, when the writer stored it."""
        text = self.file_info.get(_SCHEMA)
        return None if text is None else Reader(text, self._path).utf8(len(text))

    def meta_block(self, name: str) -> bytes | None:
        """The content of a named meta block such as `bloomFilter`, or None."""
        self._open()
        entry = self._meta_index.get(name)
        return None if entry is None else self._block(entry, _META).data

    def lookup(self, key: bytes) -> bytes | None:
        """The value of a record key, or None. A base HFile has unique keys; of a repeated key one of the values is returned."""
        index = self._open()
        position = bisect_right(self._rows, key) - 1
        entry = None if position < 0 else self._leaf_of(index[position], key)
        if entry is None:
            return None
        if self._last_block is None or self._last_block[0] != entry:
            self._last_block = entry, dict(self._cells(entry))
        return self._last_block[1].get(key)

    def lookup_many(self, keys: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
        """The (key, value) pairs of those of `keys` that are there. With sorted keys each data block is read once."""
        for key in keys:
            value = self.lookup(key)
            if value is not None:
                yield key, value

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Every (key, value) pair in the file's order; keys may repeat in the HFile of a log block."""
        count = 0
        for entry in self._data_blocks():
            for cell in self._cells(entry):
                count += 1
                yield cell
        if count != self.entry_count:
            raise CorruptFileError(f"HFile holds {count} entries, its trailer says {self.entry_count}", path=self._path)

    def _open(self) -> list[IndexEntry]:
        if self._data_index is not None:
            return self._data_index
        trailer = self.trailer
        if not 1 <= trailer.data_index_levels <= _MAX_LEVELS:
            raise CorruptFileError(f"HFile claims {trailer.data_index_levels} index levels", path=self._path)
        start = trailer.load_on_open_offset
        section = Reader(self._range(start, self._size - TRAILER_SIZE - start), self._path, base=start)
        root = read_block(section, trailer.codec, _INDEX)
        index = decode_root_index(root.data, trailer.data_index_count, self._path, has_mid_key=trailer.data_index_levels > 1)
        meta = read_block(section, trailer.codec, _INDEX)
        for entry in decode_root_index(meta.data, trailer.meta_index_count, self._path):
            self._meta_index[Reader(entry.key, self._path).utf8(len(entry.key))] = entry
        if section.position != trailer.file_info_offset - start:
            section.skip(trailer.file_info_offset - start - section.position)
        self._file_info = decode_file_info(read_block(section, trailer.codec, _FILE_INFO).data, self._path)
        self._refuse_foreign_features()
        self._rows = [row_of_key(entry.key, section) for entry in index]
        self._data_index = index
        return index

    def _refuse_foreign_features(self) -> None:
        info = self._file_info
        if any(info.get("hfile.MAX_TAGS_LEN", b"")):
            raise UnsupportedError("HFile with cell tags is not supported", path=self._path, remedy="Hudi writes none; rebuild the metadata table")
        encoding = info.get("DATA_BLOCK_ENCODING", b"NONE")
        if encoding != b"NONE":
            raise UnsupportedError(f"HFile data block encoding {encoding!r} is not supported", path=self._path)

    def _data_blocks(self) -> Iterator[IndexEntry]:
        pending = [(entry, self.trailer.data_index_levels - 1) for entry in reversed(self._open())]
        last = -1
        while pending:
            entry, depth = pending.pop()
            if depth > 0:
                pending.extend((child, depth - 1) for child in reversed(self._children(entry)))
                continue
            # Without this, a forged index could have one block read without end.
            if entry.offset <= last:
                raise CorruptFileError(f"HFile index goes back from byte {last} to byte {entry.offset}", path=self._path)
            last = entry.offset
            yield entry

    def _leaf_of(self, entry: IndexEntry, key: bytes) -> IndexEntry | None:
        for _ in range(self.trailer.data_index_levels - 1):
            children = self._children(entry)
            rows = [row_of_key(child.key, Reader(child.key, self._path)) for child in children]
            position = bisect_right(rows, key) - 1
            if position < 0:
                return None
            entry = children[position]
        return entry

    def _children(self, entry: IndexEntry) -> list[IndexEntry]:
        children = decode_inner_index(self._block(entry, _INNER).data, self._path)
        if not children:
            raise CorruptFileError(f"HFile index block at byte {entry.offset} is empty", path=self._path)
        return children

    def _cells(self, entry: IndexEntry) -> Iterator[tuple[bytes, bytes]]:
        with_mvcc = int.from_bytes(self._file_info.get("KEY_VALUE_VERSION", b""), "big") == 1
        return read_cells(self._block(entry, _DATA).data, self._path, with_mvcc=with_mvcc)

    def _block(self, entry: IndexEntry, expected: frozenset[Magic]) -> Block:
        if entry.offset + entry.disk_size > self.trailer.load_on_open_offset:
            raise CorruptFileError(f"HFile index points to {entry.disk_size} bytes at {entry.offset}, past the data blocks", path=self._path)
        source = Reader(self._range(entry.offset, entry.disk_size), self._path, base=entry.offset)
        return read_block(source, self.trailer.codec, expected)

    def _range(self, offset: int, length: int) -> bytes:
        data = self._read_range(offset, length)
        if len(data) != length:
            raise CorruptFileError(f"file ends at byte {offset + len(data)}, {length} bytes were needed from byte {offset}", path=self._path)
        return data
