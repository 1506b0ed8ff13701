"""Slices of version 6 that a downgrade cut off from their base files.

A log file of version 8 or 9 has its own instant in its name, and a downgrade to version 6 renames none: it compacts all
file groups. Read in layout 1 as of an instant before that compaction, each log file is a slice of its own, without the
rows below it. Hudi 0.15 fails there.
"""

from __future__ import annotations

from dataclasses import dataclass

from hudi_core.errors import UnsupportedError
from hudi_core.timeline.actions.commit import replaced_file_groups
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.builder import build_file_groups
from hudi_core.view.file_group import FileGroup, FileSlice
from hudi_core.view.listing import FileListing
from hudi_core.view.slicing import BaseInstantSlicing


def refuse_cut_off(group: FileGroup, item: FileSlice) -> None:
    """Raises UnsupportedError where `item`, at no pending compaction, is cut off from what is below it."""
    if group.is_cut_off(item):
        raise UnsupportedError(
            f"the log files of slice {item.base_instant} have no base file there, as an older writer's of table "
            "version 8 or 9 after a downgrade to 6: which rows lie below them is unknown",
            path=item.log_files[0].path,
            remedy="read at or after the compaction that the downgrade made",
        )


@dataclass(frozen=True, slots=True)
class CutOff:
    """A cut off slice: its first log file, and the instant that ended it, None where it is the newest of its group."""

    path: str
    end: str | None


def cut_off_slices(active: ActiveTimeline, timeline: Timeline, listing: FileListing) -> list[CutOff]:
    """Every cut off slice of a table in layout 1. No plan is read: one that is damaged is not in the way."""
    replaced = replaced_file_groups(timeline, active.read_commit)
    slicing, pending = BaseInstantSlicing(timeline), timeline.pending_compactions().requested_times
    found = []
    for partition in listing.partitions():
        for group in build_file_groups(partition, listing.files(partition), slicing):
            gone = replaced.get(group.id)
            end = None if gone is None else gone.requested_time
            for item in group.slices:
                if item.base_instant not in pending and group.is_cut_off(item):
                    found.append(CutOff(item.log_files[0].path, end))
                end = item.base_instant
    return found
