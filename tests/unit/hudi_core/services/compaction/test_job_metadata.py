"""Compactions of tables whose metadata table has every partition type.

They are planned here, as no golden table of them has a plan.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hudi_core.config.table_config import update_properties
from hudi_core.errors import ConflictError
from hudi_core.metadata_table.indexed_table import IndexedTable, StoredTable, load_index_definitions
from hudi_core.metadata_table.keys import (
    PARTITION_STATISTICS,
    bloom_filter_key,
    column_id,
    column_stats_key,
    partition_id,
)
from hudi_core.metadata_table.partitions.registry import clean_updates
from hudi_core.metadata_table.partitions.whole_ranges import PartitionStatsPartition
from hudi_core.metadata_table.records.file_statistics import CommitUpdate, FileChanges, FileStatistics, StoredFilter
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.metadata_table.write.commit_updates import CommitPartitions
from hudi_core.metadata_table.write.delta_writer import DeltaWriter
from hudi_core.metadata_table.write.remaining_files import RemainingFiles, remaining_of
from hudi_core.model.names import WriteToken
from hudi_core.query.request import MetadataMode
from hudi_core.services.compaction.planner import CompactionService
from hudi_core.table import HudiTable
from hudi_core.timeline.actions.commit import CommitMetadata, Operation
from hudi_core.timeline.actions.compaction import CompactionOperation, CompactionPlan, encode_compaction_plan
from hudi_core.timeline.instant import Action
from hudi_core.timeline.schemas import renamed_columns
from hudi_core.transaction.owner import Owner
from tests.support.damaged_tables import DamagedTable
from tests.support.golden_compactions import base_files, compact, context_of, footer_of
from tests.support.golden_data import GoldenCase
from tests.support.golden_metadata_cells import plain_datum
from tests.support.metadata_records import Records, Table, complete_clean
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import assert_compacted, pending_instants, read_rows
from tests.support.tiers import tiered
from tests.unit.hudi_core.services.compaction.test_job import HookedEngine

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ("6", "8", "9")
UTC_ZONE = {"spark.sql.session.timeZone": "UTC"}
CASES = [(version, case) for version in VERSIONS for case in ("mdt_all_mor", "mdt_all_mor_compacted")]
ROWS = ("record_index", "secondary_index_idx_name")


def plan_all(table: Path) -> str:
    """Requests a compaction of every file group that has log files; its instant."""
    context = context_of(table)
    timeline = context.active.load()
    view = context.view(timeline, "off")
    slices = [item for partition in view.partitions() for item in view.latest_slices(partition) if item.log_files]
    operations = tuple(
        CompactionOperation(
            item.file_group.partition,
            item.file_group.file_id,
            item.base_instant,
            None if item.base_file is None else item.base_file.name,
            tuple(log.name for log in item.log_files),
            # Real Hudi runs no operation without it (HoodieCompactor.compact).
            {
                "TOTAL_LOG_FILES_SIZE": float(
                    sum(table.joinpath(item.file_group.partition, log.name).stat().st_size for log in item.log_files)
                )
            },
        )
        for item in slices
    )
    assert operations
    instant = context.new_instant(timeline)
    context.active.create_requested(instant, Action.COMPACTION, encode_compaction_plan(CompactionPlan(operations)))
    return instant


@pytest.mark.slow
@pytest.mark.parametrize(("version", "case"), tiered(CASES, [("6", "mdt_all_mor_compacted"), ("9", "mdt_all_mor")]))
def test_every_partition_type_is_kept_valid(golden: Golden, version: str, case: str) -> None:
    path = golden(version, case).table
    table, instant = Table(path), plan_all(path)
    rows, pending, before = read_rows(path), pending_instants(path), table.live()
    compact(path)
    assert_compacted(path, instant, rows, pending)
    after, written = table.live(), base_files(path, instant)
    assert written
    assert DamagedTable(path).report().differences == ()
    assert after.keys() == before.keys() >= {"files", "column_stats", "bloom_filters", "record_index"}
    for name in after.keys() & set(ROWS):
        assert after[name] == before[name], "no row went to another file group"
    for (partition, _), file in written.items():
        stored: StoredFilter = after["bloom_filters"][bloom_filter_key(partition, file.name)]
        assert (stored.text, stored.instant) == (footer_of(file)["org.apache.hudi.bloomfilter"].encode(), instant)
        assert_statistics_hold(after, partition, file)


def assert_statistics_hold(records: Records, partition: str, file: Path) -> None:
    """Those of a base file are those of its rows; those of its partition, where there are some, contain them."""
    columns = pq.ParquetFile(file).read()
    for name in ("_hoodie_record_key", "id", "name", "ts", "qty"):
        bounds = pc.min_max(columns.column(name))
        stats = records["column_stats"][column_stats_key(name, partition, file.name)].range
        expected = (bounds["min"].as_py(), bounds["max"].as_py(), columns.column(name).null_count, columns.num_rows)
        assert (stats.least.value, stats.greatest.value, stats.null_count, stats.value_count) == expected
        if "partition_stats" in records:
            whole = records["partition_stats"][column_id(name) + partition_id(partition)]
            assert whole.range.least.value <= expected[0] <= expected[1] <= whole.range.greatest.value
            assert whole.is_tight


@pytest.mark.parametrize("version", tiered(["8", "9"], ["9"]))
def test_an_expression_index_has_the_new_files(golden: Golden, version: str) -> None:
    path = golden(version, "mdt_all_mor").table
    instant = plan_all(path)
    compact(path)
    records = Table(path).live()["expr_index_idx_day"]
    for (partition, _), file in base_files(path, instant).items():
        found = records[column_stats_key("ts", partition, file.name)].range
        whole = records[column_id("ts") + partition_id(PARTITION_STATISTICS) + partition_id(partition)].range
        assert whole.least.value <= found.least.value <= found.greatest.value <= whole.greatest.value
        assert found.value_count == pq.ParquetFile(file).metadata.num_rows


WHERE = (
    "ts > 1700000003000",
    "name = 'ember-2-r2'",
    "id = 'k00007'",
    "qty < 30",
    "dt = '2024-01-02' AND amount > 2000.0",
    "note IS NULL",
)


@pytest.mark.parametrize("version", tiered(VERSIONS, ["9"]))
@pytest.mark.parametrize("where", WHERE)
def test_filtered_reads_find_every_row(golden: Golden, version: str, where: str) -> None:
    path = golden(version, "mdt_all_mor").table
    expected = filtered(path, where, "off")
    assert expected.num_rows
    plan_all(path)
    compact(path)
    assert_same_rows(filtered(path, where, "on"), expected)
    assert_same_rows(filtered(path, where, "off"), expected)


def filtered(path: Path, where: str, metadata: MetadataMode) -> pa.Table:
    result = HudiTable.open(str(path)).read(metadata=metadata, where=where)
    return pa.Table.from_batches(list(result.batches), result.schema)


@pytest.mark.parametrize("version", ["8", "9"])
def test_a_current_file_that_the_index_lacks_is_read(golden: Golden, version: str) -> None:
    """Its rows must be within the partition's range, whichever writer omitted it."""
    path = golden(version, "mdt_all_mor").table
    table, instant = Table(path), plan_all(path)
    context = context_of(path)
    publisher = context.metadata_publisher()
    assert publisher is not None
    requirements = publisher.commit_requirements()
    files = RemainingFiles(
        table.storage, table.config, instant, CommitMetadata({"2024-01-01": ()}, operation_type=Operation.COMPACT)
    )
    partition_type = PartitionStatsPartition(
        "partition_stats",
        IndexedTable(table.config, requirements.schema, load_index_definitions(table.storage, table.config)),
    )
    recorded = remaining_of(files, partition_type, requirements)("2024-01-01")
    (item,) = context.view(context.active.load()).latest_merged_slices("2024-01-01")
    names = {file.name for file in item.files}
    assert {statistics.file.name for statistics in recorded} == names
    changes = FileChanges(deleted={"2024-01-01": frozenset(names)})
    cleaned = table.new_instant()
    table.data.create_requested(cleaned, Action.CLEAN, b"plan")
    records = clean_updates(cleaned, changes, ["column_stats"], publisher._table())
    DeltaWriter(MetadataTimeline(table.storage, table.config), WriteToken(0, 1, 0)).write(
        cleaned, {"column_stats": records["column_stats"]}
    )
    complete_clean(table, cleaned)
    files = RemainingFiles(
        table.storage, table.config, instant, CommitMetadata({"2024-01-01": ()}, operation_type=Operation.COMPACT)
    )
    again = remaining_of(files, partition_type, requirements)("2024-01-01")
    assert {statistics.file.name for statistics in again} == names
    assert bounds(again) == bounds(recorded)


