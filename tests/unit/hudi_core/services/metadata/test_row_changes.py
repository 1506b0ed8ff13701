"""A missing commit that is the first on the active timeline: before it, it was not there, though all others
are newer than it; what was archived was there, unless it completed later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.metadata_table.indexed_table import IndexedTable
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.services.context import TableContext
from hudi_core.services.metadata.row_changes import RowChanges, RowsUnknownError
from hudi_core.timeline.instant import Instant
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_group import FileSlice
from hudi_core.view.listing import StorageListing
from tests.support.golden_cleans import context_of
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import Table

Golden = Callable[[str, str], GoldenCase]


def changes_of(context: TableContext) -> RowChanges:
    metadata_timeline = MetadataTimeline(context.storage, context.config)
    return RowChanges(
        context,
        IndexedTable(context.config, {}, {}, {}, None),
        metadata_timeline,
        StorageListing(context.storage),
        context.workers(LocalEngine(1), 1),
    )


def files_of(slices: Iterable[FileSlice | None]) -> set[str]:
    return {file.name for item in slices if item is not None for file in item.files}


@pytest.mark.parametrize("version", ["8", "9"])
def test_its_files_are_no_old_ones(golden: Golden, version: str) -> None:
    table = Table(golden(version, "mor_basic").table)
    context = context_of(table.path, {})
    first, second = table.data.load().commits().instants[:2]
    assert first.completion_time is not None
    # The second one was requested later, and completed before the first.
    timeline = Timeline([first, replace(second, completion_time=str(int(first.completion_time) - 1))])
    metadata = table.data.read_commit(first)
    found = changes_of(context)._changes(timeline, first, metadata)
    written = {stat.path.rpartition("/")[2] for stat in metadata.write_stats()}
    assert written
    assert not written & files_of(change.before for change in found)
    assert written <= files_of(change.after for change in found)


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_archived_commits_were_there(golden: Golden, version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The slices before and after the commit are those of the whole timeline."""
    table = Table(golden(version, "mor_basic").table)
    context = context_of(table.path, {})
    whole = table.data.load()
    *archived, last = whole.commits().instants
    metadata = table.data.read_commit(last)
    expected = changes_of(context)._changes(whole, last, metadata)
    assert files_of(change.before for change in expected)
    archive(monkeypatch, archived)
    assert changes_of(context)._changes(Timeline([last]), last, metadata) == expected
    archive(monkeypatch, [])
    with pytest.raises(RowsUnknownError, match="was cleaned since"):
        changes_of(context)._changes(Timeline([last]), last, metadata)


@pytest.mark.parametrize("version", ["8", "9"])
def test_archived_commits_that_completed_later_were_not(
    golden: Golden, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Table(golden(version, "mor_basic").table)
    context = context_of(table.path, {})
    *_, earlier, later, last = table.data.load().commits().instants
    assert last.completion_time is not None
    metadata = table.data.read_commit(last)
    overtaken = replace(later, completion_time=f"{int(last.completion_time) + 1}")
    archive(monkeypatch, [earlier, overtaken])
    found = changes_of(context)._changes(Timeline([last]), last, metadata)
    before = files_of(change.before for change in found)
    assert before
    assert not {stat.path.rpartition("/")[2] for stat in table.data.read_commit(later).write_stats()} & before


def archive(monkeypatch: pytest.MonkeyPatch, held: list[Instant]) -> None:
    monkeypatch.setattr(TableContext, "history", lambda self: Archive(held))


@dataclass(frozen=True)
class Archive:
    """history.archived.ArchivedTimeline, as far as it is used here."""

    held: list[Instant]

    def instants(self, after: str | None = None, up_to: str | None = None) -> list[Instant]:
        return [item for item in self.held if up_to is None or item.requested_time <= up_to]

    def completion_time(self, requested_time: str) -> str | None:
        return next((item.completed_at for item in self.held if item.requested_time == requested_time), None)
