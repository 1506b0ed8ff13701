"""A piece of a row group that is cut out has the rows, statistics and page index of these rows."""

from __future__ import annotations

import io
from collections.abc import Iterator
from itertools import pairwise
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.codec.parquet.cuts import Piece, RowGroupCuts
from hudi_core.codec.parquet.file import ParquetBaseFile
from hudi_core.codec.parquet.splice import RowGroupSource, WholeRowGroup
from hudi_core.codec.parquet.writer import BaseFileWriter, ParquetStyle
from tests.support.random_parquet import random_options, random_table, write
from tests.support.tiers import tiered

BLOCK = 40
"""Random files of a block; `make test` takes one block, `make conformance` 49 more."""
CODECS = ["none", "snappy", "gzip", "zstd"]


def source_of(data: bytes) -> RowGroupSource:
    return RowGroupSource(ParquetBaseFile(io.BytesIO(data), "source.parquet"))


def paged_file(random: Random, table: pa.Table, **options: Any) -> bytes:
    """The table in row groups whose columns begin pages at the same rows."""
    file = io.BytesIO()
    rows = random.choice([1, 3, 10, 50])
    chosen = {
        **random_options(random, table),
        "compression": random.choice(CODECS),
        "data_page_size": random.choice([1 << 20, 1 << 20, 300]),
        "max_rows_per_page": rows,
        "write_batch_size": rows,
        **options,
    }
    write(table, file, random, **chosen).close()
    return file.getvalue()


def pieces_of(random: Random, source: RowGroupSource) -> Iterator[tuple[RowGroupCuts, int, int]]:
    """Every row group cut at random rows."""
    for number in range(source.file.metadata.num_row_groups):
        cuts = RowGroupCuts(source, number, range(len(source.column_chunks(number))), all_read=random.random() < 0.7)
        rows = cuts.rows.tolist()
        chosen = [0, *sorted(random.sample(rows[1:-1], min(len(rows) - 2, random.randrange(5)))), rows[-1]]
        for first, end in pairwise(chosen):
            if end > first:
                yield cuts, first, end


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
