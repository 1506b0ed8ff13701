from __future__ import annotations

from dataclasses import replace

import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.errors import CorruptFileError, FormatError
from hudi_core.request.services import service_of_action
from hudi_core.services.takeover import takeover
from hudi_core.table import HudiTable
from hudi_core.timeline.actions.compaction import encode_compaction_plan
from hudi_core.timeline.actions.replacecommit import encode_clustering_plan
from hudi_core.timeline.instant import Action, State
from hudi_core.timeline.pending_plans import read_clustering_plan
from hudi_core.verbs.run import RunRequest
from tests.support.changed_tables import (
    an_owner,
    data_files,
    open_context,
)
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import read_rows
from tests.support.tiers import tiered
from tests.unit.hudi_core.services.test_unschedule import Golden, drop, the_plan


@pytest.mark.parametrize("content", [b"", b"Obj\x01junk"])
@pytest.mark.parametrize(
    ("version", "name"),
    tiered(
        [
            ("6", "mor_compaction_requested_only"),
            ("8", "mor_compaction_requested"),
            ("8", "compaction_inflight"),
            ("9", "clustering_requested_cow"),
            ("9", "log_compaction_requested"),
        ],
        [("6", "mor_compaction_requested_only"), ("8", "compaction_inflight"), ("9", "clustering_requested_cow")],
    ),
)
def test_a_damaged_plan_can_be_dropped(golden: Golden, version: str, name: str, content: bytes) -> None:
    table = golden(version, name).table
    context = open_context(table)
    plan = the_plan(context)
    rows, files = read_rows(golden(version, name).table, "off"), data_files(table)
    (table / context.active.path(plan.requested_time, plan.pending_action, State.REQUESTED)).write_bytes(content)
    with pytest.raises(CorruptFileError, match="no run can carry this plan out") as refused:
        takeover(context, plan.requested_time, an_owner())
    assert f"hudictl unschedule TABLE {plan.requested_time}" in str(refused.value.remedy)
    did = drop(table, plan.requested_time, an_owner())
    assert did.unblocks["file_groups"] == 0
    assert not context.active.load().contains(plan.requested_time)
    assert data_files(table) == {path: size for path, size in files.items() if path not in did.removed.files}
    assert not [path for path in data_files(table) if plan.requested_time in path]
    assert_same_rows(read_rows(table), rows)


@pytest.mark.parametrize(
    ("version", "name"),
    [
        ("6", "mor_compaction_requested_only"),
        ("8", "mor_compaction_requested"),
        ("9", "compaction_inflight"),
        ("9", "clustering_requested_cow"),
    ],
)
def test_a_plan_that_is_refused_can_be_dropped(golden: Golden, version: str, name: str) -> None:
    """It names a file group twice: no run carries it out, and no snapshot is read beside it where it compacts."""
    table = golden(version, name).table
    context = open_context(table)
    plan = the_plan(context)
    rows, files = read_rows(table, "off"), data_files(table)
    path = table / context.active.path(plan.requested_time, plan.pending_action, State.REQUESTED)
    if plan.pending_action == Action.COMPACTION:
        compaction = context.active.read_plan(plan.requested_time)
        doubled = encode_compaction_plan(replace(compaction, operations=compaction.operations * 2))
    else:
        clustering = read_clustering_plan(context.active, plan)
        assert clustering is not None
        doubled = encode_clustering_plan(
            replace(clustering, groups=clustering.groups * 2), lambda name: f"{table}/{name}"
        )
    path.write_bytes(doubled)
    with pytest.raises(FormatError, match="twice"):
        HudiTable.open(str(table)).run(
            RunRequest(str(table), owner="the tests", service=service_of_action(plan.pending_action)), LocalEngine(1)
        )
    drop(table, plan.requested_time, an_owner())
    assert not context.active.load().contains(plan.requested_time)
    assert data_files(table) == {path: size for path, size in files.items() if plan.requested_time not in path}
    assert_same_rows(read_rows(table), rows)
