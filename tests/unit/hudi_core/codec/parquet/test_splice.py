"""Row groups that are copied into another file hold the same rows, and what is no row group is refused."""

from __future__ import annotations

import gc
import io
import zipfile
from collections.abc import Callable
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.codec.parquet.file import ParquetBaseFile
from hudi_core.codec.parquet.footer import Chunk, Column, File, Group, footer_of
from hudi_core.codec.parquet.splice import RowGroupSource, WholeRowGroup
from hudi_core.codec.parquet.thrift import Struct, encode_struct, read_struct
from hudi_core.codec.parquet.writer import BaseFileWriter, ParquetStyle
from hudi_core.errors import CorruptFileError, FormatError, HudiError
from tests.support.golden_data import golden_root
from tests.support.random_parquet import random_file, random_table
from tests.support.tiers import tiered

BLOCK = 40
"""Random files of a block; `make test` takes one block, `make conformance` 49 more."""
CODECS = ["none", "snappy", "gzip", "zstd", "brotli"]


def source_of(data: bytes) -> RowGroupSource:
    return RowGroupSource(ParquetBaseFile(io.BytesIO(data), "source.parquet"))


def spliced(
    parts: list[bytes | pa.Table], schema: pa.Schema, replaced: dict[str, Any] | None = None, **style: Any
) -> bytes:
    """Files whose row groups are copied, and tables that are written, in turns."""
    out = io.BytesIO()
    writer = BaseFileWriter(out, schema, path="target.parquet", style=ParquetStyle(**style))
    for part in parts:
        if isinstance(part, pa.Table):
            writer.write(part)
            continue
        source = source_of(part)
        assert source.refusal(schema) is None
        for number in range(source.file.metadata.num_row_groups):
            rows = source.file.metadata.row_group(number).num_rows
            writer.copy(
                WholeRowGroup(source, number),
                {name: pa.repeat(value, rows) for name, value in (replaced or {}).items()},
            )
    writer.close({"k": "v"})
    return out.getvalue()


@pytest.mark.parametrize("block", tiered(range(50), [0]))
def test_random_row_groups_are_copied(block: int) -> None:
    """Every type, encoding, codec, page version, checksums or none, in turns with row groups that are written."""
    copied = unreadable = indexed = 0
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        random = Random(seed)
        table = random_table(random)
        parts: list[bytes | pa.Table] = []
        try:
            for _ in range(random.randrange(1, 5)):
                if random.random() < 0.3:
                    parts.append(table)
                else:
                    parts.append(random_file(Random(random.random()), table, compression=random.choice(CODECS)))
                    pq.read_table(io.BytesIO(parts[-1]))
        except (OSError, pa.ArrowInvalid):
            unreadable += 1  # Arrow writes lists in pages of some bytes so that it cannot read them itself
            continue
        data = spliced(parts, table.schema, codec=random.choice(["GZIP", "ZSTD", "UNCOMPRESSED"]))
        read = pq.ParquetFile(io.BytesIO(data), page_checksum_verification=True)
        rows = pa.concat_tables(
            [part if isinstance(part, pa.Table) else pq.read_table(io.BytesIO(part)) for part in parts],
            promote_options="permissive",
        )
        assert read.read().cast(table.schema).equals(rows.cast(table.schema)), seed
        assert read.metadata.num_rows == rows.num_rows
        assert read.metadata.metadata[b"k"] == b"v"
        groups = read_struct(footer_of(data)[1] or b"")[0][File.row_groups][1].values
        assert [group[Group.ordinal][1] for group in groups] == list(range(len(groups)))
        for group in groups:
            indexed += sum(Chunk.offset_index[0] in chunk for chunk in group[Group.columns][1].values)
        copied += sum(isinstance(part, bytes) for part in parts)
        assert source_of(data).refusal(table.schema) is None
        again = spliced([data], table.schema)
        assert pq.read_table(io.BytesIO(again)).equals(read.read())
    assert copied > BLOCK
    assert unreadable < BLOCK / 10
    assert indexed > 100


def keyed(rows: int, **options: Any) -> tuple[pa.Table, bytes]:
    table = pa.table({"key": [f"k{n:06}" for n in range(rows)], "name": ["old"] * rows, "n": list(range(rows))})
    file = io.BytesIO()
    pq.write_table(table, file, store_schema=False, write_page_index=True, **options)
    return table, file.getvalue()


