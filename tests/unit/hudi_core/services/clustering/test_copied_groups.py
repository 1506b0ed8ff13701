"""Slices that are joined: large row groups are copied, small ones and slices with log files are written again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from hudi_core.codec.parquet import writer
from hudi_core.config.write_config import WriteConfig
from hudi_core.engine.protocol import TaskAttempt
from hudi_core.services.clustering.copied_groups import Clustered, JoinUnit, codec_of, join_slices
from hudi_core.storage.local import LocalStorage
from tests.support.changed_tables import open_context
from tests.support.golden_data import GoldenCase
from tests.support.table_invariants import read_rows
from tests.unit.hudi_core.services.clustering.test_slice_rows import planned, slices_of, target_of

Golden = Callable[[str, str], GoldenCase]
SMALL_GROUPS = WriteConfig(row_group_rows=10, bloom_entries=1000, bloom_max_entries=1000)


def joined(table: Path, config: WriteConfig, *, target_bytes: int = 1 << 30) -> tuple[Clustered, JoinUnit]:
    context = open_context(table)
    target = target_of(context)
    target = replace(target, files=replace(target.files, config=config, target_bytes=target_bytes))
    first = slices_of(context)[0].file_group.partition
    slices = tuple(planned(item) for item in slices_of(context) if item.file_group.partition == first)
    unit = JoinUnit(target, first, slices, "abc")
    return join_slices(unit, TaskAttempt(0, 1, 0)), unit


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The row groups that are copied, by number."""
    found: list[int] = []
    copy = writer.BaseFileWriter.copy

    def counted(self: writer.BaseFileWriter, source: object, number: int, values: object) -> None:
        found.append(number)
        copy(self, source, number, values)  # type: ignore[arg-type]

    monkeypatch.setattr(writer.BaseFileWriter, "copy", counted)
    return found


@pytest.mark.parametrize("version", ["6", "8", "9"])
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
        if place == unit.partition
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


def test_the_codec_is_that_of_the_options_or_of_the_first_base_file(golden: Golden) -> None:
    table = golden("9", "clustered_cow").table
    context = open_context(table)
    target, storage = target_of(context), LocalStorage(table)
    (item, *_) = map(planned, slices_of(context))
    assert codec_of(storage, target, [item]) == "GZIP"
    assert codec_of(storage, target, [replace(item, base_file=None)]) == "GZIP"
    chosen = replace(target, files=replace(target.files, config=WriteConfig(parquet_codec="ZSTD")))
    assert codec_of(storage, chosen, [item]) == "ZSTD"
