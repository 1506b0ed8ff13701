"""The partitions that a clean looks at, by the metadata table and by the listing of the storage."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hudi_core.errors import FormatError
from hudi_core.model.names import FileGroupId
from hudi_core.services.clean.kept_files import partition_states, stored_data_files
from hudi_core.services.context import TableContext
from hudi_core.timeline.active import ActiveTimeline
from tests.support.golden_cleans import context_of, without_metadata_table
from tests.support.golden_data import GoldenCase
from tests.support.memory_storage import MemoryStorage
from tests.support.pending_operations import Operations
from tests.support.table_configs import VERSION_9, config_of

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ["6", "8", "9"]
A, B, C = (FileGroupId("p", f"{letter}-0") for letter in "abc")
BASE = "20260101000000000"


@pytest.mark.parametrize("version", VERSIONS)
def test_the_storage_and_the_metadata_table_show_the_same_groups(golden: Golden, version: str) -> None:
    table = golden(version, "mor_basic").table
    found = []
    for path in (table, without_metadata_table(golden(version, "mor_basic").table)):
        context = context_of(path)
        timeline = context.active.load()
        assert (context.metadata_table("auto", timeline) is None) is (path is not table)
        found.append(
            {item.partition: {group.id for group in item.groups} for item in partition_states(context, timeline)}
        )
    assert found[0] == found[1] != {}


def test_only_the_named_partitions_are_looked_at(golden: Golden) -> None:
    context = context_of(golden("9", "mor_basic").table)
    timeline = context.active.load()
    names = [item.partition for item in partition_states(context, timeline)]
    assert [item.partition for item in partition_states(context, timeline, names[:1])] == names[:1]
    assert list(partition_states(context, timeline, [])) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_savepoints_and_pending_compactions_keep_files(golden: Golden, version: str) -> None:
    context = context_of(golden(version, "savepoint_mor").table)
    assert any(item.kept for item in partition_states(context, context.active.load()))
    context = context_of(golden(version, "mor_compaction_requested_only").table)
    timeline = context.active.load()
    plan = context.active.read_plan(timeline.pending_compactions().instants[0].requested_time)
    assert len(next(partition_states(context, timeline)).compacting) == len(plan.operations)


def test_a_partition_outside_of_the_table_is_refused(golden: Golden) -> None:
    context = context_of(golden("9", "mor_basic").table)
    with pytest.raises(FormatError):
        next(partition_states(context, context.active.load(), ["../elsewhere"]))


def test_stored_files_are_data_files_alone(golden: Golden) -> None:
    context = context_of(golden("9", "mor_basic").table)
    first = next(partition_states(context, context.active.load()))
    stored = stored_data_files(context.storage, first.partition)
    assert ".hoodie_partition_metadata" not in stored
    listed = {file.name for group in first.groups for item in group.slices for file in item.files}
    assert listed <= set(stored) == set(first.stored())


@pytest.mark.parametrize("layout", [1, 2])
def test_files_of_pending_plans_are_kept(layout: int) -> None:
    config = config_of(VERSION_9 if layout == 2 else None)
    storage = MemoryStorage()
    active = ActiveTimeline(storage, config)
    operations = Operations(active)
    operations.compact("20260102000000000", A)
    operations.cluster("20260103000000000", B)
    operations.write("20260104000000000", C)
    context = TableContext("memory://t", storage, config, active, {}, {})
    (state,) = partition_states(context, active.load(), ["p"])
    assert state.needed == {f"{group.file_id}_0-0-0_{BASE}.parquet" for group in (A, B)}
    assert state.compacting == {A: (BASE,)}
    assert state.kept == frozenset()
