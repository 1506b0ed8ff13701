"""The metadata table compacted by us, against what it held before, and against the compactions that real Hudi ran on
the same tables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from hudi_core.codec.bloom import BloomFilter
from hudi_core.codec.hfile.reader import HFileReader
from hudi_core.engine.local import LocalEngine
from hudi_core.engine.protocol import TaskAttempt
from hudi_core.errors import CorruptFileError, ExecutionError, FormatError
from hudi_core.metadata_table.partition_type import FILES_PARTITION
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.metadata_table.services.compaction import MetadataCompaction
from hudi_core.metadata_table.services.merge_group import CompactedGroup, Counts, GroupUnit, compact_group_task
from hudi_core.metadata_table.write.staged_logs import Workers
from hudi_core.model.names import BaseFileName, LogFileName, parse_data_file
from hudi_core.timeline.actions.compaction import encode_compaction_plan
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.instant_time import parse_instant
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.instant_generator import InstantClock
from tests.support.golden_data import GoldenCase
from tests.support.hfiles import meta_block
from tests.support.metadata_records import TOKEN, Records, Table, comparable
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ("6", "8", "9")
CASES = (
    "mdt_all_cow",
    "mdt_all_mor",
    "mdt_all_mor_compacted",
    "mdt_record_index_lookup",
    "clean_requested_cow",
    "mor_basic",
    "rolled_back_mor",
)
NUMBERS = ("numWrites", "prevCommit", "totalLogFilesCompacted", "numUpdateWrites")
MERGED = ("numDeletes", "numInserts", "totalLogRecords", "totalUpdatedRecordsCompacted")
"""Of a secondary index Hudi 1.x counts keys that came and went between two compactions among the inserted and deleted
ones; no reader uses it.
"""


def compaction(table: Table, **arguments: Any) -> MetadataCompaction:
    """Whose clock does not wait."""
    clock = arguments.pop("clock", None) or InstantClock(table.config.timezone, sleep=lambda seconds: None)
    return MetadataCompaction(table.storage, table.config, TOKEN, clock, **arguments)


def by_tasks(table: Table, run: Callable[[Sequence[GroupUnit]], list[CompactedGroup]]) -> Workers:
    """An engine whose run is `run`."""

    class Tasks(LocalEngine):
        def run(self, task: Any, units: Any, **more: Any) -> Any:
            assert task is compact_group_task
            return run(units)

    return Workers(Tasks(1), 1, str(table.path), {})


def held(table: Table) -> Records:
    return comparable(table.records())


@pytest.mark.parametrize(
    "case",
    tiered(
        CASES,
        ["mdt_all_mor", "mdt_all_mor_compacted", "mdt_record_index_lookup", "clean_requested_cow", "rolled_back_mor"],
    ),
)
@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
def test_it_holds_what_it_held_before(golden: Golden, version: str, case: str) -> None:
    table = Table(golden(version, case).table)
    before = held(table)
    done = compaction(table).run(trigger=1)
    (instant,) = done.instants
    assert done.files > 0
    assert done.size > 0
    found = table.metadata_timeline.load().get(instant, Action.COMPACTION)
    assert found.is_completed
    assert held(table) == before
    # No reader needs what was merged.
    for path in (table.path / ROOT).glob("*/.*.log.*"):
        name = parse_data_file(path.name)
        if isinstance(name, LogFileName) and list(path.parent.glob(f"{name.file_id}_*_{instant}.hfile")):
            path.unlink()
    assert held(table) == before
    again = compaction(table).run(trigger=1)
    assert not again.instants
    assert again.reason


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
def test_a_log_of_no_bytes_is_not_compacted_away(golden: Golden, version: str) -> None:
    table = Table(golden(version, "mdt_all_mor").table)
    newest = table.metadata_timeline.load().commits().last()
    assert newest is not None
    stats = table.metadata_timeline.read_commit(newest).write_stats()
    victim = next(table.path / ROOT / stat.path for stat in stats if stat.path.startswith("files/."))
    data = victim.read_bytes()
    victim.write_bytes(b"")
    with pytest.raises(CorruptFileError, match="but it has 0"):
        compaction(table).run(trigger=1)
    assert not table.metadata_timeline.load().pending_compactions()
    victim.write_bytes(data)
    assert compaction(table).run(trigger=1).instants


def restored(table: Table) -> tuple[Instant, dict[str, Any], dict[str, Any]]:
    """Restores the table to where real Hudi planned its last compaction of the metadata table; returns that one, its
    plan and its commit.
    """
    timeline = table.metadata_timeline.load()
    last = timeline.completed().of_actions(Action.COMMIT).last()
    assert last is not None
    plan = table.metadata_timeline.read_any(last.requested_time, Action.COMPACTION, State.REQUESTED)
    commit = table.metadata_timeline.read_of(last)
    later = [item for item in timeline if item != last and item.completed_at > last.requested_time]
    for item in (last, *later):
        table.metadata_timeline.delete_instant(item.requested_time, item.pending_action)
        for folder in (table.path / ROOT).iterdir():
            for path in folder.glob(f"*_{item.requested_time}.*"):
                path.unlink()
    for item in table.data.load():
        if item.requested_time > last.requested_time:
            table.data.delete_instant(item.requested_time, item.pending_action)
        elif item.is_completed and item.completed_at > last.requested_time:
            table.data.remove(item.requested_time, item.pending_action, State.COMPLETED)
    return last, plan, commit


def by_group(operations: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(item["partitionPath"], item["fileId"]): item for item in operations}


@pytest.mark.parametrize("case", ["mdt_all_cow_compacted", "mdt_all_mor_compacted"])
@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
def test_plan_and_commit_are_those_of_real_hudi(golden: Golden, version: str, case: str) -> None:
    table = Table(golden(version, case).table)
    last, real_plan, real_commit = restored(table)
    moment = parse_instant(last.requested_time, table.config.timezone)
    done = compaction(
        table, clock=InstantClock(table.config.timezone, now=lambda: moment, sleep=lambda seconds: None)
    ).run(trigger=1)
    assert done.instants == (last.requested_time,)
    plan = table.metadata_timeline.read_any(last.requested_time, Action.COMPACTION, State.REQUESTED)
    assert by_group(plan["operations"]) == by_group(real_plan["operations"])
    assert {name: value for name, value in plan.items() if name != "operations"} == {
        name: value for name, value in real_plan.items() if name not in ("operations", "missingSchedulePartitions")
    }
    commit = table.metadata_timeline.read_of(table.metadata_timeline.load().get(last.requested_time, Action.COMPACTION))
    mine, theirs = (
        by_group([stat for stats in found["partitionToWriteStats"].values() for stat in stats])
        for found in (commit, real_commit)
    )
    assert mine.keys() == theirs.keys()
    for group, stat in mine.items():
        names = NUMBERS if group[0].startswith("secondary_index_") else NUMBERS + MERGED
        assert {name: stat[name] for name in names} == {name: theirs[group][name] for name in names}, group
        assert stat.get("prevBaseFile") == theirs[group].get("prevBaseFile")
        assert stat.keys() == theirs[group].keys()
    without_stats = (
        {name: value for name, value in found.items() if name != "partitionToWriteStats"}
        for found in (commit, real_commit)
    )
    assert next(without_stats) == next(without_stats)


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
def test_base_files_are_built_like_real_hudis(golden: Golden, version: str) -> None:
    table, real = (
        Table(golden(version, "mdt_all_mor_compacted").table),
        Table(golden(version, "mdt_all_mor_compacted").table),
    )
    last, _, _ = restored(table)
    moment = parse_instant(last.requested_time, table.config.timezone)
    compaction(table, clock=InstantClock(table.config.timezone, now=lambda: moment, sleep=lambda seconds: None)).run(
        trigger=1
    )
    for mine, theirs in zip(
        *(sorted((found.path / ROOT).glob(f"*/*_{last.requested_time}.hfile")) for found in (table, real)), strict=True
    ):
        (a, bloom), (b, real_bloom) = metadata_snapshot(mine), metadata_snapshot(theirs)
        assert a.trailer.entry_count == b.trailer.entry_count
        assert a.trailer.codec == b.trailer.codec
        assert a.file_info.keys() == b.file_info.keys()
        for name in ("minRecordKey", "maxRecordKey", "bloomFilterTypeCode", "KEY_VALUE_VERSION"):
            assert a.file_info[name] == b.file_info[name]
        assert bloom == real_bloom
        assert [key for key, _ in a.items()] == [key for key, _ in b.items()]


def metadata_snapshot(path: Path) -> tuple[HFileReader, bytes | None]:
    data = path.read_bytes()
    reader, text = HFileReader.of_bytes(data, str(path)), meta_block(data, "bloomFilter")
    assert text is not None
    BloomFilter.parse(text, "DYNAMIC_V0", path=str(path))
    return reader, text


@pytest.mark.parametrize("which", ["base file", "log file"])
@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
def test_a_plan_without_a_file_of_its_slice_is_refused(golden: Golden, version: str, which: str) -> None:
    """Executed, it would hide files of the table, or bring deleted ones back."""
    table = Table(golden(version, "mdt_all_mor_compacted").table)
    last, _, _ = restored(table)
    before = held(table)
    moment = parse_instant(last.requested_time, table.config.timezone)
    clock = InstantClock(table.config.timezone, now=lambda: moment, sleep=lambda seconds: None)

    def refuse(units: Sequence[GroupUnit]) -> list[CompactedGroup]:
        raise ExecutionError("the run dies")

    with pytest.raises(ExecutionError, match="dies"):
        compaction(table, clock=clock, workers=by_tasks(table, refuse)).run(trigger=1)
    active = table.metadata_timeline
    active.remove(last.requested_time, Action.COMPACTION, State.INFLIGHT)
    plan = active.read_plan(last.requested_time)
    chosen = next(item for item in plan.operations if item.base_file is not None and item.partition == FILES_PARTITION)
    without = (
        replace(chosen, base_file=None) if which == "base file" else replace(chosen, log_files=chosen.log_files[:-1])
    )
    path = table.path / active.path(last.requested_time, Action.COMPACTION, State.REQUESTED)
    operations = tuple(without if item is chosen else item for item in plan.operations)
    path.write_bytes(encode_compaction_plan(replace(plan, operations=operations)))
    files = sorted(table.path.rglob("*"))
    with pytest.raises(FormatError, match=chosen.file_id) as caught:
        compaction(table).finish()
    assert str(caught.value.path).endswith(path.name)
    assert sorted(table.path.rglob("*")) == files
    path.write_bytes(encode_compaction_plan(plan))
    assert compaction(table).finish().instants == (last.requested_time,)
    assert held(table) == before


def test_version_6_compacts_nothing_while_something_is_pending(golden: Golden) -> None:
    table = Table(golden("6", "failed_after_metadata_mor").table)
    before = sorted(path for path in table.path.rglob("*") if path.is_file())
    done = compaction(table).run(trigger=1)
    assert done.instants == ()
    assert "pending" in done.reason
    assert sorted(path for path in table.path.rglob("*") if path.is_file()) == before


@pytest.mark.parametrize("version", ["8", "9"])
def test_what_is_recorded_but_pending_stays_out(golden: Golden, version: str) -> None:
    table = Table(golden(version, "failed_after_metadata_mor").table)
    (failed,) = table.data.load().pending().requested_times
    before = held(table)
    done = compaction(table).run(trigger=1)
    assert done.instants == (str(int(failed) - 1),)
    assert held(table) == before
    publisher = table.publisher()
    publisher.check_roll_back(failed)
    publisher.roll_back(failed, table.new_instant())
    assert held(table) == before


def test_it_waits_for_enough_deltacommits(golden: Golden) -> None:
    table = Table(golden("8", "mor_basic").table)
    count = len(table.metadata_timeline.load().completed().of_actions(Action.DELTA_COMMIT))
    assert "hoodie.metadata.compact.max.delta.commits" in compaction(table).run(trigger=count + 1).reason
    assert compaction(table).run(trigger=count).instants


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
def test_an_unfinished_one_is_finished_by_its_plan(golden: Golden, version: str) -> None:
    table = Table(golden(version, "mdt_all_mor").table)
    before = held(table)

    def die(units: Sequence[GroupUnit]) -> list[CompactedGroup]:
        raise ExecutionError("killed")

    with pytest.raises(ExecutionError, match="killed"):
        compaction(table, workers=by_tasks(table, die)).run(trigger=1)
    (pending,) = table.metadata_timeline.load().pending_compactions()
    assert held(table) == before
    left = table.path / ROOT / "files" / f"files-0000-0_9-9-9_{pending.requested_time}.hfile"
    left.write_bytes(b"half a file")
    assert compaction(table).run(trigger=1 << 30).instants == (pending.requested_time,)
    assert not left.exists()
    assert held(table) == before


def test_tasks_do_it_as_well(golden: Golden) -> None:
    table = Table(golden("9", "mdt_all_mor").table)
    before = held(table)

    def run_units(units: Sequence[GroupUnit]) -> list[CompactedGroup]:
        return [compact_group_task(unit, TaskAttempt(number, 4, 2)) for number, unit in enumerate(units)]

    done = compaction(table, workers=by_tasks(table, run_units)).run(trigger=1)
    names = [parse_data_file(path.name) for path in (table.path / ROOT).glob(f"*/*_{done.instants[0]}.hfile")]
    assert len(names) == done.files
    assert all(
        isinstance(name, BaseFileName) and (name.token.stage_id, name.token.attempt_id) == (4, 2) for name in names
    )
    assert held(table) == before


def test_results_that_do_not_fit_the_plan_are_refused(golden: Golden) -> None:
    table = Table(golden("8", "mor_basic").table)
    with pytest.raises(ExecutionError, match="results came back"):
        compaction(table, workers=by_tasks(table, lambda units: [])).run(trigger=1)
    wrong = CompactedGroup("files-0000-0_0-0-0_1.hfile", 1, 1, Counts())
    with pytest.raises(ExecutionError, match="wrote"):
        compaction(table, workers=by_tasks(table, lambda units: [wrong] * len(units))).run(trigger=1)
    assert isinstance(table.metadata_timeline.load(), Timeline)


def test_a_plan_whose_files_are_gone_is_not_run(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table(golden("8", "mor_basic").table)
    with pytest.raises(ExecutionError, match="results came back"):
        compaction(table, workers=by_tasks(table, lambda units: [])).run(trigger=1)
    next((table.path / ROOT / "files").glob(".files-0000-0_2*.log.1_*[0-9]")).unlink()
    with pytest.raises(CorruptFileError, match="is not there"):
        compaction(table).run(trigger=1)
    monkeypatch.setattr(MetadataCompaction, "_check_files", lambda self, data: None)
    with pytest.raises(ExecutionError, match="which is not there"):
        compaction(table).run(trigger=1)


def test_times_of_the_clock_are_parsed_in_the_tables_zone() -> None:
    """What restored tables go by: a drawn instant is the one that real Hudi drew."""
    moment = parse_instant("20261120225103231", "LOCAL")
    assert isinstance(moment, datetime)
    clock = InstantClock("LOCAL", now=lambda: moment, sleep=lambda seconds: None)
    assert clock.next(Timeline()) == "20261120225103231"
