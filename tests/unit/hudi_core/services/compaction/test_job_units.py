"""The units of a compaction plan, and what their results must prove before anything is published."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_core.filegroup.merge.table_policy import MergePolicy
from hudi_core.filegroup.read.log_scan import CommittedInstants
from hudi_core.filegroup.read.schema_resolver import table_schema
from hudi_core.services.compaction.job import build_units
from hudi_core.services.rewriting.new_file_groups import NewFiles
from hudi_core.services.rewriting.slice_rows import SliceTarget
from hudi_core.transaction.reconcile import list_partitions
from tests.support.changed_tables import open_context
from tests.support.golden_data import GoldenCase
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import read_rows
from tests.unit.hudi_core.services.compaction.test_job import compact
from tests.unit.hudi_core.services.rewriting.test_checks import set_properties

Golden = Callable[[str, str], GoldenCase]


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_one_unit_for_each_operation_in_the_plans_order(golden: Golden, version: str) -> None:
    context = open_context(golden(version, "mor_compaction_requested").table)
    timeline = context.active.load()
    (instant,) = timeline.pending_compactions()
    plan = context.active.read_plan(instant.requested_time)
    schema = table_schema(context.storage, context.config, timeline)
    listed = list_partitions(context.storage, {item.partition for item in plan.operations})
    sizes = {} if version == "6" else {info.path: info.size for _, files in listed for info in files}
    policy = MergePolicy.for_table(context.config, context.options)
    files = NewFiles.of(context, instant.requested_time, schema, 1, None, stamps_rows=False)
    target = SliceTarget(context.uri, {}, files, CommittedInstants.of(timeline), policy)
    units = build_units(target, plan.operations, sizes)
    assert tuple(unit.operation for unit in units) == plan.operations
    logs = [len(unit.operation.log_files) if version != "6" else 0 for unit in units]
    assert [len(unit.sizes) for unit in units] == logs
    assert all(size > 0 for unit in units for size in unit.sizes)
    assert all(unit.target is target for unit in units)


def archive_writes(table: Path) -> None:
    """Of a table of version 6, which loses its metadata table: all that is left of its writes on the timeline is a
    replacecommit that changed nothing.
    """
    set_properties(table, "hoodie.table.metadata.partitions=")
    folder = table / ".hoodie"
    shutil.rmtree(folder / "metadata", ignore_errors=True)
    context = open_context(table)
    instant = context.new_instant(context.active.load())
    writes = sorted(path for path in folder.iterdir() if re.match(r"\d+\.(delta)?commit", path.name))
    raw = json.loads(max(path for path in writes if path.suffix in (".commit", ".deltacommit")).read_text())
    raw |= {"partitionToWriteStats": {}, "partitionToReplaceFileIds": {}, "operationType": "INSERT_OVERWRITE"}
    for state, content in ((".requested", ""), (".inflight", ""), ("", json.dumps(raw))):
        (folder / f"{instant}.replacecommit{state}").write_text(content)
    for path in writes:
        path.unlink()


def test_logs_count_whose_commits_are_archived(golden: Golden) -> None:
    """Hudi looks for the last commit, deltacommit or rollback, and fails without any."""
    table = golden("6", "mor_compaction_requested_only").table
    rows = read_rows(table)
    archive_writes(table)
    assert_same_rows(read_rows(table), rows, ignore=())
    compact(table)
    assert_same_rows(read_rows(table), rows)
