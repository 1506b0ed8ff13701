"""Slices that are joined: large row groups are copied, small ones and slices with log files are written again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.codec.bloom import MAX_KEY, MIN_KEY, BloomFilter, filter_in_footer
from hudi_core.codec.parquet import writer
from hudi_core.codec.parquet.splice import WholeRowGroup
from hudi_core.config.rows_config import WriteConfig
from hudi_core.engine.protocol import TaskAttempt
from hudi_core.model.names import RECORD_KEY
from hudi_core.services.clustering.sorted_groups import Clustered, writer_for
from hudi_core.services.clustering.units import JoinUnit, join_slices
from hudi_core.services.rewriting.new_file_groups import FileGroupWriter, NewFile, NewFiles
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.actions.replacecommit import ClusteringSlice
from tests.support.changed_tables import open_context
from tests.support.golden_data import GoldenCase
from tests.support.running_attempts import let_run
from tests.support.table_invariants import read_rows
from tests.support.tiers import tiered
from tests.unit.hudi_core.services.rewriting.test_new_file_groups import ROWS, SCHEMA, batch
from tests.unit.hudi_core.services.rewriting.test_slice_rows import planned, slices_of, target_of

Golden = Callable[[str, str], GoldenCase]
ATTEMPT = TaskAttempt(0, 1, 0)
SMALL_GROUPS = WriteConfig(row_group_rows=10, bloom_entries=1000, bloom_max_entries=1000)


def joined(table: Path, config: WriteConfig, *, target_bytes: int = 1 << 30) -> tuple[Clustered, JoinUnit]:
    context = open_context(table)
    target = target_of(context)
    target = replace(target, files=replace(target.files, config=config, target_bytes=target_bytes))
    first = slices_of(context)[0].file_group.partition
    slices = tuple(planned(item) for item in slices_of(context) if item.file_group.partition == first)
    unit = JoinUnit(target, slices, "abc")
    let_run(context.storage, target.files.instant, 1)
    return join_slices(unit, TaskAttempt(0, 1, 0)), unit


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The row groups that are copied, by number."""
    found: list[int] = []
    copy = writer.BaseFileWriter.copy

    def counted(self: writer.BaseFileWriter, rows: WholeRowGroup, values: Mapping[str, pa.Array]) -> None:
        found.append(rows.number)
        copy(self, rows, values)

    monkeypatch.setattr(writer.BaseFileWriter, "copy", counted)
    return found


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
@pytest.mark.parametrize("options", [{}, {"copy_row_groups": False}, {"parquet_codec": "ZSTD"}])
def test_large_row_groups_are_copied(
    golden: Golden, version: str, options: dict[str, object], copies: list[int]
) -> None:
    table = golden(version, "clustered_cow").table
    done, unit = joined(table, replace(SMALL_GROUPS, **options))  # type: ignore[arg-type]
    (file,) = done.files
    rows = pq.ParquetFile(table / file.stat.path).read()
    whole = read_rows(table)
    due = [
        key
        for key, place in zip(
            whole.column("_hoodie_record_key").to_pylist(),
            whole.column("_hoodie_partition_path").to_pylist(),
            strict=True,
        )
        if place == unit.slices[0].partition
    ]
    assert sorted(rows.column("_hoodie_record_key").to_pylist()) == sorted(due)
    assert set(rows.column("_hoodie_file_name").to_pylist()) == {file.stat.name}
    assert sum(count.rows for count in done.counts) == file.stat.num_writes == len(due)
    assert bool(copies) == (not options)
    footer = pq.ParquetFile(table / file.stat.path).metadata.metadata
    assert footer[b"hoodie_min_record_key"].decode() == min(due)
    assert footer[b"hoodie_max_record_key"].decode() == max(due)


def test_small_row_groups_are_written_again(golden: Golden, copies: list[int]) -> None:
    table = golden("9", "clustered_cow").table
    done, _ = joined(table, WriteConfig())
    assert copies == []
    assert pq.read_metadata(table / done.files[0].stat.path).num_row_groups == 1


def test_slices_with_log_files_are_merged(golden: Golden) -> None:
    table = golden("9", "clustered_mor").table
    done, unit = joined(table, SMALL_GROUPS)
    assert any(item.log_files for item in unit.slices)
    keys = [
        key
        for file in done.files
        for key in pq.ParquetFile(table / file.stat.path).read().column("_hoodie_record_key").to_pylist()
    ]
    assert len(set(keys)) == len(keys) == sum(count.rows for count in done.counts)


def test_a_file_that_gets_too_large_is_followed_by_another(golden: Golden) -> None:
    table = golden("9", "clustering_requested_cow").table
    done, unit = joined(table, SMALL_GROUPS, target_bytes=1000)
    assert len(done.files) > 1
    assert [file.stat.file_id for file in done.files] == [f"abc-{number}" for number in range(len(done.files))]
    assert len(done.counts) == len(unit.slices)


