"""Which requests are made at the same time, and what of them is remembered."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from hudi_core.errors import StorageNotFoundError
from hudi_core.storage.one_look import OneLookStorage, one_look
from hudi_core.storage.overlapped import both, each_ahead, is_remote, look_ahead, overlapped
from tests.support.memory_storage import MemoryStorage

REMOTE = "s3://bucket/table"
FOLDER = ".hoodie/timeline"


class Counting(MemoryStorage):
    """Counts the listings; `meet` is called within each of them."""

    def __init__(self, uri: str, meet: Callable[[], object] = lambda: None) -> None:
        super().__init__(uri)
        self.listed: list[str] = []
        self.meet = meet

    def list_names(self, folder: str) -> list[str]:
        self.listed.append(folder)
        self.meet()
        return super().list_names(folder)


def test_on_a_remote_storage_requests_meet() -> None:
    storage = Counting(REMOTE, threading.Barrier(3, timeout=30).wait)
    for name in ("a", "b", "c"):
        storage.write(f"{name}/{name}", b"")
    jobs = [partial(storage.list_names, name) for name in ("a", "b", "c")]
    assert overlapped(storage, jobs) == [["a"], ["b"], ["c"]]


@pytest.mark.parametrize("uri", ["file:///table", "/table", "memory://table"])
def test_near_ones_are_made_in_order_by_this_thread(uri: str) -> None:
    storage = Counting(uri)
    assert not is_remote(storage)
    threads = overlapped(storage, [threading.get_ident] * 3)
    assert threads == [threading.get_ident()] * 3
    done: list[int] = []

    def fails() -> None:
        raise StorageNotFoundError("second", path="p")

    with pytest.raises(StorageNotFoundError, match="second"):
        overlapped(storage, [partial(done.append, 1), fails, partial(done.append, 3)])
    assert done == [1], "nothing is requested after a failure"


def test_the_first_failure_in_order_is_raised_when_all_have_ended() -> None:
    second_failed, done = threading.Event(), []

    def first() -> None:
        assert second_failed.wait(30)
        raise StorageNotFoundError("first", path="p")

    def second() -> None:
        second_failed.set()
        raise StorageNotFoundError("second", path="p")

    with pytest.raises(StorageNotFoundError, match="first"):
        overlapped(Counting(REMOTE), [first, second, partial(done.append, 3)])
    assert done == [3]


@pytest.fixture
def interrupts() -> Iterator[None]:
    """What a shell starts in the background ignores interrupts, and so do its children."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts")
def test_an_interrupt_lets_nothing_more_begin_and_waits_for_what_has_begun() -> None:
    """Its caller then gives up the lock, under which it may write."""
    main, all_begun, ended = threading.get_ident(), threading.Barrier(16), list[int]()

    def job(number: int) -> None:
        if all_begun.wait(30) == 0 and not ended:
            time.sleep(0.1)  # until all are requested, and main waits
            signal.pthread_kill(main, signal.SIGINT)
        time.sleep(0.3)
        ended.append(number)

    with pytest.raises(KeyboardInterrupt):
        overlapped(Counting(REMOTE), [partial(job, number) for number in range(32)])
    assert sorted(ended) == list(range(16))
    time.sleep(0.5)
    assert len(ended) == 16


def test_two_of_different_kinds() -> None:
    assert both(Counting(REMOTE), lambda: 1, lambda: "two") == (1, "two")


@pytest.mark.parametrize(("uri", "ahead"), [(REMOTE, 16), ("memory://table", 1)])
def test_results_come_in_order_and_no_more_are_requested_than_some_ahead(uri: str, ahead: int) -> None:
    requested: list[int] = []

    def double(item: int) -> int:
        requested.append(item)
        return 2 * item

    found = each_ahead(Counting(uri), range(40), double)
    assert next(found) == (0, 0)
    assert sorted(requested) == list(range(ahead))
    assert list(found) == [(item, 2 * item) for item in range(1, 40)]
    assert sorted(requested) == list(range(40))


def test_what_threads_have_seen_is_seen_by_the_look_of_their_caller() -> None:
    inner = Counting(REMOTE)
    inner.write(f"{FOLDER}/1", b"")
    storage = OneLookStorage(inner)
    with one_look(storage):
        look_ahead(storage, partial(storage.list_names, FOLDER), partial(storage.list_names, ".hoodie/metadata"))
        assert sorted(inner.listed) == [".hoodie/metadata", FOLDER]
        assert storage.list_names(FOLDER) == ["1"]
        assert len(inner.listed) == 2
        storage.create_exclusive(f"{FOLDER}/2", b"")
        assert sorted(storage.list_names(FOLDER)) == ["1", "2"]
        storage.look_again()
        storage.list_names(FOLDER)
    assert len(inner.listed) == 3


def test_what_fails_ahead_fails_when_it_is_needed() -> None:
    storage = OneLookStorage(Counting(REMOTE))
    with one_look(storage):
        look_ahead(storage, partial(storage.read, ".hoodie/absent"), partial(storage.list_names, FOLDER))
        with pytest.raises(StorageNotFoundError):
            storage.read(".hoodie/absent")


@pytest.mark.parametrize(("uri", "looks"), [(REMOTE, False), ("memory://table", True)])
def test_nothing_is_requested_ahead_that_would_not_be_remembered_or_takes_no_time(uri: str, looks: bool) -> None:
    inner = Counting(uri)
    storage: Any = OneLookStorage(inner)
    request = partial(look_ahead, storage, partial(storage.list_names, FOLDER))
    if looks:
        with one_look(storage):
            request()
    else:
        request()
    assert inner.listed == []
