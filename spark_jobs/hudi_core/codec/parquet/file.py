"""Base files in Parquet: reads row batches and footers, writes with footer keys that are known only at the end."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_core.codec.parquet.footer import check_footer
from hudi_core.codec.parquet.pages import PageCheckedInput
from hudi_core.errors import (
    ConfigError,
    CorruptFileError,
    ExecutionError,
    FormatError,
    HudiError,
    StorageError,
    UnsupportedError,
)
from hudi_core.model.size_limits import NO_OPTIONS, SizeLimits

BATCH_ROWS = 64 << 10
ROW_GROUP_BYTES = 128 << 20
"""Bytes of Arrow data per row group, which the writer holds in memory.

Hudi's own bound is 120 MiB (hoodie.parquet.block.size).
"""
_RESTORE = "restore it, or roll back the commit that wrote it"
"""The remedy for a damaged file."""


class ParquetBaseFile:
    """An open base file. `file` is seekable and the caller closes it; `path` names it in errors.

    A `with` block frees its buffers. Errors: CorruptFileError when it is no Parquet file, is cut or does not decode;
    UnsupportedError for a codec or encoding that Arrow does not read; SizeLimitError for a footer or pages that are
    larger than `limits` allow; StorageError when the storage fails.
    """

    def __init__(self, file: BinaryIO, path: str, limits: SizeLimits = NO_OPTIONS) -> None:
        self.path = path
        checked = PageCheckedInput(file, path, limits)
        with arrow_errors(path):
            # INT96 timestamps (old Spark writers) are days and nanoseconds; Spark reads them as microseconds.
            # Pre-buffering, the default of newer pyarrow, keeps the bytes of the whole file in memory until it is
            # closed.
            self._file = pq.ParquetFile(checked, coerce_int96_timestamp_unit="us", pre_buffer=False)
            self.metadata: pq.FileMetaData = self._file.metadata
            """The footer's metadata of the row groups and their columns."""
            self._check_row_groups()
            footer = checked.take_footer()
            if footer is None:
                raise CorruptFileError("the footer of the Parquet file is not where its length says", path=path)
            check_footer(footer, self.metadata.schema, path)
            checked.metadata = self.metadata
            self.schema: pa.Schema = _bare(self._file.schema_arrow)
            """Arrow schema of the columns, without metadata."""

    def _check_row_groups(self) -> None:
        """Raises CorruptFileError for a row group of another number of columns: Arrow would read past its memory."""
        columns = self.metadata.num_columns
        for number in range(self.metadata.num_row_groups):
            found = self.metadata.row_group(number).num_columns
            if found != columns:
                raise CorruptFileError(
                    f"row group {number} of the Parquet file has {found} columns, and its schema {columns}",
                    path=self.path,
                    remedy=f"the file is damaged; {_RESTORE}",
                )

    def __enter__(self) -> ParquetBaseFile:
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()

    @property
    def num_rows(self) -> int:
        """Rows in the file."""
        return int(self.metadata.num_rows)

    @property
    def footer(self) -> dict[str, str]:
        """The footer's key-value metadata. Raises CorruptFileError when it is not UTF-8."""
        pairs: Mapping[bytes, bytes] = self.metadata.metadata or {}
        try:
            return {key.decode(): value.decode() for key, value in pairs.items()}
        except UnicodeDecodeError as error:
            raise CorruptFileError(f"footer metadata is not UTF-8: {error}", path=self.path) from error

    @property
    def compression(self) -> str | None:
        """The codec of the first column chunk (`GZIP`, `SNAPPY`, `ZSTD`, `UNCOMPRESSED`, …).

        None when the file has no rows.
        """
        if self.metadata.num_row_groups == 0 or self.metadata.num_columns == 0:
            return None
        return str(self.metadata.row_group(0).column(0).compression)

    def batches(
        self,
        columns: Sequence[str] | None = None,
        batch_rows: int = BATCH_ROWS,
        row_groups: Sequence[int] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The rows in file order, at most `batch_rows` each, with all columns or the top-level ones named.

        Of all row groups or those given. Columns keep the file's order and types (`codec.avro.arrow_conform` casts
        them); names that the file lacks are ignored. Runs on the calling thread alone: a task of an engine has one
        core.
        """
        requested = None if columns is None else [name for name in self.schema.names if name in set(columns)]
        with arrow_errors(self.path):
            for batch in self._file.iter_batches(
                batch_size=batch_rows, columns=requested, row_groups=row_groups, use_threads=False
            ):
                yield batch.replace_schema_metadata(None)


class BaseFileWriter:
    """Writes one base file. The caller closes `file` after `close()`; without `close()` the file is not a Parquet file.

    Row groups are cut at `row_group_bytes` of Arrow data, which is also what is held in memory. No pandas or Arrow
    metadata is written.
    """

    def __init__(
        self,
        file: BinaryIO,
        schema: pa.Schema,
        *,
        path: str,
        codec: str = "GZIP",
        row_group_bytes: int = ROW_GROUP_BYTES,
    ) -> None:
        """`codec` is a Parquet codec name in any case. Raises ConfigError for an unknown one."""
        name = CODECS.get(codec.upper())
        if name is None:
            raise ConfigError(
                f"Parquet codec {codec!r} is not supported", remedy=f"use one of {', '.join(sorted(CODECS))}"
            )
        self.path = path
        self.schema = _bare(schema)
        self.num_rows = 0
        self._codec = name
        self._file = file
        self._row_group_bytes = row_group_bytes
        self._pending: list[pa.Table] = []
        self._pending_bytes = 0
        self._writer: pq.ParquetWriter | None = None

    def write(self, data: pa.RecordBatch | pa.Table) -> None:
        """Appends rows whose schema equals the writer's, metadata aside.

        Raises FormatError when it differs, StorageError when writing fails.
        """
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
        """Writes the rest and the footer, with `footer` as its key-value metadata.

        Raises StorageError when writing fails.
        """
        if self._pending or self._writer is None:
            self._flush()
        with arrow_errors(self.path, "write"):
            if self._writer is not None:
                self._writer.add_key_value_metadata(dict(footer))
                self._writer.close()

    def _flush(self) -> None:
        table = pa.concat_tables(self._pending) if self._pending else self.schema.empty_table()
        self._pending, self._pending_bytes = [], 0
        with arrow_errors(self.path, "write"):
            if self._writer is None:
                self._writer = self._open(table)
            if table.num_rows:
                self._writer.write_table(table, row_group_size=table.num_rows)

    def _open(self, first: pa.Table) -> pq.ParquetWriter:
        """Opens the file when its first row group is there to choose by."""
        return pq.ParquetWriter(
            self._file,
            self.schema,
            compression=self._codec,
            compression_level=LEVELS.get(self._codec),
            use_dictionary=dictionary_columns(first) or False,
            store_schema=False,
        )


def _parts(table: pa.Table, most: int) -> Iterator[pa.Table]:
    """The table in slices of about `most` bytes at most."""
    count = max(1, -(-table.nbytes // most))
    rows = max(1, -(-table.num_rows // count))
    for start in range(0, table.num_rows, rows):
        yield table.slice(start, rows)


def _bare(schema: pa.Schema) -> pa.Schema:
    """The schema without metadata of its own or of its fields (pandas, Parquet field ids)."""
    return pa.schema([field.remove_metadata() for field in schema])


@contextmanager
def arrow_errors(path: str, verb: str = "read", form: str = "Parquet") -> Iterator[None]:
    """Turns what Arrow raises into this project's errors, naming the file."""
    try:
        yield
    except HudiError:
        raise
    except (MemoryError, pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, MemoryError):
            raise ExecutionError(
                f"cannot {verb} this {form} file: there is not enough memory: {error}",
                path=path,
                remedy="give the process more memory, or read fewer rows at once (airflow_hudi.batch.rows)",
            ) from error
        if isinstance(error, pa.ArrowNotImplementedError) or (form == "ORC" and "ime zone" in str(error)):
            raise UnsupportedError(f"cannot {verb} this {form} file: {error}", path=path) from error
        if isinstance(error, OSError) and (verb == "write" or error.errno is not None):
            raise StorageError(f"cannot {verb} the file: {error}", path=path) from error
        raise CorruptFileError(
            f"cannot {verb} this {form} file: {error}", path=path, remedy=f"the file is cut or damaged; {_RESTORE}"
        ) from error


