from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_hudi.conditions.condition import oldest_pending
from airflow_hudi.timeline_reader import TimelineReader
from hudi_core.errors import ConfigError, UnsupportedVersionError
from hudi_core.storage.local import LocalStorage
from tests.support.counting_storage import CountingStorage
from tests.support.golden_data import GoldenCase


def test_who_is_at_work_on_an_instant(table: Path) -> None:
    """By the last claim that is held, else by a heartbeat of Hudi's; its name has no control characters."""
    time = "20260102000000000"
    reader, storage = TimelineReader(LocalStorage(table)), LocalStorage(table)
    assert reader.at_work(time) is None
    storage.write(f".hoodie/.heartbeat/{time}", b"")
    os.utime(table / ".hoodie" / ".heartbeat" / time, (86400, 86400))
    by_hudi = "run by a writer of Hudi, whose last heartbeat is of 1970-01-02T00:00:00Z"
    assert reader.at_work(time) == by_hudi
    claims = f".hoodie/.airflow_hudi/claims/{time}"
    storage.write(f"{claims}/000001.json", b'{"owner": {"text": "old", "pid": 1, "host": "a"}}')
    storage.write(f"{claims}/000002.json", b'{"owner": {"text": "new\\u001b[1m", "pid": 7, "host": "b"}}')
    os.utime(table / claims / "000002.json", (0, 0))
    assert reader.at_work(time) == "run by new\\x1b[1m (process 7 on b) since 1970-01-01T00:00:00Z"
    storage.write(f"{claims}/000002.released", b"")
    assert reader.at_work(time) == by_hudi
    storage.write(f"{claims}/000003.json", b"[]")
    assert f"the owner that {claims}/000003.json does not name" in (reader.at_work(time) or "")


def test_a_second_load_is_one_listing(table: Path, put: Callable[..., None]) -> None:
    storage = CountingStorage(table)
    reader = TimelineReader(storage)
    assert [instant.requested_time for instant in reader.load()] == ["20260101000000000"]
    storage.requests.clear()
    put("20260102000000000.compaction.requested")
    assert [instant.requested_time for instant in reader.load()] == ["20260101000000000", "20260102000000000"]
    assert storage.requests == ["list .hoodie"]


def test_the_timeline_is_the_same_until_a_listing_differs(table: Path, put: Callable[..., None]) -> None:
    reader = TimelineReader(LocalStorage(table))
    first = reader.look()
    assert reader.look().timeline is first.timeline
    os.utime(table / ".hoodie" / "20260101000000000.deltacommit", (1, 1))
    rewritten = reader.look()
    assert rewritten.timeline is not first.timeline
    assert rewritten.timeline == first.timeline
    put("20260102000000000.compaction.requested")
    assert reader.look().timeline != first.timeline


def test_a_commit_that_is_gone_since_the_listing_is_none(table: Path) -> None:
    look = TimelineReader(LocalStorage(table)).look()
    (commit,) = look.timeline
    assert look.read_commit(commit) is not None
    (table / ".hoodie" / "20260101000000000.deltacommit").unlink()
    assert look.read_commit(commit) is None


def test_completion_times_of_an_upgraded_table_are_in_its_own_zone(
    golden: Callable[[str, str], GoldenCase], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of files that name none: an upgrade leaves those of layout 1."""
    table = golden("9", "cow_basic").table
    properties = table / ".hoodie" / "hoodie.properties"
    properties.write_text(
        properties.read_text().replace("hoodie.table.timeline.timezone=LOCAL", "hoodie.table.timeline.timezone=UTC")
    )
    legacy = table / ".hoodie" / "timeline" / "20300101000000000.commit"
    legacy.write_bytes(b"{}")
    os.utime(legacy, (0, 0))
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        look = TimelineReader(LocalStorage(table)).look()
        assert look.zone == "UTC"
        found = look.timeline.find("20300101000000000", "commit")
        assert found is not None
        assert look.completed_at(found) == "19700101000000000"
    finally:
        monkeypatch.undo()
        time.tzset()


def test_an_upgraded_table_is_noticed(table: Path) -> None:
    reader = TimelineReader(LocalStorage(table))
    reader.load()
    properties = table / ".hoodie" / "hoodie.properties"
    properties.write_text(
        properties.read_text().replace("version=6", "version=9").replace("layout.version=1", "layout.version=2")
    )
    os.utime(properties, (1, 1))
    timeline = table / ".hoodie" / "timeline"
    timeline.mkdir()
    (timeline / "20260103000000000_20260103000009000.commit").touch()
    assert [(instant.requested_time, instant.completion_time) for instant in reader.load()] == [
        ("20260103000000000", "20260103000009000")
    ]
    assert reader.config.version == 9


def test_a_table_of_a_version_that_is_not_known_is_refused(table: Path) -> None:
    reader = TimelineReader(LocalStorage(table))
    reader.load()
    properties = table / ".hoodie" / "hoodie.properties"
    properties.write_text(
        properties.read_text().replace("version=6", "version=99").replace("layout.version=1", "layout.version=2")
    )
    os.utime(properties, (1, 1))
    with pytest.raises(UnsupportedVersionError):
        reader.load()


def test_a_folder_without_properties_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        TimelineReader(LocalStorage(tmp_path)).load()


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_clusterings_have_one_name_in_every_layout(golden: Callable[[str, str], GoldenCase], version: str) -> None:
    case = golden(version, "clustering_requested_cow")
    storage = CountingStorage(case.table)
    reader = TimelineReader(storage, "clustering")
    pending = oldest_pending(reader.load(), "clustering")
    assert pending is not None
    assert (pending.action, pending.pending_action) == ("clustering", "clustering")
    storage.requests.clear()
    reader.load()
    assert [request for request in storage.requests if request.startswith("read")] == [], "a plan is read once"
    done = TimelineReader(LocalStorage(case.after()), "clustering").load().find(pending.requested_time, "clustering")
    assert done is not None
    assert (done.action, done.pending_action, done.is_completed) == ("replacecommit", "clustering", True)


@pytest.mark.parametrize("version", ["6", "9"])
def test_an_overwrite_is_no_clustering(golden: Callable[[str, str], GoldenCase], version: str) -> None:
    timeline = TimelineReader(LocalStorage(golden(version, "insert_overwrite_table").table), "clustering").load()
    assert {item.pending_action for item in timeline} == {"commit", "replacecommit"}
