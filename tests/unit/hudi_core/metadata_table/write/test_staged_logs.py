"""Staged blocks become log files of the slices as they are then: several for a file group, beside records of the
driver, once and after a crash.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_core.errors import ConflictError
from hudi_core.metadata_table.partition_type import RECORD_INDEX
from hudi_core.metadata_table.partitions.row_exchange import LOG_BYTES
from hudi_core.metadata_table.partitions.row_indexes import location_datum
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.metadata_table.write.delta_writer import DeltaWriter
from hudi_core.metadata_table.write.staged_logs import (
    STAGING,
    StagedLog,
    forget_staged,
    staged_instants,
    staging_folder,
)
from hudi_core.model.names import WriteToken
from hudi_core.storage.base import Storage
from hudi_core.timeline.instant import Action
from hudi_core.transaction.instant_generator import InstantClock
from tests.memory import staged_logs_probe
from tests.support.fault_storage import FaultPlan, FaultStorage, InjectedCrash
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import Table
from tests.support.staged_rows import FILE_ID, staged_rows
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ("6", "8", "9")
PLACE = "2024-01-01"
COUNT = 400
MIB = 1 << 20
PUBLISH_BOUND = 4 * LOG_BYTES
"""A staged log file as it is read and as it is written, twice of each where the allocator keeps the last one back; not
the number of them.
"""
STAGE_BOUND = 96 * MIB
"""Some three times the log file that is being filled (2 MiB here), batches of 50,000 keys with their values, and what
allocators keep back: 59 to 71 MiB for 0.8, 1.6 and 3.2 million rows, whose records alone take 100 bytes each.
"""


def initialized(table: Table) -> str:
    instant = table.new_instant()
    table.data.create_requested(instant, Action.DELTA_COMMIT)
    table.data.to_inflight(instant, Action.DELTA_COMMIT)
    return instant


def writer(table: Table, storage: Storage | None = None) -> DeltaWriter:
    mine = storage or table.storage
    return DeltaWriter(
        MetadataTimeline(mine, table.config, InstantClock("UTC", sleep=lambda seconds: None)), WriteToken(0, 1, 0)
    )


def keys(start: int = 0) -> pa.Array:
    return pa.array([f"new-{number:06d}" for number in range(start, start + COUNT)])


def complete(table: Table, instant: str) -> None:
    table.data.complete(instant, Action.DELTA_COMMIT, b"{}", table.later(instant))


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_a_file_group_gets_several_log_files_and_the_driver_adds_its_own(golden: Golden, version: str) -> None:
    table = Table(golden(version, "mdt_all_mor").table)
    before, instant = table.live()[RECORD_INDEX], initialized(table)
    staged = staged_rows(table, instant, PLACE, keys(), limit=1, batch=10)
    groups = {item.file_id for item in staged}
    assert len(staged) > len(groups) > 1
    metadata_timeline = [(f"driver-{number}", location_datum(PLACE, FILE_ID, instant, "UTC")) for number in range(30)]
    gone = next(iter(before))
    writer(table).write_alone(instant, {RECORD_INDEX: [*metadata_timeline, (gone, None)]}, {RECORD_INDEX: staged})
    assert table.live()[RECORD_INDEX] == before, "the instant is not completed"
    complete(table, instant)
    after = table.live()[RECORD_INDEX]
    assert after.keys() == ({*before} - {gone}) | {*keys().to_pylist()} | {key for key, _ in metadata_timeline}
    assert {after[key].file_id for key in (*keys().to_pylist(), *(key for key, _ in metadata_timeline))} == {FILE_ID}
    stats = list(
        table.metadata_timeline.read_commit(
            table.metadata_timeline.load().get(instant, Action.DELTA_COMMIT)
        ).write_stats()
    )
    assert len({stat.path for stat in stats}) == len(stats) > len(staged)
    assert (sum(stat.num_writes for stat in stats), sum(stat.num_deletes for stat in stats)) == (COUNT + 30, 1)
    assert all((table.path / ROOT / stat.path).stat().st_size == stat.file_size_in_bytes for stat in stats)


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
@pytest.mark.parametrize("killed", tiered([1, 2, 5], [1, 5]))
def test_what_died_between_two_log_files_is_gone_on_with(golden: Golden, version: str, killed: int) -> None:
    """Staged again by the next attempt, split otherwise: written twice it says the same."""
    table = Table(golden(version, "mdt_all_mor").table)
    before, instant = table.live()[RECORD_INDEX], initialized(table)
    logs = 0

    def count(operation: object) -> bool:
        nonlocal logs
        logs += getattr(operation, "kind", "") == "create_exclusive" and getattr(operation, "path", "").startswith(
            f"{ROOT}/{RECORD_INDEX}/"
        )
        return logs == killed

    dying = FaultStorage(table.storage, FaultPlan(when=count, timing="after"))
    with pytest.raises(InjectedCrash):
        writer(table, dying).write(
            instant, {}, {RECORD_INDEX: staged_rows(table, instant, PLACE, keys(), limit=1, batch=10)}
        )
    forget_staged(table.storage, instant)
    writer(table).write(instant, {}, {RECORD_INDEX: staged_rows(table, instant, PLACE, keys(), limit=1, batch=37)})
    complete(table, instant)
    after = table.live()[RECORD_INDEX]
    assert after.keys() == {*before} | {*keys().to_pylist()}
    named = {
        stat.path
        for stat in table.metadata_timeline.read_commit(
            table.metadata_timeline.load().get(instant, Action.DELTA_COMMIT)
        ).write_stats()
    }
    there = {
        f"{RECORD_INDEX}/{path.name}"
        for path in (table.path / ROOT / RECORD_INDEX).iterdir()
        if f"{instant}.log" in path.name
    }
    assert there <= named


def test_keys_that_went(golden: Golden) -> None:
    table = Table(golden("9", "mdt_all_mor").table)
    before, instant = table.live()[RECORD_INDEX], initialized(table)
    gone = pa.array(sorted(before)[::2])
    writer(table).write_alone(
        instant, {}, {RECORD_INDEX: staged_rows(table, instant, PLACE, gone, came=False, limit=1, batch=3)}
    )
    complete(table, instant)
    assert table.live()[RECORD_INDEX].keys() == {*before} - {*gone.to_pylist()}


def test_an_attempt_forgets_no_later_one(golden: Golden) -> None:
    table = Table(golden("9", "mdt_all_mor").table)
    for epoch in (1, 2, 10):
        table.storage.write(f"{staging_folder('20260101000000000', epoch)}/file", b"x")
    forget_staged(table.storage, "20260101000000000", up_to=2)
    assert table.storage.list_folders(f"{STAGING}/20260101000000000") == [f"{STAGING}/20260101000000000/10"]
    forget_staged(table.storage, "20260101000000000")
    assert staged_instants(table.storage) == frozenset()
    forget_staged(table.storage, "20260101000000000", up_to=2)


def test_blocks_for_a_group_that_is_gone_are_refused(golden: Golden) -> None:
    table = Table(golden("8", "mdt_all_mor").table)
    instant = initialized(table)
    assert staged_instants(table.storage) == frozenset()
    (first, *_) = staged_rows(table, instant, PLACE, keys())
    assert staged_instants(table.storage) == {instant}
    with pytest.raises(ConflictError, match="is gone"):
        writer(table).write_alone(
            instant, {}, {RECORD_INDEX: [StagedLog("record-index-9999-0", first.path, 1, 0, first.size)]}
        )
    assert not table.metadata_timeline.load().contains(instant)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "few", "many", "bound"),
    tiered(
        [("publish", 2, 8, PUBLISH_BOUND), ("stage", 1_600_000, 1_600_000, STAGE_BOUND)],
        [("publish", 2, 8, PUBLISH_BOUND)],
    ),
)
def test_memory_does_not_grow_with_the_rows(
    golden: Golden, tmp_path: Path, what: str, few: int, many: int, bound: int
) -> None:
    """Neither where a commit is published nor where its records are staged."""
    table = Table(golden("8", "mdt_all_mor").table)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    probe = Path(staged_logs_probe.__file__)
    for count in {few, many}:
        command = [sys.executable, str(probe), str(table.path), initialized(table), what, str(count)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120, env=env)
        assert json.loads(done.stdout)["peak"] < bound, count
