"""A clustering's requested file of version 6 that was cut: as it shares the action of writes, its plan alone tells."""

from __future__ import annotations

import pytest

from hudi_core.filegroup.write.markers import MarkerType, create_marker, delete_markers
from tests.support.changed_tables import open_context
from tests.support.hudictl_runner import hudictl
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import read_rows
from tests.unit.hudi_core.services.test_unschedule import Golden, the_plan


@pytest.mark.parametrize("name", ["clustering_requested_cow", "clustering_requested_mor"])
def test_it_is_found_and_dropped_where_nothing_was_written(golden: Golden, name: str) -> None:
    table = golden("6", name).table
    rows, context = read_rows(table), open_context(table)
    plan = the_plan(context)
    path = table / context.active.path_of(plan)
    path.write_bytes(path.read_bytes()[:-100])
    examined = hudictl("doctor", table, "--json")
    (finding,) = (item for item in examined.document["findings"] if item["rule"] == "unreadable_plan")
    assert f"hudictl unschedule {table} {plan.requested_time}" in finding["fix"]
    assert_same_rows(read_rows(table), rows)

    create_marker(context.storage, plan.requested_time, "2024-01-01", "f_0-0-0_1.parquet", MarkerType.CREATE)
    kept = hudictl("unschedule", table, plan.requested_time, "--json")
    assert (kept.code, path.exists()) == (2, True), "something was written"
    delete_markers(context.storage, plan.requested_time)
    done = hudictl("unschedule", table, plan.requested_time, "--json")
    assert (done.code, path.exists()) == (0, False), done.err
    assert_same_rows(read_rows(table), rows)
