"""What is read as a whole is refused by its size first; what is unpacked, by the size that it says."""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.codec.hfile.block import Codec, IndexEntry, Magic, encode_block, encode_root_index
from hudi_core.codec.hfile.trailer import TRAILER_SIZE, decode_trailer, encode_file_info, encode_trailer
from tests.hostile.placed_files import SPARSE
from tests.hostile.refusals import LOCAL, HostileTable
from tests.support.rows import assert_same_rows

Hostile = Callable[[str, str], HostileTable]
CLAIM = ".hoodie/.airflow_hudi/claims/{instant}/000001.json"


@pytest.mark.parametrize(
    ("case", "pattern", "verb", "arguments"),
    [
        ("mor_compaction_requested", ".hoodie/hoodie.properties", "read", ()),
        ("insert_overwrite_table", ".hoodie/timeline/*_*.replacecommit", "read", ()),
        ("mor_compaction_requested", ".hoodie/timeline/*.compaction.requested", "run compaction", LOCAL),
        ("clean_requested_mor", ".hoodie/timeline/*.clean.requested", "run clean", LOCAL),
        ("mdt_record_index_lookup", ".hoodie/.index_defs/index.json", "metadata validate", ()),
        ("mdt_record_index_lookup", ".hoodie/metadata/.hoodie/hoodie.properties", "read", ("--metadata", "on")),
        ("mdt_record_index_lookup", ".hoodie/metadata/files/*.hfile", "read", ("--metadata", "on")),
        ("archived_timeline_mor", ".hoodie/timeline/history/manifest_*", "timeline", ("--archived",)),
        ("savepoint_cow", ".hoodie/timeline/*.savepoint", "savepoint list", ()),
        ("cow_basic", "*/*.parquet", "read", ("--metadata", "off")),
    ],
)
def test_a_file_of_three_gigabytes(
    hostile: Hostile, case: str, pattern: str, verb: str, arguments: tuple[str, ...]
) -> None:
    table = hostile("9", case)
    path = table.path(pattern, -1)
    os.truncate(path, SPARSE)
    given = ("--output", str(table.scratch / "rows.parquet"), *arguments) if verb == "read" else arguments
    table.refuses(verb, *given, names=path.name)


def padded(size: int) -> Callable[[bytes], bytes]:
    """JSON or properties, of so many bytes more."""
    return lambda data: data + (b" " * size if data[:1] == b"{" else b"#".ljust(size, b"x"))


MIB = 1 << 20
INDEXED = "mdt_record_index_lookup"


@pytest.mark.parametrize(
    ("case", "pattern", "grown_by", "verb", "arguments", "lowered"),
    [
        (INDEXED, ".hoodie/hoodie.properties", 17 * MIB, "timeline", (), None),
        (INDEXED, ".hoodie/hoodie.properties", 17 * MIB, "files", (), None),
        (INDEXED, ".hoodie/hoodie.properties", 17 * MIB, "savepoint list", (), None),
        (INDEXED, ".hoodie/hoodie.properties", 17 * MIB, "metadata perf", (), None),
        (INDEXED, ".hoodie/.index_defs/index.json", 17 * MIB, "metadata validate", (), None),
        ("archived_timeline_mor", ".hoodie/timeline/history/manifest_*", 17 * MIB, "timeline", ("--archived",), None),
        (INDEXED, ".hoodie/timeline/*_*.deltacommit", 0, "read", ("--metadata", "off"), "timeline"),
        ("mor_compaction_requested", ".hoodie/timeline/*.compaction.requested", 0, "run compaction", LOCAL, "timeline"),
        (INDEXED, ".hoodie/metadata/files/*.hfile", 0, "read", ("--metadata", "on"), "hfile_block"),
        ("mor_basic", "*/.*.log.*", 0, "read", ("--metadata", "off"), "log_block"),
        ("cow_basic", "*/*.parquet", 0, "read", ("--metadata", "off"), "parquet_footer"),
        ("cow_basic", "*/*.parquet", 0, "read", ("--metadata", "off"), "parquet_chunk"),
        ("cow_basic", "*/*.parquet", 0, "read", ("--metadata", "off"), "parquet_pages"),
    ],
)
def test_the_option_that_an_error_names_raises_the_limit(
    hostile: Hostile,
    case: str,
    pattern: str,
    grown_by: int,
    verb: str,
    arguments: tuple[str, ...],
    lowered: str | None,
) -> None:
    """A file that is larger than the default, or than an option says."""
    table = hostile("9", case)
    table.change(pattern, padded(grown_by) if grown_by else bytes, -1)
    given = ("--output", str(table.scratch / "rows.parquet"), *arguments) if verb == "read" else arguments
    low = () if lowered is None else ("--option", f"airflow_hudi.limit.{lowered}.bytes=100")
    error = table.refuses(verb, *given, *low, codes=(1, 2))
    assert error["type"] == "SizeLimitError"
    (option,) = re.findall(r"airflow_hudi\.limit\.[a-z_]+\.bytes", error["remedy"])
    assert lowered is None or lowered in option
    ended = table.run(verb, *given, "--option", f"{option}={1 << 31}")
    assert ended.code == 0, ended


@pytest.mark.parametrize("line", [b"x\\\n", b"\\\n", b"#\n", b"\\u0041\\\n"])
def test_properties_of_a_million_lines_cost_no_more_than_their_bytes(hostile: Hostile, line: bytes) -> None:
    table = hostile("9", "mor_basic")
    table.change(".hoodie/hoodie.properties", lambda data: data + b"a=" + line * 1_000_000)
    ended = table.run("timeline")
    assert (ended.code, ended.late) == (0, False)