def test_a_column_is_replaced() -> None:
    table, data = keyed(5000, row_group_size=2000, compression="zstd")
    read = pq.read_table(io.BytesIO(spliced([data], table.schema, {"name": pa.scalar("new")}, codec="ZSTD")))
    assert read.equals(table.set_column(1, "name", pa.array(["new"] * 5000)))


@pytest.mark.parametrize("style", [{"row_group_rows": 7}, {"row_group_bytes": 1 << 10}])
@pytest.mark.parametrize("value", ["n", None])
def test_a_replaced_column_has_the_rows_of_the_group(style: dict[str, Any], value: str | None) -> None:
    """Also where the new file's own row groups are smaller."""
    table, data = keyed(5000, row_group_size=2000)
    for part in ([data], [table.slice(0, 10), data]):
        read = pq.ParquetFile(io.BytesIO(spliced(part, table.schema, {"name": pa.scalar(value, pa.string())}, **style)))
        copied = read.read().slice(read.metadata.num_rows - 5000)
        assert copied.equals(table.set_column(1, "name", pa.array([value] * 5000, pa.string())))
        groups = [read.metadata.row_group(number) for number in range(read.metadata.num_row_groups)]
        assert [group.num_rows for group in groups[-3:]] == [2000, 2000, 1000]
        assert all(group.column(1).num_values == group.num_rows for group in groups)


def test_a_replaced_column_of_other_rows_is_refused() -> None:
    table, data = keyed(50)
    writer = BaseFileWriter(io.BytesIO(), table.schema, path="target.parquet")
    with pytest.raises(FormatError, match="a row group of 50 rows"):
        writer.copy(WholeRowGroup(source_of(data), 0), {"name": pa.array(["x"] * 49)})


def test_an_abandoned_writer_is_collected_quietly(capfd: pytest.CaptureFixture[str]) -> None:
    table, data = keyed(50)
    writer = BaseFileWriter(io.BytesIO(), table.schema, path="target.parquet", style=ParquetStyle(row_group_rows=10))
    writer.write(table)
    writer.copy(WholeRowGroup(source_of(data), 0), {})
    writer.abandon()
    del writer
    gc.collect()
    assert capfd.readouterr().err == ""


def test_the_bytes_of_other_columns_are_those_of_the_file() -> None:
    table, data = keyed(2000, compression="zstd", row_group_size=1000)
    out = spliced([data], table.schema, codec="GZIP")
    source, target = (pq.ParquetFile(io.BytesIO(found)).metadata for found in (data, out))
    for group in range(2):
        for column in range(3):
            old, new = source.row_group(group).column(column), target.row_group(group).column(column)
            begin = [chunk.dictionary_page_offset or chunk.data_page_offset for chunk in (old, new)]
            size = old.total_compressed_size
            assert out[begin[1] : begin[1] + size] == data[begin[0] : begin[0] + size]
            assert (new.statistics, new.compression) == (old.statistics, "ZSTD")
            assert (new.has_column_index, new.has_offset_index) == (True, True)


def test_a_reader_of_the_page_index_finds_copied_pages() -> None:
    """The offset index names the first byte of a page's header, behind written and replaced columns, too."""
    table, data = keyed(20_000, row_group_size=9000, data_page_size=4096, use_dictionary=False)
    out = spliced([table, data], table.schema, {"name": pa.scalar("a longer name than before")})
    places = 0
    for group in read_struct(footer_of(out)[1] or b"")[0][File.row_groups][1].values:
        for chunk in group[Group.columns][1].values:
            inner = chunk[Chunk.metadata][1]
            index, _ = read_struct(out, chunk[Chunk.offset_index[0]][1])
            end = inner[Column.data_offset][1]
            for page in index[1][1].values:
                assert page[1][1] == end
                header, body = read_struct(out, page[1][1])
                end = body + header[3][1]
                assert end == page[1][1] + page[2][1]
                places += 1
    assert places > 30


def changed(data: bytes, change: Callable[[Struct], None]) -> bytes:
    """The file with another footer."""
    length, footer = footer_of(data)
    tree, _ = read_struct(footer or b"")
    change(tree)
    moved = encode_struct(tree)
    return data[: -8 - length] + moved + len(moved).to_bytes(4, "little") + b"PAR1"


