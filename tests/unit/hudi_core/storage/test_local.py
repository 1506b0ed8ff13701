from __future__ import annotations

import errno
import fcntl
import os
import socket
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_core.errors import (
    ConfigError,
    FormatError,
    StorageConflictError,
    StorageError,
    StorageExistsError,
    StorageNotFoundError,
)
from hudi_core.storage.arrow_store import open_data_storage
from hudi_core.storage.base import ByteRange
from hudi_core.storage.local import LocalStorage, local_path
from hudi_core.storage.registry import open_storage
from hudi_core.view.listing import StorageListing


@pytest.fixture
def table(tmp_path: Path) -> Path:
    folder = tmp_path / "table"
    folder.mkdir()
    return folder


def side_file(path: Path) -> Path:
    side = path.parent / f".{path.name}.crc"
    side.write_bytes(b"crc\x00stale")
    return side


@pytest.mark.parametrize("change", ["write", "delete", "create", "output"])
def test_every_change_of_a_file_removes_its_stale_checksum(table: Path, change: str) -> None:
    storage = LocalStorage(table)
    target = table / ".hoodie" / "hoodie.properties"
    target.parent.mkdir()
    if change in ("write", "delete"):
        target.write_bytes(b"old")
    side = side_file(target)
    if change == "write":
        storage.write(".hoodie/hoodie.properties", b"new")
    elif change == "delete":
        assert storage.delete(".hoodie/hoodie.properties")
    elif change == "create":
        storage.create_exclusive(".hoodie/hoodie.properties", b"new")
    else:
        with storage.open_output(".hoodie/hoodie.properties") as file:
            file.write(b"new")
    assert not side.exists()


def test_a_lost_create_leaves_the_winners_checksum(table: Path) -> None:
    (table / "x").write_bytes(b"theirs")
    side = side_file(table / "x")
    with pytest.raises(StorageExistsError):
        LocalStorage(table).create_exclusive("x", b"ours")
    assert side.exists()
    with pytest.raises(StorageExistsError):
        LocalStorage(table).open_output("x")


def test_side_files_and_temporary_files_are_not_listed(table: Path) -> None:
    for name in (
        ".x.crc",
        ".airflow-hudi-" + "0" * 32 + ".tmp",
        ".hoodie_partition_metadata",
        ".abc_1.log.1_0-0-0",
        "x",
        "y.tmp",
        "z.crc",
    ):
        (table / name).write_bytes(b"")
    listed = [info.path for info in LocalStorage(table).list_files("")]
    assert listed == [".abc_1.log.1_0-0-0", ".hoodie_partition_metadata", "x", "y.tmp", "z.crc"]


def test_links_that_lead_out_of_the_table_are_refused(table: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    (table / "dt=1").symlink_to(outside)
    (table / "leak").symlink_to(outside / "secret")
    storage = LocalStorage(table)
    for path in ("dt=1/secret", "dt=1/new", "leak"):
        for call in (storage.read, storage.delete, storage.open_output, storage.stat):
            with pytest.raises(FormatError, match="symbolic link"):
                call(path)
        with pytest.raises(FormatError):
            storage.write(path, b"x")
        with pytest.raises(FormatError):
            storage.create_exclusive(path, b"x")
    with pytest.raises(FormatError):
        storage.delete_folder("dt=1")
    with pytest.raises(FormatError):
        storage.list_files("dt=1")
    assert [path.name for path in outside.iterdir()] == ["secret"]


def test_a_link_to_the_table_is_followed(table: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(table)
    storage = LocalStorage(tmp_path / "link")
    storage.write("real/x", b"1")
    assert (table / "real" / "x").read_bytes() == b"1"
    assert storage.read("real/x") == b"1"


@pytest.mark.parametrize("target", ["real", "real/x", "."])
def test_a_link_that_gives_a_second_name_is_refused(table: Path, target: str) -> None:
    (table / "real").mkdir()
    (table / "real/x").write_bytes(b"1")
    (table / "alias").symlink_to(table / target)
    storage = LocalStorage(table)
    for listing in (storage.list_files, storage.list_names, storage.list_folders):
        with pytest.raises(FormatError, match="second name"):
            listing("")
    path = "alias" if target == "real/x" else "alias/x" if target == "real" else "alias/real/x"
    for call in (storage.read, storage.stat, storage.open_input, storage.delete):
        with pytest.raises(FormatError, match="second name"):
            call(path)
    with pytest.raises(FormatError, match="second name"):
        storage.write(path, b"2")
    assert (table / "real/x").read_bytes() == b"1"


def test_a_hard_link_that_gives_a_data_file_a_second_name_is_refused(table: Path, tmp_path: Path) -> None:
    for folder in ("dt=1", "dt=2", ".hoodie"):
        (table / folder).mkdir(exist_ok=True)
        (table / folder / "x").write_bytes(b"1")
    os.link(table / "dt=1/x", table / "dt=1/y")
    os.link(table / "dt=2/x", tmp_path / "backup")
    os.link(table / ".hoodie/x", table / ".hoodie/y")
    storage = LocalStorage(table)
    with pytest.raises(FormatError, match="second name"):
        storage.list_files("dt=1")
    assert [info.path for info in storage.list_files("dt=2")] == ["dt=2/x"]
    assert [info.path for info in storage.list_files(".hoodie")] == [".hoodie/x", ".hoodie/y"]


def test_a_fan_of_links_to_the_table_is_not_walked(table: Path) -> None:
    for number in range(10):
        (table / f"again{number}").symlink_to(table)
    with pytest.raises(FormatError, match="symbolic link"):
        StorageListing(LocalStorage(table)).partitions()


def test_what_is_neither_file_nor_folder_is_not_opened(table: Path) -> None:
    os.mkfifo(table / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(table / "socket"))
        storage = LocalStorage(table)
        range_of = lambda path: storage.read_range(path, ByteRange(0, 1))  # noqa: E731
        for call in (storage.read, storage.open_input, storage.stat, range_of):
            for name in ("pipe", "socket"):
                with pytest.raises(FormatError, match="a pipe, a socket or a device"):
                    call(name)


def device(path: Path) -> None:
    """Zeros without end; what only root can make."""
    os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 5))


