"""Checks base files, and reads them as batches of the table's schema (schema_resolver.py).

When schema-on-read changed a table, columns are found by id (InternalSchemaMerger): a file's columns first get the
query's names. `sources` are timeline.schemas's answer for the instant that wrote the file; empty ones change nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, Final, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_core.codec.avro.arrow import decode_records
from hudi_core.codec.avro.arrow_conform import conform_batch
from hudi_core.codec.avro.arrow_types import as_meant
from hudi_core.codec.avro.schema import AvroSchema, parse_schema
from hudi_core.codec.columns import is_list
from hudi_core.codec.hfile.reader import HFileReader
from hudi_core.codec.log.content import encode_avro_records
from hudi_core.codec.orc import OrcBaseFile
from hudi_core.codec.parquet.cuts import RowGroupCuts
from hudi_core.codec.parquet.file import MOST_BYTES, ParquetBaseFile
from hudi_core.codec.parquet.row_range import RowRange
from hudi_core.codec.parquet.splice import RowGroupSource
from hudi_core.codec.parquet.thrift import TooManyValuesError
from hudi_core.errors import CorruptFileError, UnsupportedError
from hudi_core.model.names import OPERATION, parse_base_file, places, spelled
from hudi_core.storage.base import ByteRange, Storage
from hudi_core.timeline.schemas import ColumnSource, sources_at
from hudi_core.view.file_group import DataFile

_PAGE_ROWS: Final = 20_000
"""A page has at most so many rows (parquet.page.row.count.limit)."""
_FEW_ROWS: Final = 2 * _PAGE_ROWS
"""Row groups of fewer rows are read whole."""
_MANY_COLUMNS: Final = 16
"""With more columns in the file for each that is read, the footer's tree takes longer than pages save."""


class RowChoice(Protocol):
    """Which rows of a Parquet file are read."""

    def row_groups(self, metadata: pq.FileMetaData) -> Sequence[int] | None:
        """Returns the numbers of the row groups; None for all."""

    def rows(self, source: RowGroupSource, number: int) -> Sequence[tuple[int, int]] | None:
        """Returns the rows of a row group (first, after the last), apart from each other; None for all."""


BOOTSTRAP_INSTANT = "00000000000001"
"""The instant of files that a metadata-only bootstrap writes (HoodieTimeline.METADATA_BOOTSTRAP_INSTANT_TS)."""
History = Sequence[Sequence[Any]]
"""The schemas that a table had, in the form of timeline.schemas.SchemaHistory.to_json."""


def refuse_skeleton(path: str) -> None:
    """Raises UnsupportedError for a base file of a metadata-only bootstrap (HoodieBootstrapHandle). A column that the
    file lacks is in another table's file, and is not null. A bootstrap by full records writes whole files, with another
    instant.
    """
    if parse_base_file(path.rpartition("/")[2]).instant == BOOTSTRAP_INSTANT:
        message = "the file holds the _hoodie_ columns alone, of rows that a bootstrap left in another table's files"
        remedy = "rewrite the table with Hudi's clustering, or use Hudi for this"
        raise UnsupportedError(message, path=path, remedy=remedy)


@contextmanager
def open_base_file(storage: Storage, path: str) -> Iterator[ParquetBaseFile]:
    """Opens the Parquet base file at `path`. Raises StorageNotFoundError when it is missing, CorruptFileError when it
    is no whole Parquet file, UnsupportedError for ORC and HFile.
    """
    extension = parse_base_file(path.rsplit("/", 1)[-1]).extension
    if extension != "parquet":
        raise UnsupportedError(f"base files of format {extension} are read, but no service writes them", path=path)
    with storage.open_input(path) as file:
        yield ParquetBaseFile(file, path, storage.limits)


@contextmanager
def open_replaced_file(storage: Storage, path: str) -> Iterator[ParquetBaseFile]:
    """Opens a base file whose rows go into a new one, by open_base_file. Raises UnsupportedError for change operations,
    which the new file would lose, and for a bootstrap's file, which does not hold the rows.
    """
    refuse_skeleton(path)
    with open_base_file(storage, path) as base:
        if OPERATION in base.schema.names:
            remedy = "compact and cluster tables of change operations with Hudi"
            raise UnsupportedError(f"rows with the column {OPERATION}", path=path, remedy=remedy)
        yield base


