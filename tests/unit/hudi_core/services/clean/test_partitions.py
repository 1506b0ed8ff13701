"""The partitions that a clean looks at, by the metadata table and by the listing of the storage."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hudi_core.errors import FormatError
from hudi_core.services.clean.partitions import TablePartitions, stored_data_files
from tests.support.golden_cleans import context_of, without_metadata_table
from tests.support.golden_data import GoldenCase

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ["6", "8", "9"]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_storage_and_the_metadata_table_show_the_same_groups(golden: Golden, version: str) -> None:
    table = golden(version, "mor_basic").table
    found = []
    for path in (table, without_metadata_table(golden(version, "mor_basic").table)):
        context = context_of(path)
        opened = TablePartitions.open(context, context.active.load())
        assert (opened.metadata is None) is (path is not table)
        found.append({item.partition: {group.id for group in item.groups} for item in opened.inputs()})
    assert found[0] == found[1] != {}


def test_only_the_named_partitions_are_looked_at(golden: Golden) -> None:
    context = context_of(golden("9", "mor_basic").table)
    opened = TablePartitions.open(context, context.active.load())
    names = [item.partition for item in opened.inputs()]
    assert [item.partition for item in opened.inputs(names[:1])] == names[:1]
    assert list(opened.inputs([])) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_savepoints_and_pending_compactions_keep_files(golden: Golden, version: str) -> None:
    context = context_of(golden(version, "savepoint_mor").table)
    opened = TablePartitions.open(context, context.active.load())
    assert any(item.kept for item in opened.inputs())
    context = context_of(golden(version, "mor_compaction_requested_only").table)
    opened = TablePartitions.open(context, context.active.load())
    assert any(item.compacting for item in opened.inputs())
    assert sum(len(groups) for groups in opened.compactions.values()) == len(
        context.active.read_plan(context.active.load().pending_compactions().instants[0].requested_time).operations
    )


def test_a_partition_outside_of_the_table_is_refused(golden: Golden) -> None:
    context = context_of(golden("9", "mor_basic").table)
    opened = TablePartitions.open(context, context.active.load())
    with pytest.raises(FormatError):
        opened.files("../elsewhere")


def test_stored_files_are_data_files_alone(golden: Golden) -> None:
    context = context_of(golden("9", "mor_basic").table)
    opened = TablePartitions.open(context, context.active.load())
    first = next(iter(opened.inputs()))
    stored = stored_data_files(context.storage, first.partition)
    assert ".hoodie_partition_metadata" not in stored
    assert {file.name for file in opened.files(first.partition)} <= set(stored) == set(first.stored())
