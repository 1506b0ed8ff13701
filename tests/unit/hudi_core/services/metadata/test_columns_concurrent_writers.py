"""Columns added to the statistics while writers of real Hudi are at work that read the table's definitions as they were
before.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from typing import Any

import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.errors import ConflictError
from hudi_core.metadata_table.indexed_table import put_index_definitions
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.services.metadata import columns as columns_module
from hudi_core.services.metadata.columns import add_columns, drop_columns
from hudi_core.services.metadata.maintain import create_metadata
from hudi_core.services.waiting import wait_for_writers
from hudi_core.table import HudiTable
from hudi_core.timeline.instant import Action
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import Table
from tests.unit.hudi_core.services.metadata.test_catch_up import findings
from tests.unit.hudi_core.services.metadata.test_columns import (
    OWNER,
    add,
    assert_found,
    context,
    index_only,
    indexed,
    rows,
    statistics,
    with_late_commit,
    with_wrong_range,
)

Golden = Callable[[str, str], GoldenCase]
BEATS = {"hoodie.client.heartbeat.interval_in_ms": "60000"}
ONE_OF = ["8", pytest.param("9", marks=pytest.mark.conformance)]
AT_ONCE = {**BEATS, "airflow_hudi.indexing.catchup_minutes": "0"}


def at_work(table: Table, action: str = Action.COMMIT, *, beats: bool = True, instant: str | None = None) -> str:
    """A write that another process has just started."""
    instant = instant or table.new_instant()
    table.data.create_requested(instant, action)
    table.data.to_inflight(instant, action)
    if beats:
        beat(table, instant)
    return instant


def beat(table: Table, instant: str, ago: float = 0.0) -> None:
    path = table.path / ".hoodie" / ".heartbeat" / instant
    path.parent.mkdir(exist_ok=True)
    path.touch()
    os.utime(path, (time.time() - ago, time.time() - ago))


def assert_said_once(caplog: pytest.LogCaptureFixture, writer: str) -> None:
    """That the wait for a write with a heartbeat was logged, and how long it may last, when it began."""
    (said,) = [message for message in caplog.messages if message.startswith("waiting for ")]
    text = rf"waiting for commit {writer}, whose writer's last heartbeat is \d+ s old; for up to (\d+) s more"
    found = re.fullmatch(text, said)
    assert found is not None, said
    assert 870 < int(found[1]) <= 900


def test_an_addition_says_at_once_for_whom_it_waits(
    golden: Golden, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    table = Table(golden("9", "mdt_all_mor").table)
    drop_columns(context(table), ["qty"], OWNER)
    writer = at_work(table)

    def ends(_: float) -> None:
        table.data.delete_instant(writer, Action.COMMIT)

    def wait(*given: Any, **rules: Any) -> frozenset[str]:
        return wait_for_writers(*given, sleep=ends, **rules)

    monkeypatch.setattr(columns_module, "wait_for_writers", wait)
    assert add_columns(context(table, BEATS), ["qty"], LocalEngine(1), OWNER, 5) == ("qty",)
    assert_said_once(caplog, writer)


@pytest.mark.slow
@pytest.mark.parametrize("version", ["8", "9"])
def test_a_column_is_not_named_beside_a_write_whose_files_may_lack_it(golden: Golden, version: str) -> None:
    """It read the definition when it began: it finds its own list there, changes nothing, and readers take its files
    for ones without values.
    """
    table = Table(golden(version, "mdt_all_mor").table)
    drop_columns(context(table), ["qty"], OWNER)
    before = indexed(table)
    writer = at_work(table)
    with pytest.raises(ConflictError, match=f"{writer}, which began before, is still at work"):
        add_columns(context(table, AT_ONCE), ["qty"], LocalEngine(1), OWNER, 5)
    assert indexed(table) == before
    assert findings(table) == []
    table.data.delete_instant(writer, Action.COMMIT)
    assert add(table, "qty") == ("qty",)
    assert indexed(table) == (*before, "qty")
    assert findings(table) == []


def test_a_compaction_that_makes_no_heartbeat_is_at_work_too(golden: Golden) -> None:
    """Those of Hudi before 1.2 make none."""
    table = Table(golden("8", "mor_compaction_requested").table)
    create_metadata(
        context(table, {"hoodie.metadata.index.column.stats.column.list": "id"}),
        ["column_stats"],
        LocalEngine(2),
        OWNER,
        2,
    )
    before = indexed(table)
    (compaction,) = table.data.load().pending_compactions()
    for path in (table.path / table.data.folder).iterdir():
        if not path.name.startswith(compaction.requested_time):
            os.utime(
                path, (time.time() - 86_400, time.time() - 86_400)
            )  # so that the plan does not seem to have come with a copy
    table.data.to_inflight(compaction.requested_time, Action.COMPACTION)
    with pytest.raises(ConflictError, match=f"compaction {compaction.requested_time}, which began before"):
        add_columns(context(table, {"airflow_hudi.indexing.catchup_minutes": "0"}), ["name"], LocalEngine(1), OWNER, 5)
    assert indexed(table) == before


@pytest.mark.slow
@pytest.mark.parametrize("version", ONE_OF)
def test_what_a_write_that_was_waited_for_wrote_is_recorded(
    golden: Golden, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    """With options that lack the column: its files have no record of it."""
    table = Table(golden(version, "mdt_all_mor").table)
    index_only(table, "id", "name", "qty")
    whole = statistics(table)["column_stats"]
    index_only(table, "id")
    complete = with_late_commit(table)
    last = table.data.load().pending().instants[-1].requested_time
    beat(table, last)
    waited: list[frozenset[str]] = []

    def wait(of: Any, awaited: frozenset[str], **rules: Any) -> frozenset[str]:
        if last in awaited and not waited:
            assert "qty" not in indexed(table)
            complete()
        waited.append(awaited)
        return wait_for_writers(of, awaited, **rules)

    monkeypatch.setattr(columns_module, "wait_for_writers", wait)
    add(table, "name", "qty")
    assert waited[0] == {last}
    assert statistics(table)["column_stats"] == whole
    assert_found(table, rows(table))
    assert findings(table) == []


@pytest.mark.parametrize("when", ["before it is named", "as it is named"])
def test_a_write_that_starts_in_that_moment_is_waited_for(
    golden: Golden, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    table = Table(golden("8", "mdt_all_mor").table)
    drop_columns(context(table), ["qty"], OWNER)
    before, started_at, put = indexed(table), list[str](), put_index_definitions
    named: list[bool] = []

    def begin(*arguments: Any) -> Any:
        if when == "as it is named" and not started_at:
            put(*arguments)
            started_at.append(at_work(table))
            return None
        named.append("qty" in indexed(table))
        return put(*arguments)

    if when == "before it is named":
        recorded = columns_module._refuse_new_writes

        def refuse(*arguments: Any) -> None:
            if not started_at:
                started_at.append(at_work(table))
            recorded(*arguments)

        monkeypatch.setattr(columns_module, "_refuse_new_writes", refuse)
    monkeypatch.setattr(columns_module, "put_index_definitions", begin)
    with pytest.raises(ConflictError, match="at work"):
        add_columns(context(table, AT_ONCE), ["qty"], LocalEngine(1), OWNER, 5)
    assert indexed(table) == before, "restored"
    assert named == ([True] if when == "as it is named" else [])
    table.data.delete_instant(started_at[0], Action.COMMIT)
    add(table, "qty")
    assert "qty" in indexed(table)
    assert findings(table) == []


def test_a_write_that_died_is_rolled_back_before(golden: Golden) -> None:
    """So that it cannot complete behind the definition."""
    table = Table(golden("8", "mdt_all_mor").table)
    drop_columns(context(table), ["qty"], OWNER)
    writer = at_work(table)
    beat(table, writer, ago=3600)
    assert add(table, "qty") == ("qty",)
    assert not table.data.load().contains(writer)
    assert findings(table) == []


@pytest.mark.parametrize("version", ONE_OF)
def test_ranges_of_partitions_widen_what_is_there(golden: Golden, version: str) -> None:
    """Hudi 1.0 draws an instant, rolls failed writes back, and puts it then: what it records is older than ours, and
    has to hold beneath it.
    """
    table = Table(golden(version, "mdt_all_mor").table)
    drop_columns(context(table), ["qty"], OWNER)
    with_wrong_range(table, "qty", 100_000)
    add(table, "qty")
    ranges = MetadataTable(table.storage, table.config, table.data.load()).partition_stats(["qty"])["qty"].to_pylist()
    assert {item["partition"] for item in ranges} == set(HudiTable.open(str(table.path)).view().partitions())
    assert all(item["min"] < 100_000 < item["max"] for item in ranges)
    assert_found(table, rows(table))
