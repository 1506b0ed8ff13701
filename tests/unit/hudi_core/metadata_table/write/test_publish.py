"""What cleans, rollbacks and restores write to the metadata table, against what real Hudi's metadata table holds
after the same actions.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hudi_core.timeline.instant import Action, State
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import (
    Table,
    added_instants,
    clean_changes,
    comparable,
    rollback_changes,
)

Golden = Callable[[str, str], GoldenCase]

VERSIONS = ("6", "8", "9")
CLEANS = ("clean_requested_cow", "savepoint_clean_requested")
FAILED = ("failed_inflight_cow", "failed_inflight_mor", "failed_after_metadata_cow", "failed_after_metadata_mor")
ROLLBACKS = [(version, case) for version in VERSIONS for case in FAILED] + [
    (f"{version}-by-1.2.0", "failed_inflight_mor") for version in "68"
]


@pytest.mark.parametrize("case", CLEANS)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_clean_leaves_what_real_hudi_leaves(golden: Golden, version: str, case: str) -> None:
    found = golden(version, case)
    ours, real = Table(found.table), Table(found.after())
    (instant,) = added_instants(ours, real, [Action.CLEAN])
    changes = clean_changes(real.data.read_of(real.data.load().get(instant, Action.CLEAN)))
    assert ours.publisher().check() is None
    ours.publisher().publish_deletes(instant, changes)
    assert ours.metadata_instants() == real.metadata_instants()
    ours.take_data_timeline(real, f"{instant}*")
    assert comparable(ours.records()) == comparable(real.records())
    before = ours.metadata_timeline.names()
    ours.publisher().publish_deletes(instant, changes)
    assert ours.metadata_timeline.names() == before, "done already"


@pytest.mark.parametrize("case", CLEANS)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_cleans_deltacommit_is_that_of_real_hudi(golden: Golden, version: str, case: str) -> None:
    found = golden(version, case)
    ours, real = Table(found.table), Table(found.after())
    (instant,) = added_instants(ours, real, [Action.CLEAN])
    ours.publisher().publish_deletes(
        instant, clean_changes(real.data.read_of(real.data.load().get(instant, Action.CLEAN)))
    )
    mine, theirs = (
        table.metadata_timeline.read_of(table.metadata_timeline.load().get(instant, Action.DELTA_COMMIT))
        for table in (ours, real)
    )
    for metadata in (mine, theirs):
        for stat in metadata["partitionToWriteStats"]["files"]:
            stat["runtimeStats"] = None  # a duration
            names = stat["logFiles"]
            stat["logFiles"] = [*names[:-1], names[-1].rpartition("_")[0]]
            stat["path"] = stat["path"].rpartition("_")[0]
            stat["fileSizeInBytes"] = stat["totalWriteBytes"] = 0  # deflated by another zlib
    assert mine == theirs
    profile, real_profile = (
        table.metadata_timeline.read_any(instant, Action.DELTA_COMMIT, State.INFLIGHT) for table in (ours, real)
    )
    assert profile["partitionToWriteStats"]["files"] == [
        stat for stat in real_profile["partitionToWriteStats"]["files"] if stat["fileId"]
    ]


@pytest.mark.parametrize(("version", "case"), ROLLBACKS)
def test_a_rollback_leaves_what_real_hudi_leaves(golden: Golden, version: str, case: str) -> None:
    found = golden(version, case)
    ours, real = Table(found.table), Table(found.after())
    (rollback,) = added_instants(ours, real, [Action.ROLLBACK])
    metadata = real.data.read_of(real.data.load().get(rollback, Action.ROLLBACK))
    (failed,) = metadata["commitsRollback"]
    publisher = ours.publisher()
    publisher.check_roll_back(failed)
    assert bool(publisher.footprint(failed)) is case.startswith("failed_after_metadata")
    publisher.roll_back(failed, rollback, rollback_changes(metadata))
    assert ours.metadata_instants() == real.metadata_instants()
    assert not publisher.footprint(failed)
    ours.data.delete_instant(
        failed, ours.data.load().filter(lambda item: item.requested_time == failed).instants[0].action
    )
    ours.take_data_timeline(real, f"{rollback}*")
    assert comparable(ours.records()) == comparable(real.records())


@pytest.mark.parametrize("version", VERSIONS)
def test_a_restore_leaves_what_real_hudi_leaves(golden: Golden, version: str) -> None:
    found = golden(version, "savepoint_cow")
    ours, real = Table(found.table), Table(found.after())
    (restore,) = added_instants(ours, real, [Action.RESTORE])
    plan = real.data.read_any(restore, Action.RESTORE, State.REQUESTED)
    restored_as_real(ours, real, restore)
    ours.publisher().restore(plan["savepointToRestoreTimestamp"], restore)
    metadata_timeline = [(item.action, item.state, len(item.requested_time)) for item in ours.metadata_timeline.load()]
    assert metadata_timeline == [
        (item.action, item.state, len(item.requested_time)) for item in real.metadata_timeline.load()
    ]
    mine, theirs = (table.metadata_timeline.load().of_actions(Action.RESTORE).instants[0] for table in (ours, real))
    assert ours.metadata_timeline.read_any(
        mine.requested_time, Action.RESTORE, State.REQUESTED
    ) == real.metadata_timeline.read_any(theirs.requested_time, Action.RESTORE, State.REQUESTED)
    assert (
        ours.metadata_timeline.read_of(mine)["instantsToRollback"]
        == real.metadata_timeline.read_of(theirs)["instantsToRollback"]
    )
    ours.take_data_timeline(real, f"{restore}*")
    assert comparable(ours.records()) == comparable(real.records())


def restored_as_real(ours: Table, real: Table, restore: str) -> None:
    """Brings the data table to where real Hudi's restore has it when it turns to the metadata table."""
    ours.take_data_timeline(real, f"{restore}.restore.requested")
    ours.take_data_timeline(real, f"{restore}.restore.inflight")
    kept = {path.relative_to(real.path) for path in real.path.rglob("*") if path.is_file()}
    for path in sorted(ours.path.rglob("*")):
        relative = path.relative_to(ours.path)
        if (
            path.is_file()
            and relative.parts[:2] != (".hoodie", "metadata")
            and relative not in kept
            and ".restore" not in path.name
        ):
            path.unlink()
