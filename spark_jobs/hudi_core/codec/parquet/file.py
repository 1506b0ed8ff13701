"""Reads row batches and footers of base files in Parquet.

Texts that a file stores as codes of a dictionary are read as codes. They are written out for as many rows at once as
memory allows: no footer bounds how much memory a repeated text takes in a batch.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import BinaryIO, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_core.codec.avro.arrow_conform import conform_batch
from hudi_core.codec.columns import leaf_arrays, leaf_types
from hudi_core.codec.parquet.footer import check_footer, schema_of
from hudi_core.codec.parquet.pages import PageCheckedInput
from hudi_core.codec.parquet.statistics import hybrid_columns
from hudi_core.errors import CorruptFileError, ExecutionError, HudiError, StorageError, UnsupportedError
from hudi_core.model.size_limits import NO_OPTIONS, SizeLimits

BATCH_ROWS = 64 << 10
MOST_BYTES = 256 << 20
"""The most bytes of a batch. Several batches together, as in a sort, stay below the 2 GiB of Arrow's text arrays."""
_CODE = 4
_WIDTHS = {"BOOLEAN": 1 / 8, "INT32": 4, "INT64": 8, "INT96": 8, "FLOAT": 4, "DOUBLE": 8, "FIXED_LEN_BYTE_ARRAY": 16}
"""The least bytes in memory of a value, null or not: those of a text's code, or of the offset of its end."""
_RESTORE = "restore it, or roll back the commit that wrote it"


