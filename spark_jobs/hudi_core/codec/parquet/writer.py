"""Writes base files in Parquet, whose footer keys are known only at the end, and chooses the encoding of each column
from a sample of the first row group.

A column has a dictionary when few values are distinct. It has a delta encoding when neighbours are alike: keys in
order, sequence numbers, times. Other texts have a delta encoding of their lengths. All else is plain. parquet-mr of
Hudi 0.15 and the vectorised reader of Spark since 3.3 read these encodings.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import BinaryIO, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_core.codec.columns import leaves_with_nan
from hudi_core.codec.gzip import FASTEST, GzipLibrary, checked_level, chosen_library, gzip_compressor
from hudi_core.codec.parquet.file import ParquetBaseFile, arrow_errors, bare_schema
from hudi_core.codec.parquet.footer import empty_file, schema_of
from hudi_core.codec.parquet.page_sink import GZIP, ChunkBytes, CopiedRows, PageSink
from hudi_core.codec.parquet.splice import RowGroupSource, WholeRowGroup
from hudi_core.errors import ConfigError, FormatError
from hudi_core.frozen import dataclass

ROW_GROUP_BYTES = 128 << 20
"""Bytes of Arrow data per row group, which the writer holds in memory. Hudi's own bound is 120 MiB."""
ROW_GROUP_ROWS = 128 << 10
"""The most rows of a row group: few enough that readers skip, and compaction copies, most of a file."""
CODECS = {
    "UNCOMPRESSED": "none",
    "SNAPPY": "snappy",
    "GZIP": "gzip",
    "ZSTD": "zstd",
    "LZ4": "lz4",
    "LZ4_RAW": "lz4",
    "BROTLI": "brotli",
}
_ZSTD_LEVEL = 1


@dataclass(frozen=True, slots=True)
class ParquetStyle:
    """How base files are written. `gzip_level` None is the library's default. Readers before Spark 3.3 lack `delta`."""

    codec: str = "GZIP"
    row_group_bytes: int = ROW_GROUP_BYTES
    row_group_rows: int = ROW_GROUP_ROWS
    gzip_library: GzipLibrary = GzipLibrary.AUTO
    gzip_level: int | None = None
    delta: bool = True


_DEFAULT_STYLE = ParquetStyle()


