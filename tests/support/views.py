"""Views of tables whose slices depend on no archived instant."""

from __future__ import annotations

from hudi_core.history.archived import ArchivedTimeline
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_system_view import FileSystemView, load_view
from hudi_core.view.listing import FileListing


def view_of(active: ActiveTimeline, listing: FileListing, timeline: Timeline | None = None) -> FileSystemView:
    """A view of the active timeline; opening the archive fails the test."""
    return load_view(active, listing, active.load() if timeline is None else timeline, _no_archive)


def _no_archive() -> ArchivedTimeline:
    raise AssertionError("the archive was opened")
