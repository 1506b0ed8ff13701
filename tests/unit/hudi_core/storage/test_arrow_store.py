"""Arrow's file systems as the data path, on a local folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyarrow.fs import LocalFileSystem

from hudi_core.errors import ConfigError, StorageError, StorageNotFoundError, UnsupportedError
from hudi_core.storage import arrow_store
from hudi_core.storage.arrow_store import ArrowStorage, open_arrow_storage, open_data_storage, open_deleting_storage
from hudi_core.storage.base import ByteRange
from hudi_core.storage.fsspec_store import FsspecStorage
from hudi_core.storage.local import LocalStorage


@pytest.fixture
def storage(tmp_path: Path) -> ArrowStorage:
    return ArrowStorage(LocalFileSystem(), str(tmp_path), tmp_path.as_uri())


def put(storage: ArrowStorage, path: str, data: bytes) -> None:
    with storage.open_output(path) as file:
        file.write(data)


def test_what_is_written_is_listed_and_read(storage: ArrowStorage) -> None:
    for path, data in (("p/b", b"bb"), ("p/a", b"a"), ("p/q/c", b"")):
        put(storage, path, data)
    assert [(info.path, info.size) for info in storage.list_files("p")] == [("p/a", 1), ("p/b", 2)]
    assert storage.list_names("p") == ["a", "b"]
    assert storage.list_folders("p") == ["p/q"]
    assert storage.read("p/b") == b"bb"
    assert storage.list_files("absent") == storage.list_files("p/a") == []
    with storage.open_input("p/b") as file:
        file.seek(1)
        assert file.read() == b"b"


@pytest.mark.parametrize(
    ("start", "length", "found"),
    [(0, 2, b"01"), (4, 100, b"456789"), (10, 1, b""), (3, 0, b""), (-3, 3, b"789"), (-100, 100, b"0123456789")],
)
def test_a_range_ends_with_the_file(storage: ArrowStorage, start: int, length: int, found: bytes) -> None:
    put(storage, "f", b"0123456789")
    assert storage.read_range("f", ByteRange(start, length)) == found


def test_a_file_that_is_absent(storage: ArrowStorage) -> None:
    put(storage, "p/a", b"")
    for path in ("b", "p"):
        assert not storage.exists(path)
        with pytest.raises(StorageNotFoundError):
            storage.read(path)
    assert not storage.delete("b")
    assert storage.delete("p/a")


def test_a_folder_is_deleted_but_never_the_root(storage: ArrowStorage) -> None:
    put(storage, "p/q/a", b"")
    put(storage, "px/a", b"")
    storage.delete_folder("p")
    storage.delete_folder("p")
    assert storage.list_folders("") == ["px"]
    with pytest.raises(StorageError, match="refused to delete the root"):
        storage.delete_folder("")


def test_the_control_side_is_refused(storage: ArrowStorage) -> None:
    with pytest.raises(UnsupportedError, match="exclusively"):
        storage.create_exclusive("f", b"")
    with pytest.raises(UnsupportedError, match="conditionally"):
        storage.write_if("f", b"", version=None)
    with pytest.raises(UnsupportedError, match="conditionally"):
        storage.read_versioned("f")
    with pytest.raises(UnsupportedError, match="as a whole"):
        storage.write("f", b"")
    assert not storage.exists("f")


def test_an_address_without_options_of_arrow() -> None:
    with pytest.raises(ConfigError, match=r"not taken for gs://.*: token"):
        open_arrow_storage("gs://lake/t", "gs", {"token": "x"})


def test_local_files_are_deleted_directly(tmp_path: Path) -> None:
    assert isinstance(open_deleting_storage(str(tmp_path)), LocalStorage)


def test_objects_are_deleted_by_fsspec_and_read_by_arrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow would put an empty object in place of the folder, with every file that it deletes."""
    opened: list[Any] = []
    monkeypatch.setattr(
        arrow_store, "open_arrow_storage", lambda uri, scheme, options: opened.append(uri) or ArrowStorage
    )
    assert isinstance(open_deleting_storage("s3://lake/t", {}), FsspecStorage)
    assert opened == []
    open_data_storage("s3://lake/t", {})
    assert opened == ["s3://lake/t"]


def test_an_executor_without_fsspec_deletes_by_arrow(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(uri: str, options: object) -> None:
        raise ConfigError("no storage library")

    monkeypatch.setattr(arrow_store, "open_storage", absent)
    monkeypatch.setattr(arrow_store, "open_arrow_storage", lambda uri, scheme, options: ("arrow", uri))
    assert open_deleting_storage("s3://lake/t", {}) == ("arrow", "s3://lake/t")
