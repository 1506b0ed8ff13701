"""Pages that cannot hold a matching row are not read, and no row that matches is lost."""

from __future__ import annotations

import io
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from hudi_core.codec.parquet.file import ParquetBaseFile
from hudi_core.codec.parquet.footer import Chunk
from hudi_core.codec.parquet.splice import RowGroupSource
from hudi_core.codec.parquet.thrift import encode_struct, read_struct
from hudi_core.errors import CorruptFileError
from hudi_core.expr.bind import bind
from hudi_core.expr.bound import row_mask
from hudi_core.expr.sql import parse_predicate
from hudi_core.expr.tree import Expr
from hudi_core.filegroup.read import base_file
from hudi_core.filegroup.read.base_file import read_base_file
from hudi_core.index.page_skipping import row_choice
from hudi_core.view.file_group import DataFile
from tests.support.memory_storage import MemoryStorage
from tests.support.random_predicates import SCHEMA, predicates, rows
from tests.support.slice_readers import made_up_spec
from tests.support.table_configs import config_of

FILE = DataFile("", "f1_1-0-1_20260101000000000.parquet", 1)
SORTED = pa.table({"id": [f"k{number:05}" for number in range(1000)], "n": range(1000), "u": [{"b": 1}] * 1000})
PAGES = {"write_page_index": True, "max_rows_per_page": 10, "write_batch_size": 10}


def written(table: pa.Table, **options: Any) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file, store_schema=False, **{**PAGES, **options})
    return file.getvalue()


class CountingFile(io.BytesIO):
    """Counts what is read of it."""

    count = 0
    calls = 0

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        self.count += len(data)
        self.calls += 1
        return data


def read(
    data: bytes, expr: Expr, schema: pa.Schema, monkeypatch: pytest.MonkeyPatch, few_rows: int = 1
) -> tuple[list[pa.RecordBatch], CountingFile]:
    """The rows that the choice leaves, and the file that was read."""
    file, storage = CountingFile(data), MemoryStorage()
    monkeypatch.setattr(base_file, "_FEW_ROWS", few_rows)
    monkeypatch.setattr(base_file, "_PAGE_ROWS", 1)
    monkeypatch.setattr(storage, "open_input", lambda path: file)
    choice = row_choice(bind(expr, schema), made_up_spec(config_of()))
    return list(read_base_file(storage, FILE, schema, batch_rows=1 << 16, choice=choice)), file


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(batch=rows(1, 40), expr=predicates())
def test_the_pages_left_have_all_rows_that_match(batch: pa.RecordBatch, expr: Expr) -> None:
    bound, random = bind(expr, SCHEMA), Random(batch.num_rows)
    pages = {
        "max_rows_per_page": random.choice([1, 3, 100]),
        "data_page_size": random.choice([1, 30, 1 << 20]),
        "write_batch_size": 1,
    }
    data = written(pa.Table.from_batches([batch]), row_group_size=random.choice([7, 40]), **pages)
    with pytest.MonkeyPatch.context() as patch:
        batches, _ = read(data, expr, SCHEMA, patch)
    found = [row for part in batches for row in part.filter(row_mask(bound, part)).to_pylist()]
    assert repr(found) == repr(batch.filter(row_mask(bound, batch)).to_pylist())


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("id = 'k00500'", 10),
        ("id in ('k00009', 'k00010', 'k00995')", 30),
        ("n between 15 and 25 or id = 'k00999'", 30),
        ("n = 5 and id = 'k00500'", 0),
        ("id > 'k00499'", 500),
        ("id > 'k00400'", 1000),
        ("u.b = 1", 1000),
    ],
)
def test_only_pages_that_may_match_are_read(text: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where more than half of the rows are left, all are read: by Arrow, without the page index."""
    batches, _ = read(written(SORTED), parse_predicate(text), SORTED.schema, monkeypatch)
    assert sum(batch.num_rows for batch in batches) == count


def test_a_point_lookup_reads_a_page_of_each_column_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Footer (two reads), page index, and one read for pages that lie near each other."""
    data = written(SORTED, use_dictionary=False, compression="none")
    _, file = read(data, parse_predicate("id = 'k00500'"), SORTED.schema, monkeypatch)
    assert file.calls <= 4
    wide = SORTED.append_column("wide", [pa.array([Random(0).randbytes(8000) for _ in range(1000)])])
    data = written(wide, use_dictionary=False, compression="none")
    _, file = read(data, parse_predicate("id = 'k00500'"), wide.schema, monkeypatch)
    assert file.count < len(data) / 20
    assert file.calls <= 6


@pytest.mark.parametrize("without", ["index", "writer", "few"])
def test_all_rows_are_read_where_pages_cannot_be_chosen(without: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = written(SORTED, write_page_index=without != "index")
    if without == "writer":
        data = data.replace(b"parquet-cpp-arrow version", b"parquet-cpp-other version")
    expr = parse_predicate("id = 'k00500'")
    batches, _ = read(data, expr, SORTED.schema, monkeypatch, few_rows=2000 if without == "few" else 1)
    assert pa.Table.from_batches(batches).equals(SORTED)


@pytest.mark.parametrize(("columns", "count"), [(1, 1000), (4, 10)])
def test_a_few_columns_of_many_are_read_without_the_tree_of_the_footer(
    columns: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = SORTED.select(["id"])
    for number in range(50):
        wide = wide.append_column(f"c{number}", [pa.nulls(1000, pa.int32())])
    schema = wide.select(range(columns)).schema
    batches, _ = read(written(wide), parse_predicate("id = 'k00500'"), schema, monkeypatch)
    assert sum(batch.num_rows for batch in batches) == count


def test_a_bound_that_is_no_value_names_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    data = written(SORTED, use_dictionary=False, compression="none")
    source = RowGroupSource(ParquetBaseFile(io.BytesIO(data), "f"))
    index = source.part(source.column_chunks(0)[1], Chunk.column_index)
    fields, _ = read_struct(index)
    least = fields[2][1].values
    least[0], least[1] = least[0][:-1], least[1] + b"x"
    with pytest.raises(CorruptFileError, match="row group 0") as caught:
        read(data.replace(index, encode_struct(fields)), parse_predicate("n = 5"), SORTED.schema, monkeypatch)
    assert caught.value.path == FILE.path
