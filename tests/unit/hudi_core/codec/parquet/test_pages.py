"""Pages of Parquet files whose headers claim more than allowed."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.codec.parquet.file import ParquetBaseFile
from hudi_core.codec.parquet.pages import largest_pages
from hudi_core.errors import SizeLimitError
from hudi_core.model.size_limits import Limit, SizeLimits

TABLE = pa.table(
    {
        "a": pa.array(range(200_000)),
        "b": pa.array([f"value {n % 100}" for n in range(200_000)]),
        "c": pa.array([[{"x": n}] for n in range(200_000)]),
        "d": pa.array([None if n % 3 else float(n) for n in range(200_000)]),
    }
)


def written(table: pa.Table = TABLE, **settings: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, **{"row_group_size": 70_000, "compression": "zstd", **settings})
    return out.getvalue()


def chunks(data: bytes) -> list[tuple[bytes, pq.ColumnChunkMetaData]]:
    metadata = pq.read_metadata(io.BytesIO(data))
    found = [
        metadata.row_group(group).column(number)
        for group in range(metadata.num_row_groups)
        for number in range(metadata.num_columns)
    ]
    starts = [chunk.dictionary_page_offset or chunk.data_page_offset for chunk in found]
    return [
        (data[start : start + chunk.total_compressed_size], chunk) for start, chunk in zip(starts, found, strict=True)
    ]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"data_page_version": "2.0"},
        {"write_statistics": False},
        {"write_page_checksum": True},
        {"write_page_index": True},
        pytest.param({"use_dictionary": False, "compression": "gzip"}, marks=pytest.mark.conformance),
        {"data_page_size": 5000, "compression": "snappy"},
    ],
)
def test_the_pages_of_a_chunk_are_found(settings: dict[str, Any]) -> None:
    """With one page of data in each chunk, the sum of its pages and headers is what the footer says."""
    data = written(**{"max_rows_per_page": 70_000, "data_page_size": 1 << 24, **settings})
    for chunk, footer in chunks(data):
        found = largest_pages(chunk)
        assert 0 < found <= footer.total_uncompressed_size
        if "data_page_size" not in settings:
            assert found > footer.total_uncompressed_size - 300
    assert ParquetBaseFile(io.BytesIO(data), "f").num_rows == 200_000


@pytest.mark.parametrize("settings", [{}, {"data_page_version": "2.0"}, {"row_group_size": 1000}])
def test_the_columns_of_a_row_group_count_together(settings: dict[str, Any]) -> None:
    data = written(**settings)
    per_chunk = [(largest_pages(chunk), footer) for chunk, footer in chunks(data)]
    columns = len(per_chunk) // pq.read_metadata(io.BytesIO(data)).num_row_groups
    most = max(
        sum(size for size, _ in per_chunk[start : start + columns]) for start in range(0, len(per_chunk), columns)
    )

    def rows(limit: int, names: list[str] | None = None) -> int:
        limits = SizeLimits({Limit.PARQUET_PAGES: limit})
        with ParquetBaseFile(io.BytesIO(data), "x.parquet", limits) as file:
            return sum(batch.num_rows for batch in file.batches(names))

    assert rows(most) == 200_000
    with pytest.raises(SizeLimitError, match="largest pages of its columns") as caught:
        rows(most // 2)
    assert caught.value.path == "x.parquet"
    assert "airflow_hudi.limit.parquet_pages.bytes" in str(caught.value.remedy)
    assert rows(most // 2, ["d"]) == 200_000


def test_a_header_that_claims_two_gigabytes() -> None:
    data = bytearray(written(pa.table({"a": ["x" * (1 << 20)]}), use_dictionary=False, write_statistics=False))
    sizes = re.search(rb"\x15\x00\x15([\x80-\xff]{3}[\x00-\x7f])\x15", data[:200])
    assert sizes is not None
    data[sizes.start(1) : sizes.end(1)] = b"\xfe\xff\xff\xff\x0f"
    with pytest.raises(SizeLimitError, match=str(2**31 - 1)):
        list(ParquetBaseFile(io.BytesIO(data), "f").batches())


@pytest.mark.parametrize("chunk", [b"", b"\x15", b"\x15\x00\x15\x00\x15\x00\x1c", b"\xff" * 90, b"\x15\x00" * 20])
def test_what_is_no_page_is_left_to_arrow(chunk: bytes) -> None:
    assert largest_pages(chunk) == 0


def test_a_page_that_claims_to_be_longer_than_the_memory_of_the_machine() -> None:
    """A header of 2 bytes that decompress to 4, of which 2**63 - 1 are stored."""
    stored = b"\xfe" + b"\xff" * 8 + b"\x01"
    assert largest_pages(b"\x15\x00\x15\x08\x15" + stored + b"\x00" * 100) == 4


def test_a_footer_is_refused_by_its_length() -> None:
    table = TABLE.select(["a"]).slice(0, 10).replace_schema_metadata({"k": "x" * 100_000})
    data = written(table)
    limits = SizeLimits({Limit.PARQUET_FOOTER: 80_000})
    with pytest.raises(SizeLimitError, match="the footer of the Parquet file"):
        ParquetBaseFile(io.BytesIO(data), "f", limits)
    assert ParquetBaseFile(io.BytesIO(data), "f").num_rows == 10


def test_a_column_chunk_is_refused_by_its_length() -> None:
    data = written(TABLE.select(["a"]))
    longest = max(len(chunk) for chunk, _ in chunks(data))
    for most in (longest, longest - 1):
        file = ParquetBaseFile(io.BytesIO(data), "f", SizeLimits({Limit.PARQUET_CHUNK: most}))
        if most == longest:
            assert sum(batch.num_rows for batch in file.batches()) == 200_000
        else:
            with pytest.raises(SizeLimitError, match="a column of a Parquet row group"):
                list(file.batches())


def test_no_byte_is_read_twice(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    path.write_bytes(written())

    class Counting(io.FileIO):
        taken = 0

        def read(self, size: int | None = -1, /) -> bytes:
            data = super().read(-1 if size is None else size)
            Counting.taken += len(data)
            return data

    with Counting(path) as inner:
        expected = sum(batch.num_rows for batch in ParquetBaseFile(inner, "f").batches())
    assert expected == 200_000
    assert Counting.taken <= path.stat().st_size + (64 << 10)
