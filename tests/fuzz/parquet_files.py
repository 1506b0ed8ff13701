"""Parquet files for the fuzzer: read as a base file, and copied by row groups and by pieces, as compaction does."""

from __future__ import annotations

import io
from collections.abc import Iterable
from functools import cache
from itertools import pairwise
from random import Random

import pyarrow as pa

from hudi_core.codec.parquet.cuts import RowGroupCuts
from hudi_core.codec.parquet.file import ParquetBaseFile
from hudi_core.codec.parquet.footer import footer_of
from hudi_core.codec.parquet.page_sink import CopiedRows
from hudi_core.codec.parquet.pieces import Piece
from hudi_core.codec.parquet.splice import RowGroupSource, WholeRowGroup
from hudi_core.codec.parquet.writer import BaseFileWriter, ParquetStyle
from hudi_core.errors import UnsupportedError
from tests.support.random_parquet import FLAT, random_file

PATH = "fuzzed.bin"
RESERVED_MIB = 6 * 1024
"""Arrow reserves a byte for each miniblock that the header of a delta encoded page names, up to 4 GiB, and finds the
page wrong before it touches them: what such a page takes shows in resident memory alone.
"""
_ROWS = 60


@cache
def table() -> pa.Table:
    """Columns of every flat type, a list, a map and a struct."""
    random = Random(5)
    columns = {
        f"c{at}": pa.array([make(random, row) for row in range(_ROWS)], kind) for at, (kind, make) in enumerate(FLAT)
    }
    columns["list"] = pa.array([[row, None][: row % 3] for row in range(_ROWS)], pa.list_(pa.int32()))
    columns["map"] = pa.array([[("k", row)] * (row % 2) for row in range(_ROWS)], pa.map_(pa.string(), pa.int64()))
    columns["struct"] = pa.array([{"a": row, "b": str(row)} if row % 4 else None for row in range(_ROWS)])
    return pa.table(columns)


@cache
def written() -> bytes:
    """A file of ours with two row groups, checksums and a page index."""
    out = io.BytesIO()
    writer = BaseFileWriter(out, table().schema, path=PATH, style=ParquetStyle(row_group_rows=_ROWS // 2))
    writer.write(table())
    writer.close({"key": "value"})
    return out.getvalue()


def files() -> list[bytes]:
    """That file, and some of Arrow with other pages and encodings. Most can be cut every five rows."""
    options = [("none", "1.0"), ("zstd", "2.0"), ("gzip", "1.0")]
    rows = table().slice(0, 20)
    return [
        written(),
        *(
            random_file(
                Random(at),
                rows,
                compression=codec,
                data_page_version=version,
                store_schema=False,
                max_rows_per_page=5,
                write_batch_size=5,
                data_page_size=1 << 20,
                write_page_index=at != 1,
            )
            for at, (codec, version) in enumerate(options)
        ),
    ]


def footers() -> list[bytes]:
    """The footer of the file of ours."""
    footer = footer_of(written())[1]
    assert footer is not None
    return [footer]


def run_footer(footer: bytes) -> None:
    """The pages of the file of ours under another footer."""
    length, _ = footer_of(written())
    run_copies(written()[: -8 - length] + footer + len(footer).to_bytes(4, "little") + b"PAR1")


def run_copies(data: bytes) -> None:
    """What is copied is read again as it is read from the file itself, where it is read there."""
    with ParquetBaseFile(io.BytesIO(data), PATH) as file:
        source = RowGroupSource(file)
        schema = table().schema
        if (refusal := source.refusal(schema)) is not None:
            raise UnsupportedError(refusal, path=PATH)
        numbers = range(file.metadata.num_row_groups)
        whole = _copied(WholeRowGroup(source, number) for number in numbers)
        pieces = [piece for number in numbers for piece in _pieces(source, number)]
        cut = _copied(pieces)
        batches = list(file.batches())
        decoded = [batch for piece in pieces if isinstance(piece, Piece) for batch in _decoded(piece)]
    shown = _shown(batches, schema)
    for copy in (whole, cut):
        with ParquetBaseFile(copy, "copy.parquet") as copied:
            assert _shown(copied.batches(), copied.schema) == shown
    if all(isinstance(piece, Piece) for piece in pieces):
        assert _shown(decoded, schema) == shown


def _pieces(source: RowGroupSource, number: int) -> list[CopiedRows]:
    """A row group in two pieces or three; whole where it cannot be cut."""
    cuts = RowGroupCuts(source, number, range(len(source.column_chunks(number))), all_read=number % 2 == 0)
    rows = cuts.rows.tolist()
    ends = sorted({0, rows[len(rows) // 3], rows[len(rows) // 2], rows[-1]})
    pieces: list[CopiedRows] = [Piece(cuts, first, end) for first, end in pairwise(ends)]
    return pieces if len(pieces) > 1 else [WholeRowGroup(source, number)]


def _copied(parts: Iterable[CopiedRows]) -> io.BytesIO:
    out = io.BytesIO()
    writer = BaseFileWriter(out, table().schema, path="copy.parquet")
    for rows in parts:
        count = rows.num_rows
        writer.copy(rows, {"c1": pa.nulls(min(count, 1000), pa.int32())} if 0 <= count <= 1000 else {})
    writer.close({})
    return out


def _decoded(piece: Piece) -> list[pa.RecordBatch]:
    with piece.file() as file:
        return list(file.batches())


def _shown(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> str:
    """The rows without `c1` as text, since no NaN equals itself. Damaged text may not be UTF-8, and damaged times are
    of no calendar: these are shown as bytes and numbers.
    """
    rows = pa.Table.from_batches(batches, schema).drop_columns("c1")
    return str(rows.cast(pa.schema([(field.name, _raw(field.type)) for field in rows.schema])).to_pylist())


def _raw(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_string(kind):
        return pa.binary()
    if pa.types.is_temporal(kind):
        return pa.int32() if kind.bit_width == 32 else pa.int64()
    if pa.types.is_list(kind):
        return pa.list_(_raw(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_raw(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_raw(kind.key_type), _raw(kind.item_type))
    return kind
