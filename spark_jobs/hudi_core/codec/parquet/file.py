"""Base files in Parquet: reads row batches and footers."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_core.codec.parquet.calendar import hybrid_columns
from hudi_core.codec.parquet.footer import check_footer
from hudi_core.codec.parquet.pages import PageCheckedInput
from hudi_core.errors import (
    CorruptFileError,
    ExecutionError,
    HudiError,
    StorageError,
    UnsupportedError,
)
from hudi_core.model.size_limits import NO_OPTIONS, SizeLimits

BATCH_ROWS = 64 << 10
_MOST_BYTES = 256 << 20
"""Of a batch: several of them together, as a sort takes them, stay below the 2 GiB of an Arrow array of texts."""
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
        self.limits = limits
        self._input = checked = PageCheckedInput(file, path, limits)
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
            self.footer_bytes = footer
            """The FileMetaData, in Thrift's compact protocol."""
            self.schema: pa.Schema = bare_schema(self._file.schema_arrow)
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
    def size(self) -> int:
        """Bytes of the file."""
        return self._input.seek(0, io.SEEK_END)

    @cached_property
    def hybrid_columns(self) -> Sequence[str]:
        """The columns with dates or timestamps that are other ones in the hybrid calendar, in which the file is."""
        return hybrid_columns(self.metadata, self.schema)

    def read_range(self, start: int, length: int) -> bytes:
        """Bytes of the file as they are. Raises CorruptFileError where it has fewer; SizeLimitError, StorageError."""
        with arrow_errors(self.path):
            self._input.seek(start)
            data = self._input.read(length)
        if len(data) != length:
            raise CorruptFileError(
                f"the Parquet file has {len(data)} of the {length} bytes at {start}", path=self.path, remedy=_RESTORE
            )
        return data

    @property
    def compression(self) -> str | None:
        """The codec of the first column chunk (`GZIP`, `SNAPPY`, `ZSTD`, `UNCOMPRESSED`, …).

        None when the file has no rows.
        """
        if self.metadata.num_row_groups == 0 or self.metadata.num_columns == 0:
            return None
        return str(self.metadata.row_group(0).column(0).compression)

    def rows_within(self, size: int, most: int) -> int:
        """So many rows, at most `most`, as take up about `size` bytes in memory, or _MOST_BYTES where that is less: by
        the widest row group, whose values count as stored before compression, and texts of a dictionary, by the
        statistics, as its longest end.
        """
        groups = [self.metadata.row_group(number) for number in range(self.metadata.num_row_groups)]
        full = [group for group in groups if group.num_rows]
        if not full:
            return most
        widest = max(full, key=lambda group: group.total_byte_size / group.num_rows)
        return max(1, min(most, int(min(size, _MOST_BYTES) / max(1.0, _row_bytes(widest)))))

    def batches(
        self,
        columns: Sequence[str] | None = None,
        batch_rows: int = BATCH_ROWS,
        row_groups: Sequence[int] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The rows in file order, at most `batch_rows` each, with all columns or the top-level ones named.

        Of all row groups or those given. Columns keep the file's order and types (`codec.avro.arrow_conform` casts
        them); names that the file lacks are ignored. Runs on the calling thread alone: a task of an engine has one
        core. Raises UnsupportedError for columns in the hybrid calendar, of whichever row groups: a choice of row
        groups went by these numbers.
        """
        requested = None if columns is None else [name for name in self.schema.names if name in set(columns)]
        self._check_calendar(self.schema.names if requested is None else requested)
        with arrow_errors(self.path):
            for batch in self._file.iter_batches(
                batch_size=batch_rows, columns=requested, row_groups=row_groups, use_threads=False
            ):
                yield batch.replace_schema_metadata(None)

    def _check_calendar(self, names: Sequence[str]) -> None:
        old = next((name for name in self.hybrid_columns if name in names), None)
        if old is not None:
            raise UnsupportedError(
                f"the column {old!r} has, or may have, dates before 1582-10-15 or timestamps before 1900 in the hybrid "
                "calendar, as Spark before 3.0 and datetimeRebaseModeInWrite=LEGACY write them",
                path=self.path,
                remedy="read the rows with Spark 3 and write them again by a bulk_insert with "
                "spark.sql.parquet.datetimeRebaseModeInWrite=CORRECTED, or leave the column out of the query",
            )


def _row_bytes(group: pq.RowGroupMetaData) -> float:
    total = 0.0
    for number in range(group.num_columns):
        chunk = group.column(number)
        stored = chunk.total_uncompressed_size / group.num_rows
        found = chunk.statistics if chunk.has_dictionary_page and chunk.physical_type == "BYTE_ARRAY" else None
        ends = (found.min_raw, found.max_raw) if found is not None and found.has_min_max else ()
        total += max(stored, *map(len, ends)) if ends else stored
    return total


def bare_schema(schema: pa.Schema) -> pa.Schema:
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
