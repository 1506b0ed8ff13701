"""Finds files of instants that never completed (HoodieTimeline.containsOrBeforeTimelineStarts): a write that was rolled
back and whose upload landed afterwards, or one that died.

A reader takes an instant for committed that is older than the timeline's first commit. Files of such an instant are
visible; those of a later one turn visible when the timeline's first commits are archived.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from hudi_core.services.archive.listing import Search, appended_log_bytes, search
from hudi_core.services.archive.planner import start_after
from hudi_core.services.context import TableContext
from hudi_core.services.doctor.finding import Finding, Observations, OrphanObservations, named_files
from hudi_core.timeline.instant import REPLACING_ACTIONS
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.listing import walk_partitions


def find_orphans(context: TableContext, timeline: Timeline) -> OrphanObservations:
    """Lists the table once, one partition in memory at a time; in version 6, and of log files that are
    named after clusterings, it reads the headers of log blocks as well.

    Instants older than the oldest archived one count as committed, as a truncated archive says nothing about them.
    Raises FormatError for an archive or a log file that is damaged.
    """
    start = start_after(timeline, frozenset())
    if start is None:
        return OrphanObservations(looked=True)
    archived = context.history().timeline()
    known = timeline.commits().requested_times | timeline.pending().requested_times | archived.commits().requested_times
    written = appended_log_bytes(context, timeline)
    resized = (
        timeline.of_actions(*REPLACING_ACTIONS).requested_times
        | archived.of_actions(*REPLACING_ACTIONS).requested_times
    )
    later = Search(start, None, known, written=written, clusterings=resized)
    earlier = replace(later, begin=min(archived.requested_times, default=start), end=start)
    visible: dict[str, list[str]] = {}
    hidden: dict[str, list[str]] = {}
    for partition in walk_partitions(context.storage, context.storage.list_files):
        for requested, found in ((later, hidden), (earlier, visible)):
            for instant, paths in search(context.storage, [partition], requested).orphans.items():
                found.setdefault(instant, []).extend(paths)
    new = context.active.load().requested_times  # instants that started, or completed, while the table was listed
    return OrphanObservations(True, _is_old_enough(visible, frozenset()), _is_old_enough(hidden, new))


def _is_old_enough(found: Mapping[str, list[str]], new: frozenset[str]) -> dict[str, tuple[str, ...]]:
    return {instant: tuple(sorted(set(paths))) for instant, paths in sorted(found.items()) if instant not in new}


def orphans(observed: Observations) -> Iterator[Finding]:
    """Files of instants that never completed."""
    for instant, paths in observed.orphans.visible.items():
        yield Finding(
            "orphan_visible",
            "error",
            f"{named_files(paths, len(paths))} of instant {instant}, which never completed and is older than the "
            "timeline: readers take them for committed",
            "delete them when no writer is at work on that instant; a late upload after a rollback leaves such "
            "files (hudi#18783)",
            instant,
            paths[0],
        )
    for instant, paths in observed.orphans.hidden.items():
        yield Finding(
            "orphan_hidden",
            "warning",
            f"{named_files(paths, len(paths))} of instant {instant}, which is neither completed nor pending: hidden "
            "until the commits before it are archived",
            "delete them when no writer is at work on that instant; our archival refuses to go past them",
            instant,
            paths[0],
        )
