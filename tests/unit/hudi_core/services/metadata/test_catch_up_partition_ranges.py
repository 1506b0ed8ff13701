"""A commit that is applied late merges beneath later commits: the ranges of whole partitions must hold its rows
nevertheless.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.instant import Action
from tests.support.damaged_tables import DamagedTable, changed
from tests.support.fault_storage import MUTATIONS, FaultPlan, FaultStorage, InjectedCrash
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import Table
from tests.support.tiers import tiered
from tests.unit.hudi_core.services.compaction.test_job_partition_range import QTY, record
from tests.unit.hudi_core.services.metadata.test_catch_up import findings, forget, update

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ["8", "9"]


def narrow(table: Table, partition_type: str) -> None:
    """A later write recorded tight ranges of whole partitions as it saw them, without the files of the missing
    commit.
    """
    damaged = DamagedTable(table.path)
    found: dict[str, Any] = {}
    for key, datum in damaged.raw(partition_type).items():
        body = datum["ColumnStatsMetadata"]
        if body["isTightBound"] and body["minValue"] is not None and not body["isDeleted"]:
            found[key] = changed(datum, "ColumnStatsMetadata", minValue=body["maxValue"])
    assert found
    damaged.write({partition_type: list(found.items())})


def of_ranges(table: Table) -> list[Any]:
    return [item for item in findings(table) if item.partition_type.startswith(("partition_stats", "expr_index"))]


@pytest.mark.parametrize("version", tiered(VERSIONS, ["9"]))
def test_what_later_commits_recorded_does_not_hide_the_rows(golden: Golden, version: str) -> None:
    table = Table(golden(version, "mdt_all_mor").table)
    (late,) = forget(table, 1)
    narrow(table, "partition_stats")
    assert of_ranges(table), "the ranges are too narrow"
    assert update(table) == (late,)
    assert findings(table) == []
    recorded = table.metadata_timeline.load().completed().of_actions(Action.DELTA_COMMIT).instants[-1].requested_time
    assert not table.data.load().contains(recorded), "an instant of the metadata table's own"
    names = table.metadata_timeline.names()
    assert update(table) == ()
    assert table.metadata_timeline.names() == names


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_what_a_pending_older_write_records_later_is_not_replaced(golden: Golden, version: str) -> None:
    table = Table(golden(version, "mdt_all_mor").table)
    (late,) = forget(table, 1)
    early = str(int(late) - 1)
    table.data.create_requested(early, Action.DELTA_COMMIT, b"")
    table.data.to_inflight(early, Action.DELTA_COMMIT)
    assert update(table) == (late,)
    assert of_ranges(table) == []
    before: Any = table.live()["partition_stats"][QTY]
    beyond = before.range.greatest.value + 1000
    record(table, early, beyond)
    after: Any = table.live()["partition_stats"][QTY]
    assert after.range.greatest.value >= beyond, "the partition is pruned, and the write's rows are hidden"


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_killed_between_the_ranges_and_the_commit(golden: Golden, version: str) -> None:
    table = Table(golden(version, "mdt_all_mor").table)
    (late,) = forget(table, 1)
    narrow(table, "partition_stats")
    plan = FaultPlan(when=lambda operation: operation.path.endswith(f"{late}.deltacommit.requested"), counts=MUTATIONS)
    with pytest.raises(InjectedCrash):
        update(table, FaultStorage(LocalStorage(table.path), plan))
    assert update(table) == (late,)
    assert findings(table) == []
