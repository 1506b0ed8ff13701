"""Our run of log compactions against real Hudi's run of the same plan, and of log compactions that we plan: every
reader finds the same rows as before, also behind a compaction on top.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.codec.avro.arrow import arrow_schema
from hudi_core.codec.log.blocks import HeaderKey, LogBlock
from hudi_core.engine.local import LocalEngine
from hudi_core.errors import ConflictError, UnsupportedError
from hudi_core.filegroup.read.log_records import block_batches
from hudi_core.filegroup.read.log_scan import log_blocks
from hudi_core.services.restore.savepoint import savepoint_create, savepoint_delete
from hudi_core.services.restore.verb import restore
from hudi_core.services.rollback.verb import rollback
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.actions.commit import CommitMetadata
from hudi_core.timeline.actions.compaction import CompactionPlan
from hudi_core.timeline.actions.write_stats import WriteStat
from hudi_core.timeline.instant import Action, State
from hudi_core.verbs.run import RunRequest
from hudi_core.view.file_group import DataFile
from tests.support.golden_compactions import FOLDERS, context_of, timeline_names
from tests.support.golden_data import GoldenCase, golden_cases, open_case
from tests.support.log_compactions import (
    ENABLED,
    FROM_ONE,
    OWNER,
    PLANNED,
    VERSIONS,
    compact_all,
    drop_plans,
    merge_logs,
    planned,
    reader_without_log_compaction,
    schedule,
)
from tests.support.rows import assert_same_rows, read_parquet, rows_of
from tests.support.table_invariants import assert_metadata_true, assert_readable, pending_instants, read_rows
from tests.support.table_requests import perform
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
COMMIT = ("_hoodie_commit_time", "_hoodie_commit_seqno")
CLEAN = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
ARCHIVE = {"hoodie.keep.min.commits": "1", "hoodie.keep.max.commits": "2", "hoodie.clean.commits.retained": "1"}
REWRITTEN = {"6": (), "8": (), "9": COMMIT}
"""Meta columns that real Hudi gives the merged rows anew: 1.2.0 takes them for rows of its own instant."""
POSITIONS = {HeaderKey.RECORD_POSITIONS, HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS}
POSITIONS_OF: dict[str, set[HeaderKey]] = {"6": set(), "8": POSITIONS, "9": POSITIONS}
"""Headers that our log compaction keeps where the blocks that it merges have them: those of Hudi 1.x."""


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6"]))
def test_the_rows_are_those_that_real_hudi_leaves(golden: Golden, version: str) -> None:
    found = golden(version, PLANNED)
    table, instant, rows = found.table, planned(found.table), read_rows(found.table)
    result = merge_logs(table)
    assert (result.instant, result.action, result.state, result.records) == (instant, "logcompaction", "completed", 120)
    assert pending_instants(table) == set()
    assert timeline_names(table) == timeline_names(found.after())
    assert_same_rows(read_rows(table), rows, ignore=())
    real = read_parquet(found.expected / "after_snapshot.parquet")
    assert_same_rows(read_rows(table), real.select(read_rows(table).column_names), ignore=REWRITTEN[version])
    with reader_without_log_compaction():
        assert_same_rows(read_rows(table), rows, ignore=())
    assert merge_logs(table, instant).files_written == 0
    compact_all(table)
    assert_same_rows(read_rows(table), rows)


@pytest.mark.parametrize("version", VERSIONS)
def test_blocks_and_commit_are_those_of_real_hudi(golden: Golden, version: str) -> None:
    found = golden(version, PLANNED)
    ours, real, instant = found.table, found.after(), planned(found.table)
    merge_logs(ours)
    mine, theirs = commit_of(ours, instant), commit_of(real, instant)
    assert (mine.operation_type, mine.compacted) == (theirs.operation_type, theirs.compacted) == ("LOG_COMPACT", True)
    assert mine.schema_text == theirs.schema_text
    for my, their in zip(stats_of(mine), stats_of(theirs), strict=True):
        assert counts(my) == counts(their)
        assert block_headers(ours, my) == block_headers(real, their)
        # Real Hudi's log compaction drops the positions, and with them rows of repeated keys.
        assert [block.headers.keys() & POSITIONS for block in blocks_of(ours, my)] == [POSITIONS_OF[version]]
        assert [block.headers.keys() & POSITIONS for block in blocks_of(real, their)] == [set()]
        assert records(ours, my, REWRITTEN[version]) == records(real, their, REWRITTEN[version])


@pytest.mark.parametrize("version", VERSIONS)
def test_the_plan_is_the_one_that_real_hudi_made(golden: Golden, version: str) -> None:
    """By the threshold of which it was planned; one more, and nothing is."""
    table = golden(version, PLANNED).table
    context, instant = context_of(table), planned(table)
    real = context.active.read_plan(instant, Action.LOG_COMPACTION)
    (table / context.active.path(instant, Action.LOG_COMPACTION, State.REQUESTED)).unlink()
    made = schedule(table, {**ENABLED, "hoodie.log.compaction.blocks.threshold": "4"})
    assert made.instant is not None
    ours = context.active.read_plan(made.instant, Action.LOG_COMPACTION)
    assert by_group(ours) == by_group(real)
    assert ours.strategy == real.strategy
    assert (ours.preserve_hoodie_metadata, ours.missing_partitions) == (
        real.preserve_hoodie_metadata,
        real.missing_partitions,
    )
    (table / context.active.path(made.instant, Action.LOG_COMPACTION, State.REQUESTED)).unlink()
    too_few = schedule(table, {**ENABLED, "hoodie.log.compaction.blocks.threshold": "7"})
    assert too_few.instant is None
    assert "hoodie.log.compaction.blocks.threshold" in str(too_few.reason)
    assert schedule(table, {}).reason == (
        "log compactions are planned with hoodie.log.compaction.enable=true only, since readers must know them"
    )


MERGED = {
    "mdt_all_mor",
    "merge_mode_event_time",
    "mor_basic",
    "mor_log_only",
    "only_deletes_mor",
    "payload_default",
    "rolled_back_mor",
    "schema_evolution_mor",
    "types_mor",
}
"""Cases of which a plan merges slices in every one of VERSIONS, but for payload_default in 6."""


@pytest.mark.parametrize(
    ("folder", "case"),
    tiered(
        [(folder, case) for folder in FOLDERS for case in golden_cases(folder)],
        [
            ("6", "mor_basic"),
            ("6", "payload_default"),
            ("6", "rolled_back_mor"),
            ("6", "schema_evolution_mor"),
            ("8", "merge_mode_event_time"),
            ("8", "mor_log_only"),
            ("9", "mdt_all_mor"),
            ("9", "only_deletes_mor"),
        ],
    ),
)
def test_a_plan_of_ours_leaves_the_rows_of_every_table(tmp_path: Path, folder: str, case: str) -> None:
    outcome = plan_and_run(tmp_path, folder, case)
    if folder in VERSIONS and case in MERGED and (folder, case) != ("6", "payload_default"):
        assert outcome == "merged"


def plan_and_run(tmp_path: Path, folder: str, case: str) -> str:
    """`merged`, or why nothing was."""
    table = open_case(folder, case, tmp_path).table
    context = context_of(table, FROM_ONE)
    if not context.config.is_merge_on_read:
        return "copy on write"
    if context.config.features.layout == 2:
        drop_plans(table)
    try:
        done = schedule(table)
    except UnsupportedError as error:
        return str(error)
    if done.instant is None:
        return str(done.reason)
    rows = read_rows(table)
    try:
        merge_logs(table, done.instant, FROM_ONE)
    except (UnsupportedError, ConflictError) as error:
        assert_same_rows(read_rows(table), rows, ignore=())
        return str(error)
    assert_readable(table, rows)
    assert_same_rows(read_rows(table), rows, ignore=())
    assert_metadata_true(table)
    with reader_without_log_compaction():
        assert_same_rows(read_rows(table), rows, ignore=())
    compact_all(table)
    assert_same_rows(read_rows(table), rows)
    assert_metadata_true(table)
    return "merged"


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_not_merged_is_refused_by_name(golden: Golden, version: str) -> None:
    for case in ("payload_partial_update", "payload_overwrite_nondefaults"):
        with pytest.raises(UnsupportedError, match="merged field by field: log compaction copies whole rows only"):
            schedule(golden(version, case).table)
    for case, what in (("mor_parquet_log", "PARQUET_DATA"), ("mor_hfile_log", "HFILE_DATA")):
        done = schedule(golden(version, case).table)
        assert done.instant is None
        assert f"log compaction copies no log file with a block of type {what}" in str(done.reason)
    if version != "6":
        table = golden(version, "partial_update_merge_into").table
        drop_plans(table)
        assert "log compaction copies no log file with partial rows" in str(schedule(table).reason)
    done = schedule(golden(version, "mor_compaction_requested").table)
    assert done.reason == (
        "no file slice has log files, beside 3 that pending plans hold (`hudictl run` or `hudictl unschedule` frees "
        "them); no option changes that"
    )
    assert schedule(golden(version, "cow_basic").table).reason == (
        "the table is copy-on-write: it has no log files to compact; no option changes that"
    )


def commit_of(table: Path, instant: str) -> CommitMetadata:
    active = context_of(table).active
    return active.read_commit(active.load().get(instant, Action.LOG_COMPACTION))


def stats_of(commit: CommitMetadata) -> list[WriteStat]:
    return sorted(commit.write_stats(), key=lambda stat: stat.file_id)


def counts(stat: WriteStat) -> list[Any]:
    names = ("file_id", "partition_path", "num_writes", "num_deletes", "num_update_writes", "num_inserts", "log_offset")
    names += ("total_log_records", "total_log_files_compacted", "total_updated_records_compacted", "total_log_blocks")
    names += ("total_corrupt_log_block", "total_rollback_blocks", "log_version", "base_file", "total_write_errors")
    return [getattr(stat, name) for name in names] + [[name.split("_1-")[0][:60] for name in stat.log_files[:-1]]]


def blocks_of(table: Path, stat: WriteStat) -> list[LogBlock]:
    partition, _, name = stat.path.rpartition("/")
    found = list(log_blocks(LocalStorage(table), [DataFile(partition, name, (table / stat.path).stat().st_size)]))
    assert all(isinstance(block, LogBlock) for block in found)
    return [block for block in found if isinstance(block, LogBlock)]


def block_headers(table: Path, stat: WriteStat) -> list[tuple[Any, ...]]:
    """Types and headers without positions; the merged instants in any order, as releases of Hudi differ in it."""
    headers = []
    for block in blocks_of(table, stat):
        merged = sorted(block.headers[HeaderKey.COMPACTED_BLOCK_TIMES].split(","))
        headers.append((block.type, block.headers.keys() - POSITIONS, block.instant_time, block.schema, merged))
    return headers


def records(table: Path, stat: WriteStat, ignored: tuple[str, ...]) -> Counter[tuple[Any, ...]]:
    (block,) = blocks_of(table, stat)
    schema = arrow_schema(json.loads(block.schema or ""), path=block.path)
    rows = pa.Table.from_batches(list(block_batches(LocalStorage(table), block, schema)), schema)
    return rows_of(rows, [name for name in schema.names if name not in ignored])


def by_group(plan: CompactionPlan) -> dict[Any, Any]:
    return {item.file_group: (item, item.metrics) for item in plan.operations}


@pytest.mark.parametrize("version", tiered(VERSIONS, ["9"]))
def test_a_completed_one_is_rolled_back_restored_cleaned_and_archived(
    golden: Golden, tmp_path: Path, version: str
) -> None:
    """With every index; readers of both sorts see the same rows behind each."""
    source = golden(version, "mdt_all_mor").table
    rows, commits = read_rows(source), context_of(source).active.load().commits().instants
    target = commits[-1].requested_time
    savepoint_create(context_of(source), target, OWNER, comment="before")
    made = schedule(source)
    assert made.instant is not None
    merge_logs(source, made.instant)

    def roll_back(table: Path) -> None:
        assert rollback(context_of(table), made.instant, OWNER).reason is None
        assert context_of(table).active.load().find(str(made.instant), Action.LOG_COMPACTION) is None
        again = schedule(table)
        assert again.instant is not None
        merge_logs(table, again.instant)

    def go_back(table: Path) -> None:
        restore(context_of(table), target, OWNER)
        assert context_of(table).active.load().commits().last() == commits[-1]

    def clean_up(table: Path) -> None:
        compact_all(table)
        for service, options in (("clean", CLEAN), ("archive", ARCHIVE)):
            request = RunRequest(str(table), service, schedule=True, options=options)
            perform(context_of(table, options), request, LocalEngine(1), OWNER)
        assert not list(table.glob("*/.*.log.*"))

    for number, act in enumerate((roll_back, go_back, clean_up)):
        table = Path(shutil.copytree(source, tmp_path / f"copy-{number}" / source.name, symlinks=True))
        if act is clean_up:
            savepoint_delete(context_of(table), target, OWNER)
        act(table)
        assert_readable(table, read_rows(table, "off"))
        assert_same_rows(read_rows(table), rows)
        assert_metadata_true(table)
        with reader_without_log_compaction():
            assert_same_rows(read_rows(table), rows)
