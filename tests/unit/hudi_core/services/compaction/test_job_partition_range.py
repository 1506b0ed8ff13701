"""A write that began before a compaction and ends after it: the range that it recorded of its partition must not be
hidden by that of the compaction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from hudi_core.metadata_table.indexed_table import IndexedTable, indexed_types, load_index_definitions
from hudi_core.metadata_table.keys import column_id, partition_id
from hudi_core.metadata_table.partitions.whole_ranges import PartitionStatsPartition
from hudi_core.metadata_table.records.bounds import Bound, logical_and_type
from hudi_core.metadata_table.records.file_statistics import ColumnRange, CommitUpdate, DataFileRef, FileStatistics
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.metadata_table.write.delta_writer import DeltaWriter
from hudi_core.timeline.actions.commit import CommitMetadata, encode_commit_avro
from hudi_core.timeline.actions.write_stats import WriteStat
from hudi_core.timeline.instant import Action
from hudi_core.timeline.schemas import schema_of
from hudi_core.transaction.instant_generator import InstantClock
from tests.support.golden_compactions import compact
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import TOKEN, Table
from tests.support.tiers import tiered
from tests.unit.hudi_core.services.compaction.test_job_metadata import plan_all

Golden = Callable[[str, str], GoldenCase]
PARTITION = "2024-01-01"
QTY = column_id("qty") + partition_id(PARTITION)


@pytest.mark.parametrize("version", tiered(["8", "9"], ["9"]))
def test_a_write_that_began_before_the_compaction_widens_the_range_behind_it(golden: Golden, version: str) -> None:
    """Readers, Hudi's and ours, merge log files of the metadata table by the instants in their names, not by
    completion.
    """
    table = Table(golden(version, "mdt_all_mor").table)
    early = table.new_instant()
    table.data.create_requested(early, Action.DELTA_COMMIT, b"")
    table.data.to_inflight(early, Action.DELTA_COMMIT)
    instant = plan_all(table.path)
    assert early < instant
    compact(table.path)
    before: Any = table.live()["partition_stats"][QTY]
    beyond = before.range.greatest.value + 1000
    record(table, early, beyond)
    after: Any = table.live()["partition_stats"][QTY]
    assert after.range.greatest.value >= beyond, "the partition is pruned, and the write's rows are hidden"


def record(
    table: Table, instant: str, greatest: int, written: Mapping[str, tuple[WriteStat, ...]] | None = None
) -> None:
    """What real Hudi's writer does at the end of a write of one file: the partition's ranges are computed again, then
    its commit is completed. `written` is what that says.
    """
    active = table.data
    schema = schema_of(active.load(), active.read_details, create_schema=None, path_of=active.path_of)
    indexed = IndexedTable(table.config, schema, load_index_definitions(table.storage, table.config))
    partition_type = PartitionStatsPartition("partition_stats", indexed)
    ranges = []
    for name, column in indexed_types(indexed).items():
        label, value_type = logical_and_type(column, indexed.version_of("partition_stats"))
        empty = ColumnRange(name, None, None, 1, 1, 0, 0, value_type)
        ranges.append(
            replace(empty, least=Bound(label, 0), greatest=Bound(label, greatest), null_count=0)
            if name == "qty"
            else empty
        )
    statistics = CommitUpdate(
        instant, "UPSERT", {}, (FileStatistics(DataFileRef(PARTITION, "f", 1, is_base=True), tuple(ranges), rows=1),)
    )
    metadata_timeline = MetadataTimeline(
        table.storage, table.config, InstantClock(table.config.timezone, sleep=lambda seconds: None)
    )
    DeltaWriter(metadata_timeline, TOKEN).write(instant, {"partition_stats": partition_type.of_commit(statistics)})
    later = str(max(int(item.completed_at) for item in active.load()) + 1)
    metadata = CommitMetadata(written or {}, False, "UPSERT", {}, extra={"version": None})
    active.complete(instant, Action.DELTA_COMMIT, encode_commit_avro(metadata), later)