class ParquetBaseFile:
    """An open base file. The caller closes `file`; a `with` block frees its buffers. All errors name `path`:
    CorruptFileError when it is no Parquet file, is cut or does not decode; UnsupportedError for a codec or encoding
    that Arrow does not read; SizeLimitError for a footer or pages that are larger than `limits` allow; StorageError.
    """

    def __init__(self, file: BinaryIO, path: str, limits: SizeLimits = NO_OPTIONS) -> None:
        self.path = path
        self.limits = limits
        self._input = checked = PageCheckedInput(file, path, limits)
        with arrow_errors(path):
            self._file = _opened(checked)
            self.metadata: pq.FileMetaData = self._file.metadata
            self._check_row_groups()
            footer = checked.take_footer()
            if footer is None:
                raise CorruptFileError("the footer of the Parquet file is not where its length says", path=path)
            check_footer(footer, schema_of(self.metadata), path)
            checked.metadata = self.metadata
            self.footer_bytes = footer
            """The FileMetaData, in Thrift's compact protocol."""
            self.schema: pa.Schema = bare_schema(self._file.schema_arrow)

    def _check_row_groups(self) -> None:
        """Raises CorruptFileError for a row group with another number of columns: Arrow would read past its memory."""
        columns = self.metadata.num_columns
        for number in range(self.metadata.num_row_groups):
            stored = self.metadata.row_group(number).num_columns
            if stored != columns:
                message = f"row group {number} of the Parquet file has {stored} columns, and its schema {columns}"
                raise CorruptFileError(message, path=self.path, remedy=f"the file is damaged; {_RESTORE}")

    def __enter__(self) -> ParquetBaseFile:
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()

    @property
    def num_rows(self) -> int:
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
        return self._input.seek(0, io.SEEK_END)

    @cached_property
    def hybrid_columns(self) -> Sequence[str]:
        return hybrid_columns(self.metadata, self.schema)

    def read_range(self, start: int, length: int) -> bytes:
        """Returns bytes of the file. Raises CorruptFileError when the file has fewer; SizeLimitError, StorageError."""
        with arrow_errors(self.path):
            self._input.seek(start)
            data = self._input.read(length)
        if len(data) != length:
            message = f"the Parquet file has {len(data)} of the {length} bytes at {start}"
            raise CorruptFileError(message, path=self.path, remedy=_RESTORE)
        return data

    @property
    def compression(self) -> str | None:
        """The codec of the first column chunk (`GZIP`, `SNAPPY`, …). None when the file has no rows."""
        if self.metadata.num_row_groups == 0 or self.metadata.num_columns == 0:
            return None
        return str(self.metadata.row_group(0).column(0).compression)

    def batches(
        self,
        columns: Sequence[str] | None = None,
        batch_rows: int = BATCH_ROWS,
        row_groups: Sequence[int] | None = None,
        *,
        batch_bytes: int = MOST_BYTES,
    ) -> Iterator[pa.RecordBatch]:
        """Yields the rows of the row groups in file order, at most `batch_rows` at a time, with all columns or the
        named top-level ones, in the file's order and types. A batch takes about `batch_bytes` in memory at most, and
        about MOST_BYTES at most, unless it is of one row. Values count as stored before compression, texts of a
        dictionary at their full length. Decoding runs on the calling thread alone: a task of an engine has one core.
        Raises UnsupportedError for columns in the hybrid calendar, whichever row groups are chosen: the choice used
        these columns' numbers. Raises CorruptFileError where pages lack rows: Arrow ends early at some damaged ones.
        """
        chosen = set(self.schema.names if columns is None else columns)
        fields = [field for field in self.schema if field.name in chosen]
        names = [field.name for field in fields]
        self._check_calendar(names)
        groups = range(self.metadata.num_row_groups) if row_groups is None else row_groups
        leaves, most = self.leaves_of(chosen), min(batch_bytes, MOST_BYTES)
        rows, spans = self._spans(groups, leaves, most, batch_rows)
        schema, reader = pa.schema(fields), self._file
        opened: Sequence[int] = ()
        with arrow_errors(self.path):
            for span, coded in spans:
                if coded != opened:
                    reader, opened = _opened(self._input, self.metadata, coded), coded
                missing = sum(self.metadata.row_group(number).num_rows for number in span)
                for batch in reader.iter_batches(
                    rows, row_groups=span, columns=None if columns is None else names, use_threads=False
                ):
                    missing -= batch.num_rows
                    bare = batch.replace_schema_metadata(None)
                    yield from written_out(bare, schema, most, self.path) if coded else (bare,)
                if missing and names:
                    message = f"the Parquet file's pages lack {missing} rows that its footer counts"
                    raise CorruptFileError(message, path=self.path, remedy=f"the file is damaged; {_RESTORE}")

    def _spans(
        self, groups: Iterable[int], leaves: Sequence[int], size: int, most: int
    ) -> tuple[int, list[tuple[list[int], list[int]]]]:
        """Returns how many rows, at most `most`, take about `size` bytes in the widest row group. Also returns the row
        groups that are read at once, with the leaf columns that are read as codes. A row group with codes is read
        alone: Arrow does not join the codes of nested columns of several row groups.
        """
        spans: list[tuple[list[int], list[int]]] = []
        widest = 1.0
        for number in groups:
            group = self.metadata.row_group(number)
            coded, total = [], 0.0
            for leaf in leaves:
                chunk = group.column(leaf)
                has_codes = is_coded(chunk)
                total += _bytes_of(chunk, is_coded=has_codes)
                if has_codes:
                    coded.append(leaf)
            if group.num_rows:
                widest = max(widest, total / group.num_rows)
            if spans and not coded and not spans[-1][1]:
                spans[-1][0].append(number)
            else:
                spans.append(([number], coded))
        return max(1, min(most, int(size / widest))), spans

    def leaves_of(self, names: Collection[str]) -> list[int]:
        numbers: list[int] = []
        first = 0
        for field in self.schema:
            after = first + len(leaf_types(field.type))
            if field.name in names:
                numbers += range(first, after)
            first = after
        return numbers

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


