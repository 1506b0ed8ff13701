"""Writes a base file of the metadata table: an HFile of a file group's records, with a bloom filter of their keys
(HoodieAvroHFileWriter). The compression is GZ, a block has 1 MiB, the filter is the meta block `bloomFilter`, and the
file info has the filter's type code and the first and last key. All `_hoodie_*` fields are null, as in log blocks, so
that records are copied unchanged. Hudi writes the file's name into one of these fields, which nobody reads.
"""

from __future__ import annotations

from types import TracebackType
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.codec.bloom import DYNAMIC, BloomFilter
from hudi_core.codec.hfile.writer import CopiedBlock, HFileWriter, add_cells
from hudi_core.storage.base import Storage

_BATCH: Final = 8192
"""The keys that are hashed in one step."""


class MetadataBaseFile:
    """A base file in writing; an error in `with` removes it. Memory: a block of 1 MiB, index, filter (up to 5.2 MB)."""

    def __init__(self, storage: Storage, path: str, schema: str, *, bloom_entries: int) -> None:
        self.path = path
        self._storage = storage
        self._schema = schema
        self._bloom = BloomFilter(entries=bloom_entries)
        self._keys: list[bytes] = []
        self._source: CopiedBlock | None = None
        self._runs: list[tuple[int, int]] = []
        self._first: bytes | None = None
        self._last = b""
        self._file = storage.open_output(path)
        self._writer = HFileWriter(self._file)

    @property
    def count(self) -> int:
        return self._writer.count

    def add(self, key: bytes, value: bytes) -> None:
        """Adds a cell. Raises ValueError unless keys ascend by bytes and differ, and for a key too long for HFiles."""
        self._start(key)
        self._writer.add(key, value)
        self._last = key
        self._keys.append(key)
        if len(self._keys) >= _BATCH:
            self._hash()

    def add_batch(self, keys: pa.Array, values: pa.Array) -> None:
        if not len(keys):
            return
        if len(keys) > 1 and pc.equal(keys.slice(1), keys.slice(0, len(keys) - 1)).true_count:
            raise ValueError("two metadata records have one key")
        self._start(keys[0].as_py())
        self._hash()
        add_cells(self._writer, keys, values)
        self._last = keys[len(keys) - 1].as_py()
        self._bloom.add_batch(keys)

    def _start(self, key: bytes) -> None:
        if self._first is None:
            self._first = key
        elif key == self._last:
            raise ValueError(f"two metadata records have the key {key!r}")

    def copy(self, source: CopiedBlock, start: int, end: int) -> bool:
        """Adds cells of another base file unchanged. Returns False, and adds nothing, where they cannot be copied."""
        first = source.block.row(start)
        if self._first is not None and first <= self._last:
            raise ValueError(f"metadata records are not sorted: {first!r} follows {self._last!r}")
        if not source.copy(self._writer, start, end):
            return False
        if self._source is not source:
            self._hash_runs()
            self._source = source
        self._runs.append((start, end))
        self._first = first if self._first is None else self._first
        self._last = source.block.row(end - 1)
        return True

    def _hash_runs(self) -> None:
        """Adds the keys of a block's runs to the filter, all in one step: a few keys take as long as some hundred."""
        if self._source is not None and self._runs:
            self._bloom.add_batch(self._source.rows(self._runs))
        self._source, self._runs = None, []

    def close(self) -> int:
        """Completes the file; returns its size in bytes."""
        self._hash()
        self._hash_runs()
        info = {"bloomFilterTypeCode": DYNAMIC.encode("ascii")}
        if self._first is not None:
            info |= {"minRecordKey": self._first, "maxRecordKey": self._last}
        self._writer.finish(self._schema, info, {"bloomFilter": self._bloom.to_base64().encode("ascii")})
        self._file.close()
        return self._writer.size

    def _hash(self) -> None:
        self._bloom.add_batch(pa.array(self._keys, pa.binary()))
        self._keys = []

    def __enter__(self) -> MetadataBaseFile:
        return self

    def __exit__(
        self, partition_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Where the storage can, the stream's own exit prevents that half an object is published.
        self._file.__exit__(partition_type, error, trace)
        if isinstance(error, Exception):
            self._storage.delete(self.path)
