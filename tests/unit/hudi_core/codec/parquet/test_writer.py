"""The file that the writer makes: codecs, row groups, schema, gzip by each library."""

from __future__ import annotations

import hashlib
import io
import math
import random
import struct
from decimal import Decimal
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hudi_core.codec import gzip
from hudi_core.codec.gzip import GzipLibrary
from hudi_core.codec.parquet.file import ParquetBaseFile
from hudi_core.codec.parquet.footer import Chunk, Column, File, Group, footer_bytes
from hudi_core.codec.parquet.splice import RowGroupSource, WholeRowGroup
from hudi_core.codec.parquet.statistics import chunk_ranges
from hudi_core.codec.parquet.thrift import Struct, TooManyValuesError, read_struct
from hudi_core.codec.parquet.writer import BaseFileWriter, ParquetStyle, chosen_encodings
from hudi_core.errors import ConfigError, FormatError, StorageError
from tests.unit.hudi_core.codec.parquet.test_file import TABLE, written

MANY = 12_000
RANDOM = random.Random(3)
LARGE = pa.table(
    {
        "_hoodie_commit_time": ["20260101000000000"] * MANY,
        "_hoodie_record_key": [f"key-{index:012d}" for index in range(MANY)],
        "noise": pa.array([RANDOM.getrandbits(62) for _ in range(MANY)]),
        "few": [f"name-{index % 20}" for index in range(MANY)],
        "price": pa.array([Decimal(index % 100).scaleb(-2) for index in range(MANY)], pa.decimal128(12, 2)),
        "hash": [hashlib.sha1(str(index).encode()).hexdigest() for index in range(MANY)],
        "words": [
            " ".join(RANDOM.choices(["compaction", "clustering", "timeline", "instant", "marker"], k=6))
            for _ in range(MANY)
        ],
        "flag": [RANDOM.random() < 0.5 for _ in range(MANY)],
        "nothing": pa.nulls(MANY, pa.int32()),
        "tags": [["a", None], None, []] * (MANY // 3),
    }
)
WIDE, WIDE_GROUPS = 1000, 50
FEW = ["_hoodie_commit_time", "few", "price", "tags.list.element"]


def written_with(**style: Any) -> bytes:
    file = io.BytesIO()
    writer = BaseFileWriter(file, LARGE.schema, path="f.parquet", style=ParquetStyle(**style))
    writer.write(LARGE)
    writer.close({})
    return file.getvalue()


def test_no_foreign_metadata_is_written() -> None:
    field = pa.field("a", pa.int64(), metadata={"PARQUET:field_id": "7"})
    table = pa.table({"a": [1]}).cast(pa.schema([field], metadata={"pandas": "{}"}))
    file = io.BytesIO()
    writer = BaseFileWriter(file, table.schema, path="f.parquet")
    writer.write(table)
    writer.close({"k": "v"})
    parquet = pq.ParquetFile(file)
    assert parquet.metadata.metadata == {b"k": b"v"}
    assert parquet.schema_arrow.field("a").metadata is None
    assert ParquetBaseFile(file, "f.parquet").schema == pa.schema([("a", pa.int64())])


@pytest.mark.parametrize("codec", ["GZIP", "snappy", "ZSTD", "LZ4_RAW", "UNCOMPRESSED", "BROTLI"])
def test_codecs(codec: str) -> None:
    file = ParquetBaseFile(written(codec=codec), "f.parquet")
    assert file.compression == {"LZ4_RAW": "LZ4"}.get(codec, codec.upper())
    assert pa.Table.from_batches(file.batches()).equals(TABLE)


def test_an_unknown_codec_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="'LZO' is not supported"):
        BaseFileWriter(io.BytesIO(), TABLE.schema, path="f.parquet", style=ParquetStyle(codec="LZO"))


def test_row_groups_are_bounded_by_bytes() -> None:
    table = TABLE.select(["_hoodie_record_key", "noise"])
    bound = table.nbytes // 5
    parquet = pq.ParquetFile(written(table, row_group_bytes=bound))
    counts = [parquet.metadata.row_group(index).num_rows for index in range(parquet.metadata.num_row_groups)]
    assert len(counts) >= 5
    assert max(counts) * table.nbytes / table.num_rows <= bound * 1.1
    whole = io.BytesIO()
    writer = BaseFileWriter(whole, table.schema, path="f.parquet", style=ParquetStyle(row_group_bytes=bound))
    writer.write(table)
    writer.close({})
    assert pq.ParquetFile(whole).metadata.num_row_groups >= 5
    assert pq.read_table(whole).equals(table)


