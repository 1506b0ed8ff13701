from __future__ import annotations

import threading
import time

import pytest

from hudi_core.errors import FormatError, StorageError
from hudi_core.storage.base import FileInfo
from hudi_core.view.listing import LISTING_THREADS, StorageListing, walk_partitions
from tests.support.memory_storage import MemoryStorage


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
    assert [(info.name, info.size) for info in listing.files("b/2")] == [
        (".hoodie_partition_metadata", 2),
        ("x_0-0-0_1.parquet", 2),
    ]


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


def test_rows_among_the_tables_own_files_are_not_passed_over() -> None:
    """A writer makes the folder `.hoodie` a partition where a row has that value."""
    storage = Remote()
    for partition in (".hoodie", "plain"):
        storage.write(f"{partition}/.hoodie_partition_metadata", b"1")
    with pytest.raises(FormatError, match=r"'\.hoodie' lies in the table's own") as caught:
        StorageListing(storage).partitions()
    assert (caught.value.path, caught.value.exit_code) == (".hoodie/.hoodie_partition_metadata", 2)
    assert storage.calls == [""], "its folder is not listed: it has the timeline"
    storage.delete(".hoodie/.hoodie_partition_metadata")
    assert StorageListing(storage).partitions() == ["plain"]


def test_a_tree_that_never_ends_is_refused() -> None:
    with pytest.raises(FormatError, match="32 levels"):
        StorageListing(_storage("/".join(["d"] * 40) + "/x")).partitions()


class Remote(MemoryStorage):
    """A storage that counts its concurrent listings."""

    def __init__(self, broken: str | None = None) -> None:
        super().__init__("s3://bucket/table")
        self.lock = threading.Lock()
        self.calls: list[str] = []
        self.running = self.most = 0
        self.broken = broken

    def list_files(self, folder: str) -> list[FileInfo]:
        with self.lock:
            self.calls.append(folder)
            self.running += 1
            self.most = max(self.most, self.running)
        time.sleep(0.002)
        with self.lock:
            self.running -= 1
        if folder == self.broken:
            raise StorageError("the store is busy", path=folder)
        return super().list_files(folder)


DAYS = [f"y={year}/d={day:02d}" for year in range(3) for day in range(40)]


def remote(broken: str | None = None) -> Remote:
    storage = Remote(broken)
    for path in [*DAYS, "flat", "y=1/deep/er"]:
        storage.write(f"{path}/.hoodie_partition_metadata", b"1")
        storage.write(f"{path}/f_0-0-0_1.parquet", b"1")
    return storage


def test_a_remote_storage_is_walked_by_a_bounded_number_of_threads() -> None:
    storage = remote()
    before = threading.active_count()
    listing = StorageListing(storage)
    assert listing.partitions() == sorted([*DAYS, "flat", "y=1/deep/er"])
    assert len(storage.calls) == len(set(storage.calls)), "each folder once"
    assert 1 < storage.most <= LISTING_THREADS
    assert threading.active_count() == before
    assert [info.name for info in listing.files("flat")] == [".hoodie_partition_metadata", "f_0-0-0_1.parquet"]
    assert len(storage.calls) == len(set(storage.calls)), "what the walk listed is not listed again"


def test_a_walk_is_in_order_and_keeps_little_ahead_of_its_reader() -> None:
    storage = remote()
    walk = walk_partitions(storage, storage.list_files)
    assert next(walk)[0] == "flat"
    assert len(storage.calls) <= 1 + LISTING_THREADS
    rest = [folder for folder, files in walk if len(files) == 2]
    assert rest == [*DAYS[:80], "y=1/deep/er", *DAYS[80:]]


def test_an_error_of_one_folder_ends_the_walk() -> None:
    storage, before = remote("y=0/d=20"), threading.active_count()
    with pytest.raises(StorageError, match="busy"):
        StorageListing(storage).partitions()
    assert threading.active_count() == before
    assert len(storage.calls) < len(DAYS)


def test_one_listing_is_one_moment() -> None:
    storage = _storage("p/.hoodie_partition_metadata")
    listing = StorageListing(storage)
    assert len(listing.files("p")) == 1
    storage.write("p/x_0-0-0_1.parquet", b"")
    assert len(listing.files("p")) == 1
    assert len(StorageListing(storage).files("p")) == 2
