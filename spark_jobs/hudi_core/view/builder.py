"""From the names of a partition's files and the timeline to file groups and slices. Pure.

Rules of HoodieFileGroup and AbstractTableFileSystemView in Hudi 0.15, timeline layout 1: a base file's slice is the instant in its name,
a log file's slice is the base instant in its name. A slice is visible when its base instant is a completed commit, a pending compaction
(writers put their new logs there), or older than the timeline, whose archived instants were all completed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from hudi_core.errors import UnsupportedVersionError
from hudi_core.model.ids import FileGroupId
from hudi_core.model.names import BaseFileName, LogFileName, parse_data_file
from hudi_core.storage.base import FileInfo
from hudi_core.timeline.instant import COMMIT_ACTIONS, Action
from hudi_core.timeline.query import Timeline
from hudi_core.view.file_group import DataFile, FileGroup, FileSlice

_PENDING_WRITES: Final = COMMIT_ACTIONS | {Action.LOG_COMPACTION, Action.CLUSTERING}


class Visibility:
    """Which instants a reader of `timeline` may see.

    One difference from 0.15, which takes any instant older than the first completed write for an archived one: an instant that the
    timeline itself shows as pending is never committed, however old.
    """

    def __init__(self, timeline: Timeline) -> None:
        self._writes = timeline.visible_writes()
        self._compactions = timeline.pending_compactions().requested_times
        self._pending = timeline.pending().of_actions(*_PENDING_WRITES).requested_times

    def slice_visible(self, base_instant: str) -> bool:
        """Whether a slice of this base instant is visible."""
        return base_instant in self._writes.requested_times or self._archived(base_instant)

    def base_file_visible(self, instant: str) -> bool:
        """Whether the base file that this instant wrote is visible: not while the instant is a pending compaction."""
        return instant not in self._compactions and self.slice_visible(instant)

    def _archived(self, instant: str) -> bool:
        return self._writes.contains_or_before_start(instant) and instant not in self._pending


@dataclass(slots=True)
class _Parts:
    """The files found for one slice."""

    bases: list[DataFile] = field(default_factory=list)
    logs: list[tuple[LogFileName, DataFile]] = field(default_factory=list)


def build_file_groups(
    partition: str, files: Iterable[FileInfo], timeline: Timeline, layout: int = 1, *, compactions: Iterable[tuple[FileGroupId, str]] = ()
) -> list[FileGroup]:
    """The file groups of one partition, sorted by file id; replaced groups are among them.

    `files` are what a listing shows; names that are no data files are passed over. `compactions` are the pending compactions' file groups
    and instants: each gets a slice at that instant, though no file is in it yet. Raises UnsupportedVersionError for a layout other than 1.
    """
    if layout != 1:
        raise UnsupportedVersionError(f"file slices of timeline layout {layout} are not supported", remedy="this release handles layout 1")
    groups: dict[str, dict[str, _Parts]] = defaultdict(dict)
    for info in files:
        parsed = parse_data_file(info.name)
        if parsed is None:
            continue
        parts = groups[parsed.file_id].setdefault(parsed.instant, _Parts())
        data_file = DataFile(partition, info.name, info.size)
        if isinstance(parsed, BaseFileName):
            parts.bases.append(data_file)
        else:
            parts.logs.append((parsed, data_file))
    for group, instant in compactions:
        if group.partition == partition and group.file_id in groups:
            groups[group.file_id].setdefault(instant, _Parts())
    visibility = Visibility(timeline)
    return [_group(FileGroupId(partition, file_id), groups[file_id], visibility) for file_id in sorted(groups)]


def _group(group: FileGroupId, parts: dict[str, _Parts], visibility: Visibility) -> FileGroup:
    visible: list[FileSlice] = []
    hidden: list[FileSlice] = []
    for instant in sorted(parts, reverse=True):
        whole = _slice(group, instant, parts[instant])
        if not visibility.slice_visible(instant):
            hidden.append(whole)
        elif whole.base_file is not None and not visibility.base_file_visible(instant):
            hidden.append(FileSlice(group, instant, whole.base_file))
            visible.append(FileSlice(group, instant, None, whole.log_files, whole.cdc_files))
        else:
            visible.append(whole)
    return FileGroup(group, tuple(visible), tuple(hidden))


def _slice(group: FileGroupId, instant: str, parts: _Parts) -> FileSlice:
    """One slice. Of several base files of one instant, which only a retried task leaves, the longest is the whole one (addBaseFile)."""
    logs = sorted(parts.logs, key=lambda item: item[0].scan_order)
    base = max(parts.bases, key=lambda item: (item.size, item.name), default=None)
    return FileSlice(
        group,
        instant,
        base,
        tuple(data_file for name, data_file in logs if not name.cdc),
        tuple(data_file for name, data_file in logs if name.cdc),
    )
