"""Which files of an instant stay."""

from __future__ import annotations

import pytest

from hudi_core.errors import ExecutionError
from hudi_core.filegroup.write.markers import MarkerType, create_marker
from hudi_core.transaction.reconcile import (
    OWN_ATTEMPTS,
    base_files_of,
    check_winners,
    log_files_of,
    remove_losers,
)
from tests.support.log_files import data
from tests.support.memory_storage import MemoryStorage

T = "20260102000000000"


@pytest.fixture
def storage() -> MemoryStorage:
    storage = MemoryStorage()
    for path in (
        f"a/f-0_0-1-0_{T}.parquet",
        f"a/f-0_0-2-0_{T}.parquet",
        f"b/g-0_1-2-1_{T}.parquet",
        "a/f-0_0-1-0_20260101000000000.parquet",
    ):
        storage.write(path, b"base")
    storage.write(f"a/.f-0_{T}.log.1_0-3-0", b"log")
    storage.write("a/.hoodie_partition_metadata", b"p")
    return storage


def test_only_base_files_of_the_instant_count(storage: MemoryStorage) -> None:
    assert [info.path for info in base_files_of(storage, T, ["b", "a", "a", "none"])] == [
        f"a/f-0_0-1-0_{T}.parquet",
        f"a/f-0_0-2-0_{T}.parquet",
        f"b/g-0_1-2-1_{T}.parquet",
    ]


def test_many_partitions_are_listed_in_order(storage: MemoryStorage) -> None:
    requested = [f"p{number:02d}" for number in range(40)]
    for partition in requested:
        storage.write(f"{partition}/f-0_0-1-0_{T}.parquet", b"base")
    assert [info.path for info in base_files_of(storage, T, reversed(requested))] == [
        f"{partition}/f-0_0-1-0_{T}.parquet" for partition in requested
    ]


def test_losers_go_and_logs_stay(storage: MemoryStorage) -> None:
    winners = {f"a/f-0_0-2-0_{T}.parquet": 4, f"b/g-0_1-2-1_{T}.parquet": 4}
    kept = remove_losers(storage, T, ["a", "b"], winners)
    assert kept == winners
    assert not storage.exists(f"a/f-0_0-1-0_{T}.parquet")
    assert storage.exists(f"a/.f-0_{T}.log.1_0-3-0")
    assert storage.exists("a/f-0_0-1-0_20260101000000000.parquet")


def test_log_files_of_an_instant(storage: MemoryStorage) -> None:
    """Those of its name; in version 6 those of ours that hold its blocks alone, also in a slice that a compaction began
    since; and of those without a whole block what its markers name: another attempt may be writing the others now.
    """
    own, foreign = f"0-1-{OWN_ATTEMPTS}", "0-1-7"
    ours, theirs = data(T, [("a", 1, "x")]), data("20260103000000000", [("a", 1, "x")])
    cut, mixed = (own, ours[:-9]), ((own, ours + theirs), (own, theirs), (foreign, ours))
    for version, (token, content) in enumerate(((own, ours), cut, (own, b""), *mixed, cut, (own, b"")), 1):
        storage.write(f"a/.f-0_20260101000000000.log.{version}_{token}", content)
        if version < 7:
            create_marker(storage, T, "a", f".f-0_20260101000000000.log.{version}_{token}", MarkerType.APPEND)
    storage.write(f"a/.g-0_20260104000000000.log.1_{own}", ours)
    assert [info.path for info in log_files_of(storage, T, ["a"])] == [
        *(f"a/.f-0_20260101000000000.log.{version}_{own}" for version in (1, 2, 3)),
        f"a/.f-0_{T}.log.1_0-3-0",
        f"a/.g-0_20260104000000000.log.1_{own}",
    ]
    kept = remove_losers(storage, T, ["a"], {f"a/.f-0_{T}.log.1_0-3-0": 3}, log_files_of)
    assert kept == {f"a/.f-0_{T}.log.1_0-3-0": 3}
    assert log_files_of(storage, T, ["a", "b"]) == [storage.stat(f"a/.f-0_{T}.log.1_0-3-0")]
    assert len(base_files_of(storage, T, ["a", "b"])) == 3


@pytest.mark.parametrize(("found", "match"), [({}, "no such file"), ({"a/x": 3}, "3 bytes")])
def test_a_winner_must_be_there_in_full(found: dict[str, int], match: str) -> None:
    with pytest.raises(ExecutionError, match=match) as caught:
        check_winners({"a/x": 4}, found)
    assert caught.value.path == "a/x"
