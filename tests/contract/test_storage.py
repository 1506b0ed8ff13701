"""What every Storage promises (hudi_core.storage.base), run over every implementation."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
from pyarrow import fs as arrow_fs

from hudi_core.errors import (
    ConfigError,
    FormatError,
    StorageConflictError,
    StorageError,
    StorageExistsError,
    StorageNotFoundError,
    UnsupportedError,
)
from hudi_core.storage.arrow_store import ArrowStorage, open_data_storage
from hudi_core.storage.base import ByteRange, Storage
from hudi_core.storage.fsspec_store import FsspecStorage
from hudi_core.storage.local import LocalStorage
from hudi_core.storage.registry import open_storage
from hudi_core.storage.s3_conditional import fsspec_storage
from tests.contract.process_races import race_processes, race_threads
from tests.contract.s3_server import S3Server, s3_server
from tests.support.fault_storage import FaultPlan, FaultStorage
from tests.support.memory_storage import MemoryStorage
from tests.support.tiers import tiered

_tables = itertools.count()

KINDS = ["local", "memory", "fault", "fsspec-local", "fsspec-s3", "arrow-local", "arrow-s3"]
EXCLUSIVE = ["local", "memory", "fault", "fsspec-s3"]
REPLACING = [kind for kind in KINDS if kind != "arrow-local"]


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


@pytest.fixture(scope="module")
def s3_storages(s3: S3Server) -> dict[str, Any]:
    """One client of each kind for the module: each costs a third of a second."""
    control, data = open_storage("s3://bucket/one", s3.options), open_data_storage("s3://bucket/one", s3.options)
    assert isinstance(control, FsspecStorage)
    assert isinstance(data, ArrowStorage)
    return {"fsspec-s3": control._fs, "arrow-s3": data._fs}


@pytest.fixture
def make(tmp_path: Path, request: pytest.FixtureRequest) -> Callable[[str], Storage]:
    def open_kind(kind: str) -> Storage:
        if kind == "local":
            return open_storage(str(tmp_path / "table"))
        if kind == "memory":
            return MemoryStorage()
        if kind == "fault":
            return FaultStorage(LocalStorage(tmp_path / "table"), FaultPlan())
        if kind == "fsspec-local":
            return FsspecStorage(fsspec.filesystem("file"), str(tmp_path / "table"), "file")
        if kind == "arrow-local":
            return ArrowStorage(arrow_fs.LocalFileSystem(), str(tmp_path / "table"), "arrow")
        client = request.getfixturevalue("s3_storages")[kind]
        root = f"bucket/tables/t{next(_tables)}"
        return (
            fsspec_storage(client, root, f"s3://{root}")
            if kind == "fsspec-s3"
            else ArrowStorage(client, root, f"s3://{root}")
        )

    return open_kind


@pytest.fixture(params=KINDS)
def storage(request: pytest.FixtureRequest, make: Callable[[str], Storage]) -> Storage:
    return make(request.param)


@pytest.fixture(params=EXCLUSIVE)
def exclusive(request: pytest.FixtureRequest, make: Callable[[str], Storage]) -> Storage:
    found = make(request.param)
    assert found.supports_exclusive_create
    return found


def put(storage: Storage, path: str, data: bytes) -> None:
    with storage.open_output(path) as file:
        file.write(data)


def test_a_file_is_there_whole_once_its_output_is_closed(storage: Storage) -> None:
    data = bytes(range(256)) * 20_000
    before = time.time()
    with storage.open_output("dt=1/a.parquet") as file:
        assert file.write(data[:4]) == 4
        assert file.write(memoryview(data)[4:1000]) == 996
        file.write(bytearray(data[1000:]))
        assert file.tell() == len(data)
    assert storage.read("dt=1/a.parquet") == data
    found = storage.stat("dt=1/a.parquet")
    assert (found.path, found.name, found.size) == ("dt=1/a.parquet", "a.parquet", len(data))
    assert before - 5 < found.modified < time.time() + 5
    assert storage.exists("dt=1/a.parquet")


def test_absence_has_its_own_error(storage: Storage) -> None:
    put(storage, "folder/file", b"x")
    for path in ("nothing", "folder", "folder/nothing", "no/folder/either", "folder/file/below"):
        for call in (
            storage.stat,
            storage.read,
            storage.open_input,
            lambda path: storage.read_range(path, ByteRange(0, 1)),
        ):
            with pytest.raises(StorageNotFoundError) as caught:
                call(path)
            assert caught.value.path == path
        assert not storage.exists(path)
    assert storage.delete("nothing") is False
    assert storage.list_files("nothing") == []
    assert storage.list_names("nothing") == []
    assert storage.list_folders("nothing") == []
    assert storage.list_tree("nothing") == storage.list_tree("folder/file") == []
    assert storage.list_files("folder/file") == []
    assert storage.delete_folder("nothing") == []
    assert storage.read("folder/file") == b"x"


@pytest.mark.parametrize(
    ("start", "length", "expected"),
    [
        (0, 3, b"abc"),
        (7, 3, b"hij"),
        (8, 10, b"ij"),
        (10, 4, b""),
        (99, 4, b""),
        (-4, 2, b"gh"),
        (-99, 2, b"ab"),
        (-4, 99, b"ghij"),
        (3, 0, b""),
    ],
)
def test_ranges(make: Callable[[str], Storage], start: int, length: int, expected: bytes) -> None:
    for kind in KINDS:
        storage = make(kind)
        put(storage, f"{kind}/file", b"abcdefghij")
        assert storage.read_range(f"{kind}/file", ByteRange(start, length)) == expected, kind


def test_an_empty_file_is_a_file(storage: Storage) -> None:
    put(storage, "empty", b"")
    assert storage.read("empty") == b""
    assert storage.read_range("empty", ByteRange(0, 10)) == b""
    assert storage.read_range("empty", ByteRange(-4, 4)) == b""
    assert storage.stat("empty").size == 0


def test_an_input_seeks_and_reads_exactly(storage: Storage) -> None:
    data = bytes(range(256)) * 1000
    put(storage, "file", data)
    with storage.open_input("file") as file:
        assert file.seekable()
        assert file.read(5) == data[:5]
        assert file.seek(-10, 2) == len(data) - 10
        assert file.read(100) == data[-10:]
        assert file.read(1) == b""
        file.seek(1000)
        assert file.tell() == 1000
        target = bytearray(50)
        assert file.readinto(target) == 50  # type: ignore[attr-defined]
        assert bytes(target) == data[1000:1050]
        assert file.read() == data[1050:]
    assert file.closed


def test_listings_show_one_level_sorted_without_a_cache(storage: Storage) -> None:
    assert storage.list_files("") == []
    for path in ("b.txt", "a.txt", "p/x/1", "p/y/2", "p/3", "p.q/4", "q/z/5", "p/y-/6"):
        put(storage, path, b"12")
    assert [(info.path, info.size) for info in storage.list_files("")] == [("a.txt", 2), ("b.txt", 2)]
    assert sorted(storage.list_names("")) == ["a.txt", "b.txt"]
    assert storage.list_folders("") == ["p", "p.q", "q"]
    assert [info.path for info in storage.list_files("p")] == ["p/3"]
    assert storage.list_folders("p") == ["p/x", "p/y", "p/y-"]
    below = ["p/3", "p/x/1", "p/y-/6", "p/y/2"]
    assert [(info.path, info.size) for info in storage.list_tree("p")] == [(path, 2) for path in below]
    assert len(storage.list_tree("")) == 8
    put(storage, "p/7", b"")
    assert [info.path for info in storage.list_files("p")] == ["p/3", "p/7"]
    assert storage.delete("p/3") is True
    assert [info.path for info in storage.list_files("p")] == ["p/7"]
    assert storage.delete("p/3") is False
    assert (storage.remove("p/7"), storage.list_files("p")) == (None, [])


def test_a_folder_goes_with_all_below_and_nothing_beside(storage: Storage) -> None:
    odd = "dt=[ab]*?"
    for path in (f"{odd}/1", f"{odd}/deep/er/2", "dt=a/3", "dt=ax/4", f"{odd}x/5", "dt=b/6"):
        put(storage, path, b"1")
    storage.delete_folder(odd)
    assert not storage.exists(f"{odd}/1")
    assert not storage.exists(f"{odd}/deep/er/2")
    assert storage.list_folders("") == sorted(["dt=a", "dt=ax", f"{odd}x", "dt=b"])
    assert all(storage.exists(path) for path in ("dt=a/3", "dt=ax/4", f"{odd}x/5", "dt=b/6"))
    with pytest.raises(StorageError):
        storage.delete_folder("")
    assert storage.exists("dt=a/3")


@pytest.mark.parametrize(
    "name",
    [
        *("a b", "üπ", "x=1&y", "100%", "a+b", "%2F", "a#b", "a?b", "[x]", "*", "~", "a:b", "…", "'\"", "{0}"),
        *("a\\b", "\\", "a\tb", "a\nb", "a\rb", "a\n", "\x01", "\x1b[1m", "a\x7fb", "\u2028"),
    ],
)
def test_odd_names_come_back_as_they_are(make: Callable[[str], Storage], name: str) -> None:
    # No route of the S3 server of the tests takes a line break.
    for kind in [kind for kind in KINDS if not (kind.endswith("s3") and set(name) & {"\r", "\n"})]:
        storage = make(kind)
        path = f"{kind} {name}/{name}"
        put(storage, path, name.encode())
        assert storage.read(path) == name.encode(), kind
        assert [info.path for info in storage.list_files(f"{kind} {name}")] == [path]
        assert storage.list_folders("")[-1:] == [f"{kind} {name}"] or f"{kind} {name}" in storage.list_folders("")
        assert storage.delete(path)
        assert not storage.exists(path)


BAD_PATHS = [
    *("../x", "a/../x", "a/..", "..", "/etc/x", "//x", "a//b", "./a", "a/.", ".", "a\\..\\b", "a/..\\b", "..\\b"),
    *("a\x00b", "a/", "file:///x", "s3://bucket/x"),
]


@pytest.mark.parametrize("path", BAD_PATHS)
def test_paths_that_leave_the_root_or_are_ambiguous_are_refused(make: Callable[[str], Storage], path: str) -> None:
    for kind in KINDS:
        storage = make(kind)
        calls: list[Callable[[str], Any]] = [
            storage.stat,
            storage.exists,
            storage.list_files,
            storage.list_names,
            storage.list_folders,
            storage.read,
            lambda path, storage=storage: storage.read_range(path, ByteRange(0, 1)),
            lambda path, storage=storage: storage.write(path, b""),
            lambda path, storage=storage: storage.create_exclusive(path, b""),
            storage.read_versioned,
            lambda path, storage=storage: storage.write_if(path, b"", version=None),
            lambda path, storage=storage: storage.write_if(path, b"", version="1"),
            storage.delete,
            storage.delete_folder,
            storage.open_input,
            storage.open_output,
        ]
        for number, call in enumerate(calls):
            with pytest.raises(FormatError) as caught:
                call(path)
            assert not isinstance(caught.value, UnsupportedError), (kind, number)


def test_a_name_that_s3fs_takes_for_a_version_is_refused(make: Callable[[str], Storage]) -> None:
    storage = make("fsspec-s3")
    for call in (storage.read, storage.delete, storage.list_files, storage.open_output):
        with pytest.raises(UnsupportedError, match="versionId"):
            call("dt=a?versionId=1")


def test_the_root_is_not_a_file(storage: Storage) -> None:
    for call in (storage.stat, storage.read, storage.delete, storage.open_input, storage.open_output):
        with pytest.raises(StorageError) as caught:
            call("")
        assert not isinstance(caught.value, StorageNotFoundError)


@pytest.mark.parametrize("kind", REPLACING)
def test_write_creates_and_replaces_the_whole(make: Callable[[str], Storage], kind: str) -> None:
    storage = make(kind)
    storage.write("a/b/c", b"first and long")
    assert storage.read("a/b/c") == b"first and long"
    storage.write("a/b/c", b"second")
    assert storage.read("a/b/c") == b"second"
    storage.write("a/b/c", b"")
    assert storage.read("a/b/c") == b""
    assert [info.path for info in storage.list_files("a/b")] == ["a/b/c"]


def test_what_cannot_replace_atomically_refuses(make: Callable[[str], Storage]) -> None:
    with pytest.raises(UnsupportedError, match="control side"):
        make("arrow-local").write("a", b"1")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in EXCLUSIVE])
def test_what_cannot_create_exclusively_says_so_and_refuses(make: Callable[[str], Storage], kind: str) -> None:
    storage = make(kind)
    assert not storage.supports_exclusive_create
    with pytest.raises(UnsupportedError, match="exclusively"):
        storage.create_exclusive("a", b"1")
    assert not storage.exists("a")


def test_an_exclusive_create_wins_once_and_never_touches_what_is_there(exclusive: Storage) -> None:
    exclusive.create_exclusive("deep/er/x", b"one")
    for data in (b"two", b"", b"one"):
        with pytest.raises(StorageExistsError) as caught:
            exclusive.create_exclusive("deep/er/x", data)
        assert caught.value.path == "deep/er/x"
    assert exclusive.read("deep/er/x") == b"one"
    exclusive.write("written", b"1")
    with pytest.raises(StorageExistsError):
        exclusive.create_exclusive("written", b"2")
    assert exclusive.delete("deep/er/x")
    exclusive.create_exclusive("deep/er/x", b"again")
    assert exclusive.read("deep/er/x") == b"again"
    assert [info.path for info in exclusive.list_files("deep/er")] == ["deep/er/x"]


def test_a_conditional_write_replaces_only_the_version_that_it_names(exclusive: Storage) -> None:
    assert exclusive.supports_conditional_write
    first = exclusive.write_if("deep/er/x", b"one", version=None)
    assert exclusive.read_versioned("deep/er/x") == (b"one", first)
    with pytest.raises(StorageExistsError) as exists:
        exclusive.write_if("deep/er/x", b"two", version=None)
    assert exists.value.path == "deep/er/x"
    second = exclusive.write_if("deep/er/x", b"two", version=first)
    assert second != first
    assert exclusive.read_versioned("deep/er/x") == (b"two", second)
    with pytest.raises(StorageConflictError) as conflict:
        exclusive.write_if("deep/er/x", b"three", version=first)
    assert conflict.value.path == "deep/er/x"
    assert exclusive.read("deep/er/x") == b"two"
    exclusive.write("deep/er/x", b"by another")
    with pytest.raises(StorageConflictError):
        exclusive.write_if("deep/er/x", b"three", version=second)
    exclusive.delete("deep/er/x")
    for gone in ("deep/er/x", "no/such/folder/x"):
        with pytest.raises(StorageConflictError):
            exclusive.write_if(gone, b"three", version=second)
        assert not exclusive.exists(gone)
        with pytest.raises(StorageNotFoundError):
            exclusive.read_versioned(gone)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in EXCLUSIVE])
def test_what_cannot_write_conditionally_says_so_and_refuses(make: Callable[[str], Storage], kind: str) -> None:
    storage = make(kind)
    put(storage, "a", b"1")
    assert not storage.supports_conditional_write
    for call in (
        lambda: storage.read_versioned("a"),
        lambda: storage.write_if("a", b"2", version=None),
        lambda: storage.write_if("a", b"2", version="1"),
    ):
        with pytest.raises(UnsupportedError):
            call()
    assert storage.read("a") == b"1"


def test_of_racing_threads_exactly_one_creates(exclusive: Storage) -> None:
    for number in range(5 if exclusive.uri.startswith("s3") else 60):
        winners = race_threads(exclusive, f"race/{number}", 16, 10_000)
        assert len(winners) == 1
        assert exclusive.read(f"race/{number}") == bytes(winners) * 10_000


RACES = pytest.mark.parametrize(("racers", "rounds"), tiered([(8, 20), (16, 60)], [(8, 20)]))


@RACES
def test_of_racing_processes_exactly_one_creates_in_each_round(tmp_path: Path, racers: int, rounds: int) -> None:
    found = race_processes(LocalStorage, tmp_path, racers, rounds)
    assert all(len(winners) == 1 and winners[0] >= 0 for winners in found.values()), found
    storage = LocalStorage(tmp_path)
    for number, winners in found.items():
        assert storage.read(f"race/{number}") == bytes(winners) * 20_000
    assert len(list((tmp_path / "race").iterdir())) == rounds, "no temporary file is left"


class CheckThenPut(LocalStorage):
    """The mistake that the race must find: look, then write.

    On a busy machine each process may run from its look to its write undisturbed in all rounds. The pause gives
    the processor away in between, for less time than a round trip to an object store takes.
    """

    def create_exclusive(self, path: str, data: bytes) -> None:
        if self.exists(path):
            raise StorageExistsError("there", path=path)
        time.sleep(0.002)
        self.write(path, data)


@RACES
def test_the_race_finds_a_check_then_put(tmp_path: Path, racers: int, rounds: int) -> None:
    found = race_processes(CheckThenPut, tmp_path, racers, rounds)
    assert max(len(winners) for winners in found.values()) > 1, "a race test that passes here is too weak"


def test_a_lost_answer_of_a_conditional_put_is_recognised_as_our_own(
    make: Callable[[str], Storage], s3: S3Server
) -> None:
    storage = make("fsspec-s3")
    puts = s3.conditional_puts
    s3.lost_answers = 1
    storage.create_exclusive("a", b"mine")
    assert s3.conditional_puts >= puts + 2, "the client sent it again and the answer was that it exists"
    assert storage.read("a") == b"mine"
    with pytest.raises(StorageExistsError):
        storage.create_exclusive("a", b"mine")


def test_a_conflict_of_conditional_puts_is_tried_again(make: Callable[[str], Storage], s3: S3Server) -> None:
    storage = make("fsspec-s3")
    s3.conflicts = 2
    storage.create_exclusive("a", b"mine")
    assert storage.read("a") == b"mine"
    assert s3.conflicts == 0


def test_a_conflict_that_stays_is_an_error_and_not_an_answer(
    make: Callable[[str], Storage], s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hudi_core.storage.s3_conditional.time.sleep", lambda _: None)
    storage = make("fsspec-s3")
    s3.conflicts = 10**6
    try:
        with pytest.raises(StorageError, match="another conditional write") as caught:
            storage.create_exclusive("a", b"mine")
    finally:
        s3.conflicts = 0
    assert not isinstance(caught.value, (StorageExistsError, StorageNotFoundError))
    assert not storage.exists("a")


def test_lost_answers_and_conflicts_of_conditional_replaces_are_seen_through(
    make: Callable[[str], Storage], s3: S3Server
) -> None:
    storage = make("fsspec-s3")
    version = storage.write_if("a", b"one", version=None)
    puts = s3.conditional_puts
    s3.lost_answers = 1
    version = storage.write_if("a", b"two", version=version)
    assert s3.conditional_puts >= puts + 2, "the client sent it again and the answer was that the version is another"
    assert storage.read_versioned("a") == (b"two", version)
    s3.conflicts = 2
    version = storage.write_if("a", b"three", version=version)
    assert storage.read_versioned("a") == (b"three", version)
    assert (s3.conflicts, s3.lost_answers) == (0, 0)


@pytest.mark.parametrize("open_it", [open_storage, open_data_storage])
def test_a_bucket_that_is_not_there_is_not_an_absent_file(s3: S3Server, open_it: Callable[..., Storage]) -> None:
    storage = open_it("s3://no-such-bucket/t", s3.options)
    for call in (lambda: storage.read("a"), lambda: storage.stat("a"), lambda: storage.list_files("")):
        with pytest.raises(StorageError) as caught:
            call()
        assert not isinstance(caught.value, StorageNotFoundError)


def test_both_sides_see_the_same_objects(s3: S3Server) -> None:
    uri = "s3://bucket/both/table"
    control, data = open_storage(uri, s3.options), open_data_storage(uri, s3.options)
    put(data, "dt=1/x.parquet", b"1" * 100)
    control.create_exclusive(".hoodie/1.commit", b"{}")
    assert control.read("dt=1/x.parquet") == b"1" * 100
    assert data.read(".hoodie/1.commit") == b"{}"
    assert control.list_folders("") == data.list_folders("") == [".hoodie", "dt=1"]
    assert control.list_files("dt=1")[0].size == data.list_files("dt=1")[0].size == 100


def test_an_output_of_a_failed_block_is_not_published_on_s3(make: Callable[[str], Storage]) -> None:
    storage = make("fsspec-s3")

    def write_half() -> None:
        with storage.open_output("half") as file:
            file.write(b"half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_half()
    assert not storage.exists("half")


def test_unknown_options_and_schemes_are_refused() -> None:
    with pytest.raises(ConfigError, match="unknown storage options"):
        open_storage("s3://bucket/t", {"endpoint": "x"})
    with pytest.raises(ConfigError, match="nosuch"):
        open_storage("nosuch://bucket/t")
    with pytest.raises(ConfigError, match="empty"):
        open_storage(" ")