def test_what_says_the_same_in_another_form_is_copied() -> None:
    """Old writers have converted types alone, and every writer its own name of the root."""

    def old(tree: Struct) -> None:
        for found in tree[File.schema][1].values:
            found.pop(10, None)  # logicalType of a SchemaElement
        tree[File.schema][1].values[0][4] = 8, b"spark_schema"

    kinds = [pa.string(), pa.decimal128(9, 2), pa.date32(), pa.timestamp("us", tz="UTC"), pa.int8(), pa.uint32()]
    schema = pa.schema([(f"c{number}", kind) for number, kind in enumerate(kinds)])
    file = io.BytesIO()
    pq.write_table(schema.empty_table(), file, store_schema=False)
    assert source_of(changed(file.getvalue(), old)).refusal(schema) is None


@pytest.mark.parametrize(
    ("schema", "word"),
    [
        (pa.schema([("key", pa.string()), ("name", pa.string())]), "another schema"),
        (pa.schema([("key", pa.binary()), ("name", pa.string()), ("n", pa.int64())]), "another schema"),
        (pa.schema([("key", pa.string()), ("name", pa.string()), ("n", pa.int32())]), "another schema"),
        (pa.schema([("key", pa.string()), ("n", pa.int64()), ("name", pa.string())]), "another schema"),
        (
            pa.schema([("key", pa.string()), ("name", pa.string()), pa.field("n", pa.int64(), nullable=False)]),
            "another schema",
        ),
        (pa.schema([("key", pa.string()), ("name", pa.string()), ("n", pa.timestamp("us"))]), "another schema"),
    ],
)
def test_another_schema_is_not_copied(schema: pa.Schema, word: str) -> None:
    assert word in (source_of(keyed(3)[1]).refusal(schema) or "")


def test_times_in_another_zone_or_unit_are_not_copied() -> None:
    kinds = [pa.timestamp("us"), pa.timestamp("us", tz="UTC"), pa.timestamp("ms")]
    files = []
    for kind in kinds:
        file = io.BytesIO()
        pq.write_table(pa.schema([("t", kind)]).empty_table(), file, store_schema=False)
        files.append(file.getvalue())
    refused = [[source_of(data).refusal(pa.schema([("t", kind)])) is not None for kind in kinds] for data in files]
    assert refused == [[left != right for right in range(3)] for left in range(3)]


@pytest.mark.parametrize(
    "created_by", [b"parquet-mr version 1.6.0 (build x)", b"parquet-mr version 1.7.0rc2", b"impala", b""]
)
def test_the_statistics_of_unknown_writers_are_not_copied(created_by: bytes) -> None:
    table, data = keyed(3)
    other = changed(data, lambda tree: tree.__setitem__(File.created_by, (8, created_by)))
    assert "not believed" in (source_of(other).refusal(table.schema) or "")


@pytest.mark.parametrize("created_by", [b"parquet-mr version 1.8.1 (build x)", b"parquet-mr version 1.13.1"])
def test_those_of_parquet_mr_are(created_by: bytes) -> None:
    table, data = keyed(3)
    assert (
        source_of(changed(data, lambda tree: tree.__setitem__(File.created_by, (8, created_by)))).refusal(table.schema)
        is None
    )


def test_columns_without_an_order_are_not_copied() -> None:
    table, data = keyed(3)
    assert source_of(changed(data, lambda tree: tree.pop(File.column_orders))).refusal(table.schema) is not None


def chunk_of(tree: Struct, column: int) -> Struct:
    found: Struct = tree[File.row_groups][1].values[0][Group.columns][1].values[column]
    return found


def swap_names(tree: Struct) -> None:
    """Two columns of one type, each by the other's name."""
    key, name = (chunk_of(tree, column)[Chunk.metadata][1] for column in (0, 1))
    key[Column.path], name[Column.path] = name[Column.path], key[Column.path]


