"""Says which slice of its file group a file belongs to, and whether a reader sees it: one rule for each layout. Makes
the file groups and slices of a partition from the names of its files and the timeline. No I/O. file_system_view.py
chooses a query's slices.

Layout 1 (HoodieFileGroup of Hudi 0.15): a log file's name has the base instant of its slice. A slice is visible when
its base instant is a completed commit, or a pending compaction to which writers append. The scan judges log blocks.

Layout 2 (HoodieFileGroup, AbstractTableFileSystemView, CompletionTimeQueryViewV2 of Hudi 1.x): a log file's name has
the instant that wrote it. Its slice has the largest base instant not after its completion. Files show by their instant.

In both, as in Hudi, nothing archived after a kept savepoint (`hoodie.archive.beyond.savepoint`) is visible.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from typing import Final

from hudi_core.errors import UnsupportedVersionError
from hudi_core.frozen import dataclass
from hudi_core.model.names import FileGroupId, LogFileName, group_and_instant, parse_data_file
from hudi_core.storage.base import FileInfo
from hudi_core.timeline.instant import COMMIT_ACTIONS, Action
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_group import DataFile, FileGroup, FileSlice

PENDING_WRITES: Final = COMMIT_ACTIONS | {Action.LOG_COMPACTION, Action.CLUSTERING}

CompletionOf = Callable[[str], str | None]
"""Returns the completion time of the instant requested at a time, active or archived, or None."""


class Slicing:
    """The rule of one timeline layout over one timeline: layout 2 with `completion_of`, else layout 1.

    An instant older than the timeline was archived as completed. But unlike in Hudi, an instant that the timeline
    itself shows as pending is never committed, however old. In layout 2 files of instants that are not completed are
    not part of the slices, so they cannot draw a committed log into an invisible one. `completion_of` is called only
    for a log older than the newest slice: any other log completed after that slice started.
    """

    def __init__(self, timeline: Timeline, completion_of: CompletionOf | None = None) -> None:
        self._writes = timeline.visible_writes()
        self._compactions = timeline.pending_compactions().requested_times
        self._pending = timeline.pending().of_actions(*PENDING_WRITES).requested_times
        self._completion_of = completion_of
        self.legacy = frozenset(instant.requested_time for instant in timeline if instant.is_legacy)
        """The instants that wrote in layout 1."""

    @property
    def is_by_name(self) -> bool:
        """Whether a log file's name has the base instant of its slice: layout 1."""
        return self._completion_of is None

    def slice_visible(self, base_instant: str) -> bool:
        is_archived = self._writes.contains_or_before_start(base_instant) and base_instant not in self._pending
        return base_instant in self._writes.requested_times or is_archived

    def file_visible(self, instant: str) -> bool:
        """Whether what this instant wrote is visible: not while the instant is a pending compaction."""
        return instant not in self._compactions and self.slice_visible(instant)

    def log_visible(self, instant: str) -> bool:
        """Whether a reader sees the log files with this instant in their names."""
        return self.slice_visible(instant) if self.is_by_name else self.file_visible(instant)

    def joins(self, instant: str, newest: str) -> bool:
        """Whether in layout 2 a log belongs to the newest slice of its group, though its instant is before that one."""
        return self._completion_of is not None and self._base_instant(instant, (newest,), self._completion_of) == newest

    def place(self, log: LogFileName, starts: Sequence[str]) -> tuple[str, bool]:
        """Returns the base instant of the slice that a log file belongs to, and whether a reader sees the file.
        `starts` are the base instants of the group's visible slices so far, ascending. Logs come in scan order.
        """
        if self._completion_of is None or not self.log_visible(log.instant):
            return log.instant, self.log_visible(log.instant)
        return self._base_instant(log.instant, starts, self._completion_of), True

    def _base_instant(self, instant: str, starts: Sequence[str], completion_of: CompletionOf) -> str:
        """Returns the base instant of a log (getBaseInstantTime): its own where no slice started before it."""
        if not starts:
            return instant
        newest = starts[-1]
        if instant >= newest:
            return newest
        if instant in self.legacy and instant in starts:
            # Written in layout 1, before an upgrade: the name is the base instant, whatever the file's time.
            return instant
        completion = completion_of(instant)
        if completion is None:
            return newest
        if len(completion) != len(newest):
            # Times of unequal length do not compare: the requested time counts (CompletionTimeQueryViewV2).
            completion = instant
        before = bisect_right(starts, completion)
        return starts[before - 1] if before else instant


