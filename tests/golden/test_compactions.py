"""Our run of a plan against real Hudi's run of the same plan, on every table version: rows, files, footers, commit,
timelines, metadata table.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.timeline.actions.write_stats import WriteStat
from tests.support.golden_compactions import (
    base_files,
    columns_of,
    commit_of,
    compact,
    compacted_rows,
    context_of,
    footer_of,
    metadata_of,
    own_timeline,
    planned,
    planned_cases,
    timeline_names,
)
from tests.support.golden_data import GoldenCase
from tests.support.rows import assert_same_rows, read_parquet
from tests.support.table_invariants import assert_compacted, pending_instants, read_rows
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]

PLANNED = planned_cases()
EXECUTED = planned_cases(executed=True)
COUNTED = (
    "prev_commit",
    "num_writes",
    "num_deletes",
    "total_log_records",
    "total_log_files_compacted",
    "total_updated_records_compacted",
)
COUNTED += ("total_log_blocks", "total_corrupt_log_block", "total_rollback_blocks")
BLOOM_ENTRIES = {"6": "60000", "6-by-1.2.0": "1000", "8": "1000", "8-by-1.2.0": "1000", "9": "60000"}
"""With which real Hudi wrote `mor_compaction_requested`."""
OURS = {"parquet.avro.schema", "writer.model.name", "ARROW:schema"}
"""Footer keys that Hudi's Avro writer has, and not its Spark writer, which compactions of 1.x use."""
VERSION = "org.apache.spark.version"
SPARKS = {VERSION, "org.apache.spark.sql.parquet.row.metadata"}
"""Those of the Spark writer. Ours have the version where the base file that they replace has it, or there is none."""


@pytest.mark.parametrize(
    ("folder", "case"),
    tiered(
        PLANNED,
        [
            ("6", "compaction_inflight"),
            ("8", "payload_event_time"),
            ("8", "payload_overwrite_nondefaults"),
            ("8", "payload_partial_update"),
            ("9", "bucket_index_mor"),
        ],
    ),
)
def test_rows_stay_and_nothing_is_left_over(golden: Golden, folder: str, case: str) -> None:
    """No plan of real Hudi is refused."""
    table = golden(folder, case).table
    instant, rows, pending = planned(table), read_rows(table), pending_instants(table)
    result = compact(table)
    assert (result.instant, result.action, result.state) == (instant, "compaction", "completed")
    assert_compacted(table, instant, rows, pending)


@pytest.mark.parametrize(
    ("folder", "case"),
    tiered(
        EXECUTED,
        [
            ("6", "mor_compaction_requested"),
            ("6", "payload_overwrite_nondefaults"),
            ("6", "schema_evolution_mor_compaction_requested"),
            ("6-by-1.2.0", "payload_partial_update"),
            ("8", "merge_mode_commit_time"),
            ("8-by-1.2.0", "mor_compaction_requested"),
            ("9", "bucket_index_consistent_mor"),
            ("9", "merge_mode_event_time"),
            ("9", "partial_update_merge_into"),
        ],
    ),
)
def test_it_leaves_what_real_hudi_leaves(golden: Golden, folder: str, case: str) -> None:
    found = golden(folder, case)
    ours, real, instant = found.table, found.after(), planned(found.table)
    compact(ours)
    assert_same_rows(compacted_rows(ours), compacted_rows(real), ignore=("_hoodie_file_name",))
    assert_same_rows(
        read_rows(ours), read_parquet(found.expected / "after_snapshot.parquet"), ignore=("_hoodie_file_name",)
    )
    assert timeline_names(ours) == timeline_names(real)
    assert own_timeline(ours) == own_timeline(real)
    assert metadata_of(ours, instant) == metadata_of(real, instant)
    mine, theirs = base_files(ours, instant), base_files(real, instant)
    assert mine.keys() == theirs.keys()
    for group, path in mine.items():
        assert columns_of(path) == columns_of(theirs[group])


