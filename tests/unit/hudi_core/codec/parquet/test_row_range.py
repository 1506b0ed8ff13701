"""Rows of a row group are read from the pages that hold them, also where columns have pages of their own."""

from __future__ import annotations

import io
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_core.codec.parquet.cuts import RowGroupCuts
from hudi_core.codec.parquet.file import ParquetBaseFile
from hudi_core.codec.parquet.row_range import RowRange
from hudi_core.codec.parquet.splice import RowGroupSource

TABLE = pa.table(
    {
        "name": ["one file"] * 500,
        "key": [f"k{row:04}" for row in range(500)],
        "text": [f"{row} " * (row % 40) for row in range(500)],
        "list": [[row] * (row % 4) for row in range(500)],
        "a.b": range(500),
    }
)


def test_any_rows_of_any_columns_in_any_batches() -> None:
    """Pages of text and list end by their bytes, others by their rows."""
    file = io.BytesIO()
    pages = {"write_page_index": True, "max_rows_per_page": 60, "write_batch_size": 4, "data_page_size": 900}
    pq.write_table(TABLE, file, store_schema=False, use_dictionary=["name"], **pages)
    source = RowGroupSource(ParquetBaseFile(file, "f"))
    leaves = range(len(source.column_chunks(0)))
    cuts = RowGroupCuts(source, 0, leaves, all_read=False)
    assert cuts.is_known
    assert len(cuts.rows) < len({*cuts.rows.tolist(), *RowGroupCuts(source, 0, [1], all_read=False).rows.tolist()})
    for seed in range(60):
        random = Random(seed)
        first, end = sorted(random.sample(range(501), 2))
        names = random.sample(TABLE.column_names, random.randrange(1, 6))
        rows = RowRange(cuts, first, end).batches(
            names, random.choice([7, 1000]), batch_bytes=random.choice([300, 1 << 20])
        )
        ordered = [name for name in TABLE.column_names if name in names]
        found = pa.Table.from_batches(rows)
        assert found.cast(TABLE.select(ordered).schema).equals(TABLE.select(ordered).slice(first, end - first)), seed


def test_repeated_long_texts_are_read_in_batches_of_the_bytes_asked_for() -> None:
    """A dictionary has each text once: its pages say nothing of the bytes of rows."""
    texts = pa.array([f"{row % 4}" * 10_000 for row in range(2_000)])
    file = io.BytesIO()
    pages = {"write_page_index": True, "max_rows_per_page": 500, "write_batch_size": 100}
    pq.write_table(pa.table({"text": texts, "n": range(2_000)}), file, store_schema=False, **pages)
    cuts = RowGroupCuts(RowGroupSource(ParquetBaseFile(file, "f")), 0, [0, 1], all_read=False)
    batches = list(RowRange(cuts, 250, 1_750).batches(["text", "n"], 1 << 16, batch_bytes=1 << 20))
    assert max(batch.nbytes for batch in batches) < 1 << 21
    assert [row for batch in batches for row in batch.column(1).to_pylist()] == list(range(250, 1_750))
