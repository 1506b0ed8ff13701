"""Where a row group can be cut, and by how many reads a piece comes."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.codec.parquet import cuts as cuts_module
from hudi_core.codec.parquet.cuts import RowGroupCuts
from hudi_core.codec.parquet.file import ParquetBaseFile
from hudi_core.codec.parquet.pieces import Piece
from hudi_core.codec.parquet.splice import RowGroupSource

PAGED = {"write_page_index": True, "max_rows_per_page": 10, "write_batch_size": 10}


class ReadsFile(io.BytesIO):
    """Counts its reads."""

    reads = 0

    def read(self, size: int | None = -1, /) -> bytes:
        self.reads += 1
        return super().read(size)


def source_of(table: pa.Table, **options: Any) -> tuple[RowGroupSource, ReadsFile]:
    file = ReadsFile()
    pq.write_table(table, file, store_schema=False, **{**PAGED, **options})
    return RowGroupSource(ParquetBaseFile(file, "source.parquet")), file


def test_a_row_group_whose_pages_nothing_places_is_whole() -> None:
    source, _ = source_of(pa.table({"n": [[row] for row in range(40)]}), write_page_index=False)
    cuts = RowGroupCuts(source, 0, [0], all_read=True)
    assert not cuts.is_known
    assert cuts.rows.tolist() == [0, 40]


def test_without_an_index_headers_are_read_if_all_is_read() -> None:
    table = pa.table({"n": range(40)})
    for all_read in (True, False):
        source, _ = source_of(table, write_page_index=False)
        assert RowGroupCuts(source, 0, [0], all_read=all_read).is_known == all_read


def test_no_header_of_parquet_mr_is_read_without_an_index() -> None:
    """Before 1.11 it writes no index, and begins pages of each column at rows of their own."""
    for writer, known in ((b"parquet-cpp-arrow version", True), (b"parquet-mr version 1.10.1", False)):
        _, file = source_of(pa.table({"n": range(40)}), write_page_index=False)
        data = file.getvalue().replace(b"parquet-cpp-arrow version", writer)
        renamed = ReadsFile(data)
        source = RowGroupSource(ParquetBaseFile(renamed, "source.parquet"))
        before = renamed.reads
        cuts = RowGroupCuts(source, 0, [0], all_read=True)
        assert (cuts.is_known, renamed.reads > before) == (known, known)


def test_rows_at_which_some_columns_can_be_cut() -> None:
    table = pa.table({"n": range(40), "wide": ["x" * 100] * 40})
    source, _ = source_of(table, use_dictionary=False, data_page_size=2000, write_batch_size=5)
    cuts = RowGroupCuts(source, 0, [0, 1], all_read=False)
    assert 2 < len(cuts.rows) <= 5
    assert cuts.cover([0], 12, 25) == (10, 30)
    begin, stop = cuts.cover([0, 1], 12, 25)
    assert {begin, stop} <= {*cuts.rows.tolist()}
    assert begin <= 12 < 25 <= stop


@pytest.mark.parametrize("most", [1 << 20, 2000])
def test_pieces_come_by_few_reads(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row group that fits is read once. Of another, each column of a piece is read, if nothing lies together."""
    table = pa.table({f"c{number}": [f"{row:04}" for row in range(200)] for number in range(10)})
    source, file = source_of(table, use_dictionary=False, compression="none")
    monkeypatch.setattr(cuts_module, "_WHOLE", most)
    monkeypatch.setattr(cuts_module, "_GAP", 10 if most == 2000 else 1 << 20)
    cuts = RowGroupCuts(source, 0, range(10), all_read=True)
    before = file.reads
    for first, end in ((0, 10), (10, 20), (100, 110)):
        with Piece(cuts, first, end).file() as piece:
            assert pa.Table.from_batches(piece.batches()).equals(table.slice(first, end - first))
    assert file.reads - before == (1 if most > 2000 else 30)
