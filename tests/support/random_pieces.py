"""Random Parquet files whose columns begin pages at the same rows, and their row groups in pieces."""

from __future__ import annotations

import io
from collections.abc import Iterator
from itertools import pairwise
from random import Random
from typing import Any

import pyarrow as pa

from hudi_core.codec.parquet.cuts import RowGroupCuts
from hudi_core.codec.parquet.file import ParquetBaseFile
from hudi_core.codec.parquet.pieces import Piece
from hudi_core.codec.parquet.splice import RowGroupSource, WholeRowGroup
from hudi_core.codec.parquet.writer import BaseFileWriter, ParquetStyle
from tests.support.random_parquet import random_options, write

BLOCK = 40
"""Random files of a block of tests."""
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
    """Every row group cut at random rows: the first row and the end of each piece, in the row group."""
    for number in range(source.file.metadata.num_row_groups):
        cuts = RowGroupCuts(source, number, range(len(source.column_chunks(number))), all_read=random.random() < 0.7)
        rows = cuts.rows.tolist()
        chosen = [0, *sorted(random.sample(rows[1:-1], min(len(rows) - 2, random.randrange(5)))), rows[-1]]
        for first, end in pairwise(chosen):
            if end > first:
                yield cuts, first, end


def copied(random: Random, source: RowGroupSource, schema: pa.Schema) -> bytes:
    """A file of all pieces, each a row group; a row group without a cut is copied whole."""
    out = io.BytesIO()
    writer = BaseFileWriter(out, schema, path="target.parquet", style=ParquetStyle(codec="GZIP"))
    for cuts, first, end in pieces_of(random, source):
        writer.copy(Piece(cuts, first, end) if len(cuts.rows) > 2 else WholeRowGroup(source, cuts.number), {})
    writer.close({})
    return out.getvalue()