def test_rows_of_another_schema_are_refused() -> None:
    writer = BaseFileWriter(io.BytesIO(), pa.schema([("a", pa.int64())]), path="f.parquet")
    with pytest.raises(FormatError, match=r"f\.parquet: rows have the columns"):
        writer.write(pa.table({"a": pa.array([1], pa.int32())}))


class Full(io.RawIOBase):
    """A file on a full disk."""

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        raise OSError(28, "No space left on device")


def test_a_full_disk_is_a_storage_error() -> None:
    writer = BaseFileWriter(cast(BinaryIO, Full()), TABLE.schema, path="f.parquet")
    writer.write(TABLE)
    with pytest.raises(StorageError, match=r"f\.parquet: cannot write the file"):
        writer.close({})


def test_a_dictionary_goes_to_columns_of_few_values() -> None:
    assert chosen_encodings(LARGE)[0] == FEW
    group = pq.ParquetFile(io.BytesIO(written_with(codec="snappy", delta=False))).metadata.row_group(0)
    columns = [group.column(index) for index in range(group.num_columns)]
    assert [column.path_in_schema for column in columns if "RLE_DICTIONARY" in column.encodings] == FEW


@pytest.mark.parametrize("codec", ["GZIP", "SNAPPY", "ZSTD", "UNCOMPRESSED"])
def test_every_column_has_the_codec_of_the_file(codec: str) -> None:
    group = pq.ParquetFile(io.BytesIO(written_with(codec=codec))).metadata.row_group(0)
    assert {group.column(index).compression for index in range(group.num_columns)} == {codec}


@pytest.mark.parametrize(
    ("library", "low", "high"), [("isal", 1, 3), ("libdeflate", 1, 12), ("pyarrow", 1, 9)], ids=str
)
def test_gzip_of_each_library_is_read_by_arrow(library: str, low: int, high: int) -> None:
    sizes = []
    for level in (low, None, high):
        file = io.BytesIO(written_with(gzip_library=GzipLibrary(library), gzip_level=level))
        with ParquetBaseFile(file, "f.parquet") as read:
            assert (read.compression, pa.Table.from_batches(read.batches())) == ("GZIP", LARGE)
        sizes.append(len(file.getvalue()))
    # ISA-L's higher levels make no smaller files here.
    assert library == "isal" or (sizes[0] >= sizes[1] >= sizes[2] and sizes[0] > sizes[2])


def test_the_first_library_that_is_there_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Down to Arrow's own where there is no wheel."""
    made = {library: written_with(gzip_library=library) for library in gzip.DEFAULT_LEVELS}
    assert len(set(made.values())) == 3
    for missing in (None, GzipLibrary.ISAL, GzipLibrary.LIBDEFLATE):
        if missing is not None:
            monkeypatch.setitem(gzip._MODULES, missing, "there_is_no_such_wheel")
            with pytest.raises(ConfigError, match="not installed here") as caught:
                written_with(gzip_library=missing)
            assert "there_is_no_such_wheel" in (caught.value.remedy or "")
            del made[missing]
        assert written_with() == next(iter(made.values()))
    assert list(made) == [GzipLibrary.PYARROW]


def test_a_level_that_a_library_lacks_is_refused() -> None:
    with pytest.raises(ConfigError, match="isal has the levels 1 to 3"):
        written_with(gzip_library=GzipLibrary.ISAL, gzip_level=6)