def test_the_values_of_a_nested_column_are_counted() -> None:
    table = pa.table({"list": [[number, number] for number in range(50)]})
    file = io.BytesIO()
    pq.write_table(table, file, store_schema=False)
    fewer = changed(
        file.getvalue(), lambda tree: chunk_of(tree, 0)[Chunk.metadata][1].__setitem__(Column.num_values, (6, 99))
    )
    with pytest.raises(CorruptFileError, match="its pages have 100 values, and the footer says 99"):
        spliced([fewer], table.schema)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (
            lambda tree: chunk_of(tree, 2)[3][1].__setitem__(Column.num_values, (6, 4999)),
            "has 4999 values, and the row",
        ),
        (
            lambda tree: tree[File.row_groups][1].values[0].__setitem__(Group.num_rows, (6, 0)),
            "has 5000 values, and the row group 0 rows",
        ),
        (swap_names, "is not that of the schema"),
        (lambda tree: chunk_of(tree, 2)[3][1].__setitem__(Column.stored, (6, 1 << 40)), "outside of the file"),
        (lambda tree: chunk_of(tree, 2)[3][1].__setitem__(Column.data_offset, (6, 1 << 40)), "outside of the file"),
        (lambda tree: chunk_of(tree, 2).__setitem__(Chunk.file_path, (8, b"other")), "in another file"),
    ],
)
def test_a_damaged_column_is_not_copied(change: Callable[[Struct], None], word: str) -> None:
    table, data = keyed(5000, use_dictionary=False)
    with pytest.raises(HudiError, match=word) as caught:
        spliced([changed(data, change)], table.schema)
    assert "source.parquet" in str(caught.value)


def test_a_page_that_is_not_that_of_its_checksum_is_not_copied() -> None:
    table, data = keyed(5000, write_page_checksum=True, compression="none", use_dictionary=False)
    damaged = bytearray(data)
    damaged[3000] ^= 1
    with pytest.raises(CorruptFileError, match="checksum of the page at 0 of its column"):
        spliced([bytes(damaged)], table.schema)


def test_a_page_index_that_is_not_of_the_pages_is_left_out() -> None:
    table, data = keyed(5000)

    def move(tree: Struct) -> None:
        chunk = chunk_of(tree, 0)
        chunk[Chunk.offset_index[0]] = 6, chunk_of(tree, 1)[Chunk.offset_index[0]][1]

    out = spliced([changed(data, move)], table.schema)
    group = pq.ParquetFile(io.BytesIO(out)).metadata.row_group(0)
    assert [group.column(column).has_offset_index for column in range(3)] == [False, True, True]
    assert pq.read_table(io.BytesIO(out)).equals(table)


def test_files_of_real_hudi_are_copied() -> None:
    """Those of its Avro writer and of its writer of rows, where Arrow writes the same schema."""
    copied = 0
    for archive in sorted(golden_root().glob("*/*.zip"))[::9]:
        with zipfile.ZipFile(archive) as zipped:
            names = [name for name in zipped.namelist() if name.endswith(".parquet") and "/.hoodie/" not in name]
            for name in names[:2]:
                data = zipped.read(name)
                source = source_of(data)
                schema = source.file.schema
                if source.refusal(schema) is None and source.file.num_rows:
                    rows = pq.read_table(io.BytesIO(data)).cast(schema)
                    assert pq.read_table(io.BytesIO(spliced([data], schema))).equals(rows), name
                    copied += 1
    assert copied > 20


def test_a_type_that_arrow_does_not_understand_is_another_schema() -> None:
    """Found by the fuzzer: a STRING that is encoded as bytes of a Thrift union is no logical type to Arrow."""
    table = pa.table({"text": ["a", "b"]})
    data = spliced([table], table.schema)
    footer = footer_of(data)[1]
    assert footer is not None
    assert footer.count(b"L\x1c\x00\x00") == 1
    changed = data.replace(b"L\x1c\x00\x00", b"L\x18\x00\x00")
    assert source_of(data).refusal(table.schema) is None
    assert source_of(changed).refusal(table.schema) == "it has another schema"


def test_a_row_group_without_rows_adds_nothing() -> None:
    """Found by the fuzzer."""
    table = pa.table({"text": ["a", "b"], "name": ["x", "y"]})
    out = io.BytesIO()
    with pq.ParquetWriter(out, table.schema, store_schema=False) as writer:
        for rows in (table.slice(0, 0), table):
            writer.write_table(rows)
    assert [pq.read_metadata(out).row_group(number).num_rows for number in (0, 1)] == [0, 2]
    copied = pq.read_table(io.BytesIO(spliced([out.getvalue()], table.schema, {"name": "z"})))
    assert copied.to_pydict() == {"text": ["a", "b"], "name": ["z", "z"]}
