"""Which completed instants are writes, and which of them is found."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_hudi.conditions.writes import CommitCondition
from airflow_hudi.timeline_reader import TimelineReader
from hudi_core.errors import ConfigError, CorruptFileError
from hudi_core.storage.local import LocalStorage
from tests.support.commit_files import commit_file
from tests.support.counting_storage import CountingStorage
from tests.support.golden_data import GoldenCase

Golden = Callable[[str, str], GoldenCase]
Put = Callable[..., None]


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_commits_are_found_in_the_order_of_completion(golden: Golden, version: str) -> None:
    look = TimelineReader(LocalStorage(golden(version, "cow_basic").table)).look()
    found, bound = [], None
    while (event := CommitCondition(bound).check(look)) is not None:
        found.append(event)
        bound = event["completed"]
    assert [item["instant"] for item in found] == [item.requested_time for item in look.timeline.commits()]
    assert [item["operation"] for item in found] == ["INSERT", "UPSERT", "DELETE"]
    assert found[0]["partitions"] == ["2024-01-01", "2024-01-02", "2024-01-03"]
    assert found[0]["rows"] > 0
    assert {item["action"] for item in found} == {"commit"}
    assert {item["state"] for item in found} == {"completed"}


@pytest.mark.parametrize("version", ["6", "8", "9"])
@pytest.mark.parametrize(
    ("name", "service"), [("mor_compacted", "COMPACT"), ("clustered_cow", "CLUSTER"), ("clustered_mor", "CLUSTER")]
)
def test_compactions_and_clusterings_are_no_writes(golden: Golden, version: str, name: str, service: str) -> None:
    table = golden(version, name).table
    reader = TimelineReader(LocalStorage(table))
    if version == "6":
        # The archive of the golden tables has times of two seconds.
        for second, item in enumerate(reader.load().commits()):
            os.utime(table / reader.active().path_of(item), (second, second))
    look = reader.look()
    operations, bound = [], None
    while (event := CommitCondition(bound).check(look)) is not None:
        operations.append(event["operation"])
        bound = event["completed"]
    commits = look.timeline.commits()
    assert len(operations) == len(commits) - 1
    assert service not in operations
    (run,) = [item for item in commits if reader.active().read_commit(item).operation_type == service]
    before = max(look.completed_at(item) for item in commits if look.completed_at(item) < look.completed_at(run))
    after = CommitCondition(before).check(look)
    assert after is not None
    assert after["completed"] > look.completed_at(run)


def test_a_compaction_without_its_pending_files_is_told_by_what_it_says(table: Path, put: Put) -> None:
    """Archival removes them first."""
    put("20260102000000000.commit", commit_file({"day=1": 1}, "COMPACT"))
    reader = TimelineReader(LocalStorage(table))
    first = CommitCondition().check(reader.look())
    assert first is not None
    assert first["instant"] == "20260101000000000"
    assert CommitCondition(first["completed"]).check(reader.look()) is None


def test_an_overwrite_is_a_write_and_a_clustering_is_read_once(table: Path, put: Put) -> None:
    storage = CountingStorage(table)
    reader, condition = TimelineReader(storage), CommitCondition("20250101000000000")
    (table / ".hoodie" / "20260101000000000.deltacommit").unlink()
    put("20260102000000000.replacecommit", commit_file({"day=1": 1}, "CLUSTER", ["day=1"]))
    assert condition.check(reader.look()) is None
    assert condition.check(reader.look()) is None
    reads = [request for request in storage.requests if "replacecommit" in request]
    assert reads == ["read .hoodie/20260102000000000.replacecommit"]
    put("20260103000000000.replacecommit", commit_file({"day=1": 4, "day=2": 3}, "INSERT_OVERWRITE", ["day=1"]))
    found = condition.check(reader.look())
    assert found is not None
    assert (found["operation"], found["partitions"], found["rows"]) == ("INSERT_OVERWRITE", ["day=1", "day=2"], 7)


def test_a_poke_is_one_listing_and_the_new_commits(table: Path, put: Put) -> None:
    storage = CountingStorage(table)
    reader = TimelineReader(storage)
    first = CommitCondition().check(reader.look())
    assert first is not None
    condition = CommitCondition(first["completed"])
    storage.requests.clear()
    assert condition.check(reader.look()) is None
    assert storage.requests == ["list .hoodie"]
    put("20260102000000000.deltacommit", commit_file({"day=1": 1}))
    assert condition.check(reader.look()) is not None
    assert storage.requests == ["list .hoodie", "list .hoodie", "read .hoodie/20260102000000000.deltacommit"]


def test_a_pending_write_is_none(table: Path, put: Put) -> None:
    reader = TimelineReader(LocalStorage(table))
    put("20260102000000000.deltacommit.requested")
    put("20260102000000000.deltacommit.inflight")
    first = CommitCondition().check(reader.look())
    assert first is not None
    assert CommitCondition(first["completed"]).check(reader.look()) is None


def test_a_commit_that_went_since_the_listing_is_passed_over(table: Path) -> None:
    look = TimelineReader(LocalStorage(table)).look()
    (table / ".hoodie" / "20260101000000000.deltacommit").unlink()
    assert CommitCondition().check(look) is None


def test_a_damaged_commit_is_an_error(table: Path, put: Put) -> None:
    put("20260101000000000.deltacommit", b'{"partitionToWriteStats": 1}')
    with pytest.raises(CorruptFileError, match=r"20260101000000000\.deltacommit"):
        CommitCondition().check(TimelineReader(LocalStorage(table)).look())


def test_what_a_wait_says(table: Path) -> None:
    look = TimelineReader(LocalStorage(table)).look()
    assert CommitCondition().unmet() == "no completed write"
    assert CommitCondition("2026-01-02").waiting(look) == f"{table} shows no write completed after 2026-01-02 yet"


def test_what_is_no_time_is_refused() -> None:
    with pytest.raises(ConfigError):
        CommitCondition("yesterday")
