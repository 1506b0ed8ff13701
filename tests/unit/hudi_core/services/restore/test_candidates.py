from __future__ import annotations

import pytest

from hudi_core.errors import TimelineError
from hudi_core.services.context import TableContext
from hudi_core.services.restore.candidates import restorable_instants
from hudi_core.services.restore.savepoint import savepoint_create
from hudi_core.services.restore.verb import restore
from tests.support.changed_tables import an_owner, open_context
from tests.support.golden_archives import archive_these
from tests.unit.hudi_core.services.restore.test_job import VERSIONS, Archive, Golden


@pytest.mark.parametrize("version", VERSIONS)
def test_archival_beyond_savepoints_refuses_every_restore(golden: Golden, version: str) -> None:
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
        context.active.delete_instant(archived.requested_time, archived.pending_action)
    monkeypatch.setattr(TableContext, "history", lambda self: Archive(first, third))
    with pytest.raises(TimelineError, match="instants after it are archived"):
        restore(context, saved.requested_time, an_owner())
    monkeypatch.setattr(TableContext, "history", lambda self: Archive(first))
    assert {item.instant: item.reason for item in restorable_instants(context)}[saved.requested_time] is None


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", ["cleaned_versions_cow", "cleaned_commits_mor"])
def test_cleans_that_were_archived_count(golden: Golden, version: str, case: str) -> None:
    table = golden(version, case).table
    before = restorable_instants(open_context(table))
    lost = [item.instant for item in before if item.reason and "cleans may have removed files" in item.reason]
    assert lost
    archive_these(table, open_context(table).active.load().completed().of_actions("clean"))
    assert restorable_instants(open_context(table)) == before
    with pytest.raises(TimelineError, match="cleans may have removed files"):
        savepoint_create(open_context(table), lost[-1], an_owner())
