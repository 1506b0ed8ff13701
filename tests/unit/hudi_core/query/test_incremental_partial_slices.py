"""Which slices hold parts of rows, and what finding out costs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_core.config.table_config import TableConfig
from hudi_core.errors import StorageNotFoundError
from hudi_core.query.incremental import partial_groups
from hudi_core.storage.base import ByteRange
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.view.file_group import FileSlice
from hudi_core.view.listing import StorageListing
from tests.support.golden_data import GoldenCase
from tests.support.views import view_of

Golden = Callable[[str, str], GoldenCase]


class CountingStorage(LocalStorage):
    """Notes what is read."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.ranges: list[tuple[str, int]] = []

    def read_range(self, path: str, span: ByteRange) -> bytes:
        self.ranges.append((path, span.length))
        return super().read_range(path, span)


def slices_of(base: Path) -> list[FileSlice]:
    storage = LocalStorage(base)
    view = view_of(ActiveTimeline(storage, TableConfig.load(storage)), StorageListing(storage))
    return [item for partition in view.partitions() for item in view.latest_merged_slices(partition)]


@pytest.mark.parametrize("version", ["8", "9"])
def test_every_group_of_a_partial_update_is_found_by_one_read(golden: Golden, version: str) -> None:
    base = golden(version, "partial_update_merge_into").table
    storage, slices = CountingStorage(base), slices_of(base)
    assert partial_groups(storage, slices) == {item.file_group for item in slices} != set()
    assert sorted(path for path, _ in storage.ranges) == sorted(item.log_files[0].path for item in slices)


def test_whole_rows_cost_a_read_a_log_file(golden: Golden) -> None:
    base = golden("9", "mor_basic").table
    storage, slices = CountingStorage(base), slices_of(base)
    files = [file for item in slices for file in item.log_files]
    assert partial_groups(storage, slices) == frozenset()
    assert sorted(path for path, _ in storage.ranges) == sorted(file.path for file in files)
    assert all(length <= 64 << 10 for _, length in storage.ranges)


def test_slices_without_logs_cost_nothing(golden: Golden) -> None:
    base = golden("9", "cow_basic").table
    storage = CountingStorage(base)
    assert partial_groups(storage, slices_of(base)) == frozenset()
    assert storage.ranges == []


def test_a_log_that_is_gone_is_named(golden: Golden) -> None:
    base = golden("9", "mor_basic").table
    slices = slices_of(base)
    victim = next(item for item in slices if item.log_files).log_files[0].path
    (base / victim).unlink()
    with pytest.raises(StorageNotFoundError) as caught:
        partial_groups(LocalStorage(base), slices)
    assert caught.value.path == victim
