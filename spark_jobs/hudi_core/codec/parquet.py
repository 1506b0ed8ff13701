"""Base files in Parquet: reading row batches and footers, writing with footer keys that are known only at the end (facts 4).

What the writer chooses per column was measured on 1 M rows of 14 columns (five meta columns, key, partition, two longs, a double, a text of
5,000 values, a SHA-1 in hex, a date, a decimal; 282 Arrow bytes a row; one core, CPU seconds and file size):

    dictionary on                gzip 6           snappy           zstd 1
    every column (default)       5.6 s 55.8 MB    1.02 s 83.3 MB   0.97 s 46.6 MB
    no column                    6.1 s 54.4 MB    0.56 s 89.6 MB   0.62 s 43.2 MB
    columns of few values        5.2 s 52.7 MB    0.59 s 80.0 MB   0.81 s 43.1 MB

Of those 5.2 s the SHA-1 column took 2.8, and two random number columns 0.26 and 0.40 for nothing (8.0 MB to 8.0 and 7.6): columns that a
sample shows not to shrink are stored as they are, which every Parquet reader handles, as the codec is a property of the column chunk.
The DELTA encodings would take keys and counters to almost no bytes (0.6 s and 7 MB less), but Spark before 3.3 cannot read them, and
Hudi writes none.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_core.errors import ConfigError, CorruptFileError, FormatError, HudiError, StorageError, UnsupportedError

BATCH_ROWS = 64 << 10
ROW_GROUP_BYTES = 128 << 20
"""Of Arrow data per row group: what the writer holds in memory. Hudi's own bound is 120 MiB (hoodie.parquet.block.size)."""
GZIP_LEVEL = 6
"""Java's default. pyarrow's own is 9, which takes four times as long for 2 % less."""

_CODECS = {"UNCOMPRESSED": "none", "SNAPPY": "snappy", "GZIP": "gzip", "ZSTD": "zstd", "LZ4": "lz4", "LZ4_RAW": "lz4", "BROTLI": "brotli"}
_LEVELS = {"gzip": GZIP_LEVEL, "zstd": 1}
_SAMPLE_ROWS = 20_000
_FEW_VALUES = 0.5
"""A dictionary pays when at most this share of the sampled values are distinct."""
_SAMPLE_BYTES = 256 << 10
_WORTHLESS = 0.92
"""A column whose sample compresses to more than this share is stored uncompressed."""


