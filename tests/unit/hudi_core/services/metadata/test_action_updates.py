"""The updates of the metadata table by completed cleans, rollbacks and restores, applied after the metadata table lost
them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hudi_core.errors import CorruptFileError, FormatError
from hudi_core.services.metadata.action_updates import clean_changes, rollback_changes
from hudi_core.timeline.actions.rollback import (
    RestoredInstant,
    RestoreMetadata,
    RestorePlan,
    RollbackMetadata,
    RollbackPartition,
    encode_restore_metadata,
    encode_restore_plan,
    metadata_datum,
)
from hudi_core.timeline.instant import Action, State
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import Table, complete_rollback, crash_before_completion
from tests.support.tiers import tiered
from tests.unit.hudi_core.metadata_table.write.test_publish_partition_types import indexes, remove_data, with_pending
from tests.unit.hudi_core.services.metadata.test_catch_up import commits_of, findings, forget, plain, update

Golden = Callable[[str, str], GoldenCase]
NAME = "f1-0_0-1-2_20240101000000000.parquet"


@pytest.mark.parametrize("case", ["cleaned_commits_mor"])
@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_missing_clean_is_applied(golden: Golden, version: str, case: str) -> None:
    table = Table(golden(version, case).table)
    before = plain(table.live())
    cleans = forget(table, 1, Action.CLEAN)
    assert cleans
    assert findings(table) != []
    assert update(table) == tuple(cleans)
    assert plain(table.live()) == before
    assert findings(table) == []


@pytest.mark.parametrize("case", ["mor_basic", "mdt_all_cow"])
@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
def test_a_missing_rollback_is_applied(golden: Golden, version: str, case: str) -> None:
    table = Table(golden(version, case).table)
    failed = commits_of(table)[-1]
    earlier = plain(table.live(with_pending(table, lambda item: item.requested_time == failed)))
    crash_before_completion(table, failed)
    rollback = table.new_instant()
    complete_rollback(table, failed, rollback)
    assert plain(table.live()) != earlier
    assert update(table) == (rollback,)
    assert plain(table.live()) == earlier
    assert update(table) == ()


@pytest.mark.slow
@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_missing_restore_is_applied(golden: Golden, version: str) -> None:
    table = Table(golden(version, "mdt_all_cow").table)
    *_, target, last = table.data.load().commits().instants
    earlier = table.live(with_pending(table, lambda item: item.completed_at > target.completed_at))
    restore = table.new_instant()
    remove_data(table, target.completed_at, restore)
    gone = (RestoredInstant(last.requested_time, last.action),)
    plan = table.data.path(restore, Action.RESTORE, State.REQUESTED)
    table.storage.write(plan, encode_restore_plan(RestorePlan(target.requested_time, gone)))
    table.data.complete(
        restore, Action.RESTORE, encode_restore_metadata(RestoreMetadata(restore, 1, gone)), table.later(restore)
    )
    assert update(table) == (restore,)
    assert indexes(table.live()) == indexes(earlier)
    assert findings(table) == []
    assert update(table) == ()


def test_files_of_a_clean() -> None:
    """Also those of its plan that were gone already; a partition counts as dropped where the clean says so."""
    parts: dict[str, Any] = {
        "p=1": {"deletePathPatterns": [f"s3://b/t/p=1/{NAME}"], "isPartitionDeleted": True},
        "p=2": {"deletePathPatterns": []},
    }
    found = clean_changes({"partitionMetadata": parts}, path="c")
    assert found.deleted == {"p=1": {NAME}, "p=2": frozenset()}
    assert found.dropped_partitions == {"p=1"}
    assert found.written == {}


@pytest.mark.parametrize(
    ("details", "error"),
    [
        ({}, CorruptFileError),
        ({"partitionMetadata": {"p": None}}, CorruptFileError),
        ({"partitionMetadata": {"p": {"deletePathPatterns": ["t/p/notes.txt"]}}}, CorruptFileError),
        ({"partitionMetadata": {"../p": {"deletePathPatterns": []}}}, FormatError),
    ],
)
def test_a_clean_that_names_other_files_is_refused(details: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error) as caught:
        clean_changes(details, path="20240101000000000.clean")
    assert "20240101000000000.clean" in str(caught.value)


@pytest.mark.parametrize(("deleted", "refused"), [(f"p/{NAME}", False), ("p/notes.txt", True)])
def test_files_of_a_rollback(deleted: str, refused: bool) -> None:
    parts = (RollbackPartition("p", (deleted,)),)
    details = metadata_datum(RollbackMetadata("20240101000000001", 1, "20240101000000000", "commit", parts))
    if refused:
        with pytest.raises(CorruptFileError, match=r"notes\.txt"):
            rollback_changes(details, path="r")
    else:
        assert rollback_changes(details, path="r").deleted == {"p": {NAME}}
