"""Files whose pages are compressed on their way equal those that Arrow writes uncompressed."""

from __future__ import annotations

import io
import zlib
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.codec.parquet.footer import Group, empty_file, footer_bytes, footer_of
from hudi_core.codec.parquet.page_sink import GZIP, PageSink
from hudi_core.codec.parquet.thrift import (
    I16,
    I32,
    LIST,
    CompactReader,
    ThriftList,
    encode_struct,
    read_struct,
)
from tests.support.random_parquet import random_options, random_table, write
from tests.support.tiers import tiered

BLOCK = 125
"""Random tables of a block; `make test` takes one block, `make conformance` 15 more."""
CODECS = ["none", "snappy", "zstd", "brotli", "gzip"]


def gzip(data: bytes) -> bytes:
    deflater = zlib.compressobj(1, wbits=31)
    return deflater.compress(data) + deflater.flush()


def both(seed: int, codec: str = "none") -> tuple[bytes, bytes, pa.Table]:
    """A random table as Arrow writes it, and through the sink, which compresses what Arrow does not."""
    table = random_table(Random(seed))
    options = random_options(Random(seed), table)
    plain, out = io.BytesIO(), io.BytesIO()
    write(table, plain, Random(seed), compression=codec, **options).close()
    pages = PageSink(out, GZIP, gzip) if codec == "none" else PageSink(out)
    writer = write(table, pages, Random(seed), compression=codec, **options)
    pages.end_pages()
    writer.close()
    pages.finish()
    return plain.getvalue(), out.getvalue(), table


def page_headers(data: bytes, chunk: pq.ColumnChunkMetaData) -> list[dict[int, Any]]:
    """The headers of the pages of a chunk, which fill it without a gap."""
    begin = chunk.data_page_offset
    if chunk.dictionary_page_offset:
        begin = min(begin, chunk.dictionary_page_offset)
    position, end, headers = begin, begin + chunk.total_compressed_size, []
    while position < end:
        header, position = read_struct(data, position)
        headers.append(header)
        position += header[3][1]
    assert position == end
    return headers


def check_offset_index(data: bytes, chunk: pq.ColumnChunkMetaData, tree: dict[int, Any]) -> int:
    """The places of the offset index are those of the data pages."""
    if 4 not in tree:
        return 0
    index, _ = read_struct(data, tree[4][1])
    position, places = chunk.data_page_offset, []
    for header in page_headers(data, chunk):
        if header[1][1] != 2:
            start = position
            _, body = read_struct(data, position)
            position = body + header[3][1]
            places.append((start, position - start))
    assert [(page[1][1], page[2][1]) for page in index[1][1].values] == places
    return len(places)


@pytest.mark.parametrize("block", tiered(range(16), [0]))
def test_random_files_are_equal_but_for_the_codec(block: int) -> None:
    """Those that the sink compresses, and those that Arrow has compressed."""
    indexed = compressed = unreadable = 0
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        codec = CODECS[seed % len(CODECS)]
        stored = {"none": "GZIP"}.get(codec, codec.upper())
        plain, out, table = both(seed, codec)
        original = pq.ParquetFile(io.BytesIO(plain))
        try:
            rows = original.read()
        except pa.ArrowInvalid:
            unreadable += 1  # Arrow writes lists in pages of some bytes so that it cannot read them itself
            continue
        read = pq.ParquetFile(io.BytesIO(out), page_checksum_verification=True)
        assert read.read().equals(rows), seed
        assert read.read().cast(table.schema).equals(table), seed
        assert read.metadata.metadata == original.metadata.metadata
        footer = footer_of(out)[1]
        assert footer is not None
        groups = read_struct(footer)[0][4][1].values
        for number in range(read.metadata.num_row_groups):
            group, same = read.metadata.row_group(number), original.metadata.row_group(number)
            assert group.num_rows == same.num_rows
            chunks = [group.column(place) for place in range(group.num_columns)]
            assert group.total_byte_size == sum(chunk.total_uncompressed_size for chunk in chunks)
            for place, chunk in enumerate(chunks):
                assert (chunk.compression, chunk.encodings) == (stored, same.column(place).encodings)
                assert chunk.statistics == same.column(place).statistics
                headers = page_headers(out, chunk)
                sizes = sum(header[2][1] for header in headers)
                assert chunk.total_uncompressed_size - sizes == chunk.total_compressed_size - sum(
                    header[3][1] for header in headers
                )
                indexed += check_offset_index(out, chunk, groups[number][1][1].values[place])
                compressed += len(headers)
    assert unreadable < BLOCK / 20
    assert compressed > 1000
    assert indexed > 200


