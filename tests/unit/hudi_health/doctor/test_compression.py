"""What zstd would save on a table is measured on its rows, and is a finding where it is worth it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.codec import gzip
from hudi_core.codec.parquet.file import ParquetBaseFile
from hudi_core.codec.parquet.writer import BaseFileWriter
from hudi_core.errors import ConfigError
from hudi_health.doctor import compression
from hudi_health.doctor.compression import CodecCost, CompressionObservations, codec_saving, read_compression
from hudi_health.doctor.findings import Finding
from tests.support.golden_cleans import context_of
from tests.support.golden_data import GoldenCase
from tests.support.tiers import tiered
from tests.unit.hudi_health.doctor.test_examine import VERSIONS, findings

Golden = Callable[[str, str], GoldenCase]
CODEC = "hoodie.parquet.compression.codec"
LIBRARY = "airflow_hudi.parquet.gzip.library"
LEVEL = "airflow_hudi.parquet.gzip.level"
ROWS = 4_000


def read(table: Path, options: dict[str, str] | None = None, *, files: bool = True) -> CompressionObservations:
    context = context_of(table, options)
    return read_compression(context, context.active.load(), files=files)


def newest(table: Path) -> list[Path]:
    """The table's base files in the order in which they are sampled."""
    context = context_of(table)
    return [table / path for path in compression._newest_base_files(context, context.active.load())]


def fill(path: Path, codec: str, rows: int = ROWS, row_group: int = 100_000) -> None:
    """Puts many rows like the first into a base file, with a column of text that compresses little."""
    table = pq.read_table(path)
    many = table.take(pa.array([0] * rows))
    text = pa.array([hashlib.sha256(b"%d" % number).hexdigest() * 4 for number in range(rows)])
    pq.write_table(many.append_column("text", text), path, compression=codec, row_group_size=row_group)


def filled(golden: Golden, codec: str = "gzip", name: str = "cow_basic", version: str = "9") -> Path:
    table = golden(version, name).table
    for path in newest(table):
        fill(path, codec)
    return table


def saving(table: Path, options: dict[str, str] | None = None) -> list[Finding]:
    return [finding for finding in findings(table, options) if finding.rule == "codec_saving"]


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
@pytest.mark.parametrize("name", ["cow_basic", "mor_compacted"])
def test_the_newest_base_files_tell_the_codec(golden: Golden, version: str, name: str) -> None:
    table = golden(version, name).table
    assert read(table) == CompressionObservations("GZIP")
    assert read(table, files=False) == CompressionObservations()
    assert read(table, {CODEC: "zstd"}) == CompressionObservations("ZSTD")
    assert read(table, {CODEC: "snappy"}, files=False) == CompressionObservations("SNAPPY")
    for path in newest(table)[1:]:
        fill(path, "gzip")
    fill(newest(table)[0], "zstd")
    assert read(table) == CompressionObservations("ZSTD")


@pytest.mark.parametrize("version", tiered(VERSIONS, ["9"]))
def test_a_saving_is_measured_on_the_tables_own_rows(golden: Golden, version: str) -> None:
    table = filled(golden, "snappy", version=version)
    found = read(table)
    assert (found.codec, found.library, found.files) == ("SNAPPY", None, 3)
    assert 3 * 1024 <= found.rows <= 3 * ROWS
    assert found.now is not None
    assert found.zstd is not None
    assert 0 < found.zstd.stored < 0.95 * found.now.stored
    assert min(found.now.writing, found.now.reading, found.zstd.writing, found.zstd.reading) > 0
    (finding,) = saving(table)
    assert finding.severity == "info"
    assert finding.what.startswith(f"base files are snappy; of {found.rows} rows sampled in 3 base files, zstd takes ")
    assert f" {100 * found.zstd.stored / found.now.stored:.0f} % of the bytes" in finding.what
    assert finding.fix == f"set {CODEC}=zstd for the table's writers and services"
    assert saving(table, {CODEC: "zstd"}) == []


@pytest.mark.slow
def test_what_the_options_say_of_the_codec_is_measured(golden: Golden) -> None:
    table = filled(golden)
    sizes = []
    for options, name, library in (
        ({LIBRARY: "libdeflate", LEVEL: "8"}, "GZIP", "libdeflate"),
        ({LIBRARY: "libdeflate", LEVEL: "1"}, "GZIP", "libdeflate"),
        ({CODEC: "uncompressed"}, "UNCOMPRESSED", None),
    ):
        found = read(table, options)
        assert (found.codec, found.library) == (name, library)
        assert found.now is not None
        sizes.append(found.now.stored)
    assert sizes == sorted(set(sizes))
    assert read(table).library == "isal"
    assert read(table, {CODEC: "lz4"}) == CompressionObservations("LZ4")


