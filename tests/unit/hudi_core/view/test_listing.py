from __future__ import annotations

import pytest

from hudi_core.errors import FormatError
from hudi_core.storage.memory import MemoryStorage
from hudi_core.view.listing import StorageListing


def _storage(*paths: str) -> MemoryStorage:
    storage = MemoryStorage()
    for path in paths:
        storage.write(path, b"12")
    return storage


def test_partitions_are_folders_with_a_metadata_file() -> None:
    listing = StorageListing(
        _storage(
            ".hoodie/hoodie.properties",
            ".hoodie/metadata/files/.hoodie_partition_metadata",
            "b/2/.hoodie_partition_metadata",
            "b/2/x_0-0-0_1.parquet",
            "b/2/below/.hoodie_partition_metadata",
            "a=1/\u00d6/.hoodie_partition_metadata.parquet",
            "c/.hoodie_partition_metadata.orc",
            "no/partition.parquet",
            "d/.hoodie_partition_metadata_copy",
        )
    )
    assert listing.partitions() == ["a=1/\u00d6", "b/2", "c"]
    assert [(info.name, info.size) for info in listing.files("b/2")] == [(".hoodie_partition_metadata", 2), ("x_0-0-0_1.parquet", 2)]


def test_a_table_without_partitions_is_one_partition() -> None:
    listing = StorageListing(_storage(".hoodie/hoodie.properties", ".hoodie_partition_metadata", "x_0-0-0_1.parquet"))
    assert listing.partitions() == [""]
    assert [info.name for info in listing.files("")] == [".hoodie_partition_metadata", "x_0-0-0_1.parquet"]


def test_a_table_without_files_has_no_partition() -> None:
    assert StorageListing(_storage(".hoodie/hoodie.properties")).partitions() == []
    assert StorageListing(_storage()).files("p") == []


@pytest.mark.parametrize("partition", ["../x", "/x", "a/../b", ".hoodie", ".hoodie/metadata/files", "a\x00"])
def test_partitions_outside_the_table_are_refused(partition: str) -> None:
    with pytest.raises(FormatError):
        StorageListing(_storage()).files(partition)


def test_a_tree_that_never_ends_is_refused() -> None:
    with pytest.raises(FormatError, match="32 levels"):
        StorageListing(_storage("/".join(["d"] * 40) + "/x")).partitions()


def test_one_listing_is_one_moment() -> None:
    storage = _storage("p/.hoodie_partition_metadata")
    listing = StorageListing(storage)
    assert len(listing.files("p")) == 1
    storage.write("p/x_0-0-0_1.parquet", b"")
    assert len(listing.files("p")) == 1
    assert len(StorageListing(storage).files("p")) == 2