@pytest.mark.parametrize(
    ("folder", "case"),
    tiered(
        EXECUTED,
        [
            ("6", "mor_compaction_requested_only"),
            ("6-by-1.2.0", "payload_default"),
            ("8", "bucket_index_mor"),
            ("8-by-1.2.0", "merge_mode_event_time"),
            ("9", "payload_partial_update"),
        ],
    ),
)
def test_the_commit_is_that_of_real_hudi(golden: Golden, folder: str, case: str) -> None:
    found = golden(folder, case)
    ours, real, instant = found.table, found.after(), planned(found.table)
    compact(ours)
    (mine, my_file), (theirs, their_file) = commit_of(ours, instant), commit_of(real, instant)
    assert counts(mine.write_stats()) == counts(theirs.write_stats())
    assert json.loads(mine.schema_text or "") == json.loads(theirs.schema_text or "")
    assert (
        {key for key in mine.extra_metadata if not key.startswith("airflow_hudi.")}
        == theirs.extra_metadata.keys()
        == {"schema"}
    )
    for name in ("compacted", "operationType", "version"):
        assert my_file.get(name) == their_file.get(name)
    mine_by_group, theirs_by_group = stats_by_group(my_file), stats_by_group(their_file)
    for group, stat in theirs_by_group.items():
        kept = stat.keys() - VARYING
        assert {name: mine_by_group[group].get(name) for name in kept} == {name: stat[name] for name in kept}


VARYING = {
    "path",
    "runtimeStats",
    "totalWriteBytes",
    "fileSizeInBytes",
    "totalLogReadTimeMs",
    "numInserts",
    "totalLogSizeCompacted",
    "numUpdateWrites",
}
"""Names, bytes and times of the attempt, and three counts: of inserts, where 1.0.2 counts base rows that stay, too; of
the logs' bytes, where 1.2 counts contents only; of updates, where it leaves out those that change nothing.
"""
VARYING |= {"totalValidLogBlocks", "totalLogBlocksSize", "totalLogBlocksScanTimeMs"}
"""Members of Hudi 1.2's JSON that no file of 0.15 has: always zero."""


def stats_by_group(raw: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    return {
        (partition, stat["fileId"]): stat for partition, stats in raw["partitionToWriteStats"].items() for stat in stats
    }


def counts(stats: Iterable[WriteStat]) -> dict[tuple[str, str], list[Any]]:
    return {(stat.partition_path, stat.file_id): [getattr(stat, name) for name in COUNTED] for stat in stats}


@pytest.mark.parametrize("folder", list(BLOOM_ENTRIES))
def test_footers_are_those_of_real_hudi(golden: Golden, folder: str) -> None:
    """The bloom filter bit for bit, the key range, and no key that either of Hudi's writers does not write."""
    found = golden(folder, "mor_compaction_requested")
    ours, real, instant = found.table, found.after(), planned(found.table)
    replaced = {
        (plan.partition, plan.file_id): footer_of(ours / plan.partition / plan.base_file)
        if plan.base_file
        else {VERSION: ""}
        for plan in context_of(ours).active.read_plan(instant).operations
    }
    compact(ours, {"hoodie.index.bloom.num_entries": BLOOM_ENTRIES[folder]})
    theirs = base_files(real, instant)
    for group, path in base_files(ours, instant).items():
        mine, other = footer_of(path), footer_of(theirs[group])
        assert {key: mine[key] for key in other.keys() - SPARKS} == {
            key: value for key, value in other.items() if key not in SPARKS
        }
        assert mine.keys() - other.keys() <= OURS
        assert (VERSION in mine) == (VERSION in replaced[group])


@pytest.mark.parametrize("folder", ["8", "9"])
def test_of_a_key_that_the_base_file_holds_twice_the_first_row_is_merged(golden: Golden, folder: str) -> None:
    """As the readers of 1.x have it, whose rows its compactions write."""
    table = golden(folder, "mor_compaction_requested_only").table
    instant, before = planned(table), read_rows(table)
    for path in table.glob("2024-*/*.parquet"):
        parquet = pq.ParquetFile(path)
        rows = parquet.read()
        twice = pa.concat_tables([rows, rows.slice(0, 10)]).replace_schema_metadata(parquet.metadata.metadata)
        pq.write_table(twice, path)
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    doubled = read_rows(table)
    assert doubled.num_rows > before.num_rows
    compact(table)
    assert base_files(table, instant)
    assert_same_rows(read_rows(table), doubled, ignore=("_hoodie_file_name",))


def test_what_is_compared(golden: Golden) -> None:
    assert (len(PLANNED), len(EXECUTED)) == (46, 41)
    assert {folder for folder, _ in EXECUTED} == set(BLOOM_ENTRIES)
    found = golden("9", "mor_compaction_requested")
    recorded = metadata_of(found.after(), planned(found.table))
    assert recorded.keys() == {"files", "column_stats", "partition_stats"}
    assert len([key for key in recorded["column_stats"] if key.endswith(" of the compaction")]) == 3 * 10
    assert sum(name.endswith(" of the compaction") for entries in recorded["files"].values() for name in entries) == 3
