"""The metadata table as a file listing."""

from __future__ import annotations

from collections.abc import Callable

from hudi_core.config.table_config import TableConfig
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.storage.base import FileInfo
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.view.listing import FileListing
from tests.support.golden_data import GoldenCase


def test_files_are_sorted_and_carry_their_sizes(golden: Callable[[str, str], GoldenCase]) -> None:
    storage = LocalStorage(golden("6", "multilevel_encoded").table)
    config = TableConfig.load(storage)
    listing: FileListing = MetadataTable(storage, config, ActiveTimeline(storage, config).load()).listing()
    assert len(listing.partitions()) > 1
    for partition in listing.partitions():
        files = listing.files(partition)
        assert [info.path for info in files] == sorted(info.path for info in files)
        assert files == [FileInfo(info.path, storage.stat(info.path).size, 0.0) for info in files]
    assert listing.files("absent") == []