class BaseFileWriter:
    """Writes one base file. The style's rows and bytes of Arrow data bound a row group, which is held in memory. The
    caller closes `file` after `close()`; without `close()` it is no Parquet file. The style's library compresses pages
    of gzip, one at a time. Every page has a checksum.
    """

    def __init__(self, file: BinaryIO, schema: pa.Schema, *, path: str, style: ParquetStyle = _DEFAULT_STYLE) -> None:
        """Raises ConfigError for an unknown codec, and for a gzip library or level that is not available."""
        codec = CODECS.get(style.codec.upper())
        if codec is None:
            remedy = f"use one of {', '.join(sorted(CODECS))}"
            raise ConfigError(f"Parquet codec {style.codec!r} is not supported", remedy=remedy)
        self.path = path
        self.schema = bare_schema(schema)
        self.num_rows = 0
        self._codec, self._level = codec, _ZSTD_LEVEL if codec == "zstd" else None
        self._style = style
        self._compress: Callable[[bytes], bytes] | None = None
        if codec == "gzip":
            library = chosen_library(style.gzip_library)
            level = checked_level(library, style.gzip_level)
            self._compress = gzip_compressor(library, level)
            if self._compress is None:
                self._level = level
            else:
                self._codec = "none"
        self._pages = PageSink(file, GZIP, self._compress, FASTEST.crc32)
        self._with_nan: list[frozenset[int]] = []
        """For each row group that Arrow has written, the columns with NaN."""
        self._pending: list[pa.Table] = []
        self._pending_bytes = self._pending_rows = 0
        self._writer: pq.ParquetWriter | None = None

    def write(self, data: pa.RecordBatch | pa.Table) -> None:
        """Appends rows. Raises FormatError when their schema is not the writer's, metadata aside; StorageError."""
        table = pa.Table.from_batches([data]) if isinstance(data, pa.RecordBatch) else data
        if not table.schema.equals(self.schema):
            message = f"rows have the columns {bare_schema(table.schema)} and the file {self.schema}"
            raise FormatError(message, path=self.path)
        self.num_rows += table.num_rows
        most = self._style.row_group_bytes
        for part in _parts(table, most):
            rest = part
            while rest.num_rows:
                piece = rest.slice(0, self._style.row_group_rows - self._pending_rows)
                if self._pending_rows and self._pending_bytes + piece.nbytes > most:
                    self._flush()
                    continue
                rest = rest.slice(piece.num_rows)
                self._pending.append(piece)
                self._pending_bytes += piece.nbytes
                self._pending_rows += piece.num_rows
                if self._pending_rows == self._style.row_group_rows:
                    self._flush()

    def close(self, footer: Mapping[str, str]) -> None:
        """Writes the rest and the footer, with `footer` as its key-value metadata. Raises StorageError."""
        if self._pending or self._writer is None:
            self._flush()
        with arrow_errors(self.path, "write"):
            if self._writer is not None:
                self._writer.add_key_value_metadata(dict(footer))
                self._pages.end_pages()
                self._writer.close()
                self._pages.finish(self._with_nan)

    def copy(self, rows: CopiedRows, replaced: Mapping[str, pa.Array]) -> None:
        """Appends rows of another file, whose RowGroupSource.refusal must be None for this schema. No rows add nothing.
        The columns of `replaced`, which are not nested, get these values. Memory: a column chunk as it is stored, and
        the values. Raises CorruptFileError naming the other file, FormatError when the values are not as many as the
        rows, StorageError when writing fails.
        """
        if self._pending:
            self._flush()
        if not rows.num_rows:
            for _ in rows.chunks({}):
                pass  # checks that no column has values, which Arrow would read
            return
        chunks = {name: self._chunk(name, values) for name, values in replaced.items()}
        if any(chunk.num_values != rows.num_rows for chunk in chunks.values()):
            message = f"a row group of {rows.num_rows} rows does not get as many values for each column"
            raise FormatError(message, path=self.path)
        with arrow_errors(self.path, "write"):
            self._pages.copy_group(rows.group(), rows.chunks(chunks), behind=len(self._with_nan))
        self.num_rows += rows.num_rows

    def abandon(self) -> None:
        """Drops what is written from now on: Arrow's writer closes itself when it is collected."""
        self._pages.abandon()

    def _chunk(self, name: str, values: pa.Array) -> ChunkBytes:
        """Returns the one column chunk of `values`, however many they are."""
        buffer = io.BytesIO()
        style = replace(self._style, row_group_rows=max(1, len(values)), row_group_bytes=max(1, 2 * values.nbytes))
        writer = BaseFileWriter(buffer, pa.schema([self.schema.field(name)]), path=self.path, style=style)
        writer.write(pa.table([values], schema=writer.schema))
        writer.close({})
        return next(WholeRowGroup(RowGroupSource(ParquetBaseFile(buffer, self.path)), 0).chunks({}))

    def _flush(self) -> None:
        table = pa.concat_tables(self._pending) if self._pending else self.schema.empty_table()
        self._pending, self._pending_bytes, self._pending_rows = [], 0, 0
        with arrow_errors(self.path, "write"):
            if self._writer is None:
                self._writer = self._open(table)
            if table.num_rows:
                self._writer.write_table(table, row_group_size=table.num_rows)
                self._with_nan.append(leaves_with_nan(table))

    def _open(self, first: pa.Table) -> pq.ParquetWriter:
        dictionaries, encodings = chosen_encodings(first, delta=self._style.delta)
        return pq.ParquetWriter(
            self._pages,
            self.schema,
            compression=self._codec,
            compression_level=self._level,
            use_dictionary=dictionaries or False,
            column_encoding=encodings or None,
            write_page_index=True,
            store_schema=False,
        )


