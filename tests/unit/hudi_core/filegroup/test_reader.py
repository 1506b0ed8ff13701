"""Projection, refusals and options of the slice reader; what it returns for whole tables is in tests/golden."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.config.table_config import TableConfig
from hudi_core.errors import ConfigError, CorruptFileError, UnsupportedError
from hudi_core.filegroup.base_file import grouped, open_base_file
from hudi_core.filegroup.reader import SliceReader
from hudi_core.storage.local import LocalStorage
from hudi_core.storage.memory import MemoryStorage
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.table_schema import schema_of
from hudi_core.view.file_group import FileSlice
from hudi_core.view.fs_view import load_view
from hudi_core.view.listing import StorageListing
from tests.golden_data import GoldenCase

Golden = Callable[[str, str], GoldenCase]


def opened(case: GoldenCase, *, snapshot: bool) -> tuple[SliceReader, list[FileSlice]]:
    """A reader of the case's table and the slices of a snapshot."""
    storage = LocalStorage(str(case.table))
    config = TableConfig.load(storage)
    active = ActiveTimeline(storage, config)
    timeline = active.load()
    view = load_view(active, StorageListing(storage), timeline)
    reader = SliceReader.for_query(storage, config, schema_of(timeline, active.read_details), timeline, snapshot=snapshot)
    return reader, [item for partition in view.partitions() for item in view.latest_merged_slices(partition)]


def table(reader: SliceReader, slices: list[FileSlice], columns: list[str] | None = None) -> pa.Table:
    """All rows of the slices."""
    return pa.Table.from_batches([batch for item in slices for batch in reader.read(item, columns)], reader.output_schema(columns))


@pytest.mark.parametrize("columns", [["name"], ["qty", "_hoodie_commit_time"], ["id", "dt"], ["_hoodie_is_deleted"], ["dt"]])
@pytest.mark.parametrize("snapshot", [True, False])
def test_projection_gives_the_same_values(golden: Golden, columns: list[str], snapshot: bool) -> None:
    reader, slices = opened(golden("6", "payload_default"), snapshot=snapshot)
    whole, part = table(reader, slices), table(reader, slices, columns)
    assert part.column_names == columns
    assert part == whole.select(columns)


def test_dropped_partition_column_alone(golden: Golden) -> None:
    case = golden("6", "drop_partition_columns")
    reader, slices = opened(case, snapshot=True)
    expected = pq.read_table(case.expected / "snapshot.parquet", columns=["dt"])
    assert sorted(table(reader, slices, ["dt"])["dt"].to_pylist()) == sorted(expected["dt"].to_pylist())


def test_unknown_column_is_a_config_error_that_lists_the_columns(golden: Golden) -> None:
    reader, slices = opened(golden("6", "mor_log_only"), snapshot=True)
    with pytest.raises(ConfigError, match=r"'nope'.*_hoodie_commit_time"):
        reader.read(slices[0], ["id", "nope"])


def test_small_budget_reads_the_same(golden: Golden) -> None:
    reader, slices = opened(golden("6", "types_mor"), snapshot=True)
    assert table(replace(reader, memory_budget=1), slices) == table(reader, slices)


def test_corrupt_blocks_are_left_out_or_refused(golden: Golden) -> None:
    reader, slices = opened(golden("6", "log_corrupt_middle"), snapshot=True)
    assert table(reader, slices).num_rows > 0
    assert reader.scan(slices[0]).counts.corrupt > 0
    strict = replace(reader, allow_corrupt_log_blocks=False)
    with pytest.raises(CorruptFileError, match=r"\.log\."):
        table(strict, slices)


def test_payload_is_refused_for_slices_with_logs_only(golden: Golden) -> None:
    reader, slices = opened(golden("6", "payload_partial_update"), snapshot=True)
    bare = [replace(item, log_files=()) for item in slices]
    assert table(reader, bare).num_rows > 0
    with pytest.raises(UnsupportedError, match="PartialUpdateAvroPayload"):
        table(reader, slices)


def test_base_formats_other_than_parquet_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="orc"), open_base_file(MemoryStorage(), "p/f-0_0-1-2_001.orc"):
        pass


def test_groups_respect_rows_and_bytes() -> None:
    batches = [pa.record_batch([pa.array(range(10))], ["a"]) for _ in range(5)]
    assert [len(group) for group in grouped(iter(batches), rows=25, max_bytes=1 << 20)] == [3, 2]
    assert [len(group) for group in grouped(iter(batches), rows=100, max_bytes=100)] == [2, 2, 1]
    assert [len(group) for group in grouped(iter(batches), rows=0, max_bytes=1)] == [1] * 5
    assert list(grouped(iter([]), rows=1, max_bytes=1)) == []
