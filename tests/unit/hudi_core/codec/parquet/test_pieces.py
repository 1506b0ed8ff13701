"""A piece of a row group that is cut out has the rows, statistics and page index of these rows."""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Callable
from itertools import pairwise
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.codec.parquet.cuts import RowGroupCuts
from hudi_core.codec.parquet.footer import Chunk, Column, File, Group, Location, footer_bytes, with_number
from hudi_core.codec.parquet.page_sink import ChunkBytes
from hudi_core.codec.parquet.pieces import Piece
from hudi_core.codec.parquet.splice import RowGroupSource, WholeRowGroup
from hudi_core.codec.parquet.thrift import I64, encode_struct, read_struct
from hudi_core.codec.parquet.writer import BaseFileWriter, ParquetStyle
from hudi_core.errors import CorruptFileError
from tests.support.random_parquet import random_table
from tests.support.random_pieces import BLOCK, paged_file, pieces_of, source_of
from tests.support.tiers import tiered


def bounds(metadata: pq.FileMetaData) -> list[tuple[Any, ...]]:
    """Least, greatest and count of nulls of each chunk."""
    found: list[tuple[Any, ...]] = []
    for number in range(metadata.num_row_groups):
        for place in range(metadata.num_columns):
            chunk = metadata.row_group(number).column(place)
            stored = chunk.statistics if chunk.is_stats_set else None
            if stored is None:
                found.append((None,))
            elif stored.has_min_max:
                found.append((stored.min_raw, stored.max_raw, stored.null_count))
            else:
                found.append((None, None, stored.null_count))
    return found


@pytest.mark.parametrize("block", tiered(range(50), [0]))
def test_random_pieces_are_copied_and_decoded(block: int) -> None:
    """Every type, encoding, codec, page version, page index or none: pieces copied, and pieces decoded and written, in
    turns. The statistics are those of the rows.
    """
    cut = unreadable = 0
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        random = Random(seed)
        table = random_table(random)
        data = paged_file(random, table)
        try:
            whole = pq.read_table(io.BytesIO(data))
        except (OSError, pa.ArrowInvalid):
            unreadable += 1  # Arrow writes lists in pages of some bytes so that it cannot read them itself
            continue
        source = source_of(data)
        assert source.refusal(table.schema) is None
        out, again = io.BytesIO(), io.BytesIO()
        writer = BaseFileWriter(out, table.schema, path="target.parquet", style=ParquetStyle(codec="GZIP"))
        judge = pq.ParquetWriter(again, table.schema, store_schema=False)
        first_row = 0
        for cuts, first, end in pieces_of(random, source):
            rows = whole.slice(first_row, end - first).cast(table.schema)
            first_row += end - first
            cut += end - first < cuts.num_rows
            if len(cuts.rows) == 2:
                writer.copy(WholeRowGroup(source, cuts.number), {})
            else:
                piece = Piece(cuts, first, end)
                with piece.file() as file:
                    decoded = pa.Table.from_batches(file.batches(), schema=table.schema)
                assert decoded.equals(rows), seed
                writer.copy(piece, {})
            judge.write_table(rows, row_group_size=max(1, rows.num_rows))
        assert first_row == whole.num_rows
        writer.close({})
        judge.close()
        read = pq.ParquetFile(io.BytesIO(out.getvalue()), page_checksum_verification=True)
        assert read.read().cast(table.schema).equals(whole.cast(table.schema)), seed
        if whole.num_rows:
            expected = bounds(pq.ParquetFile(io.BytesIO(again.getvalue())).metadata)
            found = bounds(read.metadata)
            assert all(one == due or one == (None,) for one, due in zip(found, expected, strict=True)), seed
        once_more = source_of(out.getvalue())
        target = io.BytesIO()
        writer = BaseFileWriter(target, table.schema, path="again.parquet", style=ParquetStyle(codec="GZIP"))
        for number in range(once_more.file.metadata.num_row_groups):
            writer.copy(WholeRowGroup(once_more, number), {})
        writer.close({})
        assert pq.read_table(io.BytesIO(target.getvalue())).equals(read.read()), seed
    assert cut > BLOCK / 4
    assert unreadable < BLOCK / 5


PAGED = {"write_page_index": True, "max_rows_per_page": 10, "write_batch_size": 10, "write_page_checksum": False}


