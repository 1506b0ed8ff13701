from __future__ import annotations

import pytest

from hudi_core.errors import TimelineError
from hudi_core.services.context import TableContext
from hudi_core.services.restore.candidates import restorable_instants
from hudi_core.services.restore.verb import restore
from tests.support.changed_tables import an_owner, open_context
from tests.unit.hudi_core.services.restore.test_job import VERSIONS, Archive, Golden


@pytest.mark.parametrize("version", VERSIONS)
def test_the_dry_run_lists_what_can_be_restored(golden: Golden, version: str) -> None:
    case = golden(version, "savepoint_mor")
    context = open_context(case.table)
    newest = restorable_instants(context)[-1].instant
    document = restore(context, newest, an_owner(), dry_run=True).to_dict()
    assert document["instant"] is None
    assert document["removed"] == {"files": 0, "bytes": 0, "instants": []}
    assert document["reason"] == "nothing was written after it"
    assert [set(item) for item in document["restorable"]] == [{"instant", "action", "savepoint", "reason"}] * 4
    assert [item["reason"] is None for item in document["restorable"]] == [False, True, True, True]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_dry_run_tells_what_the_restore_removes(golden: Golden, version: str) -> None:
    """Not the log files of command blocks, which the restore makes itself and takes away again."""
    table = golden(version, "mor_compacted").table
    target = next(item.instant for item in restorable_instants(open_context(table)) if item.reason is None)
    would = restore(open_context(table), target, an_owner(), dry_run=True).removed.to_dict()
    assert restore(open_context(table), target, an_owner()).removed.to_dict() == would


@pytest.mark.parametrize("version", VERSIONS)
def test_beyond_a_savepoint_that_archival_left_behind_there_is_no_way(golden: Golden, version: str) -> None:
    context = open_context(golden(version, "savepoint_mor").table, {"hoodie.archive.beyond.savepoint": "true"})
    reasons = {item.reason for item in restorable_instants(context)}
    assert any(reason is not None and "hoodie.archive.beyond.savepoint" in reason for reason in reasons)


@pytest.mark.parametrize("version", VERSIONS)
def test_what_archival_took_cannot_be_rolled_back(
    golden: Golden, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A savepoint keeps its commit on the timeline while later ones are archived."""
    context = open_context(golden(version, "savepoint_mor").table)
    first, saved, third, _ = context.active.load().commits()
    for archived in (first, third):
        context.active.undo(archived.requested_time, archived.pending_action)
    monkeypatch.setattr(TableContext, "history", lambda self: Archive(first, third))
    with pytest.raises(TimelineError, match="instants after it are archived"):
        restore(context, saved.requested_time, an_owner())
    monkeypatch.setattr(TableContext, "history", lambda self: Archive(first))
    assert {item.instant: item.reason for item in restorable_instants(context)}[saved.requested_time] is None