def read_base_file(
    storage: Storage,
    file: DataFile,
    schema: pa.Schema,
    *,
    batch_rows: int,
    batch_bytes: int = MOST_BYTES,
    choice: RowChoice | None = None,
    history: History | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yields the rows of a base file of any format with the columns and types of `schema`, in the file's order. Columns
    that the file lacks are null, narrower types are widened. With a schema `history`, columns are found by their ids.
    `batch_bytes` and `choice` are for Parquet files only; an ORC file is read a stripe at a time. With `choice` rows
    that it leaves out may come as well. Raises StorageNotFoundError when the file is missing, CorruptFileError when it
    is not whole, UnsupportedError for a format that is not read and for a bootstrap's file.
    """
    name = parse_base_file(file.name)
    refuse_skeleton(file.path)
    sources = () if history is None else sources_at(history, name.instant)
    if name.extension == "parquet":
        with open_base_file(storage, file.path) as parquet:
            yield from base_batches(
                parquet, schema, batch_rows=batch_rows, batch_bytes=batch_bytes, choice=choice, sources=sources
            )
    elif name.extension == "orc":
        with storage.open_input(file.path) as stream:
            orc = OrcBaseFile(stream, file.path, storage.limits)
            for batch in orc.batches(stored_names(schema.names, sources, orc.schema.names, path=file.path)):
                yield conform_batch(apply_sources(batch, sources), schema, path=file.path)
    else:
        yield from _hfile_batches(storage, file, schema, batch_rows, sources)


def base_batches(
    file: ParquetBaseFile,
    schema: pa.Schema,
    *,
    batch_rows: int,
    batch_bytes: int = MOST_BYTES,
    row_groups: Sequence[int] | None = None,
    choice: RowChoice | None = None,
    sources: Sequence[ColumnSource] = (),
) -> Iterator[pa.RecordBatch]:
    """Yields the rows of a Parquet base file, as read_base_file does: those of `row_groups`, or of `choice`."""
    # At least one column is read, since a batch without columns has no rows.
    names = stored_names(schema.names, sources, file.schema.names, path=file.path) or file.schema.names[:1]
    parts = [row_groups] if choice is None else _chosen_rows(file, names, choice)
    for part in parts:
        if isinstance(part, RowRange):
            batches = part.batches(names, batch_rows, batch_bytes=batch_bytes)
        else:
            batches = file.batches(names, batch_rows, part, batch_bytes=batch_bytes)
        for batch in batches:
            yield conform_batch(as_meant(apply_sources(batch, sources), schema), schema, path=file.path)


def _chosen_rows(
    file: ParquetBaseFile, names: Sequence[str], choice: RowChoice
) -> Iterator[RowRange | Sequence[int] | None]:
    """Yields row groups, or rows of one row group, in the order of the file. A row group of which more than half is
    needed is read whole.
    """
    groups = choice.row_groups(file.metadata)
    numbers = range(file.metadata.num_row_groups) if groups is None else groups
    large = [number for number in numbers if file.metadata.row_group(number).num_rows >= _FEW_ROWS]
    leaves, whole = file.leaves_of(frozenset(names)), list[int]()
    few = file.metadata.num_columns <= _MANY_COLUMNS * len(leaves)
    source = _source_of(file) if large and few else None
    if source is None:
        yield groups
        return
    for number in numbers:
        rows = _rows_of_pages(source, number, leaves, choice) if number in large else None
        if rows is None:
            whole.append(number)
            continue
        if whole:
            yield whole
            whole = []
        yield from rows
    if whole:
        yield whole


def _source_of(file: ParquetBaseFile) -> RowGroupSource | None:
    """Returns the row groups of a file whose page index may be used; None for another file, which is read without."""
    try:
        source = RowGroupSource(file)
    except TooManyValuesError:
        return None
    return source if source.is_believed and not file.hybrid_columns else None


def _rows_of_pages(
    source: RowGroupSource, number: int, leaves: Sequence[int], choice: RowChoice
) -> list[RowRange] | None:
    """Returns the rows of a row group that are read by pages; None where all are read."""
    chosen = choice.rows(source, number)
    ranges = None if chosen is None else _joined(chosen)
    if ranges is None or 2 * sum(end - first for first, end in ranges) > source.num_rows(number):
        return None
    cuts = RowGroupCuts(source, number, leaves, all_read=False)
    return [RowRange(cuts, first, end) for first, end in ranges] if cuts.is_known else None


def _joined(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Returns the ranges with those joined that lie less than a page apart: they may lie in the same pages."""
    joined: list[tuple[int, int]] = []
    for first, end in ranges:
        if joined and first - joined[-1][1] < _PAGE_ROWS:
            joined[-1] = joined[-1][0], end
        else:
            joined.append((first, end))
    return joined


def _hfile_batches(
    storage: Storage, file: DataFile, schema: pa.Schema, batch_rows: int, sources: Sequence[ColumnSource]
) -> Iterator[pa.RecordBatch]:
    """Yields an HFile's rows: Avro data by the schema in the file info (HoodieAvroHFileReaderImplBase)."""

    def read_range(offset: int, length: int) -> bytes:
        return storage.read_range(file.path, ByteRange(offset, length))

    reader = HFileReader(read_range, file.size, file.path, storage.limits)
    text = reader.schema()
    if text is None:
        raise CorruptFileError("the HFile does not hold the Avro schema of its rows", path=file.path)
    writer = rename_fields(parse_schema(text, path=file.path), sources)
    items = reader.items()
    while values := [value for _, value in islice(items, batch_rows)]:
        table = decode_records(encode_avro_records(values), len(values), writer, schema, path=file.path)
        yield from table.combine_chunks().to_batches()


def stored_names(
    names: Sequence[str], sources: Sequence[ColumnSource], stored: Sequence[str], *, path: str
) -> list[str]:
    """Returns the file's names of the query's columns `names`, without those that it lacks. `stored` are the file's
    columns. Raises UnsupportedError naming `path` for a column that the file has twice, differing in case.
    """
    by_name = {source.name: source.source for source in sources}
    sought = (by_name.get(name, name) for name in names)
    return [stored[at] for at in places(stored, [name for name in sought if name is not None], path=path) if at >= 0]


def apply_sources(batch: pa.RecordBatch, sources: Sequence[ColumnSource]) -> pa.RecordBatch:
    """Returns the file's rows under the query's column names, nested ones too. No value is copied."""
    if not sources:
        return batch
    fields = _renamed_fields(list(batch.schema), sources)
    pairs = zip(batch.columns, (field.type for field in fields), strict=True)
    columns = [column if column.type == kind else column.view(kind) for column, kind in pairs]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def rename_fields(schema: AvroSchema, sources: Sequence[ColumnSource]) -> AvroSchema:
    """Returns the Avro record schema of a log block with the query's field names. The bytes of records stay."""
    if not sources:
        return schema
    names = _new_names([field["name"] for field in schema["fields"]], sources)
    return {
        **schema,
        "fields": [
            {**field, "name": name, "type": _type(field["type"], within)}
            for field, (name, within) in zip(schema["fields"], names, strict=True)
        ],
    }


def _new_names(
    stored: Sequence[str], sources: Sequence[ColumnSource]
) -> Iterator[tuple[str, tuple[ColumnSource, ...]]]:
    """Yields the query's name of each of the file's columns, and the sources of the fields in it. A column that has the
    name of one of the query's, but another id, gets a name of its own.
    """
    by_source = {source.source: source for source in sources if source.source is not None}
    names = {source.name for source in sources}
    for number, (as_stored, name) in enumerate(zip(stored, spelled(stored, [*by_source, *names]), strict=True)):
        source = by_source.get(name)
        if source is not None:
            yield source.name, source.children
        else:
            yield (f"_dropped_{number}_{as_stored}" if name in names else as_stored), ()


def _renamed_fields(fields: Sequence[pa.Field], sources: Sequence[ColumnSource]) -> list[pa.Field]:
    renamed = zip(fields, _new_names([field.name for field in fields], sources), strict=True)
    return [field.with_name(name).with_type(_renamed(field.type, within)) for field, (name, within) in renamed]


def _renamed(kind: pa.DataType, sources: Sequence[ColumnSource]) -> pa.DataType:
    """Returns a column's type with the query's names of fields. `sources` are the children of the column's source."""
    if not sources:
        return kind
    if pa.types.is_struct(kind):
        within = _renamed_fields([kind.field(place) for place in range(kind.num_fields)], sources)
        # Within a null struct, Arrow reads a required field as null, and it views no null as required.
        return pa.struct([field.with_nullable(True) for field in within])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, kind.item_field.with_type(_renamed(kind.item_type, sources[-1].children)))
    if is_list(kind):
        make = pa.list_ if pa.types.is_list(kind) else pa.large_list
        return make(kind.value_field.with_type(_renamed(kind.value_type, sources[0].children)))
    return kind


def _type(kind: Any, sources: Sequence[ColumnSource]) -> Any:
    """Returns an Avro type with the query's names of fields, as _renamed does for an Arrow type."""
    if not sources:
        return kind
    if isinstance(kind, list):
        return [_type(branch, sources) for branch in kind]
    if not isinstance(kind, dict):
        return kind
    if kind["type"] == "record":
        return rename_fields(kind, sources)
    if kind["type"] == "array":
        return {**kind, "items": _type(kind["items"], sources[0].children)}
    if kind["type"] == "map":
        return {**kind, "values": _type(kind["values"], sources[-1].children)}
    if isinstance(kind["type"], dict | list):
        return {**kind, "type": _type(kind["type"], sources)}
    return kind