def bounds(statistics: Iterable[FileStatistics]) -> dict[tuple[str, str], tuple[Any, Any]]:
    return {
        (item.file.name, found.column): (found.least, found.greatest) for item in statistics for found in item.ranges
    }


@pytest.mark.slow
def test_an_index_that_was_made_meanwhile_stops_the_publication(golden: Golden) -> None:
    """The units were not required to read it; those of the next run are."""
    path = golden("9", "mdt_all_mor").table
    instant = plan_all(path)
    listed = Table(path).config.raw["hoodie.table.metadata.partitions"]
    context = context_of(path)
    update_properties(context.storage, {"hoodie.table.metadata.partitions": listed.replace("bloom_filters,", "")})
    one_less = context_of(path)
    engine = HookedEngine(
        after=lambda: update_properties(context.storage, {"hoodie.table.metadata.partitions": listed})
    )
    with pytest.raises(ConflictError, match="got or lost an index"):
        CompactionService().run(one_less, instant, engine, Owner.current("test"), None)
    assert not Table(path).metadata_timeline.load().contains(instant)
    rows, pending = read_rows(path), pending_instants(path)
    compact(path, instant=instant)
    assert_compacted(path, instant, rows, pending)


@pytest.mark.parametrize("version", tiered(["8", "9"], ["9"]))
def test_a_column_that_is_indexed_since_stops_the_publication(golden: Golden, version: str) -> None:
    """The range of the partition would leave the new file out."""
    path = golden(version, "mdt_all_mor").table
    instant, definitions = plan_all(path), path / ".hoodie/.index_defs/index.json"
    whole = json.loads(definitions.read_text())
    less = json.loads(definitions.read_text())
    less["indexDefinitions"]["column_stats"]["sourceFields"].remove("qty")
    definitions.write_text(json.dumps(less))
    engine = HookedEngine(after=lambda: definitions.write_text(json.dumps(whole)))
    with pytest.raises(ConflictError, match="an index of the table was changed"):
        CompactionService().run(context_of(path), instant, engine, Owner.current("test"), None)
    assert not Table(path).metadata_timeline.load().contains(instant)
    compact(path, instant=instant)
    assert Table(path).data.load().get(instant, Action.COMPACTION).is_completed