def _opened(
    file: PageCheckedInput, metadata: pq.FileMetaData | None = None, coded: Sequence[int] = ()
) -> pq.ParquetFile:
    # INT96 timestamps (old Spark writers) are days and nanoseconds; Spark reads them as microseconds. Pre-buffering,
    # the default of newer pyarrow, keeps the bytes of the whole file in memory until it is closed.
    return pq.ParquetFile(
        file, metadata=metadata, read_dictionary=coded or None, coerce_int96_timestamp_unit="us", pre_buffer=False
    )


def _bytes_of(chunk: pq.ColumnChunkMetaData, *, is_coded: bool) -> float:
    """Returns the bytes of a column chunk in memory. The dictionary counts once, however many rows are read."""
    width = _CODE if is_coded else _WIDTHS.get(chunk.physical_type, _CODE)
    return float(max(chunk.total_uncompressed_size, width * chunk.num_values))


def bare_schema(schema: pa.Schema) -> pa.Schema:
    """Returns the schema without metadata of its own or of its fields."""
    return pa.schema([field.remove_metadata() for field in schema])


@contextmanager
def arrow_errors(path: str, verb: str = "read", form: str = "Parquet") -> Iterator[None]:
    try:
        yield
    except HudiError:
        raise
    except (MemoryError, pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, MemoryError):
            message = f"cannot {verb} this {form} file: there is not enough memory: {error}"
            remedy = "give the process more memory, or read fewer rows at once (airflow_hudi.batch.rows)"
            raise ExecutionError(message, path=path, remedy=remedy) from error
        if isinstance(error, pa.ArrowNotImplementedError) or (form == "ORC" and "ime zone" in str(error)):
            raise UnsupportedError(f"cannot {verb} this {form} file: {error}", path=path) from error
        if isinstance(error, OSError) and (verb == "write" or error.errno is not None):
            raise StorageError(f"cannot {verb} the file: {error}", path=path) from error
        remedy = f"the file is cut or damaged; {_RESTORE}"
        raise CorruptFileError(f"cannot {verb} this {form} file: {error}", path=path, remedy=remedy) from error


_READ_AS_CODES: Final = frozenset({"PLAIN", "PLAIN_DICTIONARY", "RLE_DICTIONARY", "RLE", "BIT_PACKED"})
"""Encodings of pages that Arrow turns into codes. A column may use others after the pages with its dictionary."""


def is_coded(chunk: pq.ColumnChunkMetaData) -> bool:
    has_codes = chunk.physical_type == "BYTE_ARRAY" and chunk.has_dictionary_page
    return bool(has_codes and _READ_AS_CODES.issuperset(chunk.encodings))


def written_out(batch: pa.RecordBatch, schema: pa.Schema, most: int, path: str) -> Iterator[pa.RecordBatch]:
    """Yields rows of `schema` in parts of `most` bytes or one row. Raises pyarrow's errors for wrong codes."""
    parts = list(_halves(batch, most))
    for part in parts:
        # A slice of a nested column still has the values of all rows.
        rows = part if len(parts) == 1 else part.take(pa.array(range(part.num_rows)))
        yield conform_batch(rows, schema, path=path)


def _halves(batch: pa.RecordBatch, most: int) -> Iterator[pa.RecordBatch]:
    if batch.num_rows > 1 and _bytes_written_out(batch) > most:
        half = batch.num_rows // 2
        yield from _halves(batch.slice(0, half), most)
        yield from _halves(batch.slice(half), most)
    else:
        yield batch


def _bytes_written_out(batch: pa.RecordBatch) -> int:
    total = 0
    for column in batch.columns:
        for leaf in leaf_arrays(column):
            total += leaf.nbytes
            if pa.types.is_dictionary(leaf.type):
                total += _text_bytes(leaf) - leaf.dictionary.nbytes
    return total


def _text_bytes(leaf: pa.Array) -> int:
    values = leaf.dictionary
    if not (pa.types.is_string(values.type) or pa.types.is_binary(values.type)):
        return 0
    return int(pc.sum(pc.binary_length(values).cast(pa.int64()).take(leaf.indices)).as_py() or 0)