DEVICES = (device,) if os.geteuid() == 0 else ()


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to(path), *DEVICES])
def test_what_is_neither_file_nor_folder_is_not_left_out_of_a_listing(
    table: Path, make: Callable[[Path], None]
) -> None:
    """A query would lose the rows of a file in whose place it is."""
    (table / "file").write_bytes(b"1")
    make(table / "other")
    storage = LocalStorage(table)
    for listing in (storage.list_files, storage.list_names, storage.list_folders):
        with pytest.raises(FormatError, match="is no file of a table") as caught:
            listing("")
        assert caught.value.path == "other"
    for call in (storage.read, storage.stat, storage.open_input):
        with pytest.raises(FormatError, match="is no file of a table"):
            call("other")


NOT_UTF_8 = b"bad\xff"


@pytest.mark.parametrize("folder", ["", "dt=1", ".hoodie/.temp/001"])
@pytest.mark.parametrize("make", [Path.mkdir, Path.touch])
def test_a_name_that_is_not_utf_8_is_refused_where_rows_would_be_lost(
    table: Path, folder: str, make: Callable[[Path], None]
) -> None:
    (table / folder).mkdir(parents=True, exist_ok=True)
    make(table / folder / os.fsdecode(NOT_UTF_8))
    for listing in (LocalStorage(table).list_files, LocalStorage(table).list_names, LocalStorage(table).list_folders):
        with pytest.raises(FormatError, match="not UTF-8") as caught:
            listing(folder)
        assert caught.value.path == (f"{folder}/bad\\xff" if folder else "bad\\xff")
        assert caught.value.remedy


def test_a_name_that_is_not_utf_8_is_left_out_where_no_rule_takes_it(table: Path) -> None:
    for folder in (".hoodie", ".hoodie/timeline", ".hoodie/metadata/files"):
        (table / folder).mkdir(parents=True)
        (table / folder / os.fsdecode(NOT_UTF_8)).touch()
        (table / folder / "\u00e9").touch()
    (table / ".hoodie" / os.fsdecode(NOT_UTF_8 + b"2")).mkdir()
    (table / os.fsdecode(b"." + NOT_UTF_8 + b".crc")).touch()
    storage = LocalStorage(table)
    assert storage.list_names("") == []
    for folder in (".hoodie", ".hoodie/timeline", ".hoodie/metadata/files"):
        assert storage.list_names(folder) == ["\u00e9"]
        assert [info.name for info in storage.list_files(folder)] == ["\u00e9"]
    assert storage.list_folders(".hoodie") == [".hoodie/metadata", ".hoodie/timeline"]


def test_deleting_a_folder_does_not_follow_links_in_it(table: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "kept").write_bytes(b"")
    (table / "gone").mkdir()
    (table / "gone" / "link").symlink_to(tmp_path / "outside")
    LocalStorage(table).delete_folder("gone")
    assert not (table / "gone").exists()
    assert (tmp_path / "outside" / "kept").exists()


