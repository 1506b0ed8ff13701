"""The savepoints of tables that real Hudi saved."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hudi_core.errors import CorruptFileError
from hudi_core.services.restore.savepoint import Savepoint, read_savepoint, savepoint_list, savepoint_of
from hudi_core.timeline.actions.rollback import SavepointMetadata
from hudi_core.timeline.instant import Action
from tests.support.changed_tables import open_context
from tests.support.golden_data import GoldenCase

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ["6", "8", "9"]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["savepoint_cow", "savepoint_mor"])
def test_what_hudi_saved_is_listed(golden: Golden, version: str, name: str) -> None:
    context = open_context(golden(version, name).table)
    (found,) = savepoint_list(context)
    instant = context.active.load().completed().get(found.instant, Action.SAVEPOINT)
    kept = read_savepoint(context, instant)
    assert context.active.load().commits().contains(found.instant)
    assert found.files == sum(len(names) for names in kept.files.values()) > 0
    assert (found.by, found.at_ms, found.comment) == (kept.by, kept.at_ms, kept.comment)
    assert found.existed
    assert not found.deleted
    assert all(
        context.storage.exists(f"{partition}/{file}") for partition, names in kept.files.items() for file in names
    )


def test_a_table_without_savepoints(golden: Golden) -> None:
    assert savepoint_list(open_context(golden("6", "cow_basic").table)) == []


def test_a_pending_savepoint_is_not_listed(golden: Golden) -> None:
    context = open_context(golden("9", "cow_basic").table)
    newest = context.active.load().commits().instants[-1].requested_time
    context.active.to_inflight(newest, Action.SAVEPOINT)
    assert savepoint_list(context) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_a_damaged_savepoint_is_named(golden: Golden, version: str) -> None:
    context = open_context(golden(version, "savepoint_cow").table)
    (instant,) = context.active.load().completed().of_actions(Action.SAVEPOINT)
    path = context.active.path_of(instant)
    context.storage.write(path, b"Obj\x01 but no more")
    with pytest.raises(CorruptFileError) as caught:
        savepoint_list(context)
    assert caught.value.path == path


def test_the_document_of_a_savepoint() -> None:
    saved = savepoint_of("20260101000000000", SavepointMetadata("ann", 5, "why", {"p": ("a", "b"), "q": ("c",)}))
    assert saved == Savepoint("20260101000000000", "ann", 5, "why", 3, existed=True)
    assert saved.to_dict() == {
        "instant": "20260101000000000",
        "by": "ann",
        "at_ms": 5,
        "comment": "why",
        "files": 3,
        "existed": True,
        "deleted": False,
        "removed": {"files": 0, "bytes": 0, "instants": []},
    }
