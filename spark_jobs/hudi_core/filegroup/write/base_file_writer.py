"""Writes one base file: rows, key range and bloom filter (HoodieAvroParquetWriter, HoodieBloomFilterWriteSupport)."""

from __future__ import annotations

import io
import json
from types import TracebackType
from typing import Any, BinaryIO, Final, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.codec.avro.arrow import arrow_schema
from hudi_core.codec.avro.schema import AvroSchema, add_meta_fields
from hudi_core.codec.bloom import DYNAMIC, FOOTER, FOOTER_TYPE, MAX_KEY, MIN_KEY, BloomFilter, filter_in_footer
from hudi_core.codec.columns import octets
from hudi_core.codec.gzip import GzipLibrary
from hudi_core.codec.parquet.file import ParquetBaseFile
from hudi_core.codec.parquet.page_sink import CopiedRows
from hudi_core.codec.parquet.statistics import SPARK_VERSION
from hudi_core.codec.parquet.writer import BaseFileWriter, ParquetStyle
from hudi_core.config.rows_config import WriteConfig
from hudi_core.model.names import FILE_NAME, RECORD_KEY
from hudi_core.storage.base import Storage

_MOST_KEPT: Final = 1 << 20
"""The most bytes of a new file that are kept in memory as well."""
_FIRST_SURROGATE: Final = "\ud800"
"""From this character on, Java's order of strings and that of UTF-8 may differ."""
_UTF_8: Final = b"\xee\xef\xf0\xf1\xf2\xf3\xf4"
"""The first bytes of characters from U+E000 on. Two of them are of characters up to U+FFFF, which Java orders after the
others: those are two surrogates each.
"""
_ORDERED: Final = b"\xf3\xf4\xee\xef\xf0\xf1\xf2"
_TO_JAVA: Final = bytes.maketrans(_UTF_8, _ORDERED)
"""Makes bytes that have the order of Java's strings, by which Hudi compares keys (BloomIndexFileInfo.isKeyInRange)."""
_FROM_JAVA: Final = bytes.maketrans(_ORDERED, _UTF_8)


def parquet_style(config: WriteConfig, codec: str) -> ParquetStyle:
    return ParquetStyle(
        codec=codec,
        row_group_bytes=config.row_group_bytes,
        row_group_rows=config.row_group_rows,
        gzip_library=GzipLibrary(config.gzip_library),
        gzip_level=config.gzip_level,
        delta=config.delta_encodings,
    )


class FileKeys:
    """The record keys of a base file for its footer: bloom filter (a byte of memory for each bit) and range."""

    def __init__(self, config: WriteConfig) -> None:
        self._bloom = BloomFilter(
            entries=config.bloom_entries, error_rate=config.bloom_error_rate, max_entries=config.bloom_max_entries
        )
        self._least: bytes | None = None
        self._greatest: bytes | None = None

    def add(self, keys: pa.Array) -> None:
        if not len(keys):
            return
        self._bloom.add_batch(keys)
        self._widen(*_ends(keys))

    def join(self, base: ParquetBaseFile) -> bool:
        """Adds all keys of a base file by its footer. Returns False when the footer lacks a filter or a range, when its
        filter has other settings, or when its range depends on the order of strings.
        """
        footer = base.footer
        bloom = filter_in_footer(footer)
        least, greatest = footer.get(MIN_KEY), footer.get(MAX_KEY)
        if bloom is None or not least or not greatest or max(least + greatest) >= _FIRST_SURROGATE:
            return False
        type_code, text = bloom
        if not self._bloom.join(text, type_code, base.num_rows, path=base.path):
            return False
        self._widen(least.encode(), greatest.encode())
        return True

    def _widen(self, low: bytes, high: bytes) -> None:
        """Widens the range by keys in Java's order."""
        self._least = low if self._least is None else min(self._least, low)
        self._greatest = high if self._greatest is None else max(self._greatest, high)

    def footer(self) -> dict[str, str]:
        footer = {FOOTER: self._bloom.to_base64(), FOOTER_TYPE: DYNAMIC}
        if self._least is not None and self._greatest is not None:
            ends = self._least, self._greatest
            footer[MIN_KEY], footer[MAX_KEY] = (end.translate(_FROM_JAVA).decode() for end in ends)
        return footer


class NoKeys(FileKeys):
    """The keys of a file without its keys in `_hoodie_record_key` (HoodieFileWriterFactory.enableBloomFilter)."""

    def __init__(self) -> None: ...

    def add(self, keys: pa.Array) -> None: ...

    def join(self, base: ParquetBaseFile) -> bool:
        return True

    def footer(self) -> dict[str, str]:
        return {}