class ParquetBaseFile:
    """An open base file. `file` is seekable and stays the caller's to close; `path` names it in errors. A `with` block frees its buffers.

    Errors: CorruptFileError when it is no Parquet file, is cut or does not decode; UnsupportedError for a codec or encoding that Arrow does
    not read; StorageError when the storage fails.
    """

    def __init__(self, file: BinaryIO, path: str) -> None:
        self.path = path
        with _Naming(path, "read"):
            # INT96 timestamps (old Spark writers) are days and nanoseconds; Spark reads them as microseconds.
            self._file = pq.ParquetFile(file, coerce_int96_timestamp_unit="us")
            self._metadata = self._file.metadata
            self.schema: pa.Schema = _bare(self._file.schema_arrow)
            """Arrow schema of the columns, without metadata."""

    def __enter__(self) -> ParquetBaseFile:
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()

    @property
    def num_rows(self) -> int:
        """Rows in the file."""
        return int(self._metadata.num_rows)

    @property
    def footer(self) -> dict[str, str]:
        """The footer's key-value metadata. Raises CorruptFileError when it is not UTF-8."""
        pairs: Mapping[bytes, bytes] = self._metadata.metadata or {}
        try:
            return {key.decode(): value.decode() for key, value in pairs.items()}
        except UnicodeDecodeError as error:
            raise CorruptFileError(f"footer metadata is not UTF-8: {error}", path=self.path) from error

    @property
    def compression(self) -> str | None:
        """The codec of the first column chunk (`GZIP`, `SNAPPY`, `ZSTD`, `UNCOMPRESSED`, …); None when the file has no rows.

        Hudi and this writer keep `_hoodie_commit_time` first, which always has the file's codec.
        """
        if self._metadata.num_row_groups == 0 or self._metadata.num_columns == 0:
            return None
        return str(self._metadata.row_group(0).column(0).compression)

    def batches(self, columns: Sequence[str] | None = None, batch_rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """The rows in file order, at most `batch_rows` each, with all columns or the top-level ones named.

        Columns keep the file's order and types (`codec.avro.arrow_conform` casts them); names that the file lacks are ignored. Runs on the
        calling thread alone: a task of an engine has one core.
        """
        wanted = None if columns is None else [name for name in self.schema.names if name in set(columns)]
        with _Naming(self.path, "read"):
            for batch in self._file.iter_batches(batch_size=batch_rows, columns=wanted, use_threads=False):
                yield batch.replace_schema_metadata(None)


class BaseFileWriter:
    """Writes one base file. The caller closes `file` after `close()`; without `close()` the file is not a Parquet file.

    Row groups are cut at `row_group_bytes` of Arrow data, which is also what is held in memory. No pandas or Arrow metadata is written.
    """

    def __init__(
        self, file: BinaryIO, schema: pa.Schema, *, path: str, codec: str = "GZIP", level: int | None = None, row_group_bytes: int = ROW_GROUP_BYTES
    ) -> None:
        """`codec` is a Parquet codec name in any case; `level` None takes 6 for gzip and 1 for zstd. Raises ConfigError for others."""
        name = _CODECS.get(codec.upper())
        if name is None:
            raise ConfigError(f"Parquet codec {codec!r} is not supported", remedy=f"use one of {', '.join(sorted(_CODECS))}")
        self.path = path
        self.schema = _bare(schema)
        self.num_rows = 0
        self._codec = name
        self._level = level if level is not None else _LEVELS.get(name)
        self._file = file
        self._row_group_bytes = row_group_bytes
        self._pending: list[pa.Table] = []
        self._pending_bytes = 0
        self._writer: pq.ParquetWriter | None = None

    def write(self, data: pa.RecordBatch | pa.Table) -> None:
        """Appends rows whose schema equals the writer's, metadata aside. Raises FormatError when it differs, StorageError when writing fails."""
        table = pa.Table.from_batches([data]) if isinstance(data, pa.RecordBatch) else data
        if not table.schema.equals(self.schema):
            raise FormatError(f"rows have the columns {_bare(table.schema)} and the file {self.schema}", path=self.path)
        self.num_rows += table.num_rows
        for part in _parts(table, self._row_group_bytes):
            if self._pending_bytes and self._pending_bytes + part.nbytes > self._row_group_bytes:
                self._flush()
            self._pending.append(part)
            self._pending_bytes += part.nbytes

    def close(self, footer: Mapping[str, str]) -> None:
        """Writes what is left and the footer, with `footer` as its key-value metadata. Raises StorageError when writing fails."""
        if self._pending or self._writer is None:
            self._flush()
        with _Naming(self.path, "write"):
            if self._writer is not None:
                self._writer.add_key_value_metadata(dict(footer))
                self._writer.close()

    def _flush(self) -> None:
        table = pa.concat_tables(self._pending) if self._pending else self.schema.empty_table()
        self._pending, self._pending_bytes = [], 0
        with _Naming(self.path, "write"):
            if self._writer is None:
                self._writer = self._open(table)
            if table.num_rows:
                self._writer.write_table(table, row_group_size=table.num_rows)

    def _open(self, first: pa.Table) -> pq.ParquetWriter:
        """Opens the file when its first row group is there to choose by."""
        choices = _Choices(first, self._codec)
        codec: Any = self._codec
        level: Any = self._level
        if self._codec != "none" and choices.plain:
            codec = {path: "none" if path in choices.plain else self._codec for path in choices.paths}
            level = None if level is None else {path: level for path in choices.paths if path not in choices.plain}
        return pq.ParquetWriter(
            self._file, self.schema, compression=codec, compression_level=level, use_dictionary=choices.dictionary or False, store_schema=False
        )


class _Choices:
    """Per leaf column, by a sample of the first row group: whether a dictionary pays, and whether compression does.

    Leaves of nested columns are not sampled: they get a dictionary, which Parquet gives up on by itself when it grows, and the codec.
    """

    def __init__(self, table: pa.Table, codec: str) -> None:
        self.paths = _leaf_paths(table.schema)
        self.dictionary: list[str] = []
        self.plain: set[str] = set()
        flat = {field.name for field in table.schema if not pa.types.is_nested(field.type)}
        for index, path in enumerate(self.paths):
            if path not in flat:
                self.dictionary.append(path)
                continue
            sample = _sample(table.column(path))
            if pa.types.is_boolean(sample.type) or not len(sample):
                continue
            if pc.count_distinct(sample).as_py() <= len(sample) * _FEW_VALUES:
                self.dictionary.append(path)
            elif codec != "none" and index and not _shrinks(sample):
                # Never the first column: its codec stands for the file's.
                self.plain.add(path)


def _leaf_paths(schema: pa.Schema) -> list[str]:
    """The dotted names that Parquet gives the leaf columns, which Arrow's per-column options go by."""
    buffer = io.BytesIO()
    pq.write_table(schema.empty_table(), buffer, store_schema=False)
    parquet = pq.ParquetFile(buffer).schema
    return [parquet.column(index).path for index in range(len(parquet))]


def _sample(column: pa.ChunkedArray) -> pa.Array:
    """Values spread evenly over the column, nulls left out."""
    step = max(1, len(column) // _SAMPLE_ROWS)
    taken = column.take(pa.array(range(0, len(column), step), pa.int64()))
    return taken.combine_chunks().drop_null()


def _shrinks(sample: pa.Array) -> bool:
    """Whether the sample's bytes get smaller by gzip's fastest level, which finds about what every codec finds."""
    data = sample.buffers()[-1]
    if data is None or data.size == 0:
        return True
    data = data.slice(0, min(data.size, _SAMPLE_BYTES))
    return bool(pa.Codec("gzip", compression_level=1).compress(data).size <= data.size * _WORTHLESS)


def _parts(table: pa.Table, most: int) -> Iterator[pa.Table]:
    """The table in slices of about `most` bytes at most."""
    count = max(1, -(-table.nbytes // most))
    rows = max(1, -(-table.num_rows // count))
    for start in range(0, table.num_rows, rows):
        yield table.slice(start, rows)


def _bare(schema: pa.Schema) -> pa.Schema:
    """The schema without metadata of its own or of its fields (pandas, Parquet field ids)."""
    return pa.schema([field.remove_metadata() for field in schema])


class _Naming:
    """Turns what Arrow raises into this project's errors, naming the file."""

    def __init__(self, path: str, verb: str) -> None:
        self._path = path
        self._verb = verb

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None or isinstance(error, HudiError):
            return
        if isinstance(error, pa.ArrowNotImplementedError):
            raise UnsupportedError(f"cannot {self._verb} this Parquet file: {error}", path=self._path) from error
        if isinstance(error, OSError) and (self._verb == "write" or error.errno is not None):
            raise StorageError(f"cannot {self._verb} the file: {error}", path=self._path) from error
        if isinstance(error, (pa.ArrowException, OSError)):
            remedy = "the file is cut or damaged; restore it, or roll back the commit that wrote it"
            raise CorruptFileError(f"cannot {self._verb} this Parquet file: {error}", path=self._path, remedy=remedy) from error
