"""When partitions have arrived, by the commits on the timeline and by the files of archived ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_hudi.conditions.writes import ANY, PartitionCondition
from airflow_hudi.timeline_reader import TimelineReader
from hudi_core.errors import ConfigError
from hudi_core.storage.local import LocalStorage
from tests.support.commit_files import commit_file
from tests.support.counting_storage import CountingStorage
from tests.support.golden_data import GoldenCase

Golden = Callable[[str, str], GoldenCase]
Put = Callable[..., None]
FIRST, SECOND, THIRD = "2024-01-01", "2024-01-02", "2024-01-03"
DATA_FILE = "f_1-0-1_{time}.parquet"


def arrived(table: Path, *partitions: str, **arguments: Any) -> list[str] | None:
    found = PartitionCondition(partitions, **arguments).check(TimelineReader(LocalStorage(table)).look())
    return found and [item["partition"] for item in found["partitions"]]


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_partitions_of_real_tables(golden: Golden, version: str) -> None:
    table = golden(version, "cow_basic").table
    look = TimelineReader(LocalStorage(table)).look()
    first, second, third = look.timeline.commits()
    assert PartitionCondition([SECOND]).check(look) == {
        "partitions": [
            {"partition": SECOND, "instant": third.requested_time, "completed": look.completed_at(third)},
        ]
    }
    assert arrived(table, THIRD, FIRST) == [THIRD, FIRST]
    assert arrived(table, FIRST, "2024-01-09") is None
    assert arrived(table, FIRST, "2024-01-09", match=ANY) == [FIRST]
    assert arrived(table, "2024-01-08", "2024-01-09", match=ANY) is None
    assert arrived(table, FIRST, completed_after=look.completed_at(second)) == [FIRST]
    assert arrived(table, FIRST, completed_after=look.completed_at(third)) is None
    assert first.requested_time < second.requested_time


@pytest.mark.parametrize("version", ["6", "8", "9"])
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_a_partition_that_was_deleted_is_gone(golden: Golden, version: str, kind: str) -> None:
    table = golden(version, f"delete_partition_{kind}").table
    assert arrived(table, SECOND) is None
    assert arrived(table, FIRST, SECOND, match=ANY) == [FIRST]
    assert arrived(table, FIRST, THIRD) == [FIRST, THIRD]


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_an_overwrite_of_the_table_takes_away_what_it_does_not_write(golden: Golden, version: str) -> None:
    table = golden(version, "insert_overwrite_table").table
    assert arrived(table, FIRST, SECOND) == [FIRST, SECOND]
    assert arrived(table, THIRD) is None


@pytest.mark.parametrize("version", ["6", "8", "9"])
@pytest.mark.parametrize("name", ["clustered_cow", "clustered_mor", "mor_compacted"])
def test_services_write_no_partition(golden: Golden, version: str, name: str) -> None:
    table = golden(version, name).table
    reader = TimelineReader(LocalStorage(table))
    look, active = reader.look(), reader.active()
    commits = list(look.timeline.commits())
    at = [active.read_commit(item).operation_type in ("COMPACT", "CLUSTER") for item in commits].index(True)
    for later in commits[at + 1 :]:
        (table / active.path_of(later)).unlink()
    assert arrived(table, FIRST, completed_after=look.completed_at(commits[at - 1])) is None
    assert arrived(table, FIRST) == [FIRST]


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_partitions_of_archived_commits_are_told_by_files(golden: Golden, version: str) -> None:
    table = golden(version, "archived_timeline_cow").table
    reader = TimelineReader(LocalStorage(table))
    commits = list(reader.load().commits())
    for item in commits[:-1]:
        (table / reader.active().path_of(item)).unlink()
    quiet = "2024-01-07"
    (table / quiet).mkdir()
    (table / quiet / ".hoodie_partition_metadata").touch()
    assert arrived(table, quiet) is None, "a folder without files is what a failed write leaves"
    (table / quiet / DATA_FILE.format(time=commits[-1].requested_time)).touch()
    assert arrived(table, quiet) is None, "the commit that names the file is there, and has not written it"
    (table / quiet / DATA_FILE.format(time="20200101000000000")).touch()
    found = PartitionCondition([quiet]).check(reader.look())
    assert found == {"partitions": [{"partition": quiet, "instant": "20200101000000000", "completed": None}]}
    assert arrived(table, quiet, completed_after="2019-01-01") is None, "what is archived has no completion time here"


def test_a_savepoint_keeps_old_commits_on_the_timeline(table: Path, put: Put) -> None:
    """What was archived is older than the first commit that no savepoint keeps."""
    put("20260101000000000.savepoint", b"{}")
    put("20260105000000000.deltacommit", commit_file({"day=5": 1}))
    folder = table / "day=2"
    folder.mkdir()
    (folder / DATA_FILE.format(time="20260102000000000")).touch()
    assert arrived(table, "day=2") == ["day=2"]


def test_a_poke_is_one_listing_and_the_new_commits(table: Path, put: Put) -> None:
    storage = CountingStorage(table)
    reader, condition = TimelineReader(storage), PartitionCondition(["day=1", "day=2"])
    put("20260102000000000.deltacommit", commit_file({"day=1": 1}))
    assert condition.check(reader.look()) is None
    assert sorted(storage.requests) == [
        "list .hoodie",
        "list day=2",
        "read .hoodie/20260101000000000.deltacommit",
        "read .hoodie/20260102000000000.deltacommit",
        "read .hoodie/hoodie.properties",
    ]
    storage.requests.clear()
    assert condition.check(reader.look()) is None
    assert storage.requests == ["list .hoodie"]
    put("20260103000000000.deltacommit", commit_file({"day=2": 1}))
    assert condition.check(reader.look()) is not None
    assert storage.requests == ["list .hoodie", "list .hoodie", "read .hoodie/20260103000000000.deltacommit"]


def test_no_more_commits_are_read_than_are_needed(table: Path, put: Put) -> None:
    storage = CountingStorage(table)
    put("20260102000000000.deltacommit", commit_file({"day=1": 1}))
    put("20260103000000000.deltacommit", commit_file({"day=2": 1}))
    look = TimelineReader(storage).look()
    storage.requests.clear()
    assert PartitionCondition(["day=1", "day=2"], ANY).check(look) is not None
    assert storage.requests == ["read .hoodie/20260103000000000.deltacommit"]
    assert PartitionCondition(["day=2", "day=1"]).check(look) is not None
    assert not any("20260101" in request for request in storage.requests)


def test_what_was_archived_meanwhile_counts_and_what_was_rolled_back_does_not(table: Path, put: Put) -> None:
    reader = TimelineReader(LocalStorage(table))
    both, rolled_back = PartitionCondition(["day=1", "day=2"]), PartitionCondition(["day=3", "day=4"])
    put("20260102000000000.deltacommit", commit_file({"day=1": 1}))
    put("20260103000000000.deltacommit", commit_file({"day=3": 1}))
    assert both.check(reader.look()) is None
    assert rolled_back.check(reader.look()) is None
    for time in ("20260101000000000", "20260102000000000", "20260103000000000"):
        (table / ".hoodie" / f"{time}.deltacommit").unlink()
    (table / ".hoodie" / "20260101000000000.deltacommit.requested").unlink()
    (table / ".hoodie" / "20260101000000000.deltacommit.inflight").unlink()
    put("20260102120000000.deltacommit", commit_file({"day=2": 1, "day=4": 1}))
    found = both.check(reader.look())
    assert found is not None
    assert [(item["partition"], item["instant"]) for item in found["partitions"]] == [
        ("day=1", "20260102000000000"),
        ("day=2", "20260102120000000"),
    ]
    assert rolled_back.check(reader.look()) is None


def test_the_last_of_archived_changes_counts(table: Path, put: Put) -> None:
    reader, condition = TimelineReader(LocalStorage(table)), PartitionCondition(["day=1", "day=2"])
    put("20260102000000000.deltacommit", commit_file({"day=1": 1}))
    assert condition.check(reader.look()) is None
    put("20260103000000000.replacecommit", commit_file({}, "DELETE_PARTITION", ["day=1"]))
    assert condition.check(reader.look()) is None
    for name in ("20260102000000000.deltacommit", "20260103000000000.replacecommit"):
        (table / ".hoodie" / name).unlink()
    for path in (table / ".hoodie").glob("20260101*"):
        path.unlink()
    put("20260104000000000.deltacommit", commit_file({"day=2": 1}))
    assert condition.check(reader.look()) is None
    put("20260105000000000.deltacommit", commit_file({"day=1": 1}))
    assert condition.check(reader.look()) is not None


def test_what_a_wait_says(table: Path, put: Put) -> None:
    put("20260102000000000.deltacommit", commit_file({"day=1": 1}))
    look = TimelineReader(LocalStorage(table)).look()
    assert PartitionCondition(["day=9"], completed_after="2026-01-02").unmet() == (
        "no write to day=9 completed after 2026-01-02"
    )
    several = PartitionCondition([f"day={number}" for number in range(1, 9)])
    assert several.unmet() == "no write to all of day=1, day=2, day=3, day=4, day=5, 3 more"
    assert several.waiting(look) == (
        f"{table} shows {several.unmet()} yet; missing: day=2, day=3, day=4, day=5, day=6, 2 more"
    )
    assert PartitionCondition(["a", "b"], ANY).waiting(look) == f"{table} shows no write to any of a, b yet"


@pytest.mark.parametrize("partition", ["../other", "/day=1", "day=1/", "a//b", "a\0b", ".hoodie", ".hoodie/timeline"])
def test_what_is_no_partition_is_refused(partition: str) -> None:
    with pytest.raises(ConfigError, match="name a partition by its folder"):
        PartitionCondition([partition])


def test_other_arguments_are_refused() -> None:
    with pytest.raises(ConfigError, match="no partition"):
        PartitionCondition([])
    with pytest.raises(ConfigError, match="match is 'some'"):
        PartitionCondition(["a"], "some")
    with pytest.raises(ConfigError):
        PartitionCondition(["a"], completed_after="soon")