def _ends(keys: pa.Array) -> tuple[bytes, bytes]:
    """Returns the least and the greatest key in Java's order, in the bytes of that order."""
    offsets, data = octets(keys)
    if len(data) and data.max() >= min(_UTF_8):
        moved = np.frombuffer(_TO_JAVA, np.uint8)[data]
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(moved)]
        ends = pc.min_max(pa.Array.from_buffers(pa.large_binary(), len(keys), buffers))
    else:
        ends = pc.min_max(keys.cast(pa.binary()))
    return ends["min"].as_py(), ends["max"].as_py()


def rows_schema(schema: AvroSchema, *, path: str) -> pa.Schema:
    """Returns the columns of base file rows, without `_hoodie_file_name`. `schema` has no meta fields."""
    return pa.schema([field for field in arrow_schema(add_meta_fields(schema), path=path) if field.name != FILE_NAME])


class _KeptOutput:
    """The file that is written, and a copy of its bytes while they are few."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._copy: io.BytesIO | None = io.BytesIO()

    def write(self, data: Any) -> int:
        if self._copy is not None and self._copy.tell() + memoryview(data).nbytes > _MOST_KEPT:
            self._copy = None
        if self._copy is not None:
            self._copy.write(data)
        return self._file.write(data)

    def tell(self) -> int:
        return self._file.tell()

    def content(self) -> bytes | None:
        """Returns all that was written; None when that is much."""
        return None if self._copy is None else self._copy.getvalue()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class BaseFileHandle:
    """A new base file with meta columns. The handle fills `_hoodie_file_name`, which rows come without. An error inside
    a `with` block removes what was written. Memory: one row group of the writer, and FileKeys.
    """

    def __init__(
        self,
        storage: Storage,
        path: str,
        schema: AvroSchema,
        config: WriteConfig,
        *,
        codec: str,
        spark_version: str | None = None,
        has_keys: bool = True,
    ) -> None:
        """`schema` is the table's without meta fields. `codec` is Parquet's name of the compression. `spark_version`
        says that dates and timestamps are proleptic (codec.parquet.statistics). `has_keys` says that rows have their
        record keys in `_hoodie_record_key`.
        """
        avro = add_meta_fields(schema)
        self.schema = arrow_schema(avro, path=path)
        self.rows_schema = rows_schema(schema, path=path)
        self.rows = 0
        self.path = path
        self.codec = codec.upper()
        self.keys = FileKeys(config) if has_keys else NoKeys()
        """The keys of the file. `write` adds its own unless they are known; the caller those of copied row groups."""
        self.content: bytes | None = None
        """The bytes of the closed file when they are few, so that nobody has to read it for its statistics."""
        self._storage = storage
        self._avro = avro
        self._calendar = {} if spark_version is None else {SPARK_VERSION: spark_version}
        self._name = pa.scalar(path.rsplit("/", 1)[-1], pa.string())
        self._file = _KeptOutput(storage.open_output(path))
        self._writer = BaseFileWriter(
            cast("BinaryIO", self._file), self.schema, path=path, style=parquet_style(config, codec)
        )

    def write(self, batch: pa.RecordBatch, *, known_keys: bool = False) -> None:
        """Appends rows in `rows_schema`. `known_keys` says that the rows' keys are in `keys` already."""
        if not batch.num_rows:
            return
        if not known_keys:
            self.keys.add(batch.column(batch.schema.get_field_index(RECORD_KEY)))
        columns = list(batch.columns)
        columns.insert(self.schema.get_field_index(FILE_NAME), pa.repeat(self._name, batch.num_rows))
        self._writer.write(pa.RecordBatch.from_arrays(columns, schema=self.schema))
        self.rows += batch.num_rows

    def copy(self, rows: CopiedRows) -> None:
        """Appends rows of another base file, not decoded, as BaseFileWriter.copy. The caller adds the keys."""
        if rows.num_rows:
            self._writer.copy(rows, {FILE_NAME: pa.repeat(self._name, rows.num_rows)})
            self.rows += rows.num_rows

    @property
    def position(self) -> int:
        """The bytes written so far, without the row group that is being filled."""
        return self._file.tell()

    def close(self) -> int:
        """Completes the file and returns its size in bytes."""
        self._writer.close(self._footer())
        size = self._file.tell()
        self._file.close()
        self.content = self._file.content()
        return size

    def _footer(self) -> dict[str, str]:
        avro = json.dumps(self._avro, separators=(",", ":"), ensure_ascii=False)
        return {**self.keys.footer(), **self._calendar, "parquet.avro.schema": avro, "writer.model.name": "avro"}

    def __enter__(self) -> BaseFileHandle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # The stream's own exit keeps a half-written object from being published, where the storage can.
        self._file.__exit__(kind, error, trace)
        if error is not None:
            self._writer.abandon()
        if isinstance(error, Exception):
            self._storage.delete(self.path)