@pytest.mark.parametrize("version", ["8", "9"])
def test_partitions_of_replaced_groups_are_answered_for(golden: Golden, version: str) -> None:
    """Nothing was written there: what is left stands, and nothing when all groups went."""
    path = golden(version, "mdt_all_mor").table
    table, context = Table(path), context_of(path)
    (item,) = context.view(context.active.load()).latest_merged_slices("2024-01-01")
    metadata = CommitMetadata(
        {},
        operation_type="DELETE_PARTITION",
        replaced_file_ids={"2024-01-01": (item.file_group.file_id,), "2024-01-02": ()},
    )
    files = RemainingFiles(table.storage, table.config, table.new_instant(), metadata)
    publisher = context.metadata_publisher()
    assert publisher is not None
    requirements = publisher.commit_requirements()
    partition_type = PartitionStatsPartition(
        "partition_stats",
        IndexedTable(table.config, requirements.schema, load_index_definitions(table.storage, table.config)),
    )
    recorded = remaining_of(files, partition_type, requirements)
    assert (recorded("2024-01-01"), recorded("2024-01-03")) == ((), None)
    assert recorded("2024-01-02")
    statistics = CommitUpdate("1", "INSERT_OVERWRITE", {}, (), metadata.replaced_file_ids or {}, recorded)
    deleted = [
        datum
        for _, datum in partition_type.of_commit(statistics)
        if datum is not None and plain_datum(datum)["ColumnStatsMetadata"]["isDeleted"]
    ]
    assert len(deleted) == len(partition_type._columns)


def test_a_renamed_column_is_known_by_the_schemas_that_the_table_had(golden: Golden) -> None:
    """Without them files from before would be recorded as all null under the new name."""
    table = Table(golden("8", "mdt_all_cow").table)
    partitions = CommitPartitions(table.storage, StoredTable(table.storage, table.config, UTC_ZONE))
    assert partitions.requirements().history is None
    first = table.data.load().commits().instants[0].requested_time
    fields = [
        {"id": 0, "name": "id", "optional": True, "type": "string"},
        {"id": 1, "name": "name", "optional": True, "type": "string"},
    ]
    renamed = [fields[0], {**fields[1], "name": "title"}]
    versions = ((int(first), fields), (int(first) + 1, renamed))
    schemas = [
        {"max_column_id": 1, "version_id": version, "type": "record", "fields": held} for version, held in versions
    ]
    table.storage.write(f".hoodie/.schema/{first}.schemacommit", json.dumps({"schemas": schemas}).encode())
    history = CommitPartitions(table.storage, StoredTable(table.storage, table.config, UTC_ZONE)).requirements().history
    assert history is not None
    assert [entry[0] for entry in history] == [int(first), int(first) + 1]
    assert renamed_columns(history) == {"title"}
