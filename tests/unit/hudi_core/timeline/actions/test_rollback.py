"""Rollback files built by us decode to the same datum as those real Hudi wrote for the same rollback."""

from __future__ import annotations

import pytest

from hudi_core.timeline.actions.content import decode_datum
from hudi_core.timeline.actions.rollback import (
    RollbackMetadata,
    RollbackPartition,
    RollbackStep,
    encode_rollback_metadata,
    encode_rollback_plan,
)
from hudi_core.timeline.instant import Action, State
from tests.support.golden_timelines import load_table, timelines_of

TABLES = [
    "compaction_inflight.after",
    "failed_after_metadata_mor.after",
    "failed_inflight_cow_direct_markers.after",
    "rolled_back_mor",
]


@pytest.mark.parametrize("name", TABLES)
def test_plan_and_metadata_are_those_of_real_hudi(name: str) -> None:
    count = 0
    for active in timelines_of(load_table(name)):
        for instant in active.load().completed().of_actions(Action.ROLLBACK):
            plan = active.read_any(instant.requested_time, Action.ROLLBACK, State.REQUESTED)
            target = plan["instantToRollback"]
            requests = [
                RollbackStep(
                    item["partitionPath"],
                    item["fileId"],
                    item["latestBaseInstant"],
                    tuple(item["filesToBeDeleted"]),
                    item["logBlocksToBeDeleted"],
                )
                for item in plan["RollbackRequests"]
            ]
            assert (
                decode_datum(encode_rollback_plan(target["commitTime"], target["action"], requests), path="x") == plan
            )
            done = active.read_any(instant.requested_time, Action.ROLLBACK, State.COMPLETED)
            partitions = [
                RollbackPartition(
                    item["partitionPath"],
                    tuple(item["successDeleteFiles"]),
                    tuple(item["failedDeleteFiles"]),
                    item["rollbackLogFiles"],
                    item["logFilesFromFailedCommit"],
                )
                for item in done["partitionMetadata"].values()
            ]
            metadata = RollbackMetadata(
                done["startRollbackTime"],
                done["timeTakenInMillis"],
                target["commitTime"],
                target["action"],
                tuple(partitions),
            )
            assert decode_datum(encode_rollback_metadata(metadata), path="x") == done
            count += 1
    assert count