def test_a_claim_of_three_gigabytes(hostile: Hostile) -> None:
    table = hostile("9", "mor_compaction_requested")
    instant = table.path(".hoodie/timeline/*.compaction.requested").name.split(".")[0]
    path = table.base / CLAIM.format(instant=instant)
    path.parent.mkdir(parents=True)
    path.touch()
    os.truncate(path, SPARSE)
    table.refuses("run compaction", *LOCAL, names=path.name)


def test_a_lock_of_three_gigabytes(hostile: Hostile) -> None:
    table = hostile("9", "mor_compaction_requested")
    path = table.base / ".hoodie" / "lock"
    path.touch()
    os.truncate(path, SPARSE)
    table.refuses("run compaction", *LOCAL, names=path.name)


def test_partition_metadata_of_three_gigabytes(hostile: Hostile) -> None:
    """Nothing but its presence counts."""
    table = hostile("9", "mor_basic")
    expected = table.rows("--metadata", "off")
    os.truncate(table.path("*/.hoodie_partition_metadata"), SPARSE)
    assert_same_rows(table.rows("--metadata", "off"), expected)


def repeated_zeros(mebibytes: int) -> bytes:
    """A zlib stream of so many zeros, of a thousandth of their size; made without packing them all."""
    packer = zlib.compressobj(9)
    start = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    piece = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    return start + piece * (mebibytes - 1)


def test_an_hfile_block_that_unpacks_to_two_gigabytes(hostile: Hostile) -> None:
    table = hostile("8", "mdt_record_index_lookup")
    expected = table.rows("--metadata", "off")

    def bomb(data: bytes) -> bytes:
        block = bytearray(encode_block(Magic.DATA, bytes(64), Codec.GZ, -1))
        packed = repeated_zeros(2047)
        head = block[:33]
        head[8:12] = (len(packed)).to_bytes(4, "big")
        head[12:16] = (2047 << 20).to_bytes(4, "big")
        head[24] = 0  # no checksum
        head[29:33] = (33 + len(packed)).to_bytes(4, "big")
        return bytes(head) + packed + data[data.find(b"DATABLK*") + 1 :]

    table.change(".hoodie/metadata/files/*.hfile", bomb)
    table.keeps_rows(expected, "--metadata", "on")


def test_an_hfile_index_that_unpacks_to_millions_of_entries(hostile: Hostile) -> None:
    table = hostile("8", "mdt_record_index_lookup")
    expected = table.rows("--metadata", "off")
    entries = encode_root_index([IndexEntry(b"\0\0", 0, 1)]) * 10_000_000
    root = encode_block(Magic.ROOT_INDEX, entries, Codec.GZ, -1)
    info = encode_block(Magic.FILE_INFO, encode_file_info({}), Codec.GZ, -1)

    def bomb(data: bytes) -> bytes:
        trailer = decode_trailer(data[-TRAILER_SIZE:], len(data), "x")
        start = trailer.load_on_open_offset
        end = replace(trailer, data_index_count=10_000_000, file_info_offset=start + len(root))
        return data[:start] + root + info + encode_trailer(end)

    path = table.change(".hoodie/metadata/files/*.hfile", bomb)
    assert path.stat().st_size < 1 << 20
    ended = table.read("--metadata", "on")
    assert not ended.late
    table.keeps_rows(expected, "--metadata", "on")


@pytest.mark.conformance
def test_columns_that_unpack_to_three_gigabytes(hostile: Hostile, tmp_path: Path) -> None:
    table = hostile("6", "cow_basic")
    path = max(table.base.glob("2024-01-01/*.parquet"), key=lambda path: path.name.rsplit("_", 1)[-1])
    rows = pq.read_table(path, partitioning=None)
    text = pa.array(["x" * (100 << 20)])
    at = rows.column_names.index("name")
    with pq.ParquetWriter(
        path, rows.schema, compression="zstd", use_dictionary=False, write_statistics=False
    ) as writer:
        for start in range(30):
            one = rows.slice(start, 1)
            writer.write_table(one.set_column(at, rows.schema.field(at), text.cast(rows.schema.field(at).type)), 1)
    assert path.stat().st_size < 4 << 20
    ended = table.read("--metadata", "off")  # row by row it fits; all at once it would not
    assert ended.peak_mib < 1536
    assert ended.code in (0, 1, 2)


def test_a_column_whose_dictionary_is_repeated(hostile: Hostile) -> None:
    """A value of a mebibyte, 4,000 times: its pages are small."""
    table = hostile("6", "cow_basic")
    path = max(table.base.glob("2024-01-01/*.parquet"), key=lambda path: path.name.rsplit("_", 1)[-1])
    rows = pq.read_table(path, partitioning=None)
    many = rows.take([0] * 4000)
    at = many.column_names.index("name")
    indices = pa.array([0] * 4000, pa.int32())
    value = pa.DictionaryArray.from_arrays(indices, pa.array(["x" * (1 << 20)]))
    pq.write_table(many.set_column(at, "name", value), path, compression="zstd", store_schema=False)
    assert path.stat().st_size < 1 << 20
    ended = table.read("--metadata", "off")
    assert ended.peak_mib < 1536
    assert ended.code in (0, 1, 2)