def test_memory_of_gzip_is_two_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is held back until the end but footer and page index."""
    file = io.BytesIO()
    writer = BaseFileWriter(file, LARGE.schema, path="f.parquet", style=ParquetStyle(row_group_bytes=LARGE.nbytes // 4))
    positions = []
    for batch in LARGE.to_batches(max_chunksize=1000):
        writer.write(batch)
        positions.append(file.tell())
    before = file.tell()
    writer.close({})
    assert len(set(positions)) >= 3
    assert before > file.tell() / 2


def test_nan_counts_as_in_files_of_parquet_mr() -> None:
    """The greatest value of a column chunk, without a page index of its values. Other chunks stay as Arrow has them."""
    columns = {
        "d": pa.array([1.0, 2.0, None, -1.0, math.nan, 2.0, math.nan, math.nan, None]),
        "f": pa.array([math.nan, 1.0, 2.0] + [0.5] * 6, pa.float32()),
        "s": pa.array([{"x": value} for value in (1.0, 2.0, 3.0, 1.0, -math.nan, 3.0, 1.0, 2.0, 3.0)]),
        "n": pa.array(range(9)),
    }
    table, file = pa.table(columns), io.BytesIO()
    writer = BaseFileWriter(file, table.schema, path="f.parquet", style=ParquetStyle(row_group_rows=3))
    writer.write(table)
    writer.close({})
    arrow = io.BytesIO()
    pq.write_table(table, arrow, row_group_size=3, store_schema=False, write_page_index=True)
    assert pq.read_table(file).to_pydict().__repr__() == table.to_pydict().__repr__()
    nan = {"d": {1}, "f": {0}, "s.x": {1}}
    seen = 0
    for number, (ours, theirs) in enumerate(zip(*map(row_groups_of, (file, arrow)), strict=True)):
        for mine, other in zip(ours, theirs, strict=True):
            name = b".".join(mine[Chunk.metadata][1][Column.path][1].values).decode()
            found, expected = (chunk[Chunk.metadata][1][Column.statistics][1] for chunk in (mine, other))
            has_nan = number in nan.get(name, ())
            if has_nan:
                value = struct.pack("<f" if name == "f" else "<d", math.nan)
                assert {field: raw for field, (_, raw) in found.items() if field in (1, 5)} == {1: value, 5: value}
                seen += 1
            kept = {field: raw for field, raw in expected.items() if not (has_nan and field in (1, 5))}
            assert {field: found[field] for field in kept} == kept
            has_index = Chunk.column_index[0] in mine
            assert has_index == (Chunk.column_index[0] in other and not has_nan), (name, number)
            assert Chunk.offset_index[0] in mine
    assert seen == 3
    # Of nothing but NaN there is no range, in Arrow's file and here.
    assert not pq.read_metadata(file).row_group(2).column(0).statistics.has_min_max
    with ParquetBaseFile(file, "f.parquet") as base:
        ranges = chunk_ranges(base.metadata, 0, pa.float64())
    assert ranges is not None
    assert ranges.maximum.to_pylist() == [None, None, None]
    assert [
        low is None or low <= least for low, least in zip(ranges.minimum.to_pylist(), (1.0, -1.0, 0.0), strict=True)
    ]


def row_groups_of(file: io.BytesIO) -> list[list[Struct]]:
    """The column chunks of each row group."""
    tree, _ = read_struct(footer_bytes(file.getvalue()))
    return [group[Group.columns][1].values for group in tree[File.row_groups][1].values]


def test_arrow_finds_nan_by_the_ranges() -> None:
    """Without NaN in them Arrow, too, leaves out a row group whose other values do not match."""
    table, file = pa.table({"d": [1.0, math.nan, 2.0]}), io.BytesIO()
    writer = BaseFileWriter(file, table.schema, path="f.parquet")
    writer.write(table)
    writer.close({})
    assert pq.read_table(file, filters=~(pc.field("d") <= 100)).num_rows == 1


@pytest.mark.conformance
def test_a_wide_table_is_written_and_copied() -> None:
    """More values in its footer than other trees may have; test_page_sink.py and test_splice.py have small files."""
    table = pa.table({f"column_{number}": [number, number + 1] for number in range(WIDE)})
    file = io.BytesIO()
    writer = BaseFileWriter(file, table.schema, path="f.parquet", style=ParquetStyle(row_group_rows=1))
    for _ in range(WIDE_GROUPS // 2):
        writer.write(table)
    writer.close({})
    with pytest.raises(TooManyValuesError):
        read_struct(footer_bytes(file.getvalue()))
    with ParquetBaseFile(file, "f.parquet") as base:
        assert base.metadata.num_row_groups == WIDE_GROUPS
        source = RowGroupSource(base)
        assert source.refusal(table.schema) is None
        copy = io.BytesIO()
        writer = BaseFileWriter(copy, table.schema, path="copy.parquet")
        writer.copy(WholeRowGroup(source, WIDE_GROUPS - 1), {})
        writer.close({})
    assert pq.read_table(copy).equals(table.slice(1))
