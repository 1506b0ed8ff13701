"""A folder of fsspec's own in-memory file system, and what such a storage cannot carry."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from hudi_core.errors import StorageError, StorageNotFoundError, UnsupportedError
from hudi_core.storage.base import ByteRange
from hudi_core.storage.fsspec_store import FsspecStorage


@pytest.fixture
def storage() -> Iterator[FsspecStorage]:
    """Every test has a folder of its own: the file system is one of the whole process."""
    root, fs = f"/{uuid4()}", MemoryFileSystem()
    yield FsspecStorage(fs, root, f"memory:/{root}")
    if fs.exists(root):
        fs.rm(root, recursive=True)


def test_what_is_written_is_listed_and_read(storage: FsspecStorage) -> None:
    storage.write("p/b", b"bb")
    storage.write("p/a", b"a")
    storage.write("p/q/c", b"")
    assert [(info.path, info.size) for info in storage.list_files("p")] == [("p/a", 1), ("p/b", 2)]
    assert storage.list_names("p") == ["a", "b"]
    assert storage.list_folders("p") == ["p/q"]
    assert storage.read("p/b") == b"bb"
    assert storage.stat("p/b").modified > 0
    assert storage.list_files("absent") == []


@pytest.mark.parametrize(
    ("start", "length", "found"),
    [(0, 2, b"01"), (4, 100, b"456789"), (10, 1, b""), (3, 0, b""), (-3, 3, b"789"), (-100, 100, b"0123456789")],
)
def test_a_range_ends_with_the_file(storage: FsspecStorage, start: int, length: int, found: bytes) -> None:
    storage.write("f", b"0123456789")
    assert storage.read_range("f", ByteRange(start, length)) == found


def test_a_file_that_is_absent(storage: FsspecStorage) -> None:
    storage.write("p/a", b"")
    for path in ("b", "p"):
        assert not storage.exists(path)
        with pytest.raises(StorageNotFoundError):
            storage.stat(path)
    with pytest.raises(StorageNotFoundError):
        storage.read("b")
    assert not storage.delete("b")


def test_a_folder_goes_with_names_that_look_like_patterns(storage: FsspecStorage) -> None:
    for path in ("p/*/a", "p/[x]/b", "px/c"):
        storage.write(path, b"1")
    storage.delete_folder("p/*")
    assert storage.exists("p/[x]/b")
    storage.delete_folder("p")
    assert storage.list_folders("") == ["px"]
    with pytest.raises(StorageError, match="refused to delete the root"):
        storage.delete_folder("")


def test_streams(storage: FsspecStorage) -> None:
    with storage.open_output("p/s") as out:
        out.write(b"abc")
    with storage.open_input("p/s") as file:
        file.seek(1)
        assert file.read() == b"bc"


def test_only_s3_carries_a_timeline(storage: FsspecStorage) -> None:
    assert not storage.supports_exclusive_create
    assert not storage.supports_conditional_write
    with pytest.raises(UnsupportedError, match="cannot create a file exclusively"):
        storage.create_exclusive("f", b"")
    with pytest.raises(UnsupportedError, match="cannot write conditionally"):
        storage.write_if("f", b"", version=None)
    with pytest.raises(UnsupportedError, match="cannot write conditionally"):
        storage.read_versioned("f")
    assert not storage.exists("f")