class Bases:
    """Base files of a partition in a folder, to be joined to files of `target_bytes`."""

    def __init__(self, table: Path, folder: Path, config: WriteConfig, target_bytes: int) -> None:
        self.folder, self.storage = folder, LocalStorage(folder)
        made = NewFiles("20260101000000000", SCHEMA, replace(config, parquet_codec=None), 1 << 30, as_hudi_1=True)
        self._made = made
        files = replace(made, instant="20260102000000000", config=config, target_bytes=target_bytes)
        self._target = replace(target_of(open_context(table)), uri=str(folder), files=files)
        for each in (made, files):
            let_run(self.storage, each.instant, 1)

    def put(self, name: str, first: int, rows: int, text: int) -> ClusteringSlice:
        """A base file of zstd with texts of so many random hexadecimal digits."""
        random = Random(first)
        part = batch(rows, first)
        texts = pa.array([random.randbytes(text // 2).hex() for _ in range(rows)], pa.string())
        part = part.set_column(ROWS.get_field_index("id"), ROWS.field("id"), texts)
        with FileGroupWriter(self.storage, self._made, "p", name, "ZSTD", TaskAttempt(0, 1, 0)) as out:
            out.write(part)
            (file,) = out.close()
        return ClusteringSlice("p", file.stat.file_id, file.stat.name, ())

    def size(self, item: ClusteringSlice) -> int:
        return (self.folder / "p" / str(item.base_file)).stat().st_size

    def join(self, *slices: ClusteringSlice) -> tuple[NewFile, ...]:
        return join_slices(JoinUnit(self._target, slices, "abc"), TaskAttempt(0, 1, 0)).files

    def assert_keys_known(self, files: tuple[NewFile, ...]) -> None:
        """The filter in each footer has every key of its rows, and the range is theirs: else upserts insert again."""
        for file in files:
            parquet = pq.ParquetFile(self.folder / file.stat.path)
            keys = parquet.read([RECORD_KEY]).column(0).combine_chunks()
            footer = {key.decode(): value.decode() for key, value in parquet.metadata.metadata.items()}
            assert (footer[MIN_KEY], footer[MAX_KEY]) == (min(keys.to_pylist()), max(keys.to_pylist()))
            found = filter_in_footer(footer)
            assert found is not None
            assert BloomFilter.parse(found[1], found[0], path=file.stat.path).lacking(keys) == 0


@pytest.mark.parametrize("codec", ["SNAPPY", "ZSTD"])
def test_a_file_that_is_full_within_a_slice_knows_its_keys(golden: Golden, tmp_path: Path, codec: str) -> None:
    """By another codec the rows get larger than the slice is, whose keys were joined."""
    config = WriteConfig(
        row_group_rows=100, batch_rows=100, bloom_entries=5000, bloom_max_entries=5000, parquet_codec=codec
    )
    bases = Bases(golden("9", "cow_basic").table, tmp_path, config, 240_000)
    slices = [bases.put(name, first, 1000, 300) for name, first in (("a", 0), ("b", 1000))]
    assert all(bases.size(item) < 220_000 for item in slices)
    files = bases.join(*slices)
    bases.assert_keys_known(files)
    assert sum(file.stat.num_writes for file in files) == 2000
    if codec == "SNAPPY":
        assert [file.stat.num_writes for file in files] == [1000, 1000]
        assert all(file.stat.file_size_in_bytes > 300_000 for file in files)


def test_a_file_that_is_full_within_copies_knows_their_keys(golden: Golden, tmp_path: Path, copies: list[int]) -> None:
    """The rows before them were no row group yet, so that the file seemed to have room."""
    config = WriteConfig(row_group_rows=1000, bloom_entries=10_000, bloom_max_entries=10_000)
    bases = Bases(golden("9", "cow_basic").table, tmp_path, config, 300_000)
    small, large = bases.put("a", 0, 90, 10_000), bases.put("b", 1000, 5000, 10)
    assert bases.size(small) > 300_000 > bases.size(large)
    files = bases.join(small, large)
    assert copies == [0, 1, 2, 3, 4]
    bases.assert_keys_known(files)
    assert [file.stat.num_writes for file in files] == [5090]


def test_the_codec_is_that_of_the_options_or_of_the_first_base_file(golden: Golden) -> None:
    table = golden("9", "clustered_cow").table
    context = open_context(table)
    target, storage = target_of(context), LocalStorage(table)
    (item, *_) = map(planned, slices_of(context))
    assert writer_for(storage, target, [item], "a", ATTEMPT).codec == "GZIP"
    assert writer_for(storage, target, [replace(item, base_file=None)], "a", ATTEMPT).codec == "GZIP"
    chosen = replace(target, files=replace(target.files, config=WriteConfig(parquet_codec="ZSTD")))
    assert writer_for(storage, chosen, [item], "a", ATTEMPT).codec == "ZSTD"
