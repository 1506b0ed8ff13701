"""What a look remembers, what it forgets, and what is never remembered."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from hudi_core.errors import StorageExistsError
from hudi_core.storage.base import Storage
from hudi_core.storage.one_look import OneLookStorage, content_of, look_again, no_look, once, one_look
from hudi_core.timeline.actions.content import read_stable
from tests.support.counting_storage import CountingStorage

TIMELINE = ".hoodie/timeline"
COMPLETED = f"{TIMELINE}/001_002.commit"
REQUESTED = f"{TIMELINE}/003.compaction.requested"
LEGACY = ".hoodie/001.commit"


@pytest.fixture
def counted(tmp_path: Path) -> CountingStorage:
    storage = CountingStorage(tmp_path)
    for path in (COMPLETED, REQUESTED, LEGACY, ".hoodie/hoodie.properties", "day=1/a.parquet"):
        storage.write(path, b"{}")
    return storage


@pytest.fixture
def storage(counted: CountingStorage) -> Iterator[OneLookStorage]:
    looking = OneLookStorage(counted)
    with looking.one_look():
        yield looking


def of(counted: CountingStorage, work: Callable[[], object]) -> list[str]:
    """The listings and reads that `work` makes."""
    before = len(counted.requests)
    work()
    return counted.requests[before:]


def test_a_folder_is_listed_once_a_look(counted: CountingStorage, storage: OneLookStorage) -> None:
    def listing() -> list[str]:
        return sorted(storage.list_names(TIMELINE))

    assert of(counted, listing) == [f"list {TIMELINE}"]
    assert of(counted, listing) == []
    storage.look_again()
    assert of(counted, listing) == [f"list {TIMELINE}"]


def test_names_are_those_of_listed_files(counted: CountingStorage, storage: OneLookStorage) -> None:
    files = [info.name for info in storage.list_files(TIMELINE)]
    assert of(counted, lambda: storage.list_names(TIMELINE)) == []
    assert sorted(storage.list_names(TIMELINE)) == files


@pytest.mark.parametrize(
    "folder", ["day=1", ".hoodie/.airflow_hudi/claims/003", ".hoodie/.heartbeat", ".hoodie/.temp/003", ".hoodie/.locks"]
)
def test_data_files_and_what_processes_tell_each_other_are_listed_each_time(
    counted: CountingStorage, storage: OneLookStorage, folder: str
) -> None:
    storage.list_files(folder)
    assert of(counted, lambda: storage.list_files(folder)) == [f"list {folder}"]


def test_without_a_look_nothing_is_remembered(counted: CountingStorage) -> None:
    storage = OneLookStorage(counted)
    storage.list_names(TIMELINE)
    assert of(counted, lambda: storage.list_names(TIMELINE)) == [f"list {TIMELINE}"]


def test_own_changes_count(storage: OneLookStorage) -> None:
    storage.list_names(TIMELINE)
    storage.list_folders(".hoodie")
    storage.create_exclusive(f"{TIMELINE}/003.compaction.inflight", b"")
    storage.delete(REQUESTED)
    storage.write(".hoodie/metadata/files/x", b"")
    assert sorted(storage.list_names(TIMELINE)) == ["001_002.commit", "003.compaction.inflight"]
    assert [info.name for info in storage.list_files(TIMELINE)] == ["001_002.commit", "003.compaction.inflight"]
    assert storage.list_folders(".hoodie") == [".hoodie/metadata", TIMELINE]
    storage.delete_folder(".hoodie/metadata")
    assert storage.list_folders(".hoodie") == [TIMELINE]


def test_a_lost_race_shows_what_the_other_one_made(counted: CountingStorage, storage: OneLookStorage) -> None:
    storage.list_names(TIMELINE)
    counted.create_exclusive(f"{TIMELINE}/003.compaction.inflight", b"other")
    with pytest.raises(StorageExistsError):
        storage.create_exclusive(f"{TIMELINE}/003.compaction.inflight", b"ours")
    assert "003.compaction.inflight" in storage.list_names(TIMELINE)


def test_a_file_is_read_once_a_look(counted: CountingStorage, storage: OneLookStorage) -> None:
    for path in (REQUESTED, LEGACY):
        assert of(counted, lambda path=path: read_stable(storage, path)) == [f"read {path}"]
        assert of(counted, lambda path=path: read_stable(storage, path)) == []
        counted.write(path, b'{"a": 1}')
        look_again(storage)
        assert read_stable(storage, path) == b'{"a": 1}'
        storage.write(path, b'{"a": 2}')
        assert read_stable(storage, path) == b'{"a": 2}'


def test_a_completed_file_with_its_completion_time_is_read_once(
    counted: CountingStorage, storage: OneLookStorage
) -> None:
    read_stable(storage, COMPLETED)
    storage.look_again()
    assert of(counted, lambda: read_stable(storage, COMPLETED)) == []
    storage.delete(COMPLETED)
    storage.write(COMPLETED, b'{"again": 1}')
    assert read_stable(storage, COMPLETED) == b'{"again": 1}'


def test_an_own_plan_is_not_read_within_the_look(counted: CountingStorage, storage: OneLookStorage) -> None:
    plan = f"{TIMELINE}/004.clean.requested"
    storage.create_exclusive(plan, b'{"a": 1}')
    assert of(counted, lambda: read_stable(storage, plan)) == []
    assert read_stable(storage, plan) == b'{"a": 1}'
    counted.write(plan, b'{"other": "work"}')  # dropped, and requested again
    storage.look_again()
    assert read_stable(storage, plan) == b'{"other": "work"}'


def test_a_data_file_of_the_metadata_table_is_read_once_while_it_is_listed_alike(
    counted: CountingStorage, storage: OneLookStorage
) -> None:
    path = ".hoodie/metadata/files/.files-0000-0_001.log.1_0-0-0"
    counted.write(path, b"block")

    def content() -> bytes:
        (info,) = counted.list_files(".hoodie/metadata/files")
        return content_of(storage, info, lambda: counted.read(path))

    listing = ["list .hoodie/metadata/files"]
    assert of(counted, content) == [*listing, f"read {path}"]
    storage.look_again()
    assert of(counted, content) == listing
    counted.write(path, b"block, and one that was appended")
    assert content() == b"block, and one that was appended"
    storage.delete_folder(".hoodie/metadata")
    counted.write(path, b"block, and one that was appended")
    assert of(counted, content) == [*listing, f"read {path}"]
    with storage.no_look():
        assert of(counted, content) == [*listing, f"read {path}"]


def test_what_is_large_is_not_kept(counted: CountingStorage, storage: OneLookStorage) -> None:
    counted.write(REQUESTED, b"{" + b" " * (1 << 20) + b"}")
    read_stable(storage, REQUESTED)
    assert of(counted, lambda: read_stable(storage, REQUESTED)) == [f"read {REQUESTED}"]


@pytest.mark.parametrize("path", [COMPLETED, REQUESTED])
def test_a_file_whose_writer_has_not_finished_is_not_kept(
    counted: CountingStorage, storage: OneLookStorage, path: str
) -> None:
    counted.write(path, b'{"half": ')
    os.utime(Path(counted.uri) / path, (1, 1))
    assert read_stable(storage, path) == b'{"half": '
    counted.write(path, b'{"half": 1}')
    assert read_stable(storage, path) == b'{"half": 1}'


def test_names_do_not_go_back_behind_a_listing_of_files(counted: CountingStorage, storage: OneLookStorage) -> None:
    storage.list_names(TIMELINE)
    counted.delete(REQUESTED)
    storage.list_files(TIMELINE)
    storage.write(f"{TIMELINE}/005.clean.requested", b"")
    assert sorted(storage.list_names(TIMELINE)) == ["001_002.commit", "005.clean.requested"]


def test_a_listing_that_a_change_overtook_is_not_kept(counted: CountingStorage, storage: OneLookStorage) -> None:
    """Another thread writes while the listing is under way."""
    list_names = counted.list_names

    def overtaken(folder: str) -> list[str]:
        names = list_names(folder)
        thread = threading.Thread(target=storage.write, args=(f"{TIMELINE}/006.clean.requested", b""))
        thread.start()
        thread.join()
        return names

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counted, "list_names", overtaken)
        storage.list_names(TIMELINE)
    assert "006.clean.requested" in storage.list_names(TIMELINE)


def test_an_error_is_not_remembered(storage: OneLookStorage) -> None:
    def fail() -> bytes:
        raise ValueError

    with pytest.raises(ValueError):
        once(storage, REQUESTED, fail)
    assert once(storage, REQUESTED, lambda: b"read") == b"read"


def test_another_thread_has_its_own_look_and_its_changes_count(
    counted: CountingStorage, storage: OneLookStorage
) -> None:
    storage.list_names(TIMELINE)
    requests: list[str] = []

    def work() -> None:
        requests.extend(of(counted, lambda: storage.list_names(TIMELINE)))
        storage.write(f"{TIMELINE}/004.clean.requested", b"")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert requests == [f"list {TIMELINE}"]
    assert "004.clean.requested" in storage.list_names(TIMELINE)


@pytest.mark.parametrize("inner", [one_look, no_look])
def test_behind_an_inner_look_the_outer_one_begins_anew(
    counted: CountingStorage, storage: OneLookStorage, inner: Callable[[Storage], AbstractContextManager[None]]
) -> None:
    def listing() -> list[str]:
        return storage.list_names(TIMELINE)

    listing()
    with inner(storage):
        assert of(counted, listing) == [f"list {TIMELINE}"]
    assert of(counted, listing) == [f"list {TIMELINE}"]


def test_a_look_that_goes_on_remembers(counted: CountingStorage, storage: OneLookStorage) -> None:
    storage.list_names(TIMELINE)
    with one_look(storage, goes_on=True):
        assert of(counted, lambda: storage.list_names(TIMELINE)) == []
    assert of(counted, lambda: storage.list_names(TIMELINE)) == []


def test_a_storage_that_remembers_nothing_has_looks_too(counted: CountingStorage) -> None:
    with one_look(counted), no_look(counted):
        look_again(counted)
        assert once(counted, REQUESTED, lambda: 1) == 1
        assert once(counted, REQUESTED, lambda: 2) == 2