def slicing_for(layout: int, timeline: Timeline, completion_of: CompletionOf) -> Slicing:
    """Returns the rule of a timeline layout. Raises UnsupportedVersionError for one that does not exist."""
    if layout in (1, 2):
        return Slicing(timeline, completion_of if layout == 2 else None)
    remedy = "layouts 1 and 2 are"
    raise UnsupportedVersionError(f"file slices of timeline layout {layout} are not supported", remedy=remedy)


@dataclass(slots=True)
class _Files:
    """The files found for one group: base files by instant, log files, and the instants of pending compactions."""

    bases: dict[str, list[DataFile]] = field(default_factory=dict)
    logs: list[tuple[LogFileName, DataFile]] = field(default_factory=list)
    compactions: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Parts:
    bases: list[DataFile] = field(default_factory=list)
    logs: list[tuple[LogFileName, DataFile]] = field(default_factory=list)


def build_file_groups(
    partition: str, files: Iterable[FileInfo], slicing: Slicing, *, compactions: Iterable[tuple[FileGroupId, str]] = ()
) -> list[FileGroup]:
    """Returns the file groups of one partition, sorted by file id, also replaced ones. `files` are what a listing
    shows. `compactions` are the pending compactions' file groups and instants: each gets a slice at that instant.
    """
    groups: dict[str, _Files] = defaultdict(_Files)
    for info in files:
        name = info.name
        if name.startswith("."):
            log = parse_data_file(name)
            if isinstance(log, LogFileName):
                groups[log.file_id].logs.append((log, DataFile(partition, name, info.size)))
        elif (owner := group_and_instant(name)) is not None:
            file_id, instant = owner
            groups[file_id].bases.setdefault(instant, []).append(DataFile(partition, name, info.size))
    for group, instant in compactions:
        if group.partition == partition and group.file_id in groups:
            groups[group.file_id].compactions.append(instant)
    return [_group(FileGroupId(partition, file_id), groups[file_id], slicing) for file_id in sorted(groups)]


def _group(group: FileGroupId, files: _Files, slicing: Slicing) -> FileGroup:
    """Adds base files, then pending compactions, then logs in scan order, as HoodieFileGroup does."""
    visible: dict[str, _Parts] = {}
    hidden: dict[str, _Parts] = {}
    for instant, bases in files.bases.items():
        parts = visible if slicing.file_visible(instant) else hidden
        parts[instant] = _Parts(bases)
    for instant in files.compactions:
        visible.setdefault(instant, _Parts())
    starts = sorted(visible)
    for name, data_file in sorted(files.logs, key=lambda item: item[0].scan_order):
        instant, shown = slicing.place(name, starts)
        if shown and instant not in visible:
            insort(starts, instant)
        (visible if shown else hidden).setdefault(instant, _Parts()).logs.append((name, data_file))
    return FileGroup(group, _slices(group, visible), _slices(group, hidden))


def _slices(group: FileGroupId, parts: dict[str, _Parts]) -> tuple[FileSlice, ...]:
    if not parts:
        return ()  # hidden ones mostly are empty: no generator for each of many file groups
    return tuple(_slice(group, instant, parts[instant]) for instant in sorted(parts, reverse=True))


def _slice(group: FileGroupId, instant: str, parts: _Parts) -> FileSlice:
    """Returns a slice. The longest of a retried task's base files of one instant is whole (addBaseFile)."""
    base = (
        parts.bases[0]
        if len(parts.bases) == 1
        else max(parts.bases, key=lambda file: (file.size, file.name), default=None)
    )
    if not parts.logs:
        return FileSlice(group, instant, base, (), ())
    logs, cdc_files = (
        tuple(data_file for name, data_file in parts.logs if name.cdc is is_cdc) for is_cdc in (False, True)
    )
    return FileSlice(group, instant, base, logs, cdc_files)
