"""Writes one base file: rows, record key range and bloom filter.

As HoodieAvroParquetWriter and HoodieBloomFilterWriteSupport.
"""

from __future__ import annotations

import json
from types import TracebackType

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.codec.avro.arrow import arrow_schema
from hudi_core.codec.avro.schema import AvroSchema, add_meta_fields
from hudi_core.codec.bloom import DYNAMIC, FOOTER, FOOTER_TYPE, BloomFilter
from hudi_core.codec.gzip import GzipLibrary
from hudi_core.codec.parquet.writer import BaseFileWriter, ParquetStyle
from hudi_core.config.write_config import WriteConfig
from hudi_core.model.names import FILE_NAME, RECORD_KEY
from hudi_core.storage.base import Storage


class BaseFileHandle:
    """A new base file with meta columns.

    Rows come without `_hoodie_file_name`, which the handle fills with the file's own name. Use it in a `with` block: an
    error inside removes what was written. Memory: one row group of the writer, and the bloom filter, 1 byte a bit while
    it grows (5 MiB with Hudi's defaults).
    """

    def __init__(self, storage: Storage, path: str, schema: AvroSchema, config: WriteConfig, *, codec: str) -> None:
        """`schema` is the table's without meta fields; `codec` is Parquet's name of the compression, such as GZIP."""
        avro = add_meta_fields(schema)
        self.schema = arrow_schema(avro, path=path)
        self.rows_schema = pa.schema([field for field in self.schema if field.name != FILE_NAME])
        self.rows = 0
        self.path = path
        self._storage = storage
        self._avro = avro
        self._name = pa.scalar(path.rsplit("/", 1)[-1], pa.string())
        self._bloom = BloomFilter(
            entries=config.bloom_entries, error_rate=config.bloom_error_rate, max_entries=config.bloom_max_entries
        )
        self._least: bytes | None = None
        self._greatest: bytes | None = None
        self._file = storage.open_output(path)
        self._writer = BaseFileWriter(
            self._file,
            self.schema,
            path=path,
            style=ParquetStyle(
                codec=codec,
                row_group_bytes=config.row_group_bytes,
                gzip_library=GzipLibrary(config.gzip_library),
                gzip_level=config.gzip_level,
                delta=config.delta_encodings,
            ),
        )

    def write(self, batch: pa.RecordBatch) -> None:
        """Appends rows in `rows_schema`."""
        if not batch.num_rows:
            return
        self._add_keys(batch.column(batch.schema.get_field_index(RECORD_KEY)))
        columns = list(batch.columns)
        columns.insert(self.schema.get_field_index(FILE_NAME), pa.repeat(self._name, batch.num_rows))
        self._writer.write(pa.RecordBatch.from_arrays(columns, schema=self.schema))
        self.rows += batch.num_rows

    def close(self) -> int:
        """Writes the footer and completes the file; returns its size in bytes."""
        self._writer.close(self._footer())
        size = self._file.tell()
        self._file.close()
        return size

    def _add_keys(self, keys: pa.Array) -> None:
        self._bloom.add_batch(keys)
        # Hudi compares keys as Java strings; UTF-8 orders alike but for characters beyond U+FFFF.
        bounds = pc.min_max(keys)
        least, greatest = bounds["min"].as_py().encode(), bounds["max"].as_py().encode()
        self._least = least if self._least is None else min(self._least, least)
        self._greatest = greatest if self._greatest is None else max(self._greatest, greatest)

    def _footer(self) -> dict[str, str]:
        footer = {
            FOOTER: self._bloom.to_base64(),
            FOOTER_TYPE: DYNAMIC,
            "parquet.avro.schema": json.dumps(self._avro, separators=(",", ":"), ensure_ascii=False),
            "writer.model.name": "avro",
        }
        if self._least is not None and self._greatest is not None:
            footer["hoodie_min_record_key"] = self._least.decode()
            footer["hoodie_max_record_key"] = self._greatest.decode()
        return footer

    def __enter__(self) -> BaseFileHandle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # The stream's own exit keeps a half-written object from being published, where the storage can.
        self._file.__exit__(kind, error, trace)
        if isinstance(error, Exception):
            self._storage.delete(self.path)