def with_first_rows(leaf: int, change: Callable[[list[int]], list[int]], **options: Any) -> RowGroupSource:
    """A file whose page index says other rows of one column."""
    table = pa.table({"n": range(40), "list": [[row] * (row % 3) for row in range(40)]})
    file = io.BytesIO()
    pq.write_table(table, file, store_schema=False, **{**PAGED, **options})
    source = source_of(file.getvalue())
    index = source.part(source.column_chunks(0)[leaf], Chunk.offset_index)
    fields, _ = read_struct(index)
    locations = fields[1][1].values
    for location, row in zip(locations, change([one[Location.first_row][1] for one in locations]), strict=True):
        location[Location.first_row] = (I64, row)
    changed = encode_struct(fields)
    assert len(changed) == len(index)
    return source_of(file.getvalue().replace(index, changed))


@pytest.mark.parametrize("leaf", [0, 1])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_a_page_index_that_says_other_rows_is_refused(leaf: int, version: str) -> None:
    """Of pages of lists in version 1 only Arrow knows the rows: a piece with too few is refused."""
    source = with_first_rows(leaf, lambda rows: [rows[0], rows[1] + 1, *rows[2:]], data_page_version=version)
    cuts = RowGroupCuts(source, 0, [leaf], all_read=True)
    pieces = [Piece(cuts, first, end) for first, end in pairwise(cuts.rows.tolist())]
    assert len(pieces) == 4
    other = {("list.list.element" if leaf == 0 else "n"): ChunkBytes({}, b"", 0)}
    with pytest.raises(CorruptFileError, match=r" rows") as caught:
        deque(chunk for piece in pieces for chunk in piece.chunks(other))
    assert caught.value.path == "source.parquet"


@pytest.mark.parametrize("fields", [("text", "list"), ("list", "text")])
def test_a_struct_of_a_list_and_a_scalar_is_cut(fields: tuple[str, str]) -> None:
    """The pages of the scalar are needed to count the rows of the list."""
    rows = [{"text": f"{row} " * 30, "list": [row] * (row % 3)} for row in range(40)]
    table = pa.table({"n": [{name: row[name] for name in fields} for row in rows]})
    file = io.BytesIO()
    pq.write_table(table, file, store_schema=False, **PAGED)
    cuts = RowGroupCuts(source_of(file.getvalue()), 0, [0, 1], all_read=True)
    out = io.BytesIO()
    writer = BaseFileWriter(out, table.schema, path="target.parquet")
    for first, end in pairwise(cuts.rows.tolist()):
        writer.copy(Piece(cuts, first, end), {})
    writer.close({})
    assert pq.read_metadata(out).num_row_groups == 4
    assert pq.read_table(out).equals(table)


def test_pages_by_codes_without_a_dictionary_are_refused() -> None:
    table = pa.table({"n": ["a", "b"] * 20})
    file = io.BytesIO()
    pq.write_table(table, file, store_schema=False, **PAGED)
    source = source_of(file.getvalue())
    (chunk,) = source.column_chunks(0)
    begin, _ = source.extent(chunk[Chunk.metadata][1])
    data = bytearray(file.getvalue())
    # The dictionary's type: a data page.
    assert data[begin + 1] == 4
    data[begin + 1] = 0
    cuts = RowGroupCuts(source_of(bytes(data)), 0, [0], all_read=False)
    with pytest.raises(CorruptFileError, match="row group 0"):
        list(Piece(cuts, 10, 20).chunks({}))


@pytest.mark.parametrize("whole", [True, False])
def test_a_replaced_column_without_a_value_for_each_row_is_refused(whole: bool) -> None:
    """Found by the fuzzer: Arrow reads no row of such a row group, and the copy would have all."""
    table = pa.table({"n": range(40), "name": ["x"] * 40})
    file = io.BytesIO()
    pq.write_table(table, file, store_schema=False, **PAGED)
    data = file.getvalue()
    footer = footer_bytes(data)
    fields, _ = read_struct(footer)
    with_number(
        fields[File.row_groups][1].values[0][Group.columns][1].values[1][Chunk.metadata][1], Column.num_values, -64
    )
    changed = encode_struct(fields)
    source = source_of(data[: -8 - len(footer)] + changed + len(changed).to_bytes(4, "little") + b"PAR1")
    rows = WholeRowGroup(source, 0) if whole else Piece(RowGroupCuts(source, 0, [0], all_read=True), 0, 10)
    writer = BaseFileWriter(io.BytesIO(), table.schema, path="target.parquet")
    with pytest.raises(CorruptFileError, match="-64 values"):
        writer.copy(rows, {"name": pa.array(["y"] * rows.num_rows)})
