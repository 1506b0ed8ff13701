"""Arrow's file systems as the data path, on a local folder."""

from __future__ import annotations

import io
import random
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from pyarrow.fs import LocalFileSystem

from hudi_core.errors import ConfigError, StorageError, StorageNotFoundError, UnsupportedError
from hudi_core.storage import arrow_store
from hudi_core.storage.arrow_store import ArrowStorage, open_arrow_storage, open_data_storage, open_deleting_storage
from hudi_core.storage.base import ByteRange
from hudi_core.storage.failures import GuardedInput
from hudi_core.storage.fsspec_store import FsspecStorage
from hudi_core.storage.local import LocalStorage

MIB = 1 << 20


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


class Recording(io.BytesIO):
    """An Arrow file that keeps the spans that are requested of it, and fails while it has a `failure`."""

    failure: Exception | None = None

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self.content, self.spans = content, []

    def size(self) -> int:
        return len(self.content)

    def read_at(self, length: int, start: int) -> bytes:
        self.spans.append((start, length))
        if self.failure is not None:
            raise self.failure
        return self.content[start : start + length]


def ahead(size: int) -> tuple[bytes, Recording, GuardedInput]:
    content = random.Random(size).randbytes(size)
    file = Recording(content)
    return content, file, GuardedInput(arrow_store._ReadAhead(file), lambda _: nullcontext())


def test_a_small_object_is_read_by_one_request() -> None:
    content, file, stream = ahead(MIB)
    for start, length in ((MIB - 8, 8), (MIB - 5000, 4992), (4, 1000), (2000, 0), (MIB // 2, 100)):
        stream.seek(start)
        assert stream.read(length) == content[start : start + length]
    assert stream.seek(-3, io.SEEK_END) == MIB - 3
    assert stream.read() == content[-3:]
    assert file.spans == [(0, MIB)]
    stream.close()
    assert file.closed


def test_neighbours_in_a_large_object_are_read_together() -> None:
    content, file, stream = ahead(10 * MIB)
    stream.seek(-8, io.SEEK_END)
    assert stream.read(8) == content[-8:]
    stream.seek(-MIB, io.SEEK_END)
    assert stream.read(MIB) == content[-MIB:]
    assert file.spans.pop() == (9 * MIB, MIB), "the end, with what is before it"
    stream.seek(100)
    for _ in range(8):
        start = stream.tell()
        assert stream.read(100_000) == content[start : start + 100_000]
    assert file.spans == [(100, MIB)]
    stream.seek(2 * MIB)
    assert stream.read(3 * MIB) == content[2 * MIB : 5 * MIB]
    assert stream.read(1) == content[5 * MIB : 5 * MIB + 1]
    assert file.spans == [(100, MIB), (2 * MIB, 3 * MIB), (5 * MIB, MIB)], "a large part is not kept"


@pytest.mark.parametrize("size", [0, 1, MIB - 1, MIB + 1, 3 * MIB])
def test_any_reads_are_those_of_the_content(size: int) -> None:
    content, _, stream = ahead(size)
    reads = random.Random(7)
    for _ in range(300):
        start, length = reads.randint(0, size + 5), reads.choice([0, 1, 1000, MIB, 2 * MIB])
        assert stream.seek(start) == stream.tell() == start
        assert stream.read(length) == content[start : start + length]


def test_a_file_system_reads_what_is_asked_for(storage: ArrowStorage) -> None:
    put(storage, "p/a", b"abc")
    with storage.open_input("p/a") as file:
        assert isinstance(file, GuardedInput)
        assert not isinstance(file._inner, arrow_store._ReadAhead)
        assert file.read(2) == b"ab"


def test_a_request_that_fails_leaves_nothing_behind_for_the_next() -> None:
    content, file, stream = ahead(10 * MIB)
    assert stream.read(100) == content[:100]
    file.failure = OSError("the connection broke off")
    stream.seek(5 * MIB)
    with pytest.raises(OSError, match="broke off"):
        stream.read(100)
    file.failure = None
    stream.seek(5 * MIB)
    assert stream.read(100) == content[5 * MIB : 5 * MIB + 100]


def test_an_older_arrow_writes_small_files_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[dict[str, Any]] = []

    def older(**arguments: Any) -> str:
        made.append(arguments)
        if "allow_delayed_open" in arguments:
            raise TypeError("unexpected keyword argument")
        return "older"

    monkeypatch.setattr(arrow_store.arrow_fs, "S3FileSystem", older)
    assert arrow_store._s3_file_system({"region": "r"}) == "older"
    assert made == [{"region": "r", "allow_delayed_open": True}, {"region": "r"}]
