"""Texts of a dictionary come as they are, in batches of so many bytes."""

from __future__ import annotations

import io
import os
from itertools import islice

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.codec.parquet.file import ParquetBaseFile
from hudi_core.codec.parquet.splice import RowGroupSource, WholeRowGroup
from hudi_core.codec.parquet.writer import BaseFileWriter
from tests.support.tiers import tiered


@pytest.mark.parametrize("name", ["text", "list", "struct", "map"])
def test_a_long_text_that_is_repeated_comes_in_small_batches(name: str) -> None:
    """Its file is small, whatever its rows are; no statistics tell of a text between the least and the greatest."""
    rows, long = 100_000, "m" * (1 << 20)
    codes = pa.array([0, 2, *[1] * (rows - 2)], pa.int32())
    text = pa.DictionaryArray.from_arrays(codes, pa.array(["a", long, "z"]))
    ends = pa.array(range(rows + 1), pa.int32())
    columns = {
        "text": text,
        "list": pa.ListArray.from_arrays(ends, text),
        "struct": pa.StructArray.from_arrays([text, codes], ["text", "code"]),
        "map": pa.MapArray.from_arrays(ends, pa.repeat("k", rows), text),
    }
    for limit in (2 << 20, 64 << 10):  # with the texts in the dictionary, and without where it gets too large
        file = io.BytesIO()
        table = pa.table({"row": range(rows), name: columns[name]}).slice(0, rows if limit > len(long) else 200)
        pq.write_table(table, file, dictionary_pagesize_limit=limit, store_schema=False, row_group_size=rows // 3)
        seen = 0
        for batch in islice(ParquetBaseFile(file, "f.parquet").batches(batch_bytes=4 << 20), 20):
            assert batch.nbytes < 5 << 20
            values = batch.column(name).to_pylist()
            found = {
                "text": lambda v: v,
                "list": lambda v: v[0],
                "struct": lambda v: v["text"],
                "map": lambda v: v[0][1],
            }
            for at, value in enumerate(values, seen):
                assert found[name](value) == ("a", "z")[at] if at < 2 else long
            assert batch["row"].to_pylist() == list(range(seen, seen + batch.num_rows))
            seen += batch.num_rows
        assert seen >= 40


@pytest.mark.parametrize("store_schema", tiered([True, False], [True]))
def test_texts_come_back_whatever_form_they_have(store_schema: bool) -> None:
    """Codes in several row groups, those that end within one, nulls, and Arrow's own forms of texts."""
    rows = 6000
    few = [None if at % 11 == 0 else f"name-{at % 7}" for at in range(rows)]
    many = few[: rows // 2] + [f"{at:030d}" for at in range(rows // 2)]
    table = pa.table(
        {
            "large": pa.array(many, pa.large_string()),
            "bytes": pa.array([text and text.encode() for text in few], pa.binary()),
            "codes": pa.array(few).dictionary_encode(),
            "lists": pa.array([None if text is None else [text, None] * (at % 3) for at, text in enumerate(many)]),
            "maps": pa.array([text and [(text, text)] for text in few], pa.map_(pa.string(), pa.string())),
            "structs": pa.array([{"text": text, "deep": {"list": [text]}} for text in many]),
            "none": pa.nulls(rows, pa.string()),
        }
    )
    file = io.BytesIO()
    pq.write_table(table, file, row_group_size=2100, dictionary_pagesize_limit=10_000, store_schema=store_schema)
    base = ParquetBaseFile(file, "f.parquet")
    for options in ({}, {"batch_rows": 900}, {"batch_bytes": 30_000}):
        for columns in (None, ["lists", "codes"]):
            found = pa.Table.from_batches(base.batches(columns, **options))
            assert found.to_pylist() == table.select(found.column_names).to_pylist()
            assert found.schema.equals(base.schema.remove_metadata() if columns is None else found.schema)
            assert not any(map(pa.types.is_dictionary, found.schema.types[:2])) or store_schema


def test_a_column_has_codes_in_one_row_group_and_deltas_in_another() -> None:
    """As in a file with row groups of others. Arrow makes no codes of delta encodings."""
    many = pa.table({"text": [os.urandom(8).hex() for _ in range(200)], "list": [["a", str(at)] for at in range(200)]})
    few = pa.table({"text": ["a" * 1000, "b"] * 100, "list": [["a"], None] * 100})
    other = io.BytesIO()
    pq.write_table(few, other, compression="gzip", use_dictionary=["text"], store_schema=False)
    file = io.BytesIO()
    writer = BaseFileWriter(file, many.schema, path="f.parquet")
    writer.write(many)
    writer.copy(WholeRowGroup(RowGroupSource(ParquetBaseFile(other, "other.parquet")), 0), {})
    writer.write(many)
    writer.close({})
    base = ParquetBaseFile(file, "f.parquet")
    chunks = [base.metadata.row_group(number).column(0) for number in range(3)]
    assert [chunk.has_dictionary_page for chunk in chunks] == [False, True, False]
    assert "DELTA_LENGTH_BYTE_ARRAY" in chunks[0].encodings
    for options in ({}, {"batch_bytes": 5000}, {"row_groups": [0, 1, 2]}):
        assert pa.Table.from_batches(base.batches(**options)).equals(pa.concat_tables([many, few, many]))