@pytest.mark.slow
def test_little_is_read_of_large_files(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    table = golden("9", "cow_basic").table
    for path in newest(table):
        fill(path, "gzip", rows=24_000, row_group=12_000)
    read_rows: list[int] = []
    batches = ParquetBaseFile.batches

    def counted(self: ParquetBaseFile, *arguments: Any, **named: Any) -> Iterator[pa.RecordBatch]:
        for batch in batches(self, *arguments, **named):
            if self.path != "the sample":
                read_rows.append(batch.num_rows)
            yield batch

    monkeypatch.setattr(ParquetBaseFile, "batches", counted)
    found = read(table)
    assert (found.files, found.rows) == (3, sum(read_rows))
    assert max(read_rows) <= 1024
    assert found.rows < 3 * 12_000
    monkeypatch.setattr(compression, "_STORED", 1 << 10)
    assert read(table) == CompressionObservations("GZIP")


def test_files_that_are_gone_or_damaged_are_passed_over(golden: Golden) -> None:
    table = filled(golden)
    first, second, third = newest(table)[:3]
    first.unlink()
    second.write_bytes(second.read_bytes()[:1000])
    assert (found := read(table)).files >= 1
    assert found.rows > 0
    third.write_bytes(third.read_bytes()[:4] + bytes(1 << 16) + third.read_bytes()[4 + (1 << 16) :])
    for path in newest(table)[3:]:
        path.unlink()
    assert read(table).now is None


@pytest.mark.parametrize("version", VERSIONS)
def test_commits_that_cannot_be_read_are_passed_over(golden: Golden, version: str) -> None:
    table = golden(version, "cow_basic").table
    context = context_of(table)
    before = newest(table)
    *_, last = context.active.load().commits()
    (table / context.active.path_of(last)).write_bytes(b"no commit")
    assert newest(table) != before
    assert read(table).codec == "GZIP"


def test_a_gzip_library_that_is_not_here_is_not_measured(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    table = filled(golden)
    monkeypatch.setattr(gzip, "find_spec", lambda name: None)
    assert read(table, {LIBRARY: "isal"}) == CompressionObservations("GZIP")
    assert read(table).library == "pyarrow"
    with pytest.raises(ConfigError, match=r"hoodie\.parquet\.compression\.codec is 'zip'"):
        read(table, {CODEC: "zip"})


def test_a_small_table_is_not_measured(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BaseFileWriter, "__init__", None)
    assert read(golden("9", "cow_basic").table) == CompressionObservations("GZIP")


def test_each_file_group_once_and_the_largest_of_each_partition_first(golden: Golden) -> None:
    table = golden("9", "cow_basic").table
    names = [path.relative_to(table).as_posix() for path in newest(table)]
    groups = [name.rpartition("/")[2].split("_")[0] for name in names]
    assert len(set(groups)) == len(groups)
    assert len({name.partition("/")[0] for name in names[:3]}) == 3
    stats = context_of(table).active
    *_, last = stats.load().commits()
    (one, *_) = stats.read_commit(last).write_stats()
    sized = [
        replace(one, path=f"{partition}/{size}", partition_path=partition, file_size_in_bytes=size)
        for partition, size in (("a", 9), ("a", 8), ("b", 3), ("c", 5), ("b", 4))
    ]
    assert compression._spread(sized) == ["a/9", "c/5", "b/4", "a/8", "b/3"]


@pytest.mark.parametrize(
    ("zstd", "said"),
    [
        (CodecCost(950, 1.0, 1.0), "95 % of the bytes, 100 % of the CPU to write and 100 % to read"),
        (CodecCost(951, 1.0, 1.0), None),
        (CodecCost(1020, 0.5, 1.1), "102 % of the bytes, 50 % of the CPU to write and 110 % to read"),
        (CodecCost(1020, 0.7, 1.0), None),
        (CodecCost(500, 3.0, 0.5), "50 % of the bytes, 300 % of the CPU to write and 50 % to read"),
    ],
)
def test_what_is_worth_a_finding(zstd: CodecCost, said: str | None) -> None:
    measured = CompressionObservations("GZIP", "isal", 1, 64, CodecCost(1000, 1.0, 1.0), zstd)
    found = list(codec_saving(measured))
    assert [(item.rule, item.severity) for item in found] == [("codec_saving", "info")] * (said is not None)
    for item in found:
        assert item.what == f"base files are gzip by isal; of 64 rows sampled in 1 base file, zstd takes {said}"
    assert list(codec_saving(CompressionObservations("GZIP"))) == []
