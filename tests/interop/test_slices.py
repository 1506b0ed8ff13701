"""Slices of layout 2 where writers overlapped: real Hudi plans a compaction over the same files, and real Hudi plans
with our slices.

No golden table has a log that was requested before a base file and completed after it, which concurrent writers leave.
Here one is made by giving a completed instant another completion time, which is a part of its file's name.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_core.config.table_config import TableConfig
from hudi_core.storage.local import LocalStorage
from hudi_core.table import HudiTable
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.view.file_system_view import FileSystemView
from hudi_core.view.listing import StorageListing
from tests.interop.real_hudi import RealHudi
from tests.support.changed_tables import complete_at, plan_during_the_fourth_commit
from tests.support.golden_data import GoldenCase
from tests.support.rows import assert_same_rows, read_parquet
from tests.support.views import view_of as plain_view_of

pytestmark = pytest.mark.hudi

Golden = Callable[[str, str], GoldenCase]
WITHOUT_METADATA = {"hoodie.metadata.enable": "false"}
FIRST, SECOND, THIRD, COMPACTION, REWRITE, LAST = (
    "20261120220747923",
    "20261120220753819",
    "20261120220802286",
    "20261120220809583",
    "20261120220818232",
    "20261120220831904",
)
"""The instants of 9/mor_compacted: a base file, two logs, their compaction, a deltacommit that wrote base files, a
log.
"""


def view_of(table: Path) -> FileSystemView:
    storage = LocalStorage(str(table))
    return plain_view_of(ActiveTimeline(storage, TableConfig.load(storage)), StorageListing(storage))


def rows(table: Path) -> pa.Table:
    result = HudiTable.open(str(table)).read(metadata="off")
    return pa.Table.from_batches(result.batches, result.schema)


def logs_by_slice(view: FileSystemView) -> set[tuple[str, tuple[str, ...]]]:
    """Base instant and the instants of the logs, of every slice."""
    slices = [item for partition in view.partitions() for item in view.all_slices(partition)]
    return {
        (item.base_instant, tuple(log.name.split("_")[1].split(".")[0] for log in item.log_files)) for item in slices
    }


@pytest.mark.parametrize(
    ("completions", "expected"),
    [
        ({}, {(FIRST, (SECOND, THIRD)), (COMPACTION, ()), (REWRITE, (LAST,))}),
        ({THIRD: "20261120220810000"}, {(FIRST, (SECOND,)), (COMPACTION, (THIRD,)), (REWRITE, (LAST,))}),
        ({THIRD: "20261120220820000"}, {(FIRST, (SECOND,)), (COMPACTION, ()), (REWRITE, (THIRD, LAST))}),
        (
            {SECOND: "20261120220820000", THIRD: "20261120220820001"},
            {(FIRST, ()), (COMPACTION, ()), (REWRITE, (SECOND, THIRD, LAST))},
        ),
        ({SECOND: REWRITE, THIRD: COMPACTION}, {(FIRST, ()), (COMPACTION, (THIRD,)), (REWRITE, (SECOND, LAST))}),
    ],
)
def test_real_hudi_compacts_the_slices_that_we_see(
    golden: Golden, hudi_1_2: RealHudi, completions: dict[str, str], expected: set[tuple[str, tuple[str, ...]]]
) -> None:
    table = golden("9", "mor_compacted").table
    for requested, completion in completions.items():
        complete_at(table, requested, completion)
    assert logs_by_slice(view_of(table)) == expected
    assert_same_rows(rows(table), hudi_1_2.snapshot(table, metadata=False), ignore=())
    before = view_of(table)
    instant = hudi_1_2.ask("schedule_compaction", base=str(table), options=WITHOUT_METADATA)
    assert instant
    planned = {group: operation for group, (_, operation) in view_of(table).pending.compacting.items()}
    for partition in before.partitions():
        for item in before.latest_slices(partition):
            operation = planned.pop(item.file_group)
            assert operation.base_instant == item.base_instant
            assert operation.base_file == (item.base_file.name if item.base_file else None)
            assert list(operation.log_files) == [log.name for log in item.log_files]
    assert planned == {}


def test_a_failed_write_hides_a_committed_one_from_real_hudi_and_not_from_us(
    golden: Golden, hudi_1_2: RealHudi
) -> None:
    """The difference that view/slicing.py names: the last deltacommit is complete, so its rows are there."""
    table = golden("9", "mor_compacted").table
    (completed,) = (table / ".hoodie" / "timeline").glob(f"{REWRITE}_*")
    completed.unlink()
    assert logs_by_slice(view_of(table)) == {(FIRST, (SECOND, THIRD)), (COMPACTION, (LAST,))}
    theirs = hudi_1_2.snapshot(table, metadata=False)
    without_last = HudiTable.open(str(table)).read(metadata="off", as_of=COMPACTION)
    assert_same_rows(theirs, pa.Table.from_batches(without_last.batches, without_last.schema), ignore=())
    assert (theirs.num_rows, rows(table).num_rows) == (102, 96)


@pytest.mark.conformance
def test_a_compaction_hides_a_commit_from_real_hudis_incremental_query_and_not_from_ours(
    golden: Golden, hudi_1_2: RealHudi, tmp_path: Path
) -> None:
    """It was planned while the commit ran. Real Hudi's snapshot query shows the rows."""
    table = golden("9", "mor_compaction_requested").table
    *_, third, fourth, _ = HudiTable.open(str(table)).timeline().commits().instants
    asked = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.read.begin.instanttime": third.completed_at,
        "hoodie.datasource.read.end.instanttime": fourth.completed_at,
    }

    def theirs() -> pa.Table:
        output = str(tmp_path / "answer.parquet")
        hudi_1_2.ask("read", base=str(table), output=output, metadata=False, options=asked)
        return read_parquet(output)

    def ours() -> pa.Table:
        table_now = HudiTable.open(str(table))
        result = table_now.read("incremental", metadata="off", begin=third.completed_at, end=fourth.completed_at)
        return pa.Table.from_batches(result.batches, result.schema)

    expected = theirs()
    assert_same_rows(ours(), expected, ignore=())
    plan_during_the_fourth_commit(table)
    assert_same_rows(ours(), expected, ignore=())
    assert_same_rows(rows(table), hudi_1_2.snapshot(table, metadata=False), ignore=())
    assert (expected.num_rows, theirs().num_rows) == (40, 0)


@pytest.mark.parametrize(("version", "gone"), [("9", ("20261120221748223", "20261120221800419"))])
def test_what_was_archived_beyond_a_savepoint_is_read_as_real_hudi_reads_it(
    golden: Golden, hudi_1_2: RealHudi, version: str, gone: tuple[str, ...]
) -> None:
    """`hoodie.archive.beyond.savepoint` leaves the savepoint's commit behind, and the view takes no later instant for
    an archived one.
    """
    table = golden(version, "savepoint_cow").table
    whole = rows(table)
    for instant in gone:
        for file in (table / ".hoodie" / "timeline").glob(f"{instant}*"):
            file.unlink()
    ours = rows(table)
    assert_same_rows(ours, hudi_1_2.snapshot(table, metadata=False), ignore=())
    assert ours.num_rows == whole.num_rows
    assert ours.sort_by("_hoodie_record_key") != whole.sort_by("_hoodie_record_key")