def _parts(table: pa.Table, most: int) -> Iterator[pa.Table]:
    count = max(1, -(-table.nbytes // most))
    rows = max(1, -(-table.num_rows // count))
    for start in range(0, table.num_rows, rows):
        yield table.slice(start, rows)


_FEW_VALUES: Final = 0.5
"""A dictionary pays when at most this share of the sampled values are distinct."""
_SAMPLE_RUNS, _RUN_ROWS = 64, 64
"""The sample has so many runs of so many rows, spread over the column, since equal values may be adjacent."""
_FEWER_BITS: Final = 0.7
"""Delta packing pays when differences take less than this share of the bits of values, or of dictionary codes."""
_SHARED: Final = 0.3
"""Delta of strings pays when neighbours share at least this share of their bytes, as a prefix."""
_PREFIX: Final = 64
_MINIBLOCK: Final = 32
"""Values whose differences are packed with one width."""
DELTA_INTEGERS, DELTA_STRINGS, DELTA_LENGTHS = "DELTA_BINARY_PACKED", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"


def chosen_encodings(table: pa.Table, *, delta: bool = True) -> tuple[list[str], dict[str, str]]:
    """Returns the leaf columns, by dotted name, that get a dictionary, and the encodings of others, for files with rows
    like those of `table`. Without `delta`, others are plain. Leaves of nested columns always get a dictionary.
    """
    flat = {field.name: field.type for field in table.schema if not pa.types.is_nested(field.type)}
    dictionaries: list[str] = []
    encodings: dict[str, str] = {}
    for path in _leaf_paths(table.schema):
        if path not in flat:
            dictionaries.append(path)
            continue
        kind = flat[path]
        sample = _sample(table.column(path))
        distinct = pc.count_distinct(sample).as_py()
        few = 0 < distinct <= len(sample) * _FEW_VALUES and not pa.types.is_boolean(kind)  # booleans have a bit each
        encoding = _delta_encoding(kind, sample, distinct if few else None) if delta and "." not in path else None
        if encoding is not None:
            encodings[path] = encoding
        elif few:
            dictionaries.append(path)
    return dictionaries, encodings


def _delta_encoding(kind: pa.DataType, sample: pa.Array, distinct: int | None) -> str | None:
    """Returns the delta encoding of a column; None without one, or if a dictionary of `distinct` is smaller."""
    if pa.types.is_signed_integer(kind) or pa.types.is_timestamp(kind) or pa.types.is_date32(kind):
        width = kind.bit_width if distinct is None else np.log2(distinct)
        bits = _bits_of_differences(sample)
        return DELTA_INTEGERS if bits is not None and bits < width * _FEWER_BITS else None
    if distinct is None and (pa.types.is_string(kind) or pa.types.is_binary(kind)):
        return DELTA_STRINGS if _neighbours_share(sample) else DELTA_LENGTHS
    return None


def _sample(column: pa.ChunkedArray) -> pa.Array:
    """Returns runs of neighbouring rows, one after the other, without nulls."""
    step = max(_RUN_ROWS, len(column) // _SAMPLE_RUNS)
    runs = [chunk for start in range(0, len(column), step) for chunk in column.slice(start, _RUN_ROWS).chunks]
    return pa.chunked_array(runs, column.type).combine_chunks().drop_null()


def _bits_of_differences(sample: pa.Array) -> float | None:
    """Returns the median of the bits that the differences in a miniblock need, also those between two runs."""
    width = sample.type.bit_width
    numbers = sample.cast(pa.int32() if width == 32 else pa.int64()).to_numpy(zero_copy_only=False)
    differences = np.diff(numbers.astype(np.float64))
    whole = len(differences) // _MINIBLOCK * _MINIBLOCK
    blocks = (differences[:whole] if whole else differences).reshape(max(1, whole // _MINIBLOCK), -1)
    return float(np.median(np.log2(np.ptp(blocks, axis=1) + 1))) if blocks.size else None


def _neighbours_share(sample: pa.Array) -> bool:
    if len(sample) < 2:
        return False
    values = sample.cast(pa.binary())
    lengths = pc.binary_length(values).to_numpy()
    starts = pc.binary_slice(values, 0, _PREFIX).to_numpy(zero_copy_only=False).astype(f"S{_PREFIX}")
    octets = starts.view(np.uint8).reshape(len(values), _PREFIX)
    same = np.logical_and.accumulate(octets[1:] == octets[:-1], axis=1).sum(axis=1)
    shared = int(np.minimum(same, np.minimum(lengths[1:], lengths[:-1])).sum())
    return shared >= int(lengths[1:].sum()) * _SHARED


def _leaf_paths(schema: pa.Schema) -> list[str]:
    """Returns the dotted names that Parquet gives the leaf columns. Arrow's per-column options use these names."""
    parquet = schema_of(pq.read_metadata(io.BytesIO(empty_file(schema))))
    return [parquet.column(index).path for index in range(len(parquet))]