CODECS = {
    "UNCOMPRESSED": "none",
    "SNAPPY": "snappy",
    "GZIP": "gzip",
    "ZSTD": "zstd",
    "LZ4": "lz4",
    "LZ4_RAW": "lz4",
    "BROTLI": "brotli",
}
"""Parquet's codec names and Arrow's."""
LEVELS = {"gzip": 6, "zstd": 1}
"""Levels by Arrow's codec name.

6 is Java's default for gzip; pyarrow's own is 9, which takes four times as long for 2 % less.
"""
_FEW_VALUES = 0.5
"""A dictionary pays when at most this share of the sampled values are distinct."""
_SAMPLE_RUNS, _RUN_ROWS = 64, 64
"""The sample: this many runs of this many rows, spread over the column, since equal values may be adjacent."""


def dictionary_columns(table: pa.Table) -> list[str]:
    """The dotted names of the leaf columns that get a dictionary in files whose rows are like those of `table`.

    Leaves of nested columns always do: Parquet gives it up by itself when it grows beyond a page.
    """
    flat = {field.name: field.type for field in table.schema if not pa.types.is_nested(field.type)}
    return [path for path in _leaf_paths(table.schema) if path not in flat or _few_values(table.column(path))]


def _few_values(column: pa.ChunkedArray) -> bool:
    if pa.types.is_boolean(column.type):
        return False  # a bit each is less than any dictionary
    step = max(_RUN_ROWS, len(column) // _SAMPLE_RUNS)
    chunks = [chunk for start in range(0, len(column), step) for chunk in column.slice(start, _RUN_ROWS).chunks]
    sample = pa.chunked_array(chunks, column.type).drop_null()
    return bool(len(sample) and pc.count_distinct(sample).as_py() <= len(sample) * _FEW_VALUES)


def _leaf_paths(schema: pa.Schema) -> list[str]:
    """The dotted names that Parquet gives the leaf columns, which Arrow's per-column options go by."""
    buffer = io.BytesIO()
    pq.write_table(schema.empty_table(), buffer, store_schema=False)
    parquet = pq.ParquetFile(buffer).schema
    return [parquet.column(index).path for index in range(len(parquet))]