def test_a_file_system_without_hard_links_is_refused_and_left_clean(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(source: str, target: str) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    with pytest.raises(StorageError, match="hard links") as caught:
        LocalStorage(table).create_exclusive("x", b"1")
    assert caught.value.path == "x"
    assert list(table.iterdir()) == []


def test_a_failed_write_leaves_the_old_file_and_nothing_else(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = LocalStorage(table)
    storage.write("x", b"old")

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match="No space left") as caught:
        storage.write("x", b"new")
    assert not isinstance(caught.value, StorageNotFoundError)
    with pytest.raises(StorageError):
        storage.create_exclusive("y", b"new")
    assert [path.name for path in table.iterdir()] == ["x"]
    assert storage.read("x") == b"old"


def test_an_output_of_a_failed_block_is_removed(table: Path) -> None:
    storage = LocalStorage(table)

    def write_half() -> None:
        with storage.open_output("half.parquet") as file:
            file.write(b"PAR1")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_half()
    assert list(table.iterdir()) == []


def test_an_input_of_a_folder_is_absent(table: Path) -> None:
    (table / "folder").mkdir()
    with pytest.raises(StorageNotFoundError):
        LocalStorage(table).open_input("folder")


def test_a_conditional_write_waits_for_who_compares_in_the_same_folder(table: Path) -> None:
    storage = LocalStorage(table)
    version = storage.write_if("a/x", b"one", version=None)
    handle = os.open(table / "a", os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    written = threading.Event()

    def write() -> None:
        storage.write_if("a/x", b"two", version=version)
        written.set()

    waiting = threading.Thread(target=write)
    waiting.start()
    assert not written.wait(0.2)
    assert storage.read("a/x") == b"one"
    os.close(handle)
    waiting.join()
    assert storage.read("a/x") == b"two"


def test_a_conditional_write_needs_the_version_that_is_there(table: Path) -> None:
    storage = LocalStorage(table)
    version = storage.write_if("a/x", b"one", version=None)
    with pytest.raises(StorageExistsError):
        storage.write_if("a/x", b"two", version=None)
    for path, named in (("a/x", "0"), ("a/y", version), ("b/x", version), ("a/x/z", version)):
        with pytest.raises(StorageConflictError):
            storage.write_if(path, b"two", version=named)
    assert storage.read_versioned("a/x") == (b"one", version)
    assert sorted(path.name for path in (table / "a").iterdir()) == ["x"]


def test_a_file_system_that_locks_no_folders_says_so(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = LocalStorage(table)
    version = storage.write_if("x", b"one", version=None)

    def refuse(handle: int, operation: int) -> None:
        raise OSError(errno.EBADF, "Bad file descriptor")

    monkeypatch.setattr("hudi_core.storage.local.fcntl.flock", refuse)
    with pytest.raises(StorageError, match="cannot lock a folder") as caught:
        storage.write_if("x", b"two", version=version)
    assert not isinstance(caught.value, StorageConflictError)
    assert storage.read("x") == b"one"


def test_addresses(tmp_path: Path) -> None:
    assert local_path("file:///a%20b/c") == "/a b/c"
    assert local_path("file:/a/b") == "/a/b"
    assert local_path("file://localhost/a") == "/a"
    assert local_path("FILE:///a") == "/a"
    assert local_path("file:///a#b?c;d\n") == "/a#b?c;d\n"
    assert local_path("/a/../b") == "/b"
    assert local_path("filed:/a") == os.path.abspath("filed:/a")
    with pytest.raises(ConfigError, match="host"):
        local_path("file://server/a")
    (tmp_path / "x").write_bytes(b"1")
    for uri in (str(tmp_path), f"file://{tmp_path}", f"file:{tmp_path}/"):
        for open_it in (open_storage, open_data_storage):
            storage = open_it(uri)
            assert storage.read("x") == b"1"
            assert storage.uri == uri


def test_a_relative_address_needs_a_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    for uri in ("t", "file:t"):
        with pytest.raises(ConfigError, match="working directory, which is gone"):
            local_path(uri)
    assert local_path("/t") == local_path("file:/t") == "/t"


@pytest.mark.parametrize("change", ["create_exclusive", "write"])
def test_a_folder_is_no_file_that_another_process_made(table: Path, change: str) -> None:
    """No listing shows it as a file: taken for one, an instant would count as inflight that is only requested."""
    (table / "x").mkdir()
    with pytest.raises(FormatError, match="a folder is no file of a table") as caught:
        getattr(LocalStorage(table), change)("x", b"ours")
    assert caught.value.path == "x"
    assert [path.name for path in table.rglob("*")] == ["x"]


@pytest.mark.parametrize("change", ["create_exclusive", "write", "open_output"])
@pytest.mark.parametrize("path", ["a/claims/x", "a/claims/1/x", "a/claims/1/2/x"])
def test_a_file_in_place_of_a_folder_is_named(table: Path, change: str, path: str) -> None:
    (table / "a").mkdir()
    (table / "a" / "claims").write_bytes(b"")
    arguments = () if change == "open_output" else (b"ours",)
    with pytest.raises(FormatError, match="a file is where a folder of the table belongs") as caught:
        getattr(LocalStorage(table), change)(path, *arguments)
    assert caught.value.path == "a/claims"


@pytest.mark.parametrize("change", ["create_exclusive", "write", "open_output"])
def test_the_folder_of_a_table_that_was_removed_is_not_made_anew(table: Path, change: str) -> None:
    storage = LocalStorage(table)
    table.rmdir()
    arguments = () if change == "open_output" else (b"ours",)
    with pytest.raises(StorageNotFoundError, match="the folder of the table is gone"):
        getattr(storage, change)(".hoodie/lock", *arguments)
    assert not table.exists()
