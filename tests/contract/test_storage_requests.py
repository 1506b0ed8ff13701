"""How many requests a verb makes on S3, and how many a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from benchmarks.delaying_proxy import Traffic, delaying_proxy, in_turn
from hudi_core.storage.arrow_store import open_data_storage
from hudi_core.storage.registry import open_storage
from tests.contract.s3_server import S3Server, s3_server

URI = "s3://bucket/requests"
DELAY = 0.02


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with s3_server() as started:
        yield started


@pytest.fixture
def seen(server: S3Server) -> Iterator[tuple[dict[str, str], Traffic]]:
    """The options that open the server by a proxy, and what the proxy sees."""
    with delaying_proxy(server.url, DELAY) as (url, traffic):
        yield {**server.options, "endpoint_url": url}, traffic


def of(traffic: Traffic, request: Callable[[], object]) -> tuple[object, dict[str, int]]:
    """The answer, and the requests by kind."""
    traffic.clear()
    return request(), traffic.counts()


def test_each_verb_is_one_request(seen: tuple[dict[str, str], Traffic]) -> None:
    """Absent objects and empty folders too, once the bucket was seen."""
    options, traffic = seen
    storage = open_storage(URI, options)
    for name in ("a", "b", "c/d"):
        assert of(traffic, lambda name=name: storage.write(f"p/{name}", b"1")) == (None, {"PUT": 1})
    assert of(traffic, lambda: storage.create_exclusive("p/e", b"1")) == (None, {"PUT": 1})
    assert of(traffic, lambda: storage.read("p/a")) == (b"1", {"GET": 1})
    assert of(traffic, lambda: storage.exists("p/a")) == (True, {"HEAD": 1})
    assert of(traffic, lambda: storage.exists("p/x")) == (False, {"HEAD": 1})
    assert of(traffic, lambda: storage.exists("p")) == (False, {"HEAD": 1})
    assert of(traffic, lambda: storage.list_names("absent")) == ([], {"LIST": 1})
    assert of(traffic, lambda: storage.list_folders("p")) == (["p/c"], {"LIST": 1})
    assert of(traffic, lambda: len(storage.list_tree("p"))) == (4, {"LIST": 1})
    for _ in range(2):
        assert of(traffic, lambda: storage.remove("p/a")) == (None, {"DELETE": 1})
    left = ["p/b", "p/c/d", "p/e"]
    assert of(traffic, lambda: sorted(storage.delete_folder("p"))) == (left, {"DELETE": 3, "LIST": 1})


def test_a_small_data_file_is_written_by_one_request_and_read_by_two(seen: tuple[dict[str, str], Traffic]) -> None:
    options, traffic = seen
    storage = open_data_storage(URI, options)
    content = bytes(range(256)) * 1000

    def write() -> None:
        with storage.open_output("d/file") as file:
            file.write(content[:1000])
            file.write(content[1000:])

    def read() -> bytes:
        with storage.open_input("d/file") as file:
            file.seek(-8, 2)
            file.read(8)
            file.seek(0)
            return file.read(200_000) + file.read()

    assert of(traffic, write) == (None, {"PUT": 1})
    assert of(traffic, read) == (content, {"GET": 1, "HEAD": 1})
    assert of(traffic, lambda: storage.write("d/marker", b"")) == (None, {"PUT": 1})


def test_the_proxy_delays_and_sees_what_overlaps(seen: tuple[dict[str, str], Traffic]) -> None:
    options, traffic = seen
    storage = open_storage(URI, options)
    traffic.clear()
    for _ in range(3):
        storage.list_names("absent")
    assert traffic.in_turn() == 3
    assert all(ended - begun >= DELAY for _, _, begun, ended in traffic.requests)
    assert traffic.waited() >= 3 * DELAY
    assert in_turn([(0, 2), (1, 3), (2, 4), (2.5, 3.5), (4, 5)]) == 3
    overlapping = Traffic([("GET", "a", 0.0, 2.0), ("GET", "b", 1.0, 3.0), ("PUT", "c", 5.0, 6.0)])
    assert (overlapping.in_turn(), overlapping.waited()) == (2, 4.0)
    assert overlapping.counts() == {"GET": 2, "PUT": 1}