def test_a_damaged_page_is_found_by_its_checksum() -> None:
    """The null control of the checksums that were computed again."""
    table = pa.table({"a": list(range(2000))})
    out = io.BytesIO()
    pages = PageSink(out, GZIP, lambda data: gzip(data) + b"")
    writer = pq.ParquetWriter(pages, table.schema, compression="none", use_dictionary=False, write_page_checksum=True)
    writer.write_table(table)
    pages.end_pages()
    writer.close()
    pages.finish()
    data = bytearray(out.getvalue())
    _, body = read_struct(bytes(data), 4)
    data[body + 4] ^= 1  # the time in the gzip header, which no inflater looks at
    assert pq.ParquetFile(io.BytesIO(data)).read().equals(table)
    with pytest.raises(OSError, match="CRC"):
        pq.ParquetFile(io.BytesIO(data), page_checksum_verification=True).read()


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_the_pieces_in_which_arrow_writes_do_not_matter(size: int) -> None:
    """Other releases may join header and body, or cut them."""
    plain, whole, _ = both(7)
    footer = footer_of(plain)[1]
    assert footer is not None
    groups = read_struct(footer)[0][4][1].values
    last = groups[-1][1][1].values[-1][3][1]
    end = last.get(11, last[9])[1] + last[7][1]
    out = io.BytesIO()
    pages = PageSink(out, GZIP, gzip)
    assert (pages.writable(), pages.tell()) == (True, 0)
    pages.write(plain[:4])
    for start in range(4, end, size):
        pages.write(plain[start : min(start + size, end)])
    assert pages.tell() == end
    pages.end_pages()
    pages.write(plain[end:])
    pages.finish()
    assert out.getvalue() == whole


def test_what_no_writer_writes_is_refused() -> None:
    pages = PageSink(io.BytesIO(), GZIP, gzip)
    pages.write(b"PAR1")
    pages.write(b"\x15")
    with pytest.raises(ValueError, match="not whole"):
        pages.end_pages()
    with pytest.raises(ValueError):
        pages.write(b"\x0d" * (2 << 20))
    pages = PageSink(io.BytesIO(), GZIP, gzip)
    pages.write(b"PAR1")
    pages.end_pages()
    with pytest.raises(ValueError, match="no footer"):
        pages.finish()


def test_a_footer_has_as_many_values_as_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """That of some 30,000 column chunks has a million; here fields that no reader knows have them."""
    empty = empty_file(pa.schema([("a", pa.int64())]))
    footer = footer_bytes(empty)
    most = 1 << 12
    monkeypatch.setattr(read_struct, "__defaults__", (0, most))
    lists = {100 + number: (LIST, ThriftList(I32, [1] * (most // 2))) for number in range(3)}
    padded = encode_struct({**read_struct(footer)[0], **lists})
    out = io.BytesIO()
    pages = PageSink(out)
    pages.write(empty[:4])
    pages.write(empty[4 : -8 - len(footer)])
    pages.end_pages()
    pages.write(padded + len(padded).to_bytes(4, "little") + b"PAR1")
    pages.finish()
    assert footer_bytes(out.getvalue())[-most:] == padded[-most:]
    assert pq.read_table(out).schema.names == ["a"]


def test_only_one_page_is_held() -> None:
    """Pages are passed on before the row group is over."""
    out = io.BytesIO()
    pages = PageSink(out, GZIP, gzip)
    seen: list[tuple[int, int]] = []

    class Watched(io.RawIOBase):
        def writable(self) -> bool:
            return True

        def tell(self) -> int:
            return pages.tell()

        def write(self, data: Any, /) -> int:
            size = pages.write(data)
            seen.append((out.tell(), len(pages._held)))
            return size

    table = pa.table({"a": list(range(500_000))})
    writer = pq.ParquetWriter(
        Watched(),
        table.schema,
        compression="none",
        use_dictionary=False,
        data_page_size=1 << 16,  # type: ignore[arg-type]
    )
    writer.write_table(table)
    assert max(held for _, held in seen) == 0
    assert len({written for written, _ in seen}) > 50
    pages.end_pages()
    writer.close()
    pages.finish()
    assert CompactReader(out.getvalue(), 4).struct()[1] == (5, 0)


def test_a_row_group_whose_number_is_no_short_integer_has_none() -> None:
    pages = PageSink(io.BytesIO(), GZIP, gzip, zlib.crc32)
    pages._copied = [(0, {}, []) for _ in range((1 << 15) + 2)]
    numbers = [group.get(Group.ordinal) for group, _ in pages._groups([], b"", 0)]
    assert numbers[:2] == [(I16, 0), (I16, 1)]
    assert numbers[-3:] == [(I16, (1 << 15) - 1), None, None]
